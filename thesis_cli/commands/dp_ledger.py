"""`thesis-cli dp-ledger`: show what the releases of each table have spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, counted, nearest
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.privacy.accounting.account import Account, Total
    from thesis_cli.privacy.accounting.chain import Book

NO_CHAIN = "none: the ledger is of format 1, and its next spend adds one"


@dataclass(frozen=True, kw_only=True)
class LedgerRequest(Request):
    """Show the accounts of a privacy ledger, and check its chain of digests.

    The exit status is 1 if the chain is broken, or if it does not contain a noted head.
    """

    ledger: str = argument(
        "File of a ledger, as dp-release and dp-measure write it, or postgresql://USER@HOST/DATABASE.", names="file"
    )
    table: str | None = option(None, "Name of the table to show.", metavar="NAME", default_text="all")
    noted: str | None = option(
        None,
        "Head of the chain that you noted after an earlier release, or its first 16 digits or more: the ledger must "
        "continue from it.",
        metavar="HEAD",
    )

    def check(self) -> None:
        if self.noted is not None and not (
            len(self.noted) >= 16 and set(self.noted.lower()) <= set("0123456789abcdef")
        ):
            raise InputError(f"--noted is {self.noted[:70]}", "it must be 16 or more digits (0-9, a-f) of a head")


@dataclass(frozen=True, kw_only=True, repr=False)
class LedgerResult(Result):
    """Accounts of a ledger; the table has a row for each entry.

    Attributes
    ----------
    book : entries of the whole file, with the state of their chain.
    accounts : accounts that are shown.
    missing : whether the chain lacks the noted head.
    """

    book: Book
    accounts: Sequence[Account]
    missing: bool

    @property
    def status(self) -> int:
        """1 if the chain is broken, or lacks the noted head."""
        return int(bool(self.book.breaks) or self.missing)

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Limit, totals and remaining budget of each account, and the chain."""
        from thesis_cli.privacy.accounting.ledger import HOLDS

        lines = []
        for account in self.accounts:
            counts = f"{_pair(account.limit)}, {account.rule} composition, {counted(len(account.spent), 'release')}"
            lines.append((account.name, f"limit {counts}"))
            lines.append(("  unit", account.unit))
            lines += [(f"  {rule}", _total(total, account)) for rule, total in account.by_rule().items()]
            lines.append(("  left", account.left()))
        lines.append(("composition", HOLDS))
        lines.append(("chain", self._chain()))
        lines += [("", problem) for problem in self.book.breaks]
        return lines

    @presentation
    def _chain(self) -> str:
        if not self.book.chained:
            return NO_CHAIN
        if self.book.breaks:
            return "BROKEN"
        if self.missing:
            return f"whole, but WITHOUT the noted head {self.settings['noted']}: its entries were changed or removed"
        if not self.book.entries:
            return "whole, no entries"
        noted = "" if self.settings["noted"] is None else ", and contains the noted head"
        return f"whole{noted}; head {self.book.head}"

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Accounts with their totals, and the state of the chain."""
        return {
            "accounts": [
                {
                    "table": account.name,
                    "limit": asdict(account.limit),
                    "rule": account.rule,
                    "unit": account.unit,
                    "releases": len(account.spent),
                    "totals": {rule: _pair_of(total) for rule, total in account.by_rule().items()},
                    "spent": _pair_of(account.total()),
                    "left": account.left(),
                }
                for account in self.accounts
            ],
            "chain": {
                "chained": self.book.chained,
                "whole": not self.book.breaks,
                "breaks": list(self.book.breaks),
                "contains_noted": None if self.settings["noted"] is None else not self.missing,
                "head": self.book.head,
            },
        }

    @presentation
    def draw(self) -> Figure:
        """Spent epsilon of each table over its releases, as a share of the limit.

        Raises
        ------
        InputError : nothing is spent.
        """
        from thesis_cli.commands.figures.releases import spent_figure

        if not self.accounts:
            raise InputError("a ledger without entries has no figure", "leave --figure out")
        return spent_figure({a.name: [total.epsilon / a.limit.epsilon for total in _history(a)] for a in self.accounts})


def run(request: LedgerRequest, progress: Progress) -> LedgerResult:
    """Read the ledger and check its chain."""
    from thesis_cli.privacy.accounting.identity import account_key
    from thesis_cli.privacy.accounting.ledger import Ledger, accounts_of

    storage = Ledger(request.ledger).storage
    book = storage.read()
    if book is None:
        raise InputError("there is no such ledger", "the first release with --ledger makes it", source=storage.source)
    accounts = accounts_of(book)
    if request.table is not None:
        key = account_key(request.table)
        if key not in accounts:
            names = [account.name for account in accounts.values()]
            raise InputError(
                f"the ledger has no table {request.table!r}", nearest(request.table, names, "its tables are")
            )
        accounts = {key: accounts[key]}
    return LedgerResult(
        columns=_columns(book, accounts),
        request=request,
        settings=settings_of(request),
        book=book,
        accounts=list(accounts.values()),
        missing=request.noted is not None
        and not any(found.startswith(request.noted.lower()) for found in book.digests),
    )


COLUMNS = (
    *("entry", "time", "table", "note", "epsilon", "delta", "rho", "limit_epsilon", "limit_delta"),
    *("total_epsilon", "total_delta", "rule", "digest"),
)


def _columns(book: Book, accounts: Mapping[str, Account]) -> Columns:
    """A row for each entry, with the total of its table so far."""
    totals = {key: iter(_history(account)) for key, account in accounts.items()}
    rows = []
    for number, entry in enumerate(book.entries, start=1):
        if entry.key not in totals:
            continue
        total, spend = next(totals[entry.key]), entry.spend
        digest = book.digests[number - 1] if book.chained else ""
        rho = float("nan") if spend.rho is None else spend.rho
        values = (number, spend.time, entry.table, spend.note, spend.epsilon, spend.delta, rho)
        spent = (entry.limit.epsilon, entry.limit.delta, total.epsilon, total.delta, total.rule, digest)
        rows.append(dict(zip(COLUMNS, (*values, *spent), strict=True)))
    return Columns(rows) if rows else Columns({name: [] for name in COLUMNS})


def _history(account: Account) -> list[Total]:
    """Total after each release."""
    return [replace(account, spent=account.spent[: i + 1]).total() for i in range(len(account.spent))]


@presentation
def _total(total: Total, account: Account) -> str:
    """A total, and whether it is the one that counts."""
    counts = ", which counts" if total == account.total() else ""
    return f"{_pair(total)} spent{counts}"


@presentation
def _pair(budget: Any) -> str:
    return f"({budget.epsilon:.4g}, {budget.delta:.4g})"


def _pair_of(total: Total) -> dict[str, Any]:
    return {"epsilon": total.epsilon, "delta": total.delta, "rule": total.rule}


COMMAND = Command(
    LedgerRequest,
    run,
    examples=(
        "dp-ledger data/releases/ledger.json",
        "dp-ledger data/releases/ledger.json --table people --json",
        "dp-ledger data/releases/ledger.json --figure spent.png",
    ),
    not_swept="it shows one ledger, and computes nothing",
)
