import datetime as dt
import re
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.query.query import ask
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.privacy.release.exponential import enumerate_domain
from thesis_cli.privacy.tables.columns import KINDS
from thesis_cli.privacy.tables.dates import Date, DateTime, text_of_day
from thesis_cli.privacy.tables.schema import Integer, Schema, template
from thesis_cli.privacy.tables.table import encoded_rows, open_table

DAYS = Date("x", "2020-01-01", "2020-01-11")
TIMES = DateTime("x", "2020-01-01", "2020-01-11", missing=True)
MOMENTS = [dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 6, 12, 30, 1), dt.datetime(1999, 1, 1)]


def back(column, values):
    """Values, encoded and decoded."""
    schema = Schema((column,))
    return schema.decode(schema.encode({"x": np.array(values, object)}))["x"].tolist()


@given(st.data(), st.booleans(), st.booleans())
def test_what_is_within_the_bounds_comes_back(data, times, missing):
    kind, values = (DateTime, st.datetimes()) if times else (Date, st.dates())
    low, high = sorted(data.draw(st.lists(values, min_size=2, max_size=2, unique_by=lambda x: str(x)[:19])))
    if times and (high - low).total_seconds() < 1:
        return
    column = kind("x", low, high, missing)
    assert KINDS[column.kind] is kind
    schema = Schema((column,))
    assert Schema.parse(schema.to_toml()) == schema
    texts = [value.isoformat()[:19] for value in data.draw(st.lists(values))] + [None] * missing
    clamped = [text if text is None else min(max(text, column.low), column.high) for text in texts]
    assert back(column, texts) == clamped
    days = column.numbers(np.array(clamped, object))
    assert [text_of_day(day, column.kind) for day in days] == [x or "" for x in clamped]
    assert column.of_numbers(days[~np.isnan(days)]).tolist() == clamped[: len(texts) - missing]


def test_values_of_all_kinds():
    texts = ["2020-01-02", "2020-01-06T12:30:01", "1999-01-01 00:00"]
    for values in (texts, MOMENTS, [np.datetime64(x, "ns") for x in MOMENTS], list(map(pd.Timestamp, MOMENTS))):
        assert back(DAYS, values) == ["2020-01-02", "2020-01-06", "2020-01-01"]
        assert back(TIMES, values) == ["2020-01-02T00:00:00", "2020-01-06T12:30:01", "2020-01-01T00:00:00"]
    offset = ["2020-01-02T23:00:00-05:00", "2020-01-02T05:00Z"]
    assert back(TIMES, offset) == ["2020-01-03T04:00:00", "2020-01-02T05:00:00"]
    assert back(DAYS, offset) == ["2020-01-02"] * 2
    assert back(DAYS, ["infinity", "-infinity", "9999-12-31", "20200104"]) == [
        *("2020-01-11", "2020-01-01") * 1,
        "2020-01-11",
        "2020-01-04",
    ]
    assert back(TIMES, [None, "", pd.NaT, np.datetime64("NaT"), float("nan")]) == [None] * 5
    array = Schema((TIMES,)).encode({"x": np.array(["2020-01-06", "NaT"], "M8[ns]")})
    assert (array.reals.tolist(), array.codes.tolist()) == ([[0.5], [0.5]], [[0], [1]])


@pytest.mark.parametrize(
    "value", ["06.01.2020", "2020-13-01", "secret", 20200106, 1.5, b"2020-01-06", dt.time(1), "20000-01-01"]
)
def test_what_is_no_date_is_placed_and_not_named(value):
    with pytest.raises(InputError) as caught:
        back(DAYS, ["2020-01-06", value])
    assert str(caught.value) == "column 'x': row 2 cannot be read; it must be a date such as 2020-01-31"
    with pytest.raises(InputError, match="row 1 cannot be read"):
        Schema((DAYS,)).encode({"x": np.array([5, 6])})


