"""Factors by which guidance shortens searches (Thesis section 5.5.1), and claims' numbers from them.

A search that reached its limit cost at least what it spent. So the cost within which a share of the
tasks is solved may be known only from below, and the factor only from one side. Standard errors are
those of the choice of tasks, and of the training where the rows have several. Functions give None
where the rows do not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.figures import nice
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, RATE, SOURCE, orders, tasks_of, until_share
from thesis_cli.studies.synthesis.predictions import over_trainings

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
    """That of the inverted distribution function, which NumPy's `quantile` takes longer to find."""
    place = max(0, math.ceil(share * costs.shape[-1] - 1))
    return np.asarray(np.partition(costs, place, axis=-1)[..., place])


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


Number = tuple[float, float]
"""A number and its standard error, which is inf where only a bound is known that decides nothing."""

Beside = tuple[float, float, float]
"""A number, the standard error of its difference from a printed one, and that of the printed one."""


def of_trainings(measure: Callable[..., tuple[float, ...] | None]) -> Callable[..., tuple[float, ...] | None]:
    """Decorator: a measure of rows with one training becomes one of rows with several, `over_trainings`."""

    @wraps(measure)
    def measured(frame: pd.DataFrame, *what: Any) -> tuple[float, ...] | None:
        others = [guide for guide in frame.guide.unique() if guide not in (PRIOR, NETWORK)]
        parts = [frame[frame.guide.isin([PRIOR, network])] for network in (NETWORK, *others)]
        return over_trainings(
            [measure(part.assign(guide=part.guide.where(part.guide == PRIOR, NETWORK)), *what) for part in parts]
        )

    return measured


def against_source(found: Speedup, published: float) -> Beside:
    """A ratio beside one that a source prints for as many tasks: its tasks are taken to vary as
    much, so that the difference of the two has sqrt(2) times the standard error."""
    value, error = found.against(published)
    return value, error * 2**0.5, error


@of_trainings
def gain_as_printed(frame: pd.DataFrame, search: str, share: float, published: float) -> Beside | None:
    """log10 of a speedup beside that of a printed one."""
    found = gain(frame, search, share)
    return None if found is None else against_source(found, published)


def gain_at_least(frame: pd.DataFrame, search: str, share: float, published: float) -> Number | None:
    """log10 of a speedup beside a printed bound."""
    found = gain(frame, search, share)
    return None if found is None else found.against(published)


@of_trainings
def mean_gain(frame: pd.DataFrame, search: str) -> Number | None:
    """Mean over tasks of the log10 of the speedup by the network."""
    gains = _gains(frame, search)
    return _mean(gains) if len(gains) > 1 else None


@of_trainings
def gaining(frame: pd.DataFrame, search: str, factor: float) -> Number | None:
    """Share of the tasks that the network speeds up by a factor at least."""
    gains = _gains(frame, search)
    return share_of(int((gains >= np.log10(factor)).sum()), len(gains)) if len(gains) else None


def baseline(frame: pd.DataFrame, search: str, share: float, published: float) -> Beside | None:
    """log10 of the seconds by which a share of the tasks is solved with the prior alone, beside a
    printed number."""
    seconds, solved = of(frame, search, PRIOR)
    ones = np.ones(len(seconds))
    found = speedup(seconds, solved, ones, ones > 0, share)
    return None if found is None else against_source(found, published)


def baselines(frame: pd.DataFrame, slow: str, fast: str, share: float, published: float) -> Beside | None:
    """log10 of the ratio of the times by which two searches solve a share of the tasks with the prior
    alone, beside a printed ratio."""
    found = speedup(*of(frame, slow, PRIOR), *of(frame, fast, PRIOR), share)
    return None if found is None else against_source(found, published)


@of_trainings
def difference(frame: pd.DataFrame, more: str, less: str, share: float) -> Number | None:
    """Orders of magnitude by which the network saves one search more than another that had the same
    tasks."""
    found = gain(frame, more, share), gain(frame, less, share)
    if found[0] is None or found[1] is None or found[0].relation == "<" or found[1].relation == ">":
        return None
    four = [_both(frame, search, guide)[0] for search in (more, less) for guide in (PRIOR, NETWORK)]
    drawn = np.random.default_rng(0).integers(len(four[0]), size=(RESAMPLES, len(four[0])))
    spent = np.stack([_quantile(costs[drawn], share) for costs in four], axis=1)
    return found[0].log10 - found[1].log10, float((np.log10(spent) @ [1.0, -1.0, -1.0, 1.0]).std())


def more_solved(frame: pd.DataFrame, search: str) -> Number | None:
    """Increase in the share of tasks solved within the limits by the network, over the tasks that
    were searched both ways."""
    (_, before), (_, after) = (_both(frame, search, guide) for guide in (PRIOR, NETWORK))
    return _mean(after.astype(np.float64) - before.astype(np.float64)) if len(after) else None


def mean_slower(frame: pd.DataFrame, slow: str, fast: str) -> Number | None:
    """Mean log10 of the ratio of the processor seconds of two searches, both with the network and
    its call, over the tasks that both had."""
    guided = frame[frame.guide == NETWORK].assign(spent=frame.seconds + frame.call)
    one, other = (guided[guided.search == search].set_index("task").spent for search in (slow, fast))
    both = one.index.intersection(other.index)
    ratios = np.asarray(np.log10(one[both]) - np.log10(other[both]), dtype=np.float64)
    return _mean(ratios) if len(ratios) > 1 else None


@of_trainings
def mean_faster(frame: pd.DataFrame, guided: str, unguided: str) -> Number | None:
    """Mean log10 of the ratio of the seconds of a search with the prior alone to those of another
    with the network, over the tasks that both had."""
    (before, _), (after, _) = of(frame, unguided, PRIOR), of(frame, guided, NETWORK)
    both = min(len(before), len(after))
    return _mean(np.log10(before[:both] / after[:both])) if both > 1 else None


def changes(frame: pd.DataFrame, search: str, shares: tuple[float, ...], first: int) -> tuple[Floats, Floats] | None:
    """log10 of the speedups on the first tasks less those on the others, and their standard
    errors."""
    parts = [frame[frame.task < first], frame[frame.task >= first]]
    found = [[gain(part, search, share) for part in parts] for share in shares]
    pairs = [(a, b) for a, b in found if a is not None and b is not None]
    if not pairs:
        return None
    differences = np.array([a.log10 - b.log10 for a, b in pairs])
    return differences, np.array([np.hypot(a.standard_error, b.standard_error) for a, b in pairs])


def share_of(successes: int, count: int) -> Number:
    """A share, and its standard error, which is not 0 where all or none succeed."""
    likely = (successes + 1) / (count + 2)
    return successes / count, float((likely * (1 - likely) / count) ** 0.5)


def _gains(frame: pd.DataFrame, search: str) -> Floats:
    """log10 of the speedup of each task that was searched both ways; 0 if neither solved it, which
    tells nothing."""
    before, after = (_both(frame, search, guide) for guide in (PRIOR, NETWORK))
    return np.where(before[1] | after[1], np.log10(before[0] / after[0]), 0.0)


def _both(frame: pd.DataFrame, search: str, guide: str) -> tuple[Floats, Bools]:
    """Seconds of each task that was searched both ways, and whether it was solved."""
    return of(both_ways(frame, search), search, guide)


def _mean(values: Floats) -> Number:
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)
