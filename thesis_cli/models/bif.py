"""Read Bayesian networks in the BIF format.

Grammar: blocks `network NAME { }`, `variable NAME { type discrete [ n ] { STATES }; }` and
`probability ( CHILD | PARENTS ) { ENTRIES }` in any order. An entry `(STATES) NUMBERS;` is the
distribution of the child at a state of each parent, `default NUMBERS;` the distribution at all
states that have no entry, and `table NUMBERS;` the whole table, the child slowest and the last
parent fastest. Commas or white space separate names and numbers. Comments are those of C;
`property ...;` and text between blocks are skipped. A name that has spaces or any of `{}()[],;|` is
quoted; spaces need no quotes where commas separate names.

Source: F. Cozman, The Interchange Format for Bayesian Networks (1996).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, counted, nearest
from thesis_cli.models.factor_graph import Factor, FactorGraph, Names
from thesis_cli.models.tokens import LONGEST, floats, is_number
from thesis_cli.models.uai import MOST_VARIABLES

ROUNDING = 0.02
"""Largest distance of the sum of a distribution from 1: published networks print few digits."""

MOST_ENTRIES = 2**27
"""Largest number of entries in all tables, listed or not: as many as a UAI file can hold."""

_PROPERTIES = r"\s*(?:property\b[^;]*;\s*)*"
_NOTHING = re.compile(_PROPERTIES + r"\}")
_TYPE = re.compile(
    _PROPERTIES + r"type\s+discrete\s*\[\s*([0-9]{1,9})\s*\]\s*\{([^{}]*)\}\s*;" + _PROPERTIES + r"\}", re.ASCII
)
_ENTRY = re.compile(_PROPERTIES + r"(?:(table|default)\b|\(([^(){};]*)\))([^(){};]*);")
_KEYWORD = re.compile(r"^[ \t]*(network|variable|probability)\b(.*)", re.MULTILINE | re.DOTALL)
_QUOTES_AND_COMMENTS = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_HIDDEN = {ord(letter): 0xE000 + k for k, letter in enumerate("{}()[],;| \t")}
"""Stand-ins for separators within a quoted name."""
_SHOWN = {hidden: letter for letter, hidden in _HIDDEN.items()}


def parse(text: str, source: str = "") -> FactorGraph:
    """Read a network; variables are numbered in the order of their declarations.

    Raises
    ------
    InputError : the text departs from the grammar, a distribution is missing or has the wrong
        number of entries, an entry is no probability, or a distribution does not sum to 1; the
        message gives the line.
    """
    file = _File(_QUOTES_AND_COMMENTS.sub(_plain, text), source)
    tables = []
    for kind, head, at in file.blocks():
        if kind == "network":
            file.take(_NOTHING, "the block of the network", "it may hold properties alone")
        elif kind == "variable":
            file.variable(head, at)
        else:
            tables.append((at, head, list(file.entries())))
    if not file.states:
        raise InputError("declares no variable", "give a BIF file", source=source, line=1)
    factors: dict[int, Factor] = {}
    left = MOST_ENTRIES
    for at, head, entries in tables:
        scope = file.scope(head, at)
        if scope[0] in factors:
            raise file.error(f"a second probability table of {file.names[scope[0]]}", "each variable has one", at)
        factors[scope[0]] = file.factor(scope, entries, at, left)
        left -= factors[scope[0]].table.size
    for i, (name, at) in enumerate(file.declared.items()):
        if i not in factors:
            remedy = "give a block 'probability (...)' for each variable"
            raise file.error(f"variable {name} has no probability table", remedy, at)
    names = Names(file.names, tuple(tuple(known) for known in file.states))
    return FactorGraph([len(known) for known in file.states], [factors[i] for i in range(len(factors))], names=names)


def _plain(match: re.Match[str]) -> str:
    """A quoted name without its quotes, or the line ends of a comment."""
    found = match[0]
    return f" {found[1:-1].translate(_HIDDEN)} " if found[0] == '"' else " " + "\n" * found.count("\n")


def _words(text: str, count: int) -> list[str]:
    """The names that commas separate or, if these are not `count`, that white space separates."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != count or "" in parts:
        parts = text.replace(",", " ").split()
    return [part.translate(_SHOWN) for part in parts]


