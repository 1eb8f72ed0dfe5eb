"""The budget that a release spends: when it is charged, and what is reported if the release then
stops.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed, describe
from thesis_cli.base.wording import without_secrets

if TYPE_CHECKING:
    from thesis_cli.privacy.ledger import Total
    from thesis_cli.privacy.mechanism import Budget

logger = logging.getLogger("thesis_cli")


@dataclass
class Spending:
    """What one release spends; it is charged just before the noise is drawn.

    Attributes
    ----------
    ledger : file of what each table has spent; None counts nothing.
    table : name of the table in the ledger.
    limit : budget of all releases of the table together, which its first release sets.
    note : what the ledger says about this release.
    file : identity of the table's file, if it has one.
    named : whether a person chose the name.
    charged : budget of this release, once it is spent.
    total : what all releases of the table have spent, this one included; None without a ledger.
    kept : file of the record with the noisy embedding, once it is written.
    """

    ledger: Path | None
    table: str
    limit: Budget | None
    note: str
    file: str | None = None
    named: bool = True
    charged: Budget | None = None
    total: Total | None = None
    kept: Path | None = None

    @classmethod
    def of(
        cls,
        ledger: Path | None,
        table: object,
        name: str | None,
        limit: tuple[float, float] | None,
        note: str,
    ) -> Spending:
        """Account that a command charges.

        Parameters
        ----------
        table : private table: a path, a URL, or an object of Python.
        name : name of the account; None takes that of the table's file, with links resolved.

        Raises
        ------
        InputError : a ledger is given, and the table has no name.
        """
        from thesis_cli.privacy.ledger import file_identity
        from thesis_cli.privacy.mechanism import Budget

        file = resolved_file(table)
        found = name or table_name(table)
        if ledger is not None and not found:
            raise InputError("--ledger does not go with a table that has no name", "give --name")
        identity = None if file is None else file_identity(file)
        return cls(ledger, found, limit and Budget(*limit), note, file=identity, named=name is not None)

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
        from thesis_cli.privacy.ledger import Ledger
        from thesis_cli.privacy.mechanism import OpenDPGaussian

        about = OpenDPGaussian().calibrate(1, 1.0, budget).rho if budget.delta else None
        rho = about and about * (1 - 1e-6)  # of noise on another vector it is a little less or more
        Ledger(self.ledger).check(self.table, budget, rho=rho, limit=self.limit, file=self.file, named=self.named)

    def spend(self, budget: Budget, rho: float | None) -> None:
        """Charge the budget; rho if the noise is rho-zCDP.

        Raises
        ------
        InputError : the limit of the table would be exceeded, or is missing.
        """
        if self.ledger is not None:
            from thesis_cli.privacy.ledger import Ledger

            ledger = Ledger(self.ledger)
            self.total = ledger.spend(
                self.table, budget, self.note, rho=rho, limit=self.limit, file=self.file, named=self.named
            )
        self.charged = budget

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever stops the release once it has spent: report that it has, and how to go on.

        Raises
        ------
        WorkFailed : bad input, a failed write or a lack of memory, after the budget was spent.
        """
        try:
            yield
        except (InputError, WorkFailed, OSError, MemoryError) as error:
            if self.charged is None:
                raise
            raise WorkFailed(f"{describe(error)}; {self.consequence}") from error
        except KeyboardInterrupt:
            if self.charged is not None:
                logger.error("%s", self.consequence)
            raise
        except Exception as error:
            if self.charged is not None:
                error.add_note(self.consequence)
            raise

    @property
    def consequence(self) -> str:
        """That the budget counts as spent, and how rows can be made without spending again."""
        assert self.charged is not None
        spent = f"the budget ({self.charged.epsilon:.4g}, {self.charged.delta:.4g}) counts as spent"
        if self.kept is None:
            return f"{spent}, and no file keeps the noisy embedding"
        again = f"thesis-cli dp-release --again {shlex.quote(str(self.kept))}"
        return f"{spent}; {self.kept} keeps the noisy embedding, and {again} makes its rows"


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
