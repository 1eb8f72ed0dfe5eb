"""Private tables whose storage has types: Parquet files and DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.base.extras import extra
from thesis_cli.base.files import open_regular
from thesis_cli.privacy.tables.column import Values
from thesis_cli.privacy.tables.table_base import Block, Table, converted, unique_columns

if TYPE_CHECKING:
    import pandas as pd


class ParquetTable(Table):
    """A Parquet file, read in batches; it needs pyarrow."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._file() as file:
            schema = file.schema_arrow
            types = {field.name: _arrow_storage(field.type) for field in schema}
            super().__init__(path, unique_columns(types, schema.names, path))

    @contextmanager
    def _file(self) -> Iterator[Any]:
        parquet, arrow = extra("pyarrow.parquet"), extra("pyarrow")
        try:
            open_regular(self._path).close()
            with parquet.ParquetFile(self._path) as file:
                yield file
        except (arrow.ArrowException, OSError):
            raise InputError("it cannot be read", "it must be a Parquet file", source=self._path) from None
        except UnicodeDecodeError:
            problem = "the name of a column is not UTF-8"
            raise InputError(problem, "it must be a Parquet file", source=self._path) from None

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        with self._file() as file:
            if not names:
                yield file.metadata.num_rows, {}
                return
            for batch in file.iter_batches(batch_size=size, columns=list(names)):
                yield len(batch), {name: _arrow_values(batch.column(name)) for name in names}


class FrameTable(Table):
    """A DataFrame of pandas; its index is ignored."""

    def __init__(self, frame: pd.DataFrame, query: str | None = None) -> None:
        import pandas as pd

        source = f"<{type(frame).__name__}>"
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"{source} is not a table", "give a path, the URL of a database, or a DataFrame")
        if query is not None:
            raise InputError("--query is for a database", "give the URL of a database", source=source)
        if not all(isinstance(name, str) for name in frame.columns):
            raise InputError("the name of a column is not a text", "give names that are texts", source=source)
        self._frame = frame
        types = {name: _pandas_storage(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)}
        super().__init__(source, unique_columns(types, list(frame.columns), source))

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        for start in range(0, len(self._frame), size):
            part = self._frame.iloc[start : start + size]
            yield len(part), {name: _pandas_values(part[name]) for name in names}


def _arrow_storage(kind: Any) -> str:
    types = extra("pyarrow").types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date" if types.is_date(kind) else "datetime"
    return "real" if types.is_floating(kind) or types.is_decimal(kind) else "text"


def _arrow_values(values: Any) -> Values:
    """Values whose type does not depend on where a part begins: whole numbers beside gaps stay
    whole.
    """
    types = extra("pyarrow").types
    if types.is_floating(values.type) or (types.is_integer(values.type) and not values.null_count):
        numbers: Values = values.to_numpy(zero_copy_only=False)
        return numbers
    return converted(values.to_pylist, lambda index: values[index].as_py(), len(values))


def _pandas_storage(kind: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(kind):
        return "boolean"
    if types.is_integer_dtype(kind):
        return "integer"
    if types.is_datetime64_any_dtype(kind):
        return "datetime"
    return "real" if types.is_float_dtype(kind) else "text"


def _pandas_values(values: pd.Series[Any]) -> Values:
    """Numbers of NumPy's types as they are; anything else as objects, with None for missing
    values.
    """
    if values.dtype.kind in "biuf" and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    return converted(lambda: _pandas_list(values), lambda i: _pandas_list(values.iloc[i : i + 1])[0], len(values))


def _pandas_list(values: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)]
