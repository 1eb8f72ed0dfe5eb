"""`--method auto` of `estimate-z`: the exact ln Z within a time limit, or estimates and bounds.

Exact algorithms and approximations run side by side, each in a process of its own
(`base/children.py`), and an exact answer ends the others.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from thesis_cli.base.children import Attempt, Failed, attempts
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.ln_z.estimates import LnZAnswer, LnZOptions
from thesis_cli.commands.ln_z.methods import METHODS, answer

if TYPE_CHECKING:
    from thesis_cli.inference.exact import ExactPlan
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate

logger = logging.getLogger("thesis_cli")

SHARES = {
    name: row.share.most
    for name, row in sorted(METHODS.items(), key=lambda item: item[1].share or (0, 0.0))
    if row.share is not None
}
"""Approximations in the order of their start, and the largest share of the time of each."""

LEAST = 5.0
"""Seconds that each may take even if its share is less."""

FIRST_SAMPLES = 10
"""Perturbations of the first bounds by MAP calls; each later bound has four times as many."""

TRUSTED = 1.0
"""Standard error of ln Z, in nats, up to which an estimate by sampling is believed."""


def portfolio(
    graph: FactorGraph, options: LnZOptions, seconds: float, max_configurations: int, progress: Progress = silent
) -> LnZAnswer:
    """The exact ln Z if it is found in time, otherwise estimates and bounds.

    Parameters
    ----------
    options : seed, jobs, memory and confidence.
    seconds : time limit. Only an exact answer does not depend on how much is done in it.
    max_configurations : limit on enumeration.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    ModelTooLarge : nothing was found in time.
    """
    from thesis_cli.inference.exact import exact_plan

    end = time.monotonic() + seconds
    plan = exact_plan(graph, options.memory, max_configurations, seconds, options.jobs)
    if plan.quick:
        return _exact(*plan.quick())
    seconds = max(LEAST, end - time.monotonic())
    logger.info("no exact ln Z at once: %s; all methods have %.0f s", plan.refusal.problem, seconds)
    approximate = [
        Attempt(name, _approximate, (name, graph, options), max(share * seconds, min(LEAST, seconds)))
        for name, share in SHARES.items()
    ]
    known = Known()
    with progress(math.ceil(seconds), "s") as tick:
        asked = _in_order(plan, approximate, seconds)
        for attempt, found in attempts(asked, seconds, options.jobs, tick):
            if isinstance(found, Failed):
                if isinstance(found.error, NoConfiguration):
                    raise found.error
                logger.debug("%s: %s", attempt.name, found.error)
            elif not isinstance(found, LnZAnswer):
                return _exact(*found)
            elif found.estimates[0].kind == "exact":
                return LnZAnswer(found.estimates)
            else:
                known.add(attempt.name, found)
    return known.all(plan.refusal)


def _exact(log_z: float, method: str) -> LnZAnswer:
    from thesis_cli.perturbation.estimate import exact_estimate

    if log_z == -math.inf:
        raise NoConfiguration()
    return LnZAnswer((exact_estimate(log_z, "lnZ", method),))


def _in_order(plan: ExactPlan, approximate: Sequence[Attempt], seconds: float) -> list[Attempt]:
    """A promising exact algorithm, which leaves some time to the others; one approximation, the other
    exact algorithms, and the other approximations.
    """
    from thesis_cli.inference.exact import FIRST_SHARE

    exact = list(plan.attempts)
    first = [replace(a, seconds=min(a.seconds, FIRST_SHARE * seconds)) for a in exact[: int(plan.promising)]]
    return [*first, *approximate[:1], *exact[len(first) :], *approximate[1:]]


def _approximate(deadline: float, name: str, graph: FactorGraph, options: LnZOptions) -> Iterator[LnZAnswer]:
    """Answers of one method: by more and more perturbations, if it takes any."""
    from thesis_cli.inference.choose import map_solver

    options = replace(options, jobs=1, deadline=deadline)
    if "samples" not in METHODS[name].heeds:
        yield answer(name, graph, options)
        return
    if METHODS[name].guarantee == "upper bound":  # only by exact maxima
        map_solver(graph, memory=options.memory, exact=True)
    samples, took = FIRST_SAMPLES, 0.0
    while time.monotonic() + 4 * took < deadline:
        began = time.monotonic()
        yield answer(name, graph, replace(options, samples=samples))
        samples, took = 4 * samples, time.monotonic() - began


class Known:
    """Answers of the methods so far."""

    def __init__(self) -> None:
        self._found: dict[str, LnZAnswer] = {}
        self._width = math.inf

    def add(self, name: str, found: LnZAnswer) -> None:
        """Replace a method's answer by a new one; a message follows if the bounds are much closer."""
        self._found[name] = found
        low, high = self._ends()
        if high.value - low.value < 0.9 * self._width:
            self._width = high.value - low.value
            logger.info("%.6g <= ln Z <= %.6g so far", low.value, high.value)

    def all(self, refusal: ModelTooLarge) -> LnZAnswer:
        """All estimates, best first, and their meaning.

        Raises
        ------
        ModelTooLarge : nothing was found.
        """
        rows = [(name, e) for name, found in self._found.items() for e in found.estimates]
        if not rows:
            raise refusal
        low, high = self._ends()
        inner = [row for row in rows if side_of(*row) == "neither"]
        inner.sort(key=lambda row: _doubt(row[0], row[1], low.value, high.value))
        upper = sorted((e for name, e in rows if side_of(name, e) == "upper"), key=lambda e: e.high)
        lower = sorted((e for name, e in rows if side_of(name, e) == "lower"), key=lambda e: -e.low)
        best = [e for _, e in inner]
        found = (*best[:1], *upper[:1], *lower[:1], *best[1:], *upper[1:], *lower[1:])
        calls = sum(one.map_calls for one in self._found.values())
        return LnZAnswer(found, calls, _meaning(inner[0][1] if inner else None, low, high))

    def _ends(self) -> tuple[_End, _End]:
        """The tightest bounds from below and from above; infinite if there is none."""
        low, high = _End(-math.inf), _End(math.inf)
        for name, found in self._found.items():
            for e in found.estimates:
                side, sure = side_of(name, e), e.confidence == 1
                sampled = side == "neither" and not sure
                if (side == "upper" or sampled) and e.high < high.value:
                    high = _End(e.high, sure)
                if (side == "lower" or sampled) and e.low > low.value:
                    low = _End(e.low, sure)
        return low, high


