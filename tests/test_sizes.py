"""Sizes that keep the code readable: parameters and lines of a function, lines of a file."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT

MOST_PARAMETERS, MOST_LINES, MOST_LINES_OF_A_FILE = 8, 80, 400

LONG_FILES: dict[str, str] = {
    "experiments/renyi_evaluation.py": "an experiment declares all its claims in one file",
}
"""Files that may be longer, and why."""

FILES = sorted((ROOT / "thesis_cli").rglob("*.py"))
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def parameters(node: ast.FunctionDef) -> int:
    a = node.args
    places = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    own = len([name for name in places if name not in ("self", "cls")])
    return own + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_small(path):
    for node in functions(path):
        assert parameters(node) <= MOST_PARAMETERS, (node.name, parameters(node))
        assert node.end_lineno - node.lineno < MOST_LINES, node.name


@pytest.mark.parametrize("path", FILES + EXPERIMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_small(path):
    if str(path.relative_to(ROOT)) not in LONG_FILES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


def test_the_command_line_is_a_thin_layer():
    assert sum(len(path.read_text().splitlines()) for path in (ROOT / "thesis_cli/cli").glob("*.py")) < 2500
