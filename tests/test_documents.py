"""The documents: links, examples in the shell and in Python, and the notebook, run as they stand."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with the data and the results of a checkout."""
    for part in ("data", "experiments", "thesis_cli"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "results").mkdir()
    for path in (ROOT / "results").glob("*.csv"):
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def commands(document: Path) -> list[str]:
    """Lines of `console` blocks that start with `$ thesis-cli`."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ thesis-cli ")]


@pytest.mark.parametrize(("document", "command"), [(d, c) for d in DOCUMENTS for c in commands(d)])
def test_examples_of_the_shell_run_and_print_what_they_show(document, command, cli, checkout):
    """What is shown must be printed to the letter, but for times, and for the ends of intervals from
    simulated releases: their fits amplify the rounding of a processor.
    """
    result = cli(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    shown = re.search(re.escape(f"$ {command}\n") + r"((?:(?!\$ |```).*\n)*)", document.read_text())[1]
    assert shown.strip(), "the example shows no answer"
    printed = without_ends(without_seconds(result.out))
    for line in shown.splitlines():
        if line and line != "...":
            assert without_ends(without_seconds(line)) in printed, line
    for found, expected in zip(ends(result.out), ends(shown), strict=False):
        error = 5 * (expected[1] - expected[0]) / 2 * (2 / (2 * REPLICATES)) ** 0.5  # of two standard deviations
        assert found == pytest.approx(expected, rel=0, abs=error)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if ">>> " in d.read_text()], ids=lambda p: p.name)
def test_examples_of_python_run_and_print_what_they_show(document, checkout):
    text = re.sub("^```.*$", "", document.read_text(), flags=re.MULTILINE)  # which would count as output
    found = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(found, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_the_notebook_runs_and_prints_what_it_shows(checkout):
    """Its last expressions have the text that is stored with them, but for times and for figures."""
    names: dict[str, object] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        found = value_of("".join(cell["source"]), names)
        for output in cell["outputs"]:
            stored = "".join(output["data"]["text/plain"])
            if not stored.startswith("<Figure"):
                assert without_seconds(repr(found)) == without_seconds(stored)


def value_of(source: str, names: dict[str, object]) -> object:
    """Run a cell; the value of its last line if that is an expression."""
    import ast

    *statements, last = ast.parse(source).body
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return None


REPLICATES = 30
"""Simulated releases of an interval."""
INTERVAL = re.compile(r"\((-?[\d.e-]+) to (-?[\d.e-]+)\)")


def ends(text: str) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in INTERVAL.findall(text)]


def without_ends(text: str) -> str:
    return INTERVAL.sub("(low to high)", text)


def without_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b", "T s", text)
