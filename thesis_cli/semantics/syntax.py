"""Syntax trees of probabilistic expressions (Scibior and Schoelkopf section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from thesis_cli.base.errors import InputError

LARGEST = 1e150
"""Larger numbers count as undefined, so that squares are finite."""


@dataclass(frozen=True)
class Place:
    """Line and column where a part of a text begins, both from 1, and the name of the text."""

    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.line}:{self.column}".strip()

    def wrong(self, problem: str, remedy: str) -> InputError:
        """An error about this place."""
        return InputError(problem, remedy, source=str(self))


@dataclass(frozen=True)
class Number:
    """A real number r."""

    place: Place
    value: float

    @property
    def free(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True)
class Variable:
    """A variable v, bound by a `let` or free."""

    place: Place
    name: str

    @property
    def free(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(frozen=True)
class Call:
    """A function f(e1, ..., en) or a distribution D(e1, ..., en) of independent arguments.

    Attributes
    ----------
    name : name in `FUNCTIONS` or `DISTRIBUTIONS`; operators have their symbol.
    """

    place: Place
    name: str
    arguments: tuple[Expression, ...]

    @cached_property
    def free(self) -> frozenset[str]:
        """Names of the free variables."""
        return frozenset().union(*(argument.free for argument in self.arguments))


@dataclass(frozen=True)
class Let:
    """`let v1 = e1, ..., vn = en given c1, ..., cm in e`; each e_k may mention v_1 to v_{k-1}.

    Attributes
    ----------
    bindings : names and expressions.
    observations : conditions c on the bound variables; empty if nothing is observed. A condition
        `e == r` is an observed value, any other an event.
    body : the expression e.
    """

    place: Place
    bindings: tuple[tuple[str, Expression], ...]
    observations: tuple[Expression, ...]
    body: Expression

    @cached_property
    def free(self) -> frozenset[str]:
        """Names of the free variables."""
        found = self.body.free.union(*(condition.free for condition in self.observations))
        for name, expression in reversed(self.bindings):
            found = (found - {name}) | expression.free
        return found


Expression = Number | Variable | Call | Let
"""An expression e."""
