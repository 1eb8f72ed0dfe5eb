"""The documents: links, examples in the shell and in Python, and the notebook, run as they stand."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from thesis_cli.base.files import write_atomic
from thesis_cli.privacy.query import replicates
from thesis_cli.reproduction import documents
from thesis_cli.reproduction.experiment import Checkout
from thesis_cli.studies.learning import silhouettes

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
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


@pytest.fixture(scope="module", autouse=True)
def _simulated_once():
    """Pages ask the committed releases again and again, and what is simulated depends on the release alone."""
    simulate, simulated = replicates.replicates, {}

    def once(release, count, jobs):
        points = release.points
        key = release.record.to_json(), points.reals.tobytes(), points.codes.tobytes(), count
        if key not in simulated:
            simulated[key] = list(simulate(release, count, jobs))
        return simulated[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replicates, "replicates", once)
        yield


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_page_is_in_the_navigation_of_the_site():
    listed = re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    generated = {"python-functions.md", "contributing.md", "security.md", "changelog.md"}
    assert set(listed) == {path.name for path in (ROOT / "docs").glob("*.md")} | generated


def blocks(document: Path, *kinds: str) -> list[tuple[str, str]]:
    """The blocks of these kinds, each with its kind."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    return [(kind, text) for kind, text in found if kind in kinds]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_blocks_say_what_they_are(document):
    opened = re.findall(r"^```(\w*)\n.*?^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    assert set(opened) <= {"console", "python", "sh", "sql", "text", "toml"}


def commands(text: str) -> list[str]:
    """Lines of a block that start the program, without prompt and without what a comment says."""
    joined = text.replace("\\\n", " ").splitlines()
    lines = [line.removeprefix("$ ") for line in joined if line.removeprefix("$ ").startswith("thesis-cli ")]
    return [re.sub(r" +# .*", "", line) for line in lines]


def shown_after(command: str, text: str) -> str:
    """What a block shows below a command."""
    found = re.search(re.escape(f"$ {command}\n") + r"((?:(?!\$ ).*\n)*)", text)
    return found[1] if found else ""


CONSOLE = [(d, text, c) for d in DOCUMENTS for _, text in blocks(d, "console") for c in commands(text)]


@pytest.mark.integration
@pytest.mark.parametrize(("text", "command"), [c[1:] for c in CONSOLE], ids=[f"{d.name}: {c}" for d, _, c in CONSOLE])
def test_examples_of_the_shell_run_and_print_what_they_show(text, command, cli, checkout):
    """What a block `console` shows must be printed to the letter, but for times, and for the ends of
    intervals from simulated releases: their fits amplify the rounding of a processor.
    """
    result = cli(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    shown = shown_after(command, text)
    assert shown.strip(), "the example shows no answer"
    printed = without_ends(without_seconds(result.out))
    for line in shown.splitlines():
        if line and line != "...":
            assert without_ends(without_seconds(line)) in printed, line
    for found, expected in zip(ends(result.out), ends(shown), strict=False):
        error = 5 * (expected[1] - expected[0]) / 2 * (2 / (2 * REPLICATES)) ** 0.5  # of two standard deviations
        assert found == pytest.approx(expected, rel=0, abs=error)


ONLY_PARSED = {
    "postgresql://": "a database",
    "visits.csv": "a table of the reader",
    "cps1988": "a table from another package",
    "wages.csv": "its release",
    "slurm": "a cluster",
    "--scheduler": "a cluster",
    " glasses.toml": "a sweep of the reader",
    "SLURM_ARRAY_TASK_ID": "a job of a cluster",
    "dp-test.csv": "a run of the reader",
    "grey.png": "an image of the reader",
    "small.png": "an image of the reader",
    "men/test/clean/man-0.png": "an example of an error",
    "other-clone": "another checkout",
    "thesis-cli claims": "all results, as `tests/reproduction/commands/test_experiments.py` reads them",
    "thesis-cli verify": "all results; `tests/reproduction/commands/test_verify.py` runs it on others",
    "thesis-cli report": "the results of `make reproduce-all`",
    "thesis-cli reproduce": "minutes",
    "thesis-cli compile": "a minute",
    "dp-audit": "minutes",
    "tasks.jsonl --solver dfs": "a thousand tasks",
    "train-denoiser data/images/train/noisy": "nineteen trainings",
    "train-guide": "PyTorch",
    "my-guide": "PyTorch",
    "mine.corpus": "PyTorch",
}
"""Parts of commands in blocks `sh` and `text` that no test runs, with what they need."""

PAGES = [d for d in DOCUMENTS if any(commands(text) for _, text in blocks(d, "sh", "text"))]
LONG = {
    "denoise.md": "several networks learn to denoise",
    "how-to.md": "private releases and their intervals",
    "start.md": "the same",
}
"""Pages whose steps take seconds; their examples in `console` and Python always run."""


@pytest.mark.integration
@pytest.mark.parametrize(
    "document", [pytest.param(d, id=d.name, marks=[pytest.mark.long] * (d.name in LONG)) for d in PAGES]
)
def test_the_steps_of_a_page_run_one_after_another(document, cli, checkout):
    """Blocks `sh` and `text`: numbers of the latter may depend on the machine in their last digits."""
    for _, text in blocks(document, "sh", "text"):
        if "make silhouettes" in text:
            write_atomic({Path("men") / path: data for path, data in silhouettes.files(silhouettes.SEED).items()})
        for command in commands(text):
            if any(part in command for part in ONLY_PARSED):
                continue
            result = cli(*shlex.split(command)[1:])
            assert result.status == 0, (command, result.err)
            printed = without_seconds(result.out).splitlines()
            for line in without_seconds(shown_after(command, text)).splitlines():
                assert line in ("", "...") or any(alike(line, other) for other in printed), (line, result.out)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_arguments_of_commands_are_understood(document, checkout, understood):
    (checkout / "glasses.toml").symlink_to(ROOT / "data" / "sweeps" / "glasses.toml")
    for _, text in blocks(document, "console", "sh", "text"):
        for command in commands(text):
            understood(*shlex.split(command.replace("$SLURM_ARRAY_TASK_ID", "0"))[1:])


def test_targets_of_make_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        for _, text in blocks(document, "sh"):
            assert set(re.findall(r"^make ([\w-]+)", text, re.MULTILINE)) <= targets


def test_hours_are_those_of_the_records():
    path, text = documents.costs_page(Checkout(ROOT))
    assert path.read_text() == text, "run make docs"


def alike(shown: str, printed: str) -> bool:
    """Whether two lines differ in the last digits of their numbers at most."""
    words = [" ".join(NUMBER.sub("0", line).split()) for line in (shown, printed)]
    if words[0] != words[1]:
        return False
    numbers = [[float(x.replace(",", "")) for x in NUMBER.findall(line)] for line in (shown, printed)]
    return numbers[1] == pytest.approx(numbers[0], rel=0.1)


PYTHON = [d for d in DOCUMENTS if any(">>> " not in text for _, text in blocks(d, "python"))]


@pytest.mark.integration
@pytest.mark.parametrize("document", PYTHON, ids=lambda p: p.name)
def test_listings_of_python_run(document, checkout):
    """Blocks `python` without prompts, one after another."""
    names: dict[str, object] = {}
    for _, text in blocks(document, "python"):
        if ">>> " not in text:
            exec(compile(text, document.name, "exec"), names)


@pytest.mark.integration
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if ">>> " in d.read_text()], ids=lambda p: p.name)
def test_examples_of_python_run_and_print_what_they_show(document, checkout):
    text = re.sub("^```.*$", "", document.read_text(), flags=re.MULTILINE)  # which would count as output
    found = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(found, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.integration
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


NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def ends(text: str) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in INTERVAL.findall(text)]


def without_ends(text: str) -> str:
    return INTERVAL.sub("(low to high)", text)


def without_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b", "T s", text)
