"""A digest of the code that computes results, for tasks of experiments and of commands.

It follows names, not files: a function keeps its digest where it stands alone, in a larger file, or
in another folder, so that to move code computes nothing anew.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from thesis_cli.base.files import write_atomic

PACKAGE = Path(__file__).resolve().parents[1]
REPORTING = (
    "reproduction",
    *("base.errors", "base.figures", "base.pool", "base.progress", "base.provenance", "commands.core.command"),
)
"""Packages and modules of this package that name, run, report or draw, but compute no result."""
TEXTS = {"help", "metavar", "default_text"}
"""Keyword arguments that are only shown."""
HELP_PLACE = {"option": 1, "argument": 0}
"""Functions that take a help text by position, and the position."""
PLACE = re.compile(r"(\w+(?:\.\w+)+):(\w+)")
"""Text that stands for a name of a module (`base.modules.named`)."""
NAMESPACES = {"globals", "locals", "vars"}
"""Functions through which a statement may use any name of its module."""


def fingerprint(path: Path, function: str = "run") -> str:
    """Digest of a function and of all statements of this package that its results depend on.

    A statement counts if it binds a name that one that counts uses, in its own module or by an
    import; statements that bind no name count with their module. These do not count: where a
    statement stands; comments, layout, docstrings and help texts; functions that are marked as
    presentation; modules whose name ends in `figure` or `figures`.

    Digests are kept in a file beside the byte code of this package, as long as the content of the
    package is the same: to parse all that counts takes seconds.
    """
    file = Path(cache_from_source(str(PACKAGE / "__init__.py"))).with_name("fingerprints.json")
    package, key = _content(PACKAGE.rglob("*.py")), f"{path}:{function} {_content([path])}"
    known = _known(file, package)
    if key not in known:
        edges = {edge for edge, _ in _reached(path, function)}
        known[key] = hashlib.sha256("".join(sorted(edges)).encode()).hexdigest()[:16]
        with suppress(OSError):  # nobody may write beside the code: it is parsed again
            write_atomic({file: json.dumps({"package": package, "known": known})})
    return known[key]


def _content(files: Iterable[Path]) -> str:
    """Digest of files by name and content, and of the version of Python, which parses them."""
    found = hashlib.sha256(sys.version.encode())
    for file in sorted(files):
        found.update(f"{file}\0".encode() + file.read_bytes())
    return found.hexdigest()


def _known(file: Path, package: str) -> dict[str, str]:
    """Digests that a file keeps of a package with this content."""
    try:
        kept = json.loads(file.read_bytes())
        return dict(kept["known"]) if kept["package"] == package else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def files(path: Path, function: str = "run") -> set[Path]:
    """Files that hold a statement that counts."""
    return {statement.file for _, statement in _reached(path, function)}


class Name(NamedTuple):
    """A name in a module of this package; all of the module if `name` is empty."""

    file: Path
    name: str


@dataclass(eq=False)
class Statement:
    """A statement of a module that is not inside another one.

    Attributes
    ----------
    file : where it stands.
    digest : digest of the text that counts.
    uses : names of this package that it uses, each with the text that stands for it.
    """

    file: Path
    digest: str
    uses: list[tuple[str, Name]]


@dataclass(frozen=True)
class Module:
    """The statements of a file.

    Attributes
    ----------
    binders : statements by the names that they bind.
    imports : names in other modules of this package by the names that they have here.
    effects : statements that bind no name.
    """

    binders: dict[str, list[Statement]]
    imports: dict[str, Name]
    effects: list[Statement]

    def statements(self, name: str) -> list[Statement]:
        """Those that bind a name; all if it is empty, or if only the module knows what it is."""
        if name in self.binders:
            return self.binders[name]
        return [] if name in self.imports else list(chain(*self.binders.values()))


def _reached(path: Path, function: str) -> Iterator[tuple[str, Statement]]:
    """Every statement that counts, once for each use, with a text that names user and use by their digests."""
    queue = [("", "", Name(path, function))]
    modules: dict[Path, Module] = {}
    done: set[Statement] = set()
    while queue:
        user, text, target = queue.pop()
        effects = []
        if target.file not in modules:
            modules[target.file] = _parsed(target.file, target.file.read_text(encoding="utf-8"))
            effects = modules[target.file].effects
        module = modules[target.file]
        found = [(user, text, statement) for statement in module.statements(target.name)]
        if target.name in module.imports:
            queue.append((user, text, module.imports[target.name]))
        found += [("", "", statement) for statement in effects]
        for by, how, statement in found:
            yield f"{by} {how} {statement.digest}\n", statement
            if statement not in done:
                done.add(statement)
                queue += ((statement.digest, own, name) for own, name in statement.uses)


@cache
def _parsed(file: Path, text: str) -> Module:
    body = _Bare().visit(ast.parse(text)).body
    nodes = [(names, node) for each in body for names, node in _parts(each)]
    bound = {name for names, _ in nodes for name in names}
    imports = dict(pair for node in body for pair in _imports(node))
    binders: dict[str, list[Statement]] = {}
    effects = []
    for names, node in nodes:
        uses = sorted(set(_uses(node, file, bound, imports)))
        statement = Statement(file, hashlib.sha256(ast.dump(_Placeless().visit(node)).encode()).hexdigest(), uses)
        for name in names:
            binders.setdefault(name, []).append(statement)
        if not names:
            effects.append(statement)
    return Module(binders, imports, effects)


def _parts(statement: ast.stmt) -> Iterator[tuple[list[str], ast.stmt]]:
    """A statement with the names that it binds; an import of other packages name by name, and none of this one."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            one = copy.copy(statement)
            one.names = [alias]
            if not _is_own(one):
                yield [(alias.asname or alias.name).split(".")[0]], one
        return
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield [statement.name], statement
        return
    roots: list[ast.AST] = [statement]
    if isinstance(statement, ast.Assign):
        roots = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        roots = [statement.target]
    names = (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Name))
    yield [name.id for name in names if isinstance(name.ctx, ast.Store)], statement


