"""A digest of the code that computes an experiment's results."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
NOT_RESULTS = f"{PACKAGE.name}.reproduction"
"""Runs and draws, but computes nothing."""


def fingerprint(path: Path, function: str = "run") -> str:
    """Digest of a function, what it uses in its file, and the modules of this package that it imports.

    Comments, layout, docstrings, plots and claims do not count.
    """
    statements = _reachable(ast.parse(path.read_text(encoding="utf-8")).body, function)
    digests = {path: _digest(statements)}
    queue = _imports(statements)
    while queue:
        file = queue.pop()
        if file not in digests:
            digests[file], imports = _module(file)
            queue += imports
    return hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()[:16]


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


@lru_cache
def _module(path: Path) -> tuple[str, tuple[Path, ...]]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return _digest(body), tuple(_imports(body))


def _digest(statements: list[ast.stmt]) -> str:
    tree = ast.Module(statements, [])
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _imports(statements: list[ast.stmt]) -> list[Path]:
    names: list[str] = []
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    ours = [n for n in names if n.split(".")[0] == PACKAGE.name and not n.startswith(NOT_RESULTS)]
    return [file for file in map(_file_of, ours) if file]


def _file_of(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    return None
