"""Spent budget of the releases of one table, by two rules of composition; `ledger` says why there
are two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from thesis_cli.privacy.mechanisms.mechanism import Budget, zcdp_epsilon

Rule = Literal["basic", "zCDP"]
UNIT = "row, replace"
"""Unit of privacy of entries that name none, among them all of older ledgers."""


@dataclass(frozen=True)
class Spend:
    """Budget of one release; rho if the release is known to be rho-zCDP, as Gaussian noise is."""

    epsilon: float
    delta: float
    rho: float | None
    note: str
    time: str

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta)
        if self.rho is not None and not 0 <= self.rho < math.inf:
            raise ValueError(f"rho is {self.rho}")

    @property
    def zcdp(self) -> float | None:
        """Rho of the release, or None if it has none."""
        if self.rho is None and self.delta == 0:
            return min(self.epsilon * self.epsilon / 2, 1e300)
        return self.rho


@dataclass(frozen=True)
class Total:
    """Spent budget, and the rule of composition that bounds it; head of the ledger's chain, if the
    total is that of a spend.
    """

    epsilon: float
    delta: float
    rule: Rule
    head: str = ""

    def within(self, limit: Budget) -> bool:
        """Whether neither epsilon nor delta exceeds the limit."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta


@dataclass(frozen=True)
class Account:
    """Limit of a table, its spent budgets, and the rule and the unit of privacy that its first
    release fixed.
    """

    limit: Budget
    spent: tuple[Spend, ...] = ()
    rule: Rule = "basic"
    name: str = ""
    unit: str = UNIT

    def by_rule(self) -> dict[Rule, Total]:
        """Total by each rule that has one; only that of the account's rule bounds later releases
        too.
        """
        found: dict[Rule, Total] = {"basic": Total(_sum(s.epsilon for s in self.spent), self._delta(), "basic")}
        rhos = [s.zcdp for s in self.spent if s.zcdp is not None]
        if 0 < len(rhos) == len(self.spent) and self.limit.delta:
            found["zCDP"] = Total(zcdp_epsilon(_sum(rhos), self.limit.delta), self.limit.delta, "zCDP")
        return found

    def total(self) -> Total:
        """Total by the rule of the account. Under zCDP, the sum of epsilons is taken if it is
        smaller and no release has a delta, or if the only release is within the limit by itself.
        """
        totals = self.by_rule()
        if self.rule == "basic" or "zCDP" not in totals:
            return totals["basic"]
        zcdp, basic = totals["zCDP"], totals["basic"]
        pure = not basic.delta and basic.epsilon < zcdp.epsilon
        # A release has the epsilon that OpenDP's map gave it; turning its rho into epsilon again rounds up.
        alone = len(self.spent) == 1 and zcdp.epsilon <= basic.epsilon * (1 + 1e-12) and not zcdp.within(self.limit)
        return basic if pure or alone else zcdp

    def left(self) -> str:
        """Remaining budget, in words."""
        total = self.total()
        epsilon = f"epsilon {max(0.0, self.limit.epsilon - total.epsilon):.4g}"
        if total.rule == "zCDP":
            return f"{epsilon} is left at delta {total.delta:g}, by zCDP composition"
        return f"{epsilon} and delta {max(0.0, self.limit.delta - total.delta):.4g} are left"

    def _delta(self) -> float:
        return math.fsum(s.delta for s in self.spent)


def upgraded_rule(limit: Budget, spent: tuple[Spend, ...]) -> Rule:
    """Rule for an account of format 1, which had both: zCDP if all its releases have a rho, unless
    only plain sums are within the limit.
    """
    if not limit.delta or any(spend.zcdp is None for spend in spent):
        return "basic"
    fits = {rule: Account(limit, spent, rule).total().within(limit) for rule in get_args(Rule)}
    return "basic" if fits["basic"] and not fits["zCDP"] else "zCDP"


def _sum(numbers: Iterable[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf
