"""Gains by guidance, as numbers with standard errors, from the rows of `guided_searches.run`.

Standard errors are those of the choice of tasks, and of the training where the rows have several. A
search that was stopped counts with what it spent, or as a bound (`speedups`). Functions give None
where the rows do not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR
from thesis_cli.studies.synthesis.predictions import over_trainings
from thesis_cli.studies.synthesis.speedups import RESAMPLES, Speedup, both_ways, gain, of, speedup

if TYPE_CHECKING:
    import pandas as pd


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
    spent = np.stack([np.quantile(costs[drawn], share, axis=1, method="inverted_cdf") for costs in four], axis=1)
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
