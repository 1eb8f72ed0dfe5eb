"""A digest of the code that computes results, for tasks of experiments and of commands."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
REPORTING = (
    "reproduction",
    *("base.compilation", "base.errors", "base.figures", "base.presentation"),
    *("base.pool", "base.progress", "base.provenance", "base.wording"),
    *("commands.core.command", "commands.core.registry"),
)
"""Packages and modules of this package that name, run, report or draw, but compute no result."""
TEXTS = {"help", "metavar", "default_text"}
"""Keyword arguments that are only shown."""
HELP_PLACE = {"option": 1, "argument": 0}
"""Functions that take a help text by position, and the position."""


def fingerprint(path: Path, function: str = "run") -> str:
    """Digest of a function, what it uses in its file, and the modules of the package it imports.

    These do not count: comments, layout, docstrings and help texts; functions that are marked as
    presentation; modules whose name ends in `figure` or `figures`; statements of the file that the
    function does not reach, such as plots and claims.
    """
    return hashlib.sha256("".join(sorted(digests(path, function).values())).encode()).hexdigest()[:16]


def digests(path: Path, function: str = "run") -> dict[Path, str]:
    """Digest of each file that a function's results depend on."""
    statements = _reachable(_parsed(path), function)
    found = {path: _digest(statements)}
    queue = _imports(statements)
    while queue:
        file = queue.pop()
        if file not in found:
            found[file], imports = _module(file)
            queue += imports
    return found


def _parsed(path: Path) -> list[ast.stmt]:
    """The statements of a file without what does not count."""
    tree = _Bare().visit(ast.parse(path.read_text(encoding="utf-8")))
    assert isinstance(tree, ast.Module)
    return tree.body


class _Bare(ast.NodeTransformer):
    """Removes docstrings, help texts and functions that are marked as presentation."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        names = (getattr(d, "id", getattr(d, "attr", None)) for d in node.decorator_list)
        return None if "presentation" in names else self._body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._body(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._body(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [k for k in node.keywords if k.arg not in TEXTS]
        place = HELP_PLACE.get(getattr(node.func, "id", getattr(node.func, "attr", "")))
        if place is not None:
            del node.args[place : place + 1]
        return self.generic_visit(node)

    def _body(self, node: Any) -> ast.AST:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            del node.body[0]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node  # type: ignore[no-any-return]


def _reachable(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """The top-level statements that bind `name`, or names that those use, and so on."""
    binders: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for bound in _bound(statement):
            binders.setdefault(bound, []).append(statement)
    found: list[ast.stmt] = []
    queue = [name]
    while queue:
        for statement in binders.pop(queue.pop(), ()):
            found.append(statement)
            queue += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [statement for statement in body if statement in found]


def _bound(statement: ast.stmt) -> Iterable[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
    roots: list[ast.AST] = [statement]
    if isinstance(statement, ast.Assign):
        roots = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        roots = [statement.target]
    names = (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Name))
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


@cache
def _module(path: Path) -> tuple[str, tuple[Path, ...]]:
    body = _parsed(path)
    return _digest(body), tuple(_imports(body))


def _digest(statements: list[ast.stmt]) -> str:
    return hashlib.sha256(ast.dump(ast.Module(statements, [])).encode()).hexdigest()


def _imports(statements: list[ast.stmt]) -> list[Path]:
    names: list[str] = []
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    own = [name.partition(".")[2] for name in names if name.split(".")[0] == PACKAGE.name]
    return [file for file in map(_file_of, filter(_computes, own)) if file]


def _computes(module: str) -> bool:
    """Whether results may depend on a module, by its name inside this package."""
    if not module or any(f"{module}.".startswith(f"{name}.") for name in REPORTING):
        return False
    return not re.search(r"(^|[._])figures?(\.|$)", module)


def _file_of(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    return None
