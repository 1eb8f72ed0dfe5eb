"""The budget that a release spends: when it is charged, and what is reported if the release then
stops.
"""

from __future__ import annotations

import logging
import re
import shlex
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from thesis_cli.base.errors import InputError, WorkFailed, describe, without_secrets
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.core.result import holds_release, unfinished

if TYPE_CHECKING:
    from thesis_cli.privacy.accounting.identity import Content
    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.tables.table_base import Table

logger = logging.getLogger("thesis_cli")

NO_LEDGER = (
    "the tasks of a sweep are many releases; divide the budget before the sweep: its tasks spend at most the sum of"
    " their epsilons, and of their deltas"
)


def ledger_option(product: str) -> Any:
    """The ledger of what tables have spent; its type is `str | None`."""
    words = (
        "File of what each table has spent, or postgresql://USER@HOST/DATABASE for several machines; a "
        f"{product} that would exceed the table's limit is refused."
    )
    return option(None, words, metavar="FILE", not_swept=NO_LEDGER)


def account_option() -> Any:
    """The name of a table in a ledger; its type is `str | None`."""
    words = "Name of the table in the ledger."
    return option(None, words, default_text="that of its file, links resolved", not_swept=NO_LEDGER)


def new_account_option() -> Any:
    """The confirmation that a table is new to a ledger; its type is `bool`."""
    words = "Confirm that the table is none of those in the ledger that its name or its rows resemble."
    return option(False, words, not_swept=NO_LEDGER)


def limit_option() -> Any:
    """The budget of all releases of a table; its type is `tuple[float, float] | None`."""
    words = "Epsilon and delta of all releases of the table together; the first release sets them."
    return option(None, words, metavar="EPSILON DELTA", least=0, not_swept=NO_LEDGER)


