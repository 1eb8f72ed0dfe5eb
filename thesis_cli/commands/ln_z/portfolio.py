"""`--method auto` of `estimate-z`: the exact ln Z within a time limit, or estimates and bounds.

Exact algorithms and approximations run side by side, each in a process of its own
(`base/child.py`), and an exact answer ends the others.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from thesis_cli.base.child import Attempt, Failed, attempts
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.ln_z.estimates import LnZAnswer, LnZOptions
from thesis_cli.commands.ln_z.method import Share
from thesis_cli.commands.ln_z.methods import METHODS, answer

if TYPE_CHECKING:
    from thesis_cli.inference.exact import ExactPlan
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate

logger = logging.getLogger("thesis_cli")

SHARES = {name: row.share for name, row in sorted(METHODS.items(), key=lambda item: item[1].share or (0,)) if row.share}
"""Approximations in the order of their start."""

LEAST, LEAST_ALONE = 5.0, 1.5
"""Seconds that each may take even if its share is less, and on one core."""

ALONE = 0.5
"""Part of its share that each but the last has on one core, so that the last, whose intervals are best, has most."""

GLANCE, CHAINS, TEMPERATURES = 2 * 10**7, 100, 200
"""Annealing before all else where there are zeros: most moves times tables of a variable, which take a second,
most chains, and temperatures."""

FIRST, FIRST_GROWTH = {"samples": 10, "temperatures": 2 * TEMPERATURES, "": 0}, 4.0
"""Samples or temperatures of a method's first answer, which also loads code, and times as many for the second one."""

GROWTH, ENOUGH, SPENT = 16.0, 1.5, 0.8
"""How many times as many each later one has at most and at least, and the share of the time left that it is
predicted to take at most."""

FALLBACK = "mini-bucket"
"""The method in whose place simple bounds stand until it has answered."""

ROUNDING = 2.0**-45
"""Relative error allowed for in sums of some numbers."""

SEEKER = "ais"
"""The method that comes first on one core where zeros hide the possible configurations."""

