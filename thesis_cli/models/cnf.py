"""The DIMACS format of propositional formulas, read, with the weights of the Model Counting
Competition.

Grammar: `p cnf VARIABLES CLAUSES`, then the clauses, each a list of literals that ends with 0.
Variables are numbered from 1; `-3` is the negation of 3. A line that begins with `c` is a comment,
but for `c p weight LITERAL WEIGHT 0`. A line that begins with `%` ends the file, as in SATLIB.

Z is the number of assignments that satisfy all clauses, or their total weight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph, Names
from thesis_cli.models.tokens import DIGITS, Tokens

MOST_VARIABLES = 2**20
"""Largest number of variables: the file need not name them, so that its size is no limit."""

LONGEST = 8
"""Most literals of a clause that becomes one factor."""

PART = 5
"""Literals in each part of a longer clause."""


def parse(text: str, source: str = "") -> FactorGraph:
    """Read a formula; state 1 of a variable is true, and its name is its number in the file.

    A clause of more than `LONGEST` literals gets further variables after those of the file, which
    the others determine: `c12.3` is true if one of the literals in parts 1 to 3 of clause 12 is.

    Raises
    ------
    InputError : the text departs from the grammar, a clause is empty, a variable has the weight of
        one literal only, or some variables are to be projected out; the message gives the line.
    """
    text = re.split(r"^%", text, maxsplit=1, flags=re.MULTILINE)[0]
    words = Tokens(re.sub(r"^[ \t]*c[^\n]*", "", text, flags=re.MULTILINE), source)
    for word in ("p", "cnf"):
        if words.take("p cnf") != word:
            raise words.error("does not start with p cnf", "give p cnf VARIABLES CLAUSES, then the clauses")
    n = words.whole("the number of variables", 1, MOST_VARIABLES)
    count = words.whole("the number of clauses", 0)
    words.promise(count, f"{count} clauses are promised")
    clauses = _clauses(words, n, count)
    builder = _Builder(n)
    for i, pair in _weights(text, source, n).items():
        builder.factors.append(Factor((i - 1,), pair))
    for j, clause in enumerate(clauses):
        builder.add(j, clause)
    return FactorGraph([2] * len(builder.names), builder.factors, names=Names(tuple(builder.names)))


def _clauses(words: Tokens, n: int, count: int) -> list[Ints]:
    left = words.count(2**40)
    places = words.many(left, "")
    literals = np.array(words.wholes(places, "literal {}", -n, n), np.int64)
    ends = np.flatnonzero(literals == 0)
    if len(ends) > count:
        at = places[int(ends[count - 1]) + 1] if count else places[0]
        raise words.error(f"has more than the {count} clauses promised", "correct the line p cnf", at)
    if len(literals) and literals[-1] != 0:
        raise words.error("the last clause does not end with 0", "add the 0")
    if len(ends) < count:
        raise words.error(f"has {len(ends)} clauses, and p cnf promises {count}", "is it truncated?")
    empty = np.flatnonzero(np.diff(ends, prepend=-1) == 1)
    if len(empty):
        raise words.error(
            f"clause {empty[0] + 1} is empty, which no assignment satisfies", "remove it", places[int(ends[empty[0]])]
        )
    return [part[:-1] for part in np.split(literals, ends[:-1] + 1)] if count else []


def _weights(text: str, source: str, n: int) -> dict[int, Floats]:
    """The logarithms of the weights of both literals of each variable that has them."""
    found: dict[int, list[float | None]] = {}
    lines: dict[int, int] = {}
    for match in re.finditer(r"^[ \t]*c[ \t]+p[ \t]+(\S+)([^\n]*)", text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        kind, words = match[1], match[2].split()
        try:
            if kind == "show":
                _check_shown(words, n)
            if kind != "weight":
                continue
            literal, weight = _weight(words, n)
        except InputError as error:
            raise InputError(error.problem, error.remedy, source=source, line=line) from None
        pair = found.setdefault(abs(literal), [None, None])
        if pair[literal > 0] is not None:
            raise InputError(f"literal {literal} has two weights", "give it one", source=source, line=line)
        pair[literal > 0] = weight
        lines[abs(literal)] = line
    return {i: _pair(i, pair, source, lines[i]) for i, pair in found.items()}


def _pair(i: int, pair: list[float | None], source: str, line: int) -> Floats:
    negative, positive = pair
    if negative is None or positive is None:
        literal = i if positive is None else -i
        remedy = f"give the weight of {literal} too: counters differ in what it is by default"
        raise InputError(f"literal {-literal} has a weight and {literal} has none", remedy, source=source, line=line)
    if max(negative, positive) == -math.inf:
        problem = f"both literals of variable {i} have weight 0, which makes Z = 0"
        raise InputError(problem, "one must be above 0", source=source, line=line)
    return np.array([negative, positive])


def _weight(words: list[str], n: int) -> tuple[int, float]:
    """The literal and the logarithm of its weight from `LITERAL WEIGHT 0`."""
    if len(words) != 3 or words[2] != "0" or not re.fullmatch(r"-?[0-9]{1,9}", words[0]):
        raise InputError("not a weight", "give c p weight LITERAL WEIGHT 0")
    literal = int(words[0])
    if not 1 <= abs(literal) <= n:
        raise InputError(f"a weight of literal {literal}", f"the variables are 1 to {n}")
    over, _, under = words[1].partition("/")
    try:
        log = _log(over) - (_log(under) if under else 0.0)
    except (InvalidOperation, ValueError):
        log = math.nan
    if not log < math.inf:
        raise InputError(f"weight {words[1][:40]!r}", "it must be a number, 0 or above, or a fraction such as 1/3")
    return literal, log


def _log(word: str) -> float:
    """Logarithm of a decimal number of any size; ValueError or InvalidOperation if it is none, or negative."""
    value = Decimal(word)
    if not value.is_finite() or "_" in word:
        raise ValueError
    if 1e-300 < value < 1e300:
        return math.log(float(value))
    return float(value.ln(DIGITS)) if value else -math.inf


def _check_shown(words: list[str], n: int) -> None:
    """Refuse a projection that leaves variables out."""
    shown = {word for word in words if word != "0"}
    if len(shown) < n:
        raise InputError(
            f"counts {len(shown)} of {n} variables (c p show)", "projected counting is not done: remove the line"
        )


class _Builder:
    """Factors of clauses; tables of equal signs are one array."""

    def __init__(self, n: int) -> None:
        self.names = [str(i) for i in range(1, n + 1)]
        self.factors: list[Factor] = []

    def add(self, j: int, clause: Ints) -> None:
        """Add clause `j`, whose literals are numbered from 1."""
        literals = list(dict.fromkeys(clause.tolist()))
        if not {-literal for literal in literals}.isdisjoint(literals):
            return
        part = 0
        while len(literals) > LONGEST:
            part += 1
            self.names.append(f"c{j + 1}.{part}")
            any_of = len(self.names)
            first, literals = literals[:PART], [any_of, *literals[PART:]]
            self._factor([*first, any_of], _definition)
        self._factor(literals, _clause)

    def _factor(self, literals: Sequence[int], table: Callable[[tuple[bool, ...]], Floats]) -> None:
        signs = tuple(literal > 0 for literal in literals)
        self.factors.append(Factor(tuple(abs(literal) - 1 for literal in literals), table(signs)))


@cache
def _clause(signs: tuple[bool, ...]) -> Floats:
    """Forbid that all literals are false."""
    table = np.zeros((2,) * len(signs))
    table[tuple(0 if positive else 1 for positive in signs)] = -np.inf
    return table


@cache
def _definition(signs: tuple[bool, ...]) -> Floats:
    """The last variable is true if one of the other literals is."""
    table = np.zeros((2,) * len(signs))
    table[..., 0] = -np.inf
    nowhere = tuple(0 if positive else 1 for positive in signs[:-1])
    table[nowhere] = [0.0, -np.inf]
    return table
