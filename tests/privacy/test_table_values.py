"""Values that no package can convert: one line that has the place and never the value."""

import datetime as dt
import sqlite3
import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzzing import damaged
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema
from thesis_cli.privacy.tables.table import encoded_rows, open_table

SECRET = "7311"
COLUMNS = [
    Real("x", 0, 9, missing=True),
    Integer("x", 0, 9),
    Category("x", ("a", "b")),
    Category("x", ("a", "b"), ordered=True),
    Boolean("x"),
]


class Unwilling:
    """An object that has no text."""

    def __repr__(self):
        raise RuntimeError(SECRET)


def integers(*values, kind):
    return pa.array(values, pa.int64()).view(kind)


NOT_TEXT = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"a\xff\xfe")]
)
PARQUET = {
    "a date of the year 200,000": pa.array([0, 7311 * 10**4], pa.int32()).cast(pa.date32()),
    "milliseconds": integers(0, 7311 * 10**13, kind=pa.timestamp("ms")),
    "a time zone": integers(0, 7311 * 10**13, kind=pa.timestamp("ms", "Europe/Berlin")),
    "no time zone": integers(0, 7311, kind=pa.timestamp("us", "No/Where")),
    "a time of day": integers(0, 7311 * 10**14, kind=pa.time64("us")),
    "a duration": integers(0, 7311 * 10**14, kind=pa.duration("s")),
    "no UTF-8": NOT_TEXT,
    "no UTF-8 in a dictionary": NOT_TEXT.dictionary_encode(),
    "a list": pa.ListArray.from_arrays(pa.array([0, 1, 2]), NOT_TEXT),
    "a struct": pa.StructArray.from_arrays([NOT_TEXT, NOT_TEXT], ["k", "k"]),
    "a map": pa.array([[], [("a", 7311)]], pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"7311", b"\xff"]),
}
FRAMES = {
    "many types": [1, b"7311", dt.date(7311, 1, 1), [7311], {"a": 7311}, 7311j, pd.Period("7311"), np.zeros(3)],
    "an object without text": [Unwilling(), 1],
    "a signaling NaN": [Decimal("sNaN7311"), 1],
    "an arrow of time": pd.array(integers(0, 7311 * 10**14, kind=pa.timestamp("s")), dtype="timestamp[s][pyarrow]"),
    "no UTF-8": pd.array(NOT_TEXT, dtype=pd.ArrowDtype(pa.string())),
}


def refused(source, column, query=None):
    """The error: one line with the place, without the value, which no traceback has either."""
    table = open_table(source, query)
    assert table.count() > 0
    with pytest.raises(InputError) as caught:
        list(encoded_rows(table, Schema((column,)), 3))
    told = "".join(traceback.format_exception(caught.value, chain=True))
    assert SECRET not in told
    assert "\n" not in str(caught.value)
    assert "column 'x': row " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", PARQUET)
def test_values_of_parquet_files(name, tmp_path):
    pq.write_table(pa.table({"x": PARQUET[name]}), tmp_path / "a.parquet")
    for column in COLUMNS:
        refused(tmp_path / "a.parquet", column)


@pytest.mark.parametrize("name", FRAMES)
def test_values_of_data_frames(name):
    frame = pd.DataFrame({"x": pd.Series(FRAMES[name], dtype=getattr(FRAMES[name], "dtype", object))})
    for column in COLUMNS:
        refused(frame, column)


def test_a_whole_number_of_any_length_is_clamped_or_refused():
    frame = pd.DataFrame({"x": pd.Series([10**5000, -(10**5000), 3], dtype=object)})
    found = Rows.concatenate(list(encoded_rows(open_table(frame), Schema((Integer("x", 0, 6),)), 2)))
    assert found.reals[:, 0].tolist() == [1, 0, 0.5]
    assert "row 1 cannot be read; it must be one of its levels" in refused(frame, COLUMNS[2])
    table = open_table(frame)
    list(table.chunks(1))
    frame.loc[0, "x"] = 10**5000 + 1
    with pytest.raises(InputError, match="the table changed"):
        list(table.chunks(3))


def test_texts_of_sqlite_that_are_not_utf_8(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as base:
        base.execute("create table t (x)")
        base.execute("insert into t values (cast(x'ff37333131' as text)), (x'37333131')")
    base.close()
    for column in COLUMNS:
        refused(f"sqlite:///{tmp_path}/a.db", column, "select x from t")


def test_names_that_are_not_utf_8(tmp_path):
    name = "abcdefgh"
    pq.write_table(pa.table({name: [1]}), tmp_path / "a.parquet", store_schema=False)
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(name.encode(), b"abcd\xff\xfegh"))
    with pytest.raises(InputError, match=r"a\.parquet: .*; it must be a Parquet file"):
        open_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x\n1\n" + b"7311" * 40_000 + b"\n", ":3: a cell has more than 131,072 characters"),
        (b'x\n1\n"7311' + b"1\n" * 80_000, ":65537: a cell has more than 131,072 characters"),
        (b"x,y\n1,2\n7311\xff,1\n", ":3: it is not UTF-8"),
        ("x\n7311\n".encode("utf-16"), ":1: it is not UTF-8"),
        (b'x\n"7311"7311,1\n', ":2: ',' expected after"),
    ],
)
def test_cells_of_csv_files(content, message, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(encoded_rows(open_table(tmp_path / "a.csv"), Schema((COLUMNS[0],))))
    assert message in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


TYPED = pa.table(
    {
        "x": pa.array([7311, None, 3], pa.int64()),
        "born": pa.array([0, 1, None], pa.int32()).cast(pa.date32()),
        "seen": integers(0, 1, 2, kind=pa.timestamp("us")),
        "text": ["7311", "b", None],
        "price": [Decimal("1.5"), None, Decimal("2.5")],
    }
)


def test_damaged_parquet_files(tmp_path, monkeypatch):
    pq.write_table(TYPED, tmp_path / "a.parquet", compression="none")
    data, seen = (tmp_path / "a.parquet").read_bytes(), set()
    schema = Schema(
        (Real("x", 0, 9, missing=True), Category("text", ("a", "b"), missing=True), Category("born", ("a", "b")))
    )
    for seed in range(60):
        (tmp_path / "a.parquet").write_bytes(damaged(data, np.random.default_rng(seed), text=False))
        try:
            list(encoded_rows(open_table(tmp_path / "a.parquet"), schema, unknown="missing"))
        except InputError as error:
            seen.add(str(error).partition(": ")[2])
    assert len(seen) > 1
    assert SECRET not in " ".join(seen)
