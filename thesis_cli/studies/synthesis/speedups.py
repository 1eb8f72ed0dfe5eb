"""By what factor guidance shortens searches (Thesis section 5.5.1).

A search that reached its limit cost at least what it spent. So the cost within which a share of the
tasks is solved may be known only from below, and the factor only from one side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.figures import nice
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, RATE, SOURCE
from thesis_cli.synthesis.lanes import Flags

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 1000


@dataclass(frozen=True)
class Needed:
    """What must be spent on each task so that a share of them is solved.

    Attributes
    ----------
    low, high : bounds on the least cost; `high` is inf if the share was not solved.
    """

    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the cost is known."""
        return self.low == self.high


@dataclass(frozen=True)
class Speedup:
    """A ratio of two costs by which a share of the same tasks is solved.

    Attributes
    ----------
    log10 : of the ratio, or of a bound on it.
    standard_error : of `log10`, by the choice of tasks.
    relation : `=` for the ratio, `>` or `<` for a lower or an upper bound on it.
    """

    log10: float
    standard_error: float
    relation: str

    def __str__(self) -> str:
        sign = "" if self.relation == "=" else f"{self.relation} "
        return f"{sign}{nice(float(f'{10**self.log10:.3g}'))}x"

    def against(self, log10: float) -> tuple[float, float]:
        """Number and standard error, for a comparison with another number; the standard error is inf
        if this is a bound on the wrong side of that one, which decides nothing."""
        decides = {"=": True, ">": self.log10 > log10, "<": self.log10 < log10}[self.relation]
        return self.log10, self.standard_error if decides else float("inf")


def needed(costs: Floats, solved: Flags, share: float) -> Needed:
    """Bounds on the least cost by which a share of the tasks is solved.

    Parameters
    ----------
    costs : of each task; of one that was not solved, what was spent on it.
    solved : whether each task was.
    share : above 0, up to 1.
    """
    return Needed(_quantile(costs, share), _quantile(np.where(solved, costs, np.inf), share))


def speedup(
    slow: Floats, slow_solved: Flags, fast: Floats, fast_solved: Flags, share: float, resamples: int = RESAMPLES
) -> Speedup | None:
    """Ratio of the costs by which two searches solve a share of the same tasks.

    Parameters
    ----------
    slow, fast : costs of each task in the two searches.
    slow_solved, fast_solved : whether each was solved.

    Returns
    -------
    None if neither search solves the share, or there is no task. The standard error is that of the
    bootstrap over tasks, which keeps the two costs of a task together.
    """
    if not len(slow):
        return None
    before, after = needed(slow, slow_solved, share), needed(fast, fast_solved, share)
    if not np.isfinite(min(before.high, after.high)):
        return None
    lower = bool(np.isfinite(after.high))
    relation = "=" if before.exact and after.exact else ">" if lower else "<"
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(resamples):
        drawn = rng.integers(len(slow), size=len(slow))
        a, b = needed(slow[drawn], slow_solved[drawn], share), needed(fast[drawn], fast_solved[drawn], share)
        ratios.append(_log10(a, b, lower))
    return Speedup(_log10(before, after, lower), float(np.std(ratios)), relation)


def _log10(before: Needed, after: Needed, lower: bool) -> float:
    """log10 of a lower or an upper bound on the ratio of two costs; the two are equal if both costs
    are known. Where drawn tasks are not solved, what was spent on them counts."""
    if lower:
        return float(np.log10(before.low / (after.high if np.isfinite(after.high) else after.low)))
    return float(np.log10((before.high if np.isfinite(before.high) else before.low) / after.low))


def costs(rows: pd.DataFrame, search: str) -> Floats:
    """Seconds that a search needed for each task: of the source's searches, programs at the source's
    speed; of others, processor seconds, with those of the network."""
    found = rows.nodes / RATE if search in SOURCE else rows.seconds + rows.call
    return np.asarray(found, dtype=np.float64)


def of(frame: pd.DataFrame, search: str, guide: str) -> tuple[Floats, Flags]:
    """Seconds of a search for each task, and whether it was solved, by number of the task."""
    rows = frame[(frame.search == search) & (frame.guide == guide)].sort_values("task")
    return costs(rows, search), np.asarray(rows.answer.notna())


def gain(frame: pd.DataFrame, search: str, share: float) -> Speedup | None:
    """What the network saves a search on the tasks that were searched both ways, by the rows of
    `guided_searches.run`; None if they do not tell."""
    rows = frame[frame.search == search]
    both = rows[rows.groupby("task").guide.transform("nunique") == 2]
    return speedup(*of(both, search, PRIOR), *of(both, search, NETWORK), share)


def _quantile(costs: Floats, share: float) -> float:
    return float(np.quantile(costs, share, method="inverted_cdf"))
