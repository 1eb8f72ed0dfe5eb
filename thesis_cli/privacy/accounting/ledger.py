r"""Privacy ledger: what the releases of each table have spent together.

Two rules of composition bound the total. Basic composition adds up epsilons and deltas. zCDP
composition adds up rhos, where a release without delta has rho = epsilon^2 / 2 (Bun and Steinke
2016), and OpenDP turns the sum into epsilon at the delta of the limit. Either rule is a privacy
filter: it holds the limit even if each budget is chosen after looking at earlier releases (Rogers
et al. 2016; Feldman and Zrnic 2021). A choice between both that depends on the releases would hold
it at twice the delta only. So the first release of a table fixes the rule of its account: zCDP if
the limit has a delta and the release has a rho, and basic otherwise. While no release of a zCDP
account has a delta, its epsilons may be added up instead; this is no exception, because that sum
holds with delta 0, and both together with the delta of the limit.

The limit holds even if budgets are chosen after looking at earlier releases; a total below it holds
for budgets that were fixed beforehand.

The content of a table tells which account it has (`identity`), its name and its file come second.

A spend is stored before its noise is drawn, so that a release that fails has spent. `storage` keeps
the entries in a file or a database, one process at a time; `chain` describes them and their chain of
digests.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import is_url
from thesis_cli.privacy.accounting.account import UNIT, Account, Rule, Spend, Total
from thesis_cli.privacy.accounting.chain import FORMAT, Book, LedgerEntry, merged
from thesis_cli.privacy.accounting.identity import Content, account_key, likeness, skeleton
from thesis_cli.privacy.accounting.storage import FileStorage, Storage
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import steps_between

__all__ = ["FORMAT", "HOLDS", "Account", "Budget", "Ledger", "Spend", "Total", "accounts_of"]

WAIT = 60.0
"""Seconds to wait for a ledger that another process uses."""
HOLDS = (
    "the limit holds even if budgets are chosen after looking at earlier releases; a total below it holds for budgets"
    " that were fixed beforehand"
)
"""The guarantee of the ledger about composition."""
ContentOf = Callable[[bytes], Content]
"""Reads a table, and describes its content under a key."""
OTHER = "--new-account if it is another table"


class Ledger:
    """A ledger; the first spend creates it.

    Parameters
    ----------
    source : path of a file, or of a symbolic link to it, or the URL of a PostgreSQL database.
    wait : seconds to wait for a process that uses the ledger.
    unit : unit of privacy of what is spent (`Unit.name`). The first release of an account fixes its
        unit; later ones must imply it (`stages.steps_between`), and are charged what they imply.
    new : whether a person says that a table is another one than those that it is like, by name, file or
        content.
    """

    def __init__(self, source: str | Path, wait: float = WAIT, unit: str = UNIT, new: bool = False) -> None:
        self.storage, self.wait, self.unit, self.new = storage_of(source), wait, unit, new
        self._fresh = secrets.token_hex(32)

    def accounts(self) -> dict[str, Account]:
        """Account of every table of the ledger, by its name in lower case (`account_key`).

        Raises
        ------
        InputError, OSError : as for `book`.
        """
        return accounts_of(self.book())

    def book(self) -> Book:
        """Entries of the ledger, whether or not their chain is whole; none if there is no ledger.

        Raises
        ------
        InputError, OSError : as for `Storage.read`.
        """
        return self.storage.read() or Book()

    def check(
        self,
        table: str,
        budget: Budget,
        *,
        rho: float | None = None,
        limit: Budget | None = None,
        file: str | None = None,
        named: bool = True,
        content: ContentOf | None = None,
    ) -> None:
        """Refuse what `spend` would refuse now, without a lock and without spending; the arguments
        are those of `spend`.
        """
        book = self.book()
        self.storage.check_writable()
        self._after(book, _Charge(table, _spend(budget, rho, ""), limit, file, named), self._read_by(content, book))

    def spend(
        self,
        table: str,
        budget: Budget,
        note: str = "",
        *,
        rho: float | None = None,
        limit: Budget | None = None,
        file: str | None = None,
        named: bool = True,
        content: ContentOf | None = None,
    ) -> Total:
        """Record the budget of a release; its noise may be drawn once this has returned.

        Parameters
        ----------
        table : name of the private table; see `account_key` for names that are equal.
        rho : rho of the release, if it is rho-zCDP (`Calibration.rho`).
        limit : limit of the table; required with its first spend, and unchanged from then on.
        file : identity of the table's file (`base.files.file_identity`).
        named : whether a person chose the name. If not, a file that was charged under another name
            is refused.
        content : reads the content of the table, under the key of the ledger. A table that shares most
            of its rows with one of another account is refused.

        Returns
        -------
        total : what the table has spent, including this release, and the head of the chain.

        Raises
        ------
        InputError : the spend would exceed the limit, the limit is missing or differs, rho is
            negative or missing, the name, the file or the content is like that of another account, or the
            chain of the ledger is broken; and as for `Storage`.
        OSError : the file cannot be written; it is unchanged.
        """
        marked = f"{note}; --new-account" if self.new else note
        charge = _Charge(table, _spend(budget, rho, marked), limit, file, named)
        before = self.book()
        self.storage.check_writable()
        read = self._read_by(content, before)  # without the lock, since a large table takes a while
        with self.storage.locked(self.wait) as (book, append):
            if book.key != before.key:  # another process has made the ledger
                read = self._read_by(content, book)
            after, total = self._after(book, charge, read)
            append(after)
        return total

    def _read_by(self, content: ContentOf | None, book: Book) -> Content | None:
        return None if content is None else content(bytes.fromhex(book.key or self._fresh))

    def _after(self, book: Book, charge: _Charge, content: Content | None) -> tuple[Book, Total]:
        """The ledger and the table's total after a spend that is within the limit."""
        if book.breaks:
            remedy = "compare it with a copy or a noted head (thesis-cli dp-ledger shows it); nothing is spent"
            raise self._error(f"the chain of the ledger is broken: {book.breaks[0]}", remedy)
        table = " ".join(charge.table.encode("utf-8", "replace").decode().split())
        if not table:
            raise self._error("the name of the table is empty", "give a name with a letter or a digit")
        book = replace(book, key=book.key or self._fresh)
        if not self.new:
            self._check_file(book, charge, table)
            self._check_likeness(book, table, content)
        account = accounts_of(book).get(account_key(table)) or self._opened(table, charge)
        charge = replace(charge, spend=self._implied(account, charge.spend, table))
        if charge.limit not in (None, account.limit):
            raise self._error(f"the budget of table {table} is {_pair(account.limit)}", "it cannot be changed")
        if account.rule == "zCDP" and charge.spend.zcdp is None:
            problem = f"the releases of table {table} add up by zCDP, and this one has a delta and no rho"
            raise self._error(problem, "it must have Gaussian noise, or delta 0")
        after = replace(account, spent=(*account.spent, charge.spend))
        total = after.total()
        if not total.within(account.limit):
            budget = Budget(charge.spend.epsilon, charge.spend.delta)
            raise self._error(
                f"{_pair(budget)} more would exceed the budget {_pair(account.limit)} of table {table}",
                account.left(),
            )
        stronger = "" if self.unit == account.unit else self.unit
        terms = account.limit, account.rule, charge.spend, charge.file, account.unit
        extended = book.extended(LedgerEntry(table, *terms, stronger, content))
        return extended, replace(total, head=extended.head)

    def _implied(self, account: Account, spend: Spend, table: str) -> Spend:
        """Convert the cost of a release in this unit to the unit of an account: two steps double epsilon."""
        steps = steps_between(self.unit, account.unit)
        if steps is None:
            problem = f"the account of table {table} is for the unit of privacy ({account.unit})"
            raise self._error(problem, f"a release for ({self.unit}) says nothing of it: give the same unit")
        if steps == 1:
            return spend
        delta = spend.delta * (1 + math.exp(min(spend.epsilon, 700.0)))
        if not delta < 1:
            raise self._error(f"two steps of {_pair(Budget(spend.epsilon, spend.delta))} promise nothing", "give less")
        return replace(spend, epsilon=2 * spend.epsilon, delta=delta, rho=spend.rho and 4 * spend.rho)

    def _check_likeness(self, book: Book, table: str, content: Content | None) -> None:
        """Refuse a new name that looks like a known one, and a table that is like one of another account
        and not of its own.
        """
        key, names = account_key(table), {entry.key: entry.table for entry in reversed(book.entries)}
        alike = [name for other, name in names.items() if skeleton(other) == skeleton(key)]
        if key not in names and alike:
            raise self._error(f"the name {table} looks like {alike[0]}", f"give --name {alike[0]}, or {OTHER}")
        if content is None:
            return
        found: dict[str, tuple[float, str]] = {}
        for entry in {(e.key, e.content.digest): e for e in book.entries if e.content}.values():
            assert entry.content
            found[entry.key] = max(found.get(entry.key, (0.0, "")), likeness(content, entry.content))
        own = found.pop(key, (0.0, ""))
        other, (share, words) = max(found.items(), key=lambda item: item[1], default=("", own))
        if share and not own[0]:
            name = names[other]
            raise self._error(f"table {table} {words} table {name}", f"charge it there by --name {name}, or {OTHER}")

    def _check_file(self, book: Book, charge: _Charge, table: str) -> None:
        """Refuse a default name if the file was charged under another one."""
        if charge.named or charge.file is None:
            return
        known = [entry for entry in book.entries if entry.file == charge.file]
        if known and known[-1].key != account_key(table):
            other = known[-1].table
            problem = f"the file of table {table} was charged as table {other}"
            raise self._error(problem, f"give --name {other}, or {OTHER} now")

    def _opened(self, table: str, charge: _Charge) -> Account:
        if charge.limit is None:
            raise self._error(f"no budget is set for table {table}", "give --limit EPSILON DELTA")
        rule: Rule = "zCDP" if charge.limit.delta and charge.spend.zcdp is not None else "basic"
        return Account(charge.limit, rule=rule, name=table, unit=self.unit)

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy, source=self.storage.source)


