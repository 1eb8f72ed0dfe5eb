import json
import platform

import pytest

from tests.reproduction.commands.test_experiments import SOURCE
from tests.reproduction.commands.test_experiments import toy as toy
from thesis_cli.reproduction.publication import digest


@pytest.fixture
def stands(cli, toy):
    """The folder of a toy experiment's results."""
    assert cli("reproduce", "--jobs", 1).status == 0
    return toy / "results/quick"


def tampered(folder, with_digest):
    """Change the last cell of the table, and the digest in its record, too, if asked for."""
    table = folder / "toy.csv"
    table.write_text(f"{table.read_text().rpartition(',')[0]},0.125\n")
    if with_digest:
        new, record = digest(table), table.with_suffix(".json")
        record.write_text(json.dumps({**json.loads(record.read_text()), "sha256": new}))


def test_all_tasks_give_their_rows_again(cli, stands):
    result = cli("verify", "--preset", "quick", "--count", 100, "--json")
    assert result.status == 0
    found = json.loads(result.out)
    assert (found["tables"], found["changed"]) == (1, {})
    tasks = sorted((check["place"], check["row"], check["verdict"]) for check in found["checks"])
    rows = [row for _, row, _ in tasks]
    assert [place for place, _, _ in tasks] == [0, 1, 2, 3]
    assert rows == sorted(set(rows))
    assert {verdict for _, _, verdict in tasks} == {"identical"}
    few = [cli("verify", "--preset", "quick", "--count", 2, "--seed", seed).out for seed in (1, 1, 2)]
    assert few[0] == few[1] != few[2]
    assert "2 of 2 tasks of 1 experiment gave their rows again (seed 1)" in few[0]
    assert "there is none, so figures were not checked" in few[0]
    assert "tasks  " not in cli("verify", "--preset", "quick", "--count", 0).out


def test_a_table_that_was_changed_is_found_by_its_digest(cli, stands):
    tampered(stands, with_digest=False)
    result = cli("verify", "--preset", "quick")
    assert result.status == 1
    assert result.err == "error: toy: the table was changed after its record was written\n"
    assert "0 of 1 are what their records describe" in result.out


def test_a_number_that_was_changed_with_its_digest_is_found_by_its_task(cli, stands):
    tampered(stands, with_digest=True)
    result = cli("verify", "--preset", "quick", "--count", 100)
    assert result.status == 1
    assert "error: toy, task 3: rows from " in result.err
    assert "differs in 1 cell" in result.err
    assert "0.125, now " in result.err
    assert "3 of 4 tasks of 1 experiment gave their rows again" in result.out


def test_without_results_or_with_those_of_another_version(cli, toy, stands):
    assert "there are no results of preset paper" in cli("verify").err
    from thesis_cli.reproduction import experiment

    (toy / "experiments/toy.py").write_text(SOURCE.replace("version=1", "version=2"))
    experiment.load.cache_clear()
    assert "of another version or other settings" in cli("verify", "--preset", "quick").err
    (stands / "toy.json").write_text("{}")
    assert "lacks fields of a record" in cli("verify", "--preset", "quick").err


def test_the_manifest_names_origin_and_digest_of_tables_and_figures(cli, stands):
    assert cli("report", "--preset", "quick").status == 0
    known = json.loads((stands / "MANIFEST.json").read_text())
    assert list(known["files"]) == ["toy.csv", "toy.png", "toy.pdf"]
    table = known["files"]["toy.csv"]
    assert table["command"] == "thesis-cli reproduce toy --preset quick --seed 0"
    assert known["environments"][table["environment"]]["python"] == platform.python_version()
    result = cli("verify", "--preset", "quick", "--count", 0)
    assert (result.status, "figures were not checked" in result.out) == (0, False)
    (stands / "toy.png").write_bytes(b"")
    (stands / "toy.pdf").unlink()
    result = cli("verify", "--preset", "quick", "--count", 0)
    assert result.status == 1
    assert "error: toy.png: it is not the file that MANIFEST.json describes" in result.err
    assert "error: toy.pdf: it is missing" in result.err
    assert "1 of 1 are what their records describe" in result.out
    assert cli("verify", "toy", "--preset", "quick", "--count", 0).status == 1
    for damaged in ("", "[]", '{"files": {"toy.csv": 1}}', "[" * 100_000):
        (stands / "MANIFEST.json").write_text(damaged)
        result = cli("verify", "--preset", "quick", "--count", 0)
        assert result.status == 2
        assert "MANIFEST.json: is no manifest; thesis-cli report writes it again" in result.err
    (stands / "toy.json").write_text("{")
    assert cli("report", "--preset", "quick").status == 0
    assert json.loads((stands / "MANIFEST.json").read_text())["files"] == {}