def _uses(node: ast.stmt, file: Path, bound: set[str], outside: dict[str, Name]) -> Iterator[tuple[str, Name]]:
    """Names of this package that a statement uses: by names of its module, by imports, as attributes of modules, and in
    texts `module:name`."""
    imports, attributes, names = {**outside}, dict[int, str](), list[ast.Name]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.append(inner)
        elif isinstance(inner, ast.Attribute):
            attributes[id(inner.value)] = inner.attr
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            imports.update(_imports(inner))
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            place = PLACE.fullmatch(inner.value)
            if place and (found := _file_of(place[1])):
                yield place[2], Name(found, place[2])
    for inner in names:
        name = inner.id
        if name in NAMESPACES:
            yield name, Name(file, "")
        elif name in imports:
            target, attribute = imports[name], attributes.get(id(inner), "")
            if target.name or not attribute:
                yield name, target
            else:
                yield f"{name}.{attribute}", Name(target.file, attribute)
        elif name in bound:
            yield name, Name(file, name)


def _imports(node: ast.AST) -> Iterator[tuple[str, Name]]:
    """Names of this package that compute results, by the names that an import gives them."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if file := _file_of(alias.name):
                yield alias.asname or alias.name.split(".")[0], Name(file, "")
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            local = alias.asname or alias.name
            if file := _file_of(f"{node.module}.{alias.name}"):
                yield local, Name(file, "")
            elif file := _file_of(node.module):
                yield local, Name(file, alias.name)


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    name = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
    return name.split(".")[0] == PACKAGE.name


def _file_of(module: str) -> Path | None:
    """The file of a module of this package on which results may depend, by its name."""
    root, *parts = module.split(".")
    own = ".".join(parts)
    if root != PACKAGE.name or any(f"{own}.".startswith(f"{name}.") for name in REPORTING):
        return None
    if re.search(r"(^|[._])figures?(\.|$)", own):
        return None
    base = PACKAGE.joinpath(*parts)
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)


class _Bare(ast.NodeTransformer):
    """Removes docstrings, help texts, functions that are marked as presentation, and what only a type checker reads."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        names = (getattr(d, "id", getattr(d, "attr", None)) for d in node.decorator_list)
        return None if "presentation" in names else self._body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._body(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._body(node)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [k for k in node.keywords if k.arg not in TEXTS]
        place = HELP_PLACE.get(getattr(node.func, "id", getattr(node.func, "attr", "")))
        if place is not None:
            del node.args[place : place + 1]
        return self.generic_visit(node)

    def _body(self, node: Any) -> ast.AST:
        node.body = [
            each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        ]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node  # type: ignore[no-any-return]


class _Placeless(ast.NodeTransformer):
    """Removes what says where other code of this package stands: imports, also inside functions."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if _is_own(node) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if _is_own(node) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_place = isinstance(node.value, str) and node.value.startswith(f"{PACKAGE.name}.")
        return ast.Constant(PACKAGE.name) if is_place else node
