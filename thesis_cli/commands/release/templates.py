"""Schemas that `dp-release --init-schema` writes: one to fill in, or one with rules that public rows suggest.
No value of a private table is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thesis_cli.base.columns import Columns
from thesis_cli.commands.inputs.tables import TableSource, read_rows, table_label

if TYPE_CHECKING:
    from thesis_cli.privacy.tables.schema import Schema


def to_fill_in(table: TableSource, query: str | None, delimiter: str | None) -> tuple[str, Columns]:
    """Text of a schema without ranges and values, and the columns of the table with their storage types."""
    from thesis_cli.privacy.tables.schema import template
    from thesis_cli.privacy.tables.table import open_table

    columns = open_table(table, query, delimiter=delimiter or "").columns
    return template(columns), Columns({"column": list(columns), "storage": list(columns.values())})


def with_rules(schema: Schema, public: TableSource, delimiter: str | None) -> tuple[str, Columns]:
    """Text of the schema with the rules that public rows suggest, and these rules."""
    from thesis_cli.privacy.tables.suggestions import with_suggestions

    text, rules = with_suggestions(schema, read_rows(public, schema, delimiter=delimiter), table_label(public))
    return text, Columns({"rule": list(rules)})