@dataclass(frozen=True)
class _Charge:
    """Request of a release to the ledger, as in `Ledger.spend`."""

    table: str
    spend: Spend
    limit: Budget | None
    file: str | None
    named: bool


def accounts_of(book: Book) -> dict[str, Account]:
    """Account of every table, by `account_key`."""
    entries: dict[str, list[LedgerEntry]] = {}
    for entry in book.entries:
        entries.setdefault(entry.key, []).append(entry)
    return {
        key: Account(one.limit, tuple(entry.spend for entry in found), one.rule, one.table, one.unit)
        for key, found in entries.items()
        for one in [merged(found)]
    }


def _spend(budget: Budget, rho: float | None, note: str) -> Spend:
    if rho is not None and not 0 <= rho < math.inf:
        raise InputError(f"rho is {rho:g}", "it must be 0 or above, and finite")
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return Spend(budget.epsilon, budget.delta, rho, note.encode("utf-8", "replace").decode(), time)


def _pair(budget: Budget) -> str:
    return f"({budget.epsilon:g}, {budget.delta:g})"


def storage_of(source: str | Path) -> Storage:
    """Storage that a path or the URL of a database names.

    Raises
    ------
    InputError : it is the URL of no PostgreSQL database, or has a password.
    """
    if not is_url(source):
        return FileStorage(source)
    from thesis_cli.privacy.accounting.postgresql import PostgreSQLStorage

    return PostgreSQLStorage(str(source))
