r"""Privacy ledger: what the releases of each table have spent together, in a JSON file that people
can read.

Two rules of composition bound the total. Basic composition adds up epsilons and deltas. zCDP
composition adds up rhos, where a release without delta has rho = epsilon^2 / 2 (Bun and Steinke
2016), and OpenDP turns the sum into epsilon at the delta of the limit. The total is that of the
rule with the smaller epsilon, and holds for budgets that are fixed beforehand. Either rule is a
privacy filter: it also holds if budgets depend on earlier releases (Rogers et al. 2016; Feldman and
Zrnic 2021); the smaller of the two then holds at twice the delta.

A spend is on the disk before its noise is drawn, so that a release that fails has spent. A lock
excludes other processes of the machine.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from thesis_cli.base.errors import InputError
from thesis_cli.base.locks import locked
from thesis_cli.privacy.mechanism import Budget, zcdp_epsilon

FORMAT = "thesis-cli privacy ledger 1"
REMEDY = "it must be a ledger that thesis-cli wrote"


@dataclass(frozen=True)
class Total:
    """Spent budget, and the rule of composition that bounds it."""

    epsilon: float
    delta: float
    rule: Literal["basic", "zCDP"]

    def within(self, limit: Budget) -> bool:
        """Whether neither epsilon nor delta exceeds the limit."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta


@dataclass(frozen=True)
class Spend:
    """Budget of one release; rho if the release is known to be rho-zCDP, as Gaussian noise is."""

    epsilon: float
    delta: float
    rho: float | None
    note: str
    time: str

    @property
    def zcdp(self) -> float | None:
        """Rho of the release, or None if it has none."""
        if self.rho is None and self.delta == 0:
            return self.epsilon**2 / 2
        return self.rho


@dataclass(frozen=True)
class Account:
    """Limit of a table, and its spent budgets."""

    limit: Budget
    spent: tuple[Spend, ...] = ()

    def total(self) -> Total:
        """Total by the rule of smaller epsilon; a rule that stays within the limit takes
        precedence.
        """
        totals = [Total(math.fsum(s.epsilon for s in self.spent), math.fsum(s.delta for s in self.spent), "basic")]
        rhos = [s.zcdp for s in self.spent if s.zcdp is not None]
        if 0 < len(rhos) == len(self.spent) and self.limit.delta:
            totals.append(Total(zcdp_epsilon(math.fsum(rhos), self.limit.delta), self.limit.delta, "zCDP"))
        return min(totals, key=lambda total: (not total.within(self.limit), total.epsilon))

    def left(self) -> str:
        """Remaining budget, in words."""
        total = self.total()
        epsilon = f"epsilon {max(0.0, self.limit.epsilon - total.epsilon):.4g}"
        if total.rule == "zCDP":
            return f"{epsilon} is left at delta {total.delta:g}, by zCDP composition"
        return f"{epsilon} and delta {max(0.0, self.limit.delta - total.delta):.4g} are left"


class Ledger:
    """A ledger file; the first spend creates it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    def accounts(self) -> dict[str, Account]:
        """Account of every table of the file, by name.

        Raises
        ------
        InputError : the file is not a ledger, or damaged.
        OSError : the file cannot be read.
        """
        try:
            return _parse(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except json.JSONDecodeError as error:
            raise InputError(f"it is not JSON: {error.msg}", REMEDY, source=self.path, line=error.lineno) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):  # also of text that is not UTF-8
            raise InputError("it is not a privacy ledger", REMEDY, source=self.path) from None

    def spend(
        self, table: str, budget: Budget, note: str = "", *, rho: float | None = None, limit: Budget | None = None
    ) -> Total:
        """Record the budget of a release; its noise may be drawn once this has returned.

        Parameters
        ----------
        table : name of the private table.
        rho : rho of the release, if it is rho-zCDP (`Calibration.rho`).
        limit : limit of the table; required with its first spend, and unchanged from then on.

        Returns
        -------
        total : what the table has spent, including this release.

        Raises
        ------
        InputError : the spend would exceed the limit, the limit is missing or differs, rho is
            negative, the ledger is in use, or the file is not a ledger.
        OSError : the file cannot be written; it is unchanged.
        """
        if rho is not None and not 0 <= rho < math.inf:
            raise InputError(f"rho is {rho:g}", "it must be 0 or above, and finite")
        with locked(self.path, "wait until that release has spent"):
            accounts = self.accounts()
            account = accounts.get(table) or self._opened(table, limit)
            if limit not in (None, account.limit):
                raise self._error(f"the budget of table {table} is {_pair(account.limit)}", "it cannot be changed")
            time = datetime.now(UTC).isoformat(timespec="seconds")
            after = Account(account.limit, (*account.spent, Spend(budget.epsilon, budget.delta, rho, note, time)))
            total = after.total()
            if not total.within(account.limit):
                raise self._error(
                    f"{_pair(budget)} more would exceed the budget {_pair(account.limit)} of table {table}",
                    account.left(),
                )
            self._write({**accounts, table: after})
        return total

    def _opened(self, table: str, limit: Budget | None) -> Account:
        if limit is None:
            raise self._error(f"no budget is set for table {table}", "give its epsilon and delta")
        return Account(limit)

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy, source=self.path)

    def _write(self, accounts: dict[str, Account]) -> None:
        """Replace the file; whenever this stops, either the old file or the new one is there."""
        tables = {
            name: {"limit": asdict(account.limit), "spent": [asdict(spend) for spend in account.spent]}
            for name, account in accounts.items()
        }
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps({"format": FORMAT, "tables": tables}, indent=2, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _parse(found: Any) -> dict[str, Account]:
    """Accounts in a ledger's JSON; other JSON raises any of several errors."""
    if found["format"] != FORMAT:
        raise ValueError
    return {
        name: Account(Budget(**account["limit"]), tuple(_spend(**spend) for spend in account["spent"]))
        for name, account in found["tables"].items()
    }


def _spend(epsilon: float, delta: float, rho: float | None, note: str, time: str) -> Spend:
    budget = Budget(epsilon, delta)
    if rho is not None and not 0 <= rho < math.inf:
        raise ValueError
    return Spend(budget.epsilon, budget.delta, rho, note, time)


def _pair(budget: Budget) -> str:
    return f"({budget.epsilon:g}, {budget.delta:g})"