class _End(NamedTuple):
    """A bound on ln Z, and whether it holds for certain, not only with a confidence."""

    value: float
    sure: bool = True


def side_of(name: str, estimate: Estimate) -> Literal["upper", "lower", "neither"]:
    """Side of ln Z that an estimate is on, by its method's guarantee or, if that is another one, its kind."""
    told = METHODS[name].guarantee
    said = told if told in ("upper bound", "lower bound") else estimate.kind
    return "upper" if "upper bound" in said else "lower" if "lower bound" in said else "neither"


def _doubt(name: str, e: Estimate, low: float, high: float) -> tuple[bool, bool, int]:
    """Doubt about an estimate: whether it is outside the bounds, whether its error is large or its messages did not
    converge, and how early its method starts.
    """
    share = METHODS[name].share
    doubtful = e.standard_error > TRUSTED if e.confidence < 1 else "not converged" in e.kind
    return not low <= e.value <= high, doubtful, -share.turn if share else 0


def _meaning(best: Estimate | None, low: _End, high: _End) -> str:
    """A sentence on what the best estimate and the bounds prove."""
    if best is None:
        said = ""
    elif best.confidence == 1:
        said = f"{best.method} is an approximation whose error is not known"
    elif best.standard_error > TRUSTED:
        said = f"{best.method} gives an order of magnitude"
    else:
        said = f"ln Z is {best.value:.6g} to within {best.standard_error:.2g}, its standard error"
    below, above = f"{low.value:.6g} <= " * (low.value > -math.inf), f" <= {high.value:.6g}" * (high.value < math.inf)
    sure = "for certain" if low.sure and high.sure else "with the confidence of the rows"
    known = f"{below}ln Z{above} {sure}" if below or above else ""
    return "; ".join(part for part in (said, known) if part)
