"""Files that exist: none is overwritten in silence."""

import json
from pathlib import Path

import pytest

from tests.conftest import MODELS, ROOT

MODEL = MODELS / "asia.uai"
RECORD = ROOT / "data/releases/people-features.json"


@pytest.mark.parametrize("taken", ["t.csv", "t.json"])
def test_a_file_of_the_user_is_not_overwritten(cli, tmp_path, taken):
    (tmp_path / taken).write_text("mine")
    result = cli("marginals", MODEL, "--out", "t.csv")
    assert (result.status, result.out) == (2, "")
    assert f"{taken} exists, and is not from this command with these settings; give another name" in result.err
    assert (tmp_path / taken).read_text() == "mine"
    assert cli("marginals", MODEL, "--out", "t.csv", "--overwrite").status == 0
    assert (tmp_path / taken).read_text() != "mine"


def test_the_same_command_may_run_again_and_another_may_not(cli, tmp_path):
    again = "estimate-z", MODEL, "--samples", 5, "--out", "t.csv", "--seed", 1
    assert cli(*again).status == cli(*again, "--jobs", 1).status == 0
    before = (tmp_path / "t.csv").read_bytes()
    for other in ((*again[:3], 6, *again[4:]), (*again[:-1], 2), ("map", MODEL, "--out", "t.csv")):
        assert "t.csv exists" in cli(*other).err
    assert (tmp_path / "t.csv").read_bytes() == before


def test_a_default_name_that_is_taken_gets_a_number(cli, tmp_path):
    runs = tmp_path / "results/runs"
    assert cli("sample", MODEL, "--count", 2, "--seed", 1).status == 0
    assert cli("sample", MODEL, "--count", 2, "--seed", 1).status == 0
    assert sorted(p.name for p in runs.iterdir()) == ["sample-asia-exact.csv", "sample-asia-exact.json"]
    assert cli("sample", MODEL, "--count", 2, "--seed", 2).status == 0
    assert (runs / "sample-asia-exact-2.csv").exists()
    (runs / "sample-asia-exact-3.json").write_text("mine")
    assert cli("sample", MODEL, "--count", 2, "--seed", 3).status == 0
    assert (runs / "sample-asia-exact-3.json").read_text() == "mine"
    assert (runs / "sample-asia-exact-4.csv").exists()


def test_figures_and_other_files_are_not_overwritten(cli, tmp_path):
    drawn = "spin-glass", "--size", "2x2", "--coupling", 0, "--samples", 2, "--no-out", "--figure", "f.png"
    (tmp_path / "f.pdf").write_text("mine")
    assert "--figure f.pdf exists" in cli(*drawn, "--seed", 1).err
    assert cli(*drawn, "--seed", 1, "--overwrite").status == 0
    assert "--figure f.png exists" in cli(*drawn, "--seed", 2).err
    for file in ("f.png", "f.pdf"):  # the same command may draw them again
        assert b"thesis-cli spin-glass " in (tmp_path / file).read_bytes()
    (tmp_path / "a.PR").write_text("mine")
    assert "--uai a.PR exists" in cli("marginals", MODEL, "--uai", "a.PR").err
    assert (tmp_path / "a.PR").read_text() == "mine"
    assert cli("marginals", MODEL, "--uai", "a.PR", "--overwrite").status == 0
    assert cli("marginals", MODEL, "--uai", "a.PR").status == 0


def test_no_option_replaces_the_record_of_a_release(cli, tmp_path):
    (tmp_path / "r.json").write_bytes(RECORD.read_bytes())
    for more in ((), ("--overwrite",)):
        result = cli("marginals", MODEL, "--out", "r.csv", *more)
        assert result.status == 2
        assert "r.json" in result.err
    assert (tmp_path / "r.json").read_bytes() == RECORD.read_bytes()
    runs = tmp_path / "results/runs"
    runs.mkdir(parents=True)
    (runs / "marginals-asia.json").write_bytes(RECORD.read_bytes())
    assert cli("marginals", MODEL, "--overwrite").status == 0
    assert (runs / "marginals-asia-2.csv").exists()


def test_a_record_names_its_command_and_no_command_line(cli, tmp_path):
    assert cli("map", MODEL, "--out", "m.csv").status == 0
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["command"] == "map"
    assert "argv" not in record
    assert Path(record["asked"]["model"]) == MODEL


@pytest.mark.parametrize("option", ["--out", "--save"])
def test_a_url_is_no_file_to_write_and_its_password_is_not_printed(cli, tmp_path, option):
    result = cli("spin-glass", option, "postgresql://u:hidden@h/x.uai")
    assert result.status == 2
    assert f"{option} is a URL" in result.err
    assert "hidden" not in result.out + result.err
    assert list(tmp_path.iterdir()) == []
