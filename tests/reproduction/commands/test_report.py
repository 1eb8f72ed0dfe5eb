"""`thesis-cli report`: the page of the results, whether it stands, and two folders side by side."""

import json

import pytest

from tests.reproduction.report.conftest import TABLE, toy, write_results  # noqa: F401
from thesis_cli.reproduction import experiment


@pytest.mark.usefixtures("toy")
def test_the_page_is_written_and_stands_until_a_file_changes(cli, tmp_path):
    missing = cli("report", "--verify")
    assert (missing.status, (tmp_path / "results/report.html").exists()) == (1, False)
    assert "results/report.html is not what the results give: it is missing" in missing.err
    result = cli("report")
    assert (result.status, result.err) == (0, "")
    assert "2 figures, 3 claims" in result.out
    assert (
        "claims  2 holds, 0 consistent, 0 not decided, 0 not decidable, 0 not comparable, 1 does not hold" in result.out
    )
    page = tmp_path / "results/report.html"
    before = page.stat()
    assert cli("report", "--verify").status == 0
    assert cli("report").status == 0
    assert page.stat().st_mtime_ns == before.st_mtime_ns
    (tmp_path / "results/one.csv").write_text(TABLE.replace("0.5", "0.7"))
    result = cli("report", "--verify", "--json")
    assert result.status == 1
    first, second = result.err.splitlines()
    assert first == "warning: one.csv is not the table that one.json describes: it was changed afterwards"
    assert "line" in second
    assert json.loads(result.out)["faults"] == [first.removeprefix("warning: ")]


@pytest.mark.usefixtures("toy")
def test_two_folders_side_by_side(cli, tmp_path):
    write_results(tmp_path / "other")
    result = cli("report", "--compare", "other")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[1:] == [
        "tables  2 identical, 0 equal, 0 differs, 0 not compared",
        "claims  0 of 3 claims with another verdict",
    ]
    assert "Two folders of results" in (tmp_path / "results/runs/comparison.html").read_text()
    write_results(tmp_path / "other", TABLE.replace("0.5", "0.7"), ["two"])
    result = cli("report", "--compare", "other", "--out", "both.html")
    assert (result.status, result.err) == (1, "")
    assert result.out.startswith("two     differs in 1 cell (largest: x, row 1: 0.5, now 0.7)\npage    both.html, ")
    summary = json.loads(cli("report", "--compare", "other", "--json").out)
    assert [table["verdict"] for table in summary["tables"]] == ["identical", "differs"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--compare", "nothere"], "--compare nothere does not exist"),
        (["--compare", "docs", "--verify"], "--verify does not go with --compare"),
        (["run.csv", "--compare", "docs"], "--compare does not go with RUN.csv"),
        (["--out", "docs/errata.md"], "does not end in .html"),
        (["--out", "mine.html"], "mine.html exists, and is no page of report"),
        (["--compare", "other", "--preset", "quick"], "results/quick has no table to compare with"),
        (["--preset", "quick"], "results/quick has no claims.csv"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(cli, tmp_path, arguments, fragment):
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    write_results(tmp_path / "other")
    result = cli("report", *arguments)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert fragment in result.err
    assert (tmp_path / "mine.html").read_text() == "<p>mine</p>"
    assert not (tmp_path / "results/report.html").exists()


@pytest.mark.usefixtures("toy")
def test_outside_of_a_checkout_nothing_is_written_into_it(cli, tmp_path, monkeypatch):
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    write_results(outside / "other")
    monkeypatch.chdir(outside)
    monkeypatch.setattr(experiment, "__file__", str(tmp_path / "thesis_cli/reproduction/experiment.py"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert cli("report").status == 0
    assert cli("claims").status == 0
    assert cli("report", "--compare", "other").status == 0
    for command in ("reproduce", "plot"):
        refused = f"error: this folder is in no checkout of the project; run the command in {tmp_path}\n"
        assert cli(command).err == refused
    assert (outside / "report.html").is_file()
    assert (outside / "results/runs/comparison.html").is_file()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
