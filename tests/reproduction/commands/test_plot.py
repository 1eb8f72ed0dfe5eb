"""`thesis-cli plot RUN.csv` and `thesis-cli report RUN.csv`, from a run to its pictures and its page."""

import json
import re

import pytest

from tests.conftest import MODELS
from tests.reproduction.plots.test_run import HEADING, ROW
from thesis_cli.reproduction.commands import plot
from thesis_cli.reproduction.plots.run import read_run
from thesis_cli.reproduction.report.runs import command_line, page


@pytest.fixture
def run(tmp_path):
    """A table of estimates without a record."""
    path = tmp_path / "run.csv"
    path.write_text(HEADING + ROW + ROW.replace("gumbel", "<b>$x$</b>"))
    return path


def test_from_a_run_to_its_figure(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(plot, "open_file", lambda path: f"{path.name} has no viewer")
    out = ["--out", "z.csv", "--seed", 1]
    assert cli("estimate-z", MODELS / "asia.uai", "--trick", "all", "--samples", 9, "--exact", *out).status == 0
    result = cli("plot", "z.csv", "--show")
    assert (result.status, result.out.splitlines()) == (0, ["z.pdf new", "z.png new"])
    assert result.err == "warning: z.png is not shown: z.png has no viewer\n"
    table = tmp_path / "z.csv"
    assert read_run(table).faults == ()
    line = f"thesis-cli estimate-z --trick=all --samples=9 --exact --seed=1 -- {MODELS / 'asia.uai'}"
    assert command_line(read_run(table)) == line
    table.write_text(table.read_text().replace("gumbel", "gumbrl"))
    assert read_run(table).faults == ("z.csv is not the table that z.json describes: it was changed afterwards",)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["nothere.csv"], ["nothere.csv: there is no such file"]),
        (["run.csv", "fig-2-1", "--x", "value"], ["--x does not go with ids of experiments"]),
        (["--log", "y"], ["--log does not go with ids of experiments"]),
        (["run.csv", "run.csv", "--out", "x.png"], ["--out does not go with 2 tables"]),
        (["run.csv", "--out", "x.pdf"], ["--out x.pdf does not end in .png"]),
        (["run.csv", "--log", "z"], ["--log is z", "one of x, y, xy"]),
        (["run.csv", "--x", "valeu"], ["'valeu' is no column", "'value' is nearest"]),
    ],
)
def test_bad_input_is_one_line_and_draws_nothing(cli, run, arguments, fragments):
    result = cli("plot", *arguments)
    assert result.status == 2
    assert len(result.err.splitlines()) == 1
    assert all(fragment in result.err for fragment in fragments)
    assert list(run.parent.glob("*.p*")) == []


def test_a_viewer_opens_what_there_is_a_display_for(tmp_path, monkeypatch):
    picture = tmp_path / "a b.png"
    monkeypatch.setattr(plot.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert plot.open_file(picture) == "there is no display"
    monkeypatch.setenv("DISPLAY", ":0")
    opened = []
    monkeypatch.setattr(plot.shutil, "which", lambda name: None)
    monkeypatch.setattr(plot.webbrowser, "open", lambda address: not opened.append(address))
    assert plot.open_file(picture) == ""
    assert opened == [picture.resolve().as_uri()]
    monkeypatch.setattr(plot.webbrowser, "open", lambda address: False)
    assert plot.open_file(picture) == "there is no viewer"
    monkeypatch.setattr(plot.shutil, "which", lambda name: str(tmp_path / "missing"))
    assert plot.open_file(picture) == "the viewer cannot be started (No such file or directory)"


def test_several_runs_are_one_page_that_needs_nothing_else(cli, run):
    unknown = run.with_name("unknown.csv")
    unknown.write_text("a,b\n1,<script>\n2,c\n")
    result = cli("report", "run.csv", "unknown.csv", "--json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["faults"] == [
        "run.json is missing: what the table is of is told by its columns",
        "unknown.json is missing: what the table is of is told by its columns",
        "unknown.csv: no figure suits a table with these columns and no record",
    ]
    text = (run.parent / "runs.html").read_text()
    assert text.count('src="data:image/png;base64,') == 1
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == []
    assert "<script" not in text
    assert "&lt;b&gt;$x$&lt;/b&gt;" in text
    assert all(fault in text for fault in found["faults"])
    before = (run.parent / "runs.html").stat().st_mtime_ns
    assert page([read_run(path) for path in (run, unknown)])[0] == text
    assert cli("report", "no.csv").status == 2
    (run.parent / "mine.html").write_text("my own")
    result = cli("report", "run.csv", "--out", "mine.html")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "is no page of report" in result.err
    assert (run.parent / "runs.html").stat().st_mtime_ns == before
