"""Guides: what tells a search, task by task, which operations to try first.

A guide sees a batch of tasks at once and gives an order for each, as a neural network would. The
prior is the guide that gives every task the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.search.solver import Order

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.task import Task


@runtime_checkable
class Guide(Protocol):
    """A source of orders."""

    @property
    def identity(self) -> str:
        """Name and version, or a digest: guides of one identity give a task the same order.
        Journals and records keep it."""

    def orders(self, tasks: Sequence[Task]) -> Sequence[Order | None]:
        """The order for each task, in the order of the tasks; None where the prior is to decide.
        Deterministic."""


@dataclass(frozen=True)
class Fixed:
    """The guide that gives every task the same order: a prior."""

    order: Order

    @property
    def identity(self) -> str:
        """`fixed` and a digest of the order."""
        return f"fixed {digest(self.order)}"

    def orders(self, tasks: Sequence[Task]) -> list[Order]:
        """The order, once for each task."""
        return [self.order] * len(tasks)


def orders_of(guide: Guide, tasks: Sequence[Task], prior: Order | None = None) -> list[Order]:
    """Orders that a guide gives for tasks. Raises InputError if it does not give an `Order` for each; only
    with a prior may it give None.

    Parameters
    ----------
    prior : the order of tasks for which the guide has none.
    """
    given = list(guide.orders(tasks))
    found = [prior if order is None else order for order in given]
    if len(found) != len(tasks) or not all(isinstance(order, Order) for order in found):
        kinds = ", ".join(sorted({type(order).__name__ for order in given})) or "nothing"
        problem = f"the guide {guide.identity} gives {len(found):,} orders ({kinds}) for {len(tasks):,} tasks"
        raise InputError(problem, "it must give one Order for each task")
    return [order for order in found if order is not None]


def digest(order: Order) -> str:
    """A short name of the probabilities of an order."""
    return _hash([float(p) for p in order.probabilities])


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
