"""The budget that a release spends: when it is charged, and what is reported if the release then
stops.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed, describe

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
    charged : budget of this release, once it is spent.
    total : what all releases of the table have spent, this one included; None without a ledger.
    kept : file of the record with the noisy embedding, once it is written.
    """

    ledger: Path | None
    table: str
    limit: Budget | None
    note: str
    charged: Budget | None = None
    total: Total | None = None
    kept: Path | None = None

    def spend(self, budget: Budget, rho: float | None) -> None:
        """Charge the budget; rho if the noise is rho-zCDP.

        Raises
        ------
        InputError : the limit of the table would be exceeded, or is missing.
        """
        if self.ledger is not None:
            from thesis_cli.privacy.ledger import Ledger

            ledger = Ledger(self.ledger)
            self.total = ledger.spend(self.table, budget, self.note, rho=rho, limit=self.limit)
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
