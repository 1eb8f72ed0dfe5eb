"""Tables as commands take them: the same rows from every form of CSV."""

import gzip
import io

import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.commands.inputs.tables import read_rows, table_stem
from thesis_cli.privacy.tables.schema import Integer, Schema

RELEASE = ROOT / "data/releases/people.csv"
SCHEMA = ROOT / "data/tables/people.toml"
PEOPLE = (ROOT / "data/tables/people.csv").read_bytes().splitlines(keepends=True)
LINES = PEOPLE[:200]


@pytest.fixture
def packed(tmp_path):
    """The example's first rows with semicolons, in gzip."""
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"".join(LINES).replace(b",", b";")))
    return path


def test_stems():
    assert [table_stem(x) for x in ("a/b.csv.gz", "b.csv", "-", "sqlite:///b.db?x=1", LINES)] == ["b", "b", "", "b", ""]


def test_a_release_of_any_form(packed, tmp_path, monkeypatch):
    told = {"schema": SCHEMA, "epsilon": 1, "delta": 1e-6, "size": 20, "rows": 4, "jobs": 1}
    assert tc.dp_release(packed, **told).record.promise.rows == len(LINES) - 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
    del told["size"]
    others = tmp_path / "others.csv"
    others.write_bytes(b"".join([PEOPLE[0], *PEOPLE[300:320]]).replace(b",", b";"))
    found = tc.dp_release("-", **told, public=others, delimiter=";")
    assert (found.record.size, found.record.promise.rows) == (20, len(LINES) - 1)


def test_holdouts_and_other_tables_of_any_form(packed):
    query = ["regress(age, smoker)"]
    plain = packed.with_name("plain.csv")
    plain.write_bytes(b"".join(LINES))
    scores = [
        tc.dp_query(RELEASE, query, holdout=table, replicates=0, delimiter=";" if table is packed else None)
        for table in (packed, plain)
    ]
    assert scores[0].answers[0].scored == scores[1].answers[0].scored
    tests = [tc.dp_test(RELEASE, table, seed=1, permutations=9).facts() for table in (packed, plain)]
    assert tests[0] == tests[1]


def test_a_delimiter_is_for_csv():
    with pytest.raises(InputError, match="--delimiter is given without a CSV file"):
        tc.dp_release("sqlite:///a.db", query="select 1", schema=SCHEMA, epsilon=1, delimiter=";")
    with pytest.raises(InputError, match="--delimiter is given without a CSV file"):
        tc.dp_query(RELEASE, ["mean(age)"], delimiter=";")
    with pytest.raises(InputError, match="it must be one character"):
        tc.dp_test(RELEASE, "a.csv", delimiter=";;")


def test_names_that_are_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("2019;2020\n1;2\n")
    assert read_rows(tmp_path / "a.csv", Schema((Integer("2020", 0, 4),))).reals.tolist() == [[0.5]]
