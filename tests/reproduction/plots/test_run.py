import hashlib
import json

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.plots import run as runs
from thesis_cli.reproduction.plots.kinds import kind_of
from thesis_cli.reproduction.plots.run import read_run

HEADING = "model,seed,value,standard_error,low,high,target,kind,confidence,map_calls,method,source,exponent10\n"
ROW = "m,1,2.5,0.5,1.5,3.5,ln Z,unbiased,0.95,10,gumbel,here,0\n"


@pytest.fixture
def table(tmp_path):
    """Write a table and, if it is given, a record beside it; returns the file of the table."""

    def write(text, record=None, name="run"):
        path = tmp_path / f"{name}.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        if record is not None:
            path.with_suffix(".json").write_text(record if isinstance(record, str) else json.dumps(record))
        return path

    return write


def test_a_table_is_what_its_record_says(table):
    run = read_run(table(HEADING + ROW, {"command": "posterior", "settings": {"samples": 10}}))
    assert (run.kind, run.settings["samples"], run.parameters, run.faults) == ("posterior", 10, (), ())
    assert kind_of(run) == "posterior"
    assert run.numbers("value") == [2.5]
    assert run.texts("exponent10") == ["0"]


def test_options_of_a_sweep_end_with_the_seed(table):
    record = {"command": "spin-glass", "task_file": "tasks.json"}
    run = read_run(table("size,model_seed,seed,rows,field,value\n6x6,1,0,6,1.0,2\n", record))
    assert run.kind == kind_of(run) == "sweep"
    assert run.parameters == ("size", "model_seed", "seed")
    assert read_run(table("a,field,seed\n1,2,3\n", record)).parameters == ()


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (HEADING + ROW, "estimate-z"),
        ("order," + HEADING + "1," + ROW, "renyi"),
        ("variable,state\n0,1\n", "map"),
        ("variable,state,probability\n0,1,1\n", "marginals"),
        ("query,group,statistic,value\nmean(x),,mean,1\n", "dp-query"),
    ],
)
@pytest.mark.parametrize("record", [None, "{", "[]"])
def test_without_a_record_the_columns_tell(table, text, command, record):
    run = read_run(table(text, record))
    assert kind_of(run) == command
    word = "missing" if record is None else "damaged"
    assert run.faults == (f"run.json is {word}: what the table is of is told by its columns",)


def test_a_table_that_was_changed_is_told_by_its_digest_and_by_its_estimates(table):
    text = HEADING + ROW
    digest = hashlib.sha256(text.encode()).hexdigest()
    for record in ({"command": "x", "sha256": digest}, {"command": "x", "estimates": [{"value": 2.5}]}):
        assert read_run(table(text, record)).faults == ()
        (fault,) = read_run(table(text.replace("2.5", "2.6"), record)).faults
        assert fault == "run.csv is not the table that run.json describes: it was changed afterwards"


def test_releases_and_measurements_are_known_by_the_formats_of_their_records(table):
    assert read_run(table("a\n1\n", {"format": "thesis-cli private release 1"})).kind == "dp-release"
    assert read_run(table("a\n1\n", {"format": "thesis-cli private measurement 1"})).kind == "dp-measure"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("\n\n", "has no heading"),
        (HEADING, "has a heading and no rows"),
        ("a,a\n1,2\n", "has the column 'a' twice"),
        ("a,b\n1,2,3\n4,5,6\n", "is no table"),
        ("a,b\n1,2\n1,2,3\n", "is no table"),
        ('a,b\n"1,2\n', "is no table"),
        (b"a,b\n\xff,1\n", "is no text in UTF-8"),
        (b"\0\0\0", "is no table"),
        ("a,b\n1,2\n", "no figure suits"),
    ],
)
def test_a_damaged_table_is_one_line(table, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        kind_of(read_run(table(text)))
    assert "\n" not in str(caught.value)
    assert "run.csv" in str(caught.value)


def test_a_table_that_is_missing_or_huge_or_has_words_for_numbers(table, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="there is no such file"):
        read_run(tmp_path / "no.csv")
    with pytest.raises(InputError, match="is no file"):
        read_run(tmp_path)
    run = read_run(table(HEADING + ROW + ROW.replace("2.5", "2,5".replace(",", ";"))))
    with pytest.raises(InputError, match=r"'2;5' in row 2 of column value is no number"):
        run.numbers("value")
    with pytest.raises(InputError, match="has no column order"):
        run.numbers("order")
    monkeypatch.setattr(runs, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="up to 0 MiB are drawn"):
        read_run(run.path)
