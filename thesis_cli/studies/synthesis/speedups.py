"""Factors by which guidance shortens searches (Thesis section 5.5.1).

A search that reached its limit cost at least what it spent. So the cost within which a share of the
tasks is solved may be known only from below, and the factor only from one side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.figures import nice
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, RATE, SOURCE, orders, tasks_of, until_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

RESAMPLES = 1000


@dataclass(frozen=True)
class Needed:
    """Effort on each task by which a share of them is solved.

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
    log10 : log10 of the ratio, or of a bound on it.
    standard_error : standard error of `log10`, by the choice of tasks.
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


def needed(costs: Floats, solved: Bools, share: float) -> Needed:
    """Bounds on the least cost by which a share of the tasks is solved.

    Parameters
    ----------
    costs : cost of each task; of one that was not solved, the cost spent on it.
    solved : whether each task was.
    share : above 0, up to 1.
    """
    low, high = _bounds(costs, solved, share)
    return Needed(float(low), float(high))


def _bounds(costs: Floats, solved: Bools, share: float) -> tuple[Floats, Floats]:
    """The bounds of `needed` for each row of tasks, of any shape (..., tasks)."""
    low = _quantile(costs, share)
    return low, low if solved.all() else _quantile(np.where(solved, costs, np.inf), share)


def speedup(
    slow: Floats, slow_solved: Bools, fast: Floats, fast_solved: Bools, share: float, resamples: int = RESAMPLES
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
    drawn = np.random.default_rng(0).integers(len(slow), size=(resamples, len(slow)))
    one, other = _bounds(slow[drawn], slow_solved[drawn], share), _bounds(fast[drawn], fast_solved[drawn], share)
    ratio = float(_log10((before.low, before.high), (after.low, after.high), lower))
    return Speedup(ratio, float(np.std(_log10(one, other, lower))), relation)


def _log10(before: tuple[Any, Any], after: tuple[Any, Any], lower: bool) -> Floats:
    """log10 of a lower or an upper bound on the ratio of two costs, each given by its bounds; the
    two are equal if both costs are known. Where drawn tasks are not solved, what was spent on them
    counts."""
    low, high = after if lower else before
    known = np.where(np.isfinite(high), high, low)
    return np.asarray(np.log10(before[0] / known if lower else known / after[0]))


def costs(rows: pd.DataFrame, search: str) -> Floats:
    """Seconds that a search needed for each task: of the source's searches, programs at the source's
    speed; of others, processor seconds, with those of the network."""
    found = rows.nodes / RATE if search in SOURCE else rows.seconds + rows.call
    return np.asarray(found, dtype=np.float64)


def of(frame: pd.DataFrame, search: str, guide: str) -> tuple[Floats, Bools]:
    """Seconds of a search for each task, and whether it was solved, by number of the task."""
    rows = frame[(frame.search == search) & (frame.guide == guide)].sort_values("task")
    return costs(rows, search), np.asarray(rows.answer.notna())


def gain(frame: pd.DataFrame, search: str, share: float) -> Speedup | None:
    """Speedup by the network on the tasks that were searched both ways, from the rows of
    `guided_searches.run`; None if they do not tell."""
    rows = both_ways(frame, search)
    return speedup(*of(rows, search, PRIOR), *of(rows, search, NETWORK), share)


def both_ways(frame: pd.DataFrame, search: str) -> pd.DataFrame:
    """Rows of the tasks that a search had with the prior and with the network."""
    rows = frame[(frame.search == search) & frame.guide.isin([PRIOR, NETWORK])]
    return rows[rows.groupby("task").guide.transform("nunique") == 2]


def _quantile(costs: Floats, share: float) -> Floats:
    return np.asarray(np.quantile(costs, share, axis=-1, method="inverted_cdf"))


def needed_for_share(
    search: str, trained: int, networks: Sequence[str], length: int, count: int, share: float, nodes: int
) -> list[dict[str, Any]]:
    """Programs that a search examines for each task until it has solved a share of them, with the
    prior and with networks of one training corpus.

    Parameters
    ----------
    search : name of a depth-first search, as `guided_searches.solver` takes it.
    trained : length T of the programs of the training corpus.
    networks : trainings, named as by `predictions.trainings`.
    length : T of the tasks.
    nodes : programs of a task after which the search stops.

    Returns
    -------
    For each network values by column: the parameters, the number of the network, the programs needed
    (`exact`: 1, or 0 for a lower bound), and the speedup with its relation, `?` if neither search
    solves the share.
    """
    tasks = tasks_of(length, 0, count - 1)

    def searched(guide: str) -> tuple[Floats, Bools]:
        given, _ = orders(guide, "", trained, tasks)
        solutions = until_share(search, given, tasks, length, share, nodes)
        costs = np.array([float(solution.nodes) for solution in solutions])
        return costs, np.array([bool(solution.program) for solution in solutions])

    before, rows = searched(PRIOR), []
    for number, network in enumerate(networks):
        after = searched(network)
        row: dict[str, Any] = {"search": search, "trained": trained, "length": length, "tasks": len(tasks)}
        row["training"] = number
        for name, found in ((PRIOR, before), (NETWORK, after)):
            limit = needed(*found, share)
            row |= {name: int(limit.low), f"{name}_exact": int(limit.exact)}
        gained = speedup(*before, *after, share) or Speedup(np.nan, np.nan, "?")
        rows.append(
            {**row, "relation": gained.relation, "log10": gained.log10, "standard_error": gained.standard_error}
        )
    return rows