UNKNOWN = "; no possible configuration was found, nor a proof that there is none, so that ln Z may be -inf"
"""The end of `meaning` where a model has zeros and no lower bound."""

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
    from thesis_cli.inference.exact import FIRST_SHARE, exact_plan
    from thesis_cli.inference.zeros.leaves import summed

    end = time.monotonic() + seconds
    plan = exact_plan(graph, options.memory, max_configurations, seconds, options.jobs)
    if plan.quick:
        return _exact(*plan.quick())
    seconds = max(LEAST, end - time.monotonic())
    logger.info("no exact ln Z at once: %s; all methods have %.0f s", plan.refusal.problem, seconds)
    shift = 0.0, 0.0
    if plan.smaller:
        graph, constant = summed(plan.smaller)
        shift = constant, ROUNDING * len(plan.smaller.graph.cardinalities) * (1 + abs(constant))
    alone = options.jobs == 1
    least = min(LEAST_ALONE if alone else LEAST, seconds)
    shared = seconds * (1 - FIRST_SHARE if alone and plan.promising else 1)
    approximate = [
        Attempt(name, _approximate, (name, graph, shift, options), max(_most(share, alone=alone) * shared, least))
        for name, share in SHARES.items()
        if share.alone or not alone
    ]
    if alone and graph.has_zeros:
        approximate.sort(key=lambda attempt: attempt.name != SEEKER)
    known = Known(hard=graph.has_zeros)
    known.add(FALLBACK, _moved(_simple(graph), *shift))
    uses = sum(len(factor.scope) for factor in graph.factors)
    chains = min(CHAINS, GLANCE // (TEMPERATURES * max(1, uses)))
    if graph.has_zeros and chains > 1:
        own = {"chains": chains, "temperatures": TEMPERATURES}
        with suppress(InputError):  # a log-potential that is too large
            known.add(SEEKER, _moved(answer(SEEKER, graph, replace(options, jobs=1), own=own), *shift))
    with progress(math.ceil(seconds), "s") as tick:
        asked = _in_order(plan, approximate, seconds, alone=alone)
        for attempt, found in attempts(asked, seconds, options.jobs, tick):
            if isinstance(found, Failed):
                if isinstance(found.error, NoConfiguration):
                    raise found.error
                logger.debug("%s: %s", attempt.name, found.error)
            elif not isinstance(found, LnZAnswer):
                return _exact(*found)
            elif found.estimates and found.estimates[0].kind == "exact":
                return LnZAnswer(found.estimates)
            else:
                known.add(attempt.name, found)
    return known.all(plan.refusal)


def _most(share: Share, *, alone: bool) -> float:
    """Largest share of the time limit that a method has."""
    return share.most * ALONE if alone and share.most < 1 else share.most


def _exact(log_z: float, method: str) -> LnZAnswer:
    from thesis_cli.perturbation.estimate import exact_estimate

    if log_z == -math.inf:
        raise NoConfiguration()
    return LnZAnswer((exact_estimate(log_z, "lnZ", method),))


def _in_order(plan: ExactPlan, approximate: Sequence[Attempt], seconds: float, *, alone: bool) -> list[Attempt]:
    """A promising exact algorithm, which leaves some time to the others; the first approximation, the other exact
    algorithms, the last two approximations, whose intervals are best, and the others. On one core the other exact
    algorithms wait for all approximations but the last, which takes what is left, and have half of their time; a
    promising one leaves time for that approximation only.
    """
    from thesis_cli.inference.exact import FIRST_SHARE

    exact = list(plan.attempts)
    first = [replace(a, seconds=min(a.seconds, FIRST_SHARE * seconds)) for a in exact[: int(plan.promising)]]
    rest = exact[len(first) :]
    if not alone:
        return [*first, *approximate[:1], *rest, *approximate[1:][-2:], *approximate[1:-2]]
    rest = [replace(a, seconds=a.seconds / 2) for a in rest]
    if first:
        return [*first, *approximate[-1:], *approximate[:-1], *rest]
    return [*first, *approximate[:-1], *rest, *approximate[-1:]]


def _approximate(
    deadline: float, name: str, graph: FactorGraph, shift: tuple[float, float], options: LnZOptions
) -> Iterator[LnZAnswer]:
    """Answers of one method: by more and more samples or temperatures, if it takes any."""
    from thesis_cli.inference.choose import map_solver

    share = METHODS[name].share
    options, grows = replace(options, jobs=1, deadline=deadline), share.grows if share else ""
    if grows == "samples" and METHODS[name].guarantee == "upper bound":  # only by exact maxima
        map_solver(graph, memory=options.memory, exact=True)
    count, growth = FIRST[grows], GROWTH
    while growth >= ENOUGH:
        began = time.monotonic()
        given = replace(options, samples=count) if grows == "samples" else options
        yield _moved(answer(name, graph, given, own={grows: count}), *shift)
        if not grows:
            return
        now = time.monotonic()
        growth = FIRST_GROWTH if count == FIRST[grows] else min(GROWTH, SPENT * (deadline - now) / (now - began))
        count = int(growth * count)


def _simple(graph: FactorGraph) -> LnZAnswer:
    """Bounds that need no time: sums of each variable in one table, and one configuration."""
    import numpy as np

    from thesis_cli.inference.mini_bucket.single_sums import single_sums_bound
    from thesis_cli.perturbation.estimate import fixed_estimate

    rows = [fixed_estimate(single_sums_bound(graph), "upper bound", "single sums", "Dechter and Rish 2003")]
    one = np.zeros((1, len(graph.cardinalities)), np.int64)
    if (lower := float(graph.log_potential(one)[0])) > -math.inf:
        entries = [abs(float(factor.table.flat[0])) for factor in graph.factors]
        slack = ROUNDING * len(entries) * math.fsum(entries)
        rows.append(fixed_estimate(lower - slack, "lower bound", "one configuration", "this project"))
    return LnZAnswer(tuple(rows))


def _moved(found: LnZAnswer, constant: float, drift: float = 0.0) -> LnZAnswer:
    """Finite estimates of ln Z of a smaller model as those of the model; what bounds it leaves room for rounding.

    Parameters
    ----------
    constant, drift : what the smaller model lacks, and how far rounding may have moved that.
    """
    rows = []
    for e in found.estimates:
        slack = drift + ROUNDING * (abs(constant) + abs(e.value))
        room = -slack if "lower bound" in e.kind else slack if "upper bound" in e.kind else 0.0
        ends = (room, room) if e.confidence == 1 else (-slack, slack)
        if math.isfinite(e.value):
            low, high = e.low + constant + ends[0], e.high + constant + ends[1]
            rows.append(replace(e, value=e.value + constant + room, low=low, high=high))
    return replace(found, estimates=tuple(rows))


class Known:
    """Answers of the methods so far; `hard` says whether the model has zeros."""

    def __init__(self, *, hard: bool = False) -> None:
        self._hard = hard
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
        first = int(bool(best) and low.value <= best[0].value <= high.value)
        found = (*best[:first], *upper[:1], *lower[:1], *best[first:], *upper[1:], *lower[1:])
        calls = sum(one.map_calls for one in self._found.values())
        meaning = _meaning(best[0] if first else None, low, high)
        return LnZAnswer(found, calls, meaning + UNKNOWN * (self._hard and low.value == -math.inf))

    def _ends(self) -> tuple[_End, _End]:
        """The tightest bounds from below and from above; infinite if there is none."""
        low, high = _End(-math.inf), _End(math.inf)
        for name, found in self._found.items():
            for e in found.estimates:
                side, sure = side_of(name, e), e.confidence == 1 and "probability" not in e.kind
                sampled = side == "neither" and METHODS[name].encloses
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
