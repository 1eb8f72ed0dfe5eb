"""Which table stands after a second computation: the old one, unless the new one is another thing."""

import dataclasses
import json

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import publication
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Checkout, Experiment, Tolerance
from thesis_cli.reproduction.tasks import Stored

TOY = Experiment(
    "toy", "A toy", "none", 1, {"quick": {"n": 2}, "paper": {"n": 9}}, lambda s: [], lambda seed: None, lambda f: None
)
OLD = "x,seconds\n0.5,1\n0.25,2\n"
CLOSE = "x,seconds\n0.5,1\n0.2500000000001,2\n"
OTHER = "x,seconds\n0.5,1\n0.26,2\n"


@pytest.fixture
def publish(tmp_path):
    """Publish a table, from two tasks unless it is short, and return what became of it."""

    def published(text, preset="paper", seed=0, replace=False, code="code", **changes):
        heading, *rows = text.splitlines(keepends=True)
        results = [Stored(heading + "".join(part), code, 1.0) for part in (rows[:1], rows[1:])]
        toy = dataclasses.replace(TOY, **changes)
        return publication.publish(toy, preset, Checkout(tmp_path), seed, results, replace)

    return published


@pytest.fixture
def csv(tmp_path):
    return tmp_path / "results" / "toy.csv"


def record(csv):
    return json.loads(csv.with_suffix(".json").read_text())


def test_the_first_table_is_new(publish, csv):
    found = publish(OLD)
    assert (found.verdict, str(found), found.beside) == ("new", "new", None)
    assert csv.read_text() == OLD
    assert record(csv)["tasks"] == 2


def test_an_equal_table_leaves_both_files(publish, csv):
    publish(OLD)
    before = csv.with_suffix(".json").read_bytes()
    found = publish(CLOSE, code="other")
    assert (found.verdict, found.replaced) == ("equal", "")
    assert (csv.read_text(), csv.with_suffix(".json").read_bytes()) == (OLD, before)
    assert publish(CLOSE, code="other", replace=True).replaced == "--replace"
    assert (csv.read_text(), record(csv)["code"]) == (CLOSE, ["other"])


def test_an_identical_table_of_other_code_has_a_new_record_on_demand(publish, csv):
    publish(OLD)
    publish(OLD, code="other")
    assert record(csv)["code"] == ["code"]
    assert publish(OLD, code="other", replace=True).replaced == ""
    assert record(csv)["code"] == ["other"]
    csv.with_suffix(".json").write_text(json.dumps(record(csv) | {"git_commit": "an older one"}))
    publish(OLD, code="other")
    assert record(csv)["git_commit"] == "an older one"
    publish(OLD, code="other", replace=True)
    assert record(csv)["git_commit"] != "an older one"


def test_a_committed_table_that_differs_stays_and_the_new_one_is_kept_beside(publish, csv):
    publish(OLD)
    before = csv.with_suffix(".json").read_bytes()
    found = publish(OTHER, code="other")
    assert (found.verdict, found.replaced, found.beside.read_text()) == ("differs", "", OTHER)
    assert found.beside.is_relative_to(csv.parent / ".store")
    assert (csv.read_text(), csv.with_suffix(".json").read_bytes()) == (OLD, before)
    assert publish(OTHER, replace=True).beside is None
    assert csv.read_text() == OTHER
    assert not found.beside.exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "other version"),
        ({"seed": 1}, "other seed"),
        ({"presets": {"paper": {"n": 10}}, "version": 3}, "other settings and version"),
    ],
)
@pytest.mark.parametrize("text", [CLOSE, OTHER])
def test_another_computation_takes_the_place(publish, csv, changes, reason, text):
    publish(OLD)
    found = publish(text, **changes)
    assert (found.replaced, found.beside, csv.read_text()) == (reason, None, text)
    assert str(found).endswith(f"; replaced ({reason})")


def test_a_table_that_is_not_committed_is_replaced_where_it_differs(publish, csv):
    scratch = csv.parent / "quick" / "toy.csv"
    publish(OLD, "quick")
    assert publish(CLOSE, "quick").replaced == ""
    assert scratch.read_text() == OLD
    found = publish(OTHER, "quick")
    assert (found.verdict, found.replaced, found.beside) == ("differs", "not committed", None)
    assert scratch.read_text() == OTHER


@pytest.mark.parametrize("damage", [b"", b"x,seconds\n0.5\n", b"\xff\n"])
def test_a_damaged_table_is_replaced(publish, csv, damage):
    publish(OLD)
    csv.write_bytes(damage)
    assert publish(OTHER).verdict == "new"
    assert csv.read_text() == OTHER


@pytest.mark.parametrize("damage", ["", "[]", None])
def test_a_table_without_a_record_is_replaced(publish, csv, damage):
    publish(OLD)
    if damage is None:
        csv.with_suffix(".json").unlink()
    else:
        csv.with_suffix(".json").write_text(damage)
    assert publish(OTHER).replaced == "it had no record"
    assert record(csv)["settings"] == {"n": 9}


def test_what_an_experiment_declares_is_heeded(publish, csv):
    publish(OLD)
    slower = OLD.replace(",1", ",7")
    assert publish(slower).verdict == "differs"
    assert publish(slower, tolerances={"seconds": NOT_REPEATABLE}).verdict == "equal"
    assert publish(OTHER, rows=lambda row: Tolerance(0.1) if row["seconds"] == "2" else None).verdict == "equal"
    assert csv.read_text() == OLD


def test_noise_is_written_as_zero(publish, csv):
    publish(OLD.replace("0.5", "-3e-17"), tolerances={"x": Tolerance(absolute=1e-12)})
    assert csv.read_text() == OLD.replace("0.5", "0")


def test_tasks_must_agree_on_the_columns(tmp_path):
    with pytest.raises(InputError, match=r"toy have different columns; .*x,y"):
        publication.publish(TOY, "paper", Checkout(tmp_path), 0, [Stored(h, "", 0) for h in ("x,y\n", "x\n")])


def test_as_json(publish):
    assert publish(OLD).to_dict()["verdict"] == "new"
    found = json.loads(json.dumps(publish(OTHER).to_dict()))
    assert (found["verdict"], found["cells"], found["text"].split(" (")[0]) == ("differs", 1, "differs in 1 cell")
    assert found["largest"] == {"column": "x", "row": 2, "old": "0.25", "new": "0.26"}
    assert found["beside"].endswith("paper-0.csv")


def test_a_record_has_the_digest_of_its_table(publish, csv):
    publish(OLD)
    assert not publication.was_changed(csv, record(csv))
    csv.write_text(OLD.replace("0.26", "0.25").replace("0.5", "0.6"))
    assert publication.was_changed(csv, record(csv))
