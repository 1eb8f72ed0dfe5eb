"""What keeps the code readable: sizes of functions and files, and signposts that lead somewhere."""

from __future__ import annotations

import ast
import re

from tests.conftest import ROOT

MOST_PARAMETERS, MOST_LINES, MOST_LINES_OF_A_FILE = 8, 80, 700

FILES = sorted((ROOT / "thesis_cli").rglob("*.py"))
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))


def functions(path):
    """Of a file, at any depth; no expression holds one."""
    found, inside = [], ast.parse(path.read_text(encoding="utf-8")).body
    while inside:
        node = inside.pop()
        if isinstance(node, ast.FunctionDef):
            found.append(node)
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            inside += ast.iter_child_nodes(node)
    return found


def lines(node: ast.FunctionDef) -> int:
    return node.end_lineno - node.lineno + 1


def parameters(node: ast.FunctionDef) -> int:
    a = node.args
    places = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    own = len([name for name in places if name not in ("self", "cls")])
    return own + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)


def test_functions_are_small():
    large = [
        f"{path.relative_to(ROOT)}: {node.name} has {parameters(node)} parameters and {lines(node)} lines"
        for path in FILES
        for node in functions(path)
        if parameters(node) > MOST_PARAMETERS or lines(node) > MOST_LINES
    ]
    assert large == []


def test_files_are_small():
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in FILES + EXPERIMENTS}
    assert {p: n for p, n in lengths.items() if n > MOST_LINES_OF_A_FILE} == {}


def test_the_command_line_is_a_thin_layer():
    assert sum(len(path.read_text().splitlines()) for path in (ROOT / "thesis_cli/cli").glob("*.py")) < 2500


def test_a_room_names_files_that_it_has():
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        if path.name == "__init__.py"
        for name in re.findall(r"`([\w/*]+\.py)`", ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        if not any(file.match(name) and ("/" in name or file.is_relative_to(path.parent)) for file in FILES)
    ]
    assert missing == []
