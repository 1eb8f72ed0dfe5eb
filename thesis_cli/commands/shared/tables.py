"""Open what a command takes as a table: a file, a query of a database, or a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.wording import without_secrets

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.schema import Schema, Unknown

    TableSource = str | Path | pd.DataFrame
    """A path of a CSV or Parquet file, the URL of a database, or a DataFrame."""
else:
    TableSource = str


def read_rows(source: TableSource, schema: Schema, query: str | None = None, unknown: Unknown = "error") -> Rows:
    """All rows of a table, encoded by a schema.

    Raises
    ------
    InputError : the table cannot be read, has no rows, or has a value that the schema does not
        take.
    """
    from thesis_cli.base.errors import InputError
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.table import encoded_rows, open_table

    table = open_table(source, query)
    found = list(encoded_rows(table, schema, unknown=unknown))
    if not found:
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    return Rows.concatenate(found)


def table_label(source: TableSource) -> str:
    """How a table is called in tables and messages: its path, its URL without a password, or its
    type.
    """
    return without_secrets(str(source)) if isinstance(source, str | Path) else f"<{type(source).__name__}>"
