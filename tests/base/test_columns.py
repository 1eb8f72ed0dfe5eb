import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.columns import BLOCK, Columns

NUMBERS = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.floats(), st.booleans())
TEXTS = st.one_of(st.none(), st.text(st.sampled_from('a",\n; é'), max_size=4))
LISTS = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.one_of(*(st.lists(kind, min_size=n, max_size=n) for kind in (NUMBERS, TEXTS))), min_size=1)
)


def by_pandas(columns):
    return columns.frame().to_csv(index=False, lineterminator="\n")


@settings(max_examples=examples(25))
@given(LISTS)
def test_the_text_of_lists_is_that_of_pandas(lists):
    columns = Columns({f"c{k}": values for k, values in enumerate(lists)})
    assert columns.csv() == by_pandas(columns)


@pytest.mark.parametrize(
    "source",
    [
        [{"a": 1, "b": 2.5}, {"c": "x", "a": None}],
        [{"a": True, "b": None}, {"a": None, "b": None}],
        [{"a": 10**30}, {"a": 7}],
        {"a": np.array([0.1, -0.0, np.inf, np.nan, 1e300]), "b": np.array([True, False, True, True, False])},
        {"a": np.arange(3, dtype=np.uint64), "b": np.array(["x", "y,", ""])},
        {"a": np.arange(BLOCK + 1)},
    ],
)
def test_the_text_of_rows_and_arrays_is_that_of_pandas(source):
    columns = Columns(source)
    assert columns.csv() == by_pandas(columns)


def test_whole_numbers_stay_whole_beside_none():
    columns = Columns([{"rank": 1, "cost": 2}, {"rank": None, "cost": None}], whole=("rank",))
    assert columns.csv() == by_pandas(columns) == "rank,cost\n1,2.0\n,\n"
    assert columns.records() == [{"rank": 1, "cost": 2.0}, {"rank": None, "cost": None}]


def test_other_text_takes_the_place_of_whole_cells():
    columns = Columns({"file": ["/a/m.uai", "/a/m.uai2"], "size": [1, 2]})
    assert columns.replacing({"/a/m.uai": "m.uai"}).csv() == "file,size\nm.uai,1\n/a/m.uai2,2\n"


def test_parts_of_the_text_are_of_bounded_length_and_make_it():
    columns = Columns({"a": np.arange(2 * BLOCK), "b": [f"{k}," for k in range(2 * BLOCK)]})
    parts = list(columns.csv_parts())
    assert "".join(parts) == columns.csv() == by_pandas(columns)
    assert max(part.count("\n") for part in parts) <= BLOCK // 2 + 1
    assert list(Columns({"a": []}).csv_parts()) == ["a\n"]


def test_what_ends_a_line_is_quoted():
    columns = Columns({"\r": ["x\ry", "\n"], "b": ["", "a\r\n"]})
    read = list(csv.reader(io.StringIO(columns.csv(), newline="")))
    assert read == [["\r", "b"], ["x\ry", ""], ["\n", "a\r\n"]]
