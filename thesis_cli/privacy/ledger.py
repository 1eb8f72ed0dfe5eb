r"""What releases of a table have cost together, in a JSON file that people can read.

Two rules of composition bound the total. Basic: epsilons and deltas add up. zCDP: rhos add up, epsilon^2 / 2 for a
release without delta (Bun and Steinke 2016), and OpenDP turns the sum into epsilon at the delta of the limit. The
total is the one of smaller epsilon. It holds for budgets fixed beforehand. Either rule is a privacy filter, that is,
it holds too where budgets depend on earlier releases (Rogers et al. 2016; Feldman and Zrnic 2021); the smaller of both
then holds at twice the delta.

A spend is on the disk before its noise is drawn, so a release that fails has spent. A lock keeps apart the processes
of one machine.
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
WANTED = "a ledger that thesis-cli wrote is wanted"


@dataclass(frozen=True)
class Total:
    """What is spent, and by which rule of composition it adds up to that."""

    epsilon: float
    delta: float
    rule: Literal["basic", "zCDP"]

    def within(self, limit: Budget) -> bool:
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta


@dataclass(frozen=True)
class Spend:
    """One release; rho if it is known to be rho-zCDP, as Gaussian noise is."""

    epsilon: float
    delta: float
    rho: float | None
    note: str
    time: str

    @property
    def zcdp(self) -> float | None:
        if self.rho is None and self.delta == 0:
            return self.epsilon**2 / 2
        return self.rho


@dataclass(frozen=True)
class Account:
    """A table: its limit and what was spent of it."""

    limit: Budget
    spent: tuple[Spend, ...] = ()

    def total(self) -> Total:
        """By the rule of smaller epsilon, of those that stay within the limit if one does."""
        totals = [Total(math.fsum(s.epsilon for s in self.spent), math.fsum(s.delta for s in self.spent), "basic")]
        rhos = [s.zcdp for s in self.spent if s.zcdp is not None]
        if 0 < len(rhos) == len(self.spent) and self.limit.delta:
            totals.append(Total(zcdp_epsilon(math.fsum(rhos), self.limit.delta), self.limit.delta, "zCDP"))
        return min(totals, key=lambda total: (not total.within(self.limit), total.epsilon))

    def left(self) -> str:
        total = self.total()
        epsilon = f"epsilon {max(0.0, self.limit.epsilon - total.epsilon):.4g}"
        if total.rule == "zCDP":
            return f"{epsilon} is left at delta {total.delta:g}, by zCDP composition"
        return f"{epsilon} and delta {max(0.0, self.limit.delta - total.delta):.4g} are left"


class Ledger:
    """A ledger file, which the first spend creates."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    def accounts(self) -> dict[str, Account]:
        """Every table of the file, by name.

        Raises
        ------
        InputError : the file is no ledger, or not a whole one.
        OSError : it cannot be read.
        """
        try:
            return _parse(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except json.JSONDecodeError as error:
            raise InputError(f"no JSON: {error.msg}", WANTED, source=self.path, line=error.lineno) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):  # also of text that is not UTF-8
            raise InputError("not a privacy ledger", WANTED, source=self.path) from None

    def spend(
        self, table: str, budget: Budget, note: str = "", *, rho: float | None = None, limit: Budget | None = None
    ) -> Total:
        """Record a release, which may be drawn once this has returned.

        Parameters
        ----------
        table : name of the private table.
        rho : of the release, if it is rho-zCDP (`Calibration.rho`).
        limit : of the table; wanted with its first spend, and unchanged from then on.

        Returns
        -------
        total : spent of the table, this release included.

        Raises
        ------
        InputError : the limit would be exceeded, is missing or another one; a negative rho; a ledger in use, or none.
        OSError : the file cannot be written; it is as it was.
        """
        if rho is not None and not 0 <= rho < math.inf:
            raise InputError(f"rho is {rho:g}", "a number from 0 is wanted")
        with locked(self.path, "wait until that release has spent"):
            accounts = self.accounts()
            account = accounts.get(table) or self._opened(table, limit)
            if limit not in (None, account.limit):
                raise self._error(f"the budget of table {table} is {_pair(account.limit)}", "no other can be set")
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
            raise self._error(f"no budget is set for table {table}", "its epsilon and delta are wanted")
        return Account(limit)

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy, source=self.path)

    def _write(self, accounts: dict[str, Account]) -> None:
        """The old file or the new one is there whenever this stops."""
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
    """Raises what a record of another form happens to raise."""
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