def test_tables_of_all_kinds(tmp_path):
    frame = pd.DataFrame({"x": MOMENTS, "day": [moment.date() for moment in MOMENTS]})
    frame["zone"] = frame["x"].dt.tz_localize("UTC").dt.tz_convert("America/Lima")
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    with sqlite3.connect(tmp_path / "a.db") as base:
        frame.astype(str).to_sql("t", base, index=False)
    base.close()
    schema = Schema((TIMES, Date("day", "2020-01-01", "2020-01-11"), DateTime("zone", "2020-01-01", "2020-01-11")))
    plain = schema.encode({"x": np.array(MOMENTS), "day": np.array(MOMENTS), "zone": np.array(MOMENTS)})
    tables = [open_table(source) for source in (frame, tmp_path / "a.parquet", tmp_path / "a.csv")]
    for table in (*tables, open_table(f"sqlite:///{tmp_path}/a.db", "select * from t")):
        np.testing.assert_array_equal(Rows.concatenate(list(encoded_rows(table, schema))).reals, plain.reals)
    assert list(tables[0].columns.values()) == ["datetime", "text", "datetime"]
    assert list(tables[1].columns.values()) == ["datetime", "date", "datetime"]
    text = template(tables[1].columns)
    with pytest.raises(InputError, match="column 'x': it has no low"):
        Schema.parse(text)
    filled = re.sub('# TODO high = "..."', "high = 2020-01-11", re.sub('# TODO low = "..."', "low = 2020-01-01", text))
    assert [column.kind for column in Schema.parse(filled).columns] == ["datetime", "date", "datetime"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("low = 3\nhigh = '2020-01-01'", "low is 3; it must be a date"),
        ("low = '2020-01-01'\nhigh = 'soon'", "high is 'soon'; it must be a date"),
        ("low = 2020-01-02\nhigh = 2020-01-02", "low 2020-01-02 is not before high 2020-01-02"),
        ("low = 2020-01-02", "it has no high"),
        ("low = 10:00:00\nhigh = 2020-01-02", "low is 10:00:00"),
        ("low = 'infinity'\nhigh = 2020-01-02", "low is 'infinity'"),
    ],
)
def test_bad_bounds(text, message):
    with pytest.raises(InputError, match=message):
        Schema.parse(f"[columns.x]\ntype = 'date'\n{text}\n")


def test_a_timestamp_is_a_datetime():
    text = "[columns.x]\ntype = 'timestamp'\nlow = 2020-01-01\nhigh = 2020-01-11T00:00:00\nmissing = true"
    assert Schema.parse(text).columns == (TIMES,)


SAMPLE_SCHEMA = Schema(
    (
        Date("born", "1990-01-01", "2000-12-31", missing=True),
        DateTime("seen", "2020-01-01", "2021-01-01"),
        Integer("n", 0, 9),
    )
)
SAMPLE = WeightedSample.of_rows(
    SAMPLE_SCHEMA,
    SAMPLE_SCHEMA.encode(
        {
            "born": np.array(["1990-01-01", "1990-01-03", "2000-12-31", None], object),
            "seen": np.array(["2020-01-01", "2020-01-01T12:00:00", "2020-06-01", "2021-01-01"], object),
            "n": np.array([1, 2, 3, 4]),
        }
    ),
)


@pytest.mark.parametrize(
    ("query", "value", "date"),
    [
        ('prob(born >= "1990-01-03")', 2 / 3, ""),
        ('prob("1990-01-01" <= born < "1990-01-03" or missing(born))', 1 / 2, ""),
        ('prob(born in ("1990-01-03", "2000-12-31"))', 2 / 3, ""),
        ('prob(seen == "2020-01-01T12:00:00")', 1 / 4, ""),
        ("prob(born < seen)", 1, ""),
        ('prob(max(born + 2, born) == "1990-01-03", where=n == 1)', 1, ""),
        ('mean(born, where=born < "1995-01-01")', 7306, "1990-01-02"),
        ("median(born)", 7307, "1990-01-03"),
        ('mean(seen, where=seen < "2020-02-01")', 18262.25, "2020-01-01T06:00:00"),
        ("mean(seen - born, where=n == 1)", 10957, ""),
        ("mean(born + n, where=n == 1)", 7306, "1990-01-02"),
        ("mean(born * 2, where=n == 1)", 14610, ""),
        ("sd(born, where=n <= 2)", 1, ""),
    ],
)
def test_queries(query, value, date):
    (row,) = ask(SAMPLE, query, 4).rows
    assert row.value == pytest.approx(value, rel=1e-12)
    assert row.date == date


def test_histograms_and_groups():
    found = ask(SAMPLE, "histogram(born, bins=11)", 4)
    assert (found.dates, found.rows[0].group, found.rows[-1].group) == (
        True,
        "1990-01-01 to 1991-01-01",
        "2000-01-09 to 2000-12-31",
    )
    assert [row.value for row in found.rows] == pytest.approx([2 / 3, *[0] * 9, 1 / 3])
    assert ask(SAMPLE, "histogram(seen, bins=2)", 4).rows[0].group == "2020-01-01T00:00:00 to 2020-07-02T00:00:00"
    assert [row.group for row in ask(SAMPLE, "mean(n, by=born)", 4).rows] == ["1990-01-01", "1990-01-03", "2000-12-31"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("prob(born > 3)", "3 is a number; it must be a date, as born is"),
        ("prob(n > born)", "n is a number; it must be a date"),
        ('prob(born > "soon")', "'soon' is no date; born is one"),
        ('prob(born > "infinity")', "is no date"),
        ('prob(n > "2020-01-01")', "n is a number; it must be a category"),
    ],
)
def test_bad_comparisons(query, message):
    with pytest.raises(InputError, match=message):
        ask(SAMPLE, query, 4)


def test_days_of_a_domain():
    domain = enumerate_domain(Schema((DAYS,)))
    assert Schema((DAYS,)).decode(domain)["x"].tolist()[::5] == ["2020-01-01", "2020-01-06", "2020-01-11"]
    assert len(domain) == 11