class _File:
    """The text of a file without comments and quotes, its variables and their states, taken from its start on."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source, self._at = text, source, 0
        self.declared: dict[str, int] = {}
        self.states: list[dict[str, int]] = []

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, once all are declared."""
        return tuple(self.declared)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _lower(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for i, name in enumerate(self.names):
            found.setdefault(name.lower(), []).append(i)
        return found

    def error(self, problem: str, remedy: str, at: int) -> InputError:
        """An error about the first word behind a position."""
        word = re.compile(r"\S").search(self._text, at)
        line = self._text.count("\n", 0, word.start() if word else at) + 1
        problem = " ".join(problem.split())
        if len(problem) > LONGEST:
            problem = problem[:LONGEST] + "..."
        return InputError(problem, remedy, source=self._source, line=line)

    def blocks(self) -> Iterator[tuple[str, str, int]]:
        """Keyword, head and position of each block; the caller takes what its braces hold."""
        while (brace := self._text.find("{", self._at)) >= 0:
            start, before = self._at, self._text[self._at : brace]
            found = _KEYWORD.search(before)
            if found is None or "}" in before:
                word = (before.split() or ["{"])[0]
                remedy = "a block is 'network', 'variable' or 'probability', a name or a scope, and { ... }"
                raise self.error(f"{word[:40]!r} begins no block", remedy, start)
            self._at = brace + 1
            yield found[1], found[2].strip(), start + found.start()

    def take(self, pattern: re.Pattern[str], what: str, remedy: str) -> re.Match[str]:
        """Take what matches a pattern; `what` names it in errors."""
        found = pattern.match(self._text, self._at)
        if found is None:
            problem = "cannot be read" if self._text[self._at :].strip() else "is cut off by the end of the file"
            raise self.error(f"{what} {problem}", remedy, self._at)
        self._at = found.end()
        return found

    def variable(self, head: str, at: int) -> None:
        """Take the block of a variable."""
        name = head.translate(_SHOWN)
        if not name or name in self.declared:
            problem = f"variable {name} is declared twice" if name else "a variable has no name"
            raise self.error(problem, "each variable needs a name of its own", at)
        found = self.take(_TYPE, f"the block of variable {name[:40]}", "write type discrete [ 2 ] { yes, no };")
        count = int(found[1])
        states = _words(found[2], count)
        if len(states) != count or not count:
            raise self.error(f"variable {name} lists {counted(len(states), 'state')}", f"it promises {count}", at)
        self.declared[name] = at
        self.states.append({state: k for k, state in enumerate(states)})
        if len(self.states[-1]) < count:
            twice = next(state for k, state in enumerate(states) if self.states[-1][state] != k)
            raise self.error(f"variable {name} lists state {twice} twice", "each state needs a name of its own", at)

    def entries(self) -> Iterator[re.Match[str]]:
        """Take the entries of a table: a keyword or states, then numbers."""
        while (end := _NOTHING.match(self._text, self._at)) is None:
            yield self.take(_ENTRY, "an entry of a table", "write (STATES) NUMBERS; or table NUMBERS;")
        self._at = end.end()

    def scope(self, head: str, at: int) -> tuple[int, ...]:
        """The child and its parents."""
        child, bar, parents = head.removeprefix("(").removesuffix(")").partition("|")
        before, after = self._variables(child, at), self._variables(parents, at)
        scope = (*before, *after)
        if head[:1] + head[-1:] != "()" or not before or (bar and len(before) > 1) or len(set(scope)) < len(scope):
            raise self.error(f"probability {head[:40]}", "write ( CHILD | PARENTS ), each variable once", at)
        if len(scope) > MOST_VARIABLES:
            raise self.error(f"a table has {len(scope)} variables", f"it may have {MOST_VARIABLES}", at)
        return scope

    def _variables(self, text: str, at: int) -> list[int]:
        """The variables in a list; their names may hold spaces where commas separate them."""
        unknown = ""
        for names in [text], text.split(","), text.replace(",", " ").split():
            found = []
            for name in names:
                i = self._variable(name.strip().translate(_SHOWN))
                if i is None:
                    unknown = name.strip()
                    break
                found.append(i)
            else:
                return found
        raise self.error(f"there is no variable {unknown.translate(_SHOWN)[:40]!r}", "declare each variable", at)

    def _variable(self, name: str) -> int | None:
        """Index of a variable; the case of letters is ignored where that leaves no doubt."""
        if name in self._index:
            return self._index[name]
        same = self._lower.get(name.lower(), ())
        return same[0] if len(same) == 1 else None

    def factor(self, scope: tuple[int, ...], entries: list[re.Match[str]], at: int, most: int) -> Factor:
        """The table of a child given its parents, of at most `most` entries."""
        k, *parents = shape = [len(self.states[i]) for i in scope]
        rows = math.prod(parents)
        child = self.names[scope[0]]
        if rows * k > most:
            raise self.error(f"the table of {child} has {rows * k} entries", f"all may have {MOST_ENTRIES}", at)
        if any(entry[1] == "table" for entry in entries):
            if len(entries) > 1:
                raise self.error(f"the table of {child} has further entries", "'table' must be the only one", at)
            numbers = self._numbers(entries, rows * k, child).reshape(k, rows).T
            places = np.zeros(rows, dtype=np.int64)
        else:
            places = self._places(scope, entries, rows, at)
            numbers = self._numbers(entries, k, child)[places]
        sums = numbers.sum(axis=1)
        off = np.flatnonzero(np.abs(sums - 1) > ROUNDING)
        if off.size:
            problem = f"a distribution of {child} sums to {sums[off[0]]:.6g}"
            raise self.error(problem, "it must sum to 1", entries[places[off[0]]].start())
        with np.errstate(divide="ignore"):
            return Factor(scope, np.log(numbers.T).reshape(shape))

    def _places(
        self, scope: tuple[int, ...], entries: list[re.Match[str]], rows: int, at: int
    ) -> npt.NDArray[np.int64]:
        """Entry that holds each distribution, shape (rows,), the last parent fastest."""
        child = self.names[scope[0]]
        listed: dict[int, int] = {}
        default = -1
        for place, entry in enumerate(entries):
            if entry[1]:
                twice, default = default >= 0, place
            else:
                twice = listed.setdefault(self._row(scope, entry), place) != place
            if twice:
                label = entry[1] or f"({entry[2].strip()})"
                raise self.error(f"the table of {child} lists {label} twice", "list it once", entry.start())
        if len(listed) < rows and default < 0:
            row = next(row for row in itertools.count() if row not in listed)
            numbers = np.unravel_index(row, [len(self.states[i]) for i in scope[1:]])
            states = ", ".join(list(self.states[i])[k] for i, k in zip(scope[1:], numbers, strict=True))
            raise self.error(
                f"the table of {child} has no distribution at ({states})", "list it, or give a default", at
            )
        places = np.full(rows, default)
        places[np.fromiter(listed, np.int64, len(listed))] = np.fromiter(listed.values(), np.int64, len(listed))
        return places

    def _row(self, scope: tuple[int, ...], entry: re.Match[str]) -> int:
        """Number of the distribution that an entry gives."""
        words = _words(entry[2], len(scope) - 1)
        row = 0
        if len(words) != len(scope) - 1:
            problem = f"({entry[2].strip()[:40]}) has {counted(len(words), 'state')}"
            raise self.error(problem, f"{self.names[scope[0]]} has {counted(len(scope) - 1, 'parent')}", entry.start())
        for word, i in zip(words, scope[1:], strict=True):
            if word not in self.states[i]:
                problem = f"variable {self.names[i]} has no state {word[:40]!r}"
                raise self.error(problem, nearest(word, list(self.states[i])), entry.start())
            row = row * len(self.states[i]) + self.states[i][word]
        return row

    def _numbers(self, entries: list[re.Match[str]], count: int, child: str) -> Floats:
        """The probabilities of each entry, shape (entries, count)."""
        words: list[str] = []
        for entry in entries:
            part = entry[3].replace(",", " ").split()
            if len(part) != count:
                problem = f"an entry of the table of {child} has {counted(len(part), 'number')}"
                raise self.error(problem, f"it must have {count}", entry.start())
            words += part
        try:
            values = floats(words)
            bad = np.flatnonzero(~((values >= 0) & (values < np.inf))).tolist()
        except ValueError:
            bad = [k for k, word in enumerate(words) if not is_number(word)]
        if bad:
            problem = f"the table of {child} has the entry {words[bad[0]][:40]!r}"
            raise self.error(problem, "probabilities are numbers from 0 to 1", entries[bad[0] // count].start())
        return values.reshape(len(entries), count)