@dataclass
class Spending:
    """Budget that one release spends; it is charged just before the noise is drawn.

    Attributes
    ----------
    ledger : file or database of what each table has spent; None counts nothing.
    table : name of the table in the ledger.
    limit : budget of all releases of the table together, which its first release sets.
    note : words of the ledger about this release.
    file : identity of the table's file, if it has one.
    named : whether a person chose the name.
    product : thing that the noise is on, for messages.
    charged : budget of this release, once it is spent.
    total : budget that all releases of the table have spent, this one included; None without a ledger.
    charging : whether the ledger is asked to charge the budget, and has not answered yet.
    record : file that the record with the noisy embedding goes to; None writes none.
    unit : unit of privacy, for the ledger.
    new : whether a person says that the table is no other account's, though it is like one.
    """

    ledger: str | None
    table: str
    limit: Budget | None
    note: str
    file: str | None = None
    named: bool = True
    product: str = "noisy embedding"
    charged: Budget | None = None
    total: Total | None = None
    charging: bool = False
    record: Path | None = None
    unit: str = "row, replace"
    new: bool = False
    _content: Callable[[bytes], Content] | None = None

    @classmethod
    def of(
        cls,
        ledger: str | None,
        table: object,
        name: str | None,
        limit: tuple[float, float] | None,
        note: str,
        new: bool = False,
    ) -> Spending:
        """Account that a command charges.

        Parameters
        ----------
        table : private table: a path, a URL, or an object of Python.
        name : name of the account; None takes that of the table's file, with links resolved.
        new : see the attribute.

        Raises
        ------
        InputError : a ledger is given, and the table has no name.
        """
        from thesis_cli.privacy.accounting.ledger import file_identity
        from thesis_cli.privacy.mechanisms.mechanism import Budget

        file = resolved_file(table)
        found = name or table_name(table)
        if ledger is not None and not found:
            raise InputError("--ledger does not go with a table that has no name", "give --name")
        identity = None if file is None else file_identity(file)
        return cls(ledger, found, limit and Budget(*limit), note, file=identity, named=name is not None, new=new)

    def identify(self, table: Table, budget: Budget) -> None:
        """Read the content of a table for the ledger, and refuse one that is charged elsewhere.

        The error depends on private rows: it is for people who may see the table.

        Raises
        ------
        InputError : as for `spend`.
        """
        if self.ledger is None:
            return
        from thesis_cli.privacy.accounting.identity import content_of

        self._content = cache(lambda key: content_of(table.chunks(), key))
        self.check(budget)

    def check(self, budget: Budget) -> None:
        """Refuse a budget that the ledger would refuse, before the table is read; nothing is spent.

        A budget with a delta is taken for one of Gaussian noise. The spend itself checks the rho of
        the release.

        Raises
        ------
        InputError : as for `spend`.
        """
        if self.ledger is None:
            return
        from thesis_cli.privacy.accounting.ledger import Ledger
        from thesis_cli.privacy.mechanisms.mechanism import OpenDPGaussian

        about = OpenDPGaussian().calibrate(1, 1.0, budget).rho if budget.delta else None
        rho = about and about * (1 - 1e-6)  # of noise on another vector it is a little less or more
        Ledger(self.ledger, unit=self.unit, new=self.new).check(self.table, budget, rho=rho, **self._options)

    def spend(self, budget: Budget, rho: float | None) -> None:
        """Charge the budget; rho if the noise is rho-zCDP.

        Raises
        ------
        InputError : the limit of the table would be exceeded, or is missing.
        """
        if self.ledger is not None:
            from thesis_cli.privacy.accounting.ledger import Ledger

            ledger = Ledger(self.ledger, unit=self.unit, new=self.new)
            self.charging = True
            self.total = ledger.spend(self.table, budget, self.note, rho=rho, **self._options)
        self.charged = budget
        self.charging = False

    @property
    def _options(self) -> dict[str, Any]:
        return {"limit": self.limit, "file": self.file, "named": self.named, "content": self._content}

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn any error that stops the release into one line without values of the table; once the budget is
        spent, also report that, and how to go on.

        Raises
        ------
        WorkFailed : bad input, a failed write or a lack of memory, after the budget was spent; or an
            error that nobody foresaw, by its class and its place in the program.
        """
        try:
            yield
        except (InputError, WorkFailed, OSError, MemoryError) as error:
            if self.charged is None:
                raise _alone(error)  # noqa: B904  whatever else was raised may quote values
            raise WorkFailed(f"{describe(error)}; {self.consequence}") from None
        except KeyboardInterrupt as error:
            if self.charged is not None:
                logger.error("%s", self.consequence)
            elif self.charging:
                logger.error(
                    "the budget may count as spent: %s shows whether it does", without_secrets(self.ledger or "")
                )
            raise _alone(error)  # noqa: B904
        except Exception as error:  # noqa: BLE001  its text may quote values
            spent = f"; {self.consequence}" if self.charged else ""
            raise WorkFailed(f"{_place(error)}: {type(error).__name__}, an error of this program{spent}") from None

    @property
    def consequence(self) -> str:
        """Sentence that the budget counts as spent, and how rows can be made without spending again."""
        assert self.charged is not None
        spent = f"the budget ({self.charged.epsilon:.4g}, {self.charged.delta:.4g}) counts as spent"
        if self.record is None or not holds_release(self.record) or unfinished(self.record):
            return f"{spent}, and no file keeps the {self.product}, which is lost"
        again = f"thesis-cli dp-release --again {shlex.quote(str(self.record))}"
        return f"{spent}; {self.record} keeps the noisy embedding, and {again} makes its rows"


Raised = TypeVar("Raised", bound=BaseException)


def _alone(error: Raised) -> Raised:
    """An error without those that led to it: what a library raises may quote values."""
    error.__cause__ = error.__context__ = None
    return error


def _place(error: BaseException) -> str:
    """File and line of this program that an error comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "thesis_cli" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"


def resolved_file(table: object) -> Path | None:
    """File of a table, with all links resolved: of a path, or of the URL of a SQLite database; None
    for other tables.
    """
    if not isinstance(table, str | Path) or str(table) == "-":
        return None
    found = re.match(r"sqlite(?:\+\w+)?:///([^?]*)", str(table))
    if not found and re.match(r"\w+(\+\w+)?://|(sqlite|postgres\w*)(\+\w+)?:", str(table)):
        return None
    path = Path(found[1] if found else str(table))
    return path.resolve() if path.name else None


def table_name(table: object) -> str:
    """Name of a table in a ledger by default: that of its file without folder and suffixes, links
    resolved, or that of its database; empty if it has none.
    """
    file = resolved_file(table)
    if file is None:
        if not isinstance(table, str | Path) or str(table) == "-":
            return ""
        return Path(without_secrets(str(table)).partition("?")[0]).stem
    name = Path(file.stem).stem if file.suffix.lower() in (".gz", ".bz2", ".xz", ".zst") else file.stem
    return name.strip()
