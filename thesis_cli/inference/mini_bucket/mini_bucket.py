"""Bounds on ln Z from both sides, of any model, in the memory and the time that there are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from thesis_cli.base.arrays import Ints
from thesis_cli.base.errors import NoConfiguration, OutOfTime
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.mini_bucket.passes import BoundParameters, Passes, Side
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan, OrderName, Planner
from thesis_cli.inference.mini_bucket.sampler import possible_states
from thesis_cli.inference.mini_bucket.single_sums import single_sums_bound
from thesis_cli.models.factor_graph import FactorGraph

FIRST, FACTOR = 2.0**8, 16.0
"""Largest table of the first stage, in entries, and by how much limits grow at first that are tried next."""
PASSES = 20
"""Most passes of a stage."""
FEWEST = 4
"""Passes that must fit into the time that is left for a stage to begin."""
KEEPING = 2.5
"""The same for the time that samples have afterwards, which begin with a table of each mini-bucket."""
WORK = 2**24
"""Work of a pass without a deadline; see `_work`."""
GAIN = 1e-3
"""A stage ends when a pass gains less than this share of what all passes of it have gained."""
TRIAL, TRIAL_SHARE = 4, 0.06
"""Passes that compare orders, and the share of the time that each may take."""
PLANNING = 0.2
"""Share of the time left for a stage in which larger tables are planned."""
RESERVE = 0.1
"""Share of the time that is kept for what no deadline interrupts."""
SEARCH, SEARCH_SHARE, LEAST_SEARCH = 10.0, 0.3, 1.0
"""Most seconds, and most of the time, of the search for a possible configuration, and its least seconds."""


@dataclass(frozen=True)
class MiniBucketBounds:
    """Bounds on ln Z.

    Attributes
    ----------
    lower, upper : bounds in nats; rounding is allowed for, unless they are `exact`.
    exact : whether no bucket had to be divided, so that both are ln Z up to rounding.
    largest : entries of the largest table.
    passes : forward passes in all.
    """

    lower: float
    upper: float
    exact: bool
    largest: int
    passes: int


@dataclass
class Tightened:
    """The best bound of one side so far, with what gives it again.

    Attributes
    ----------
    plan, state : mini-buckets, and their weights and shifts.
    value, margin : bound in nats, and how far rounding may have moved it.
    passes : forward passes so far.
    end : `time.monotonic()` until which samples are drawn afterwards, infinite if none are. Some seconds more for
        them gain about the logarithm of the times as many that they are, and the last pass is one that gains less.
    """

    side: Side
    plan: MiniBucketPlan | None = None
    state: BoundParameters | None = None
    value: float = math.nan
    margin: float = 0.0
    passes: int = 0
    end: float = math.inf

    @property
    def bound(self) -> float:
        """The bound, which holds in spite of rounding; infinite if there is none."""
        sign = 1 if self.side == "upper" else -1
        if not math.isfinite(self.value):
            return sign * math.inf if self.plan is None else self.value
        return math.nextafter(self.value + sign * self.margin, sign * math.inf)

    def passes_again(self) -> Passes:
        """Passes in the state of the best bound."""
        assert self.plan is not None
        assert self.state is not None
        work = Passes(self.plan, self.side)
        work.state = self.state
        return work

    def run(
        self, plan: MiniBucketPlan, passes: int, deadlines: tuple[float | None, float | None], known: Ints | None
    ) -> None:
        """Some passes over new mini-buckets; fewer if they gain little or the time is up.

        Parameters
        ----------
        deadlines : when to end with a bound, and when without one.
        known : a possible configuration that a lower bound keeps; see `Passes`.

        Raises
        ------
        OutOfTime : the time was up before the first bound.
        """
        sign = 1 if self.side == "upper" else -1
        try:
            work, first, best = Passes(plan, self.side, deadlines[self.plan is None], known), math.nan, math.nan
            state = work.state
            for done in range(passes):
                began = time.monotonic()
                work.forward()
                work.deadline = deadlines[0]
                self.passes += 1
                value = work.value
                if self.plan is None or sign * (value - self.value) < 0:
                    self.plan, self.state = plan, work.state.copy()
                    self.value, self.margin = value, work.margin
                if plan.exact or value == -math.inf == self.value == -sign * math.inf:
                    break
                gained = sign * (best - value)
                if done == 0:
                    first = value
                elif gained < 0:  # too far at once: back half of the way
                    work.state, work.step = state.halfway(work.state), work.step / 2
                    continue
                elif done > 1 and gained <= GAIN * sign * (first - value):
                    break
                best, state = value, work.state.copy()
                work.backward()
                now = time.monotonic()
                if done and gained * (self.end - now) < now - began:
                    break
        except OutOfTime:
            if self.plan is None:
                raise


def mini_bucket_bounds(
    graph: FactorGraph,
    memory: int = DEFAULT_MEMORY,
    deadline: float | None = None,
    *,
    sides: Sequence[Side] = ("upper", "lower"),
    limit: int | None = None,
) -> MiniBucketBounds:
    """Bounds on ln Z by weighted mini-bucket elimination (Dechter and Rish 2003; Liu and Ihler
    2011).

    Elimination whose tables would be too large splits the product of a bucket into mini-buckets and
    bounds the sum of the product by Holder's inequality, from above, or by its reverse, from below;
    see `Passes`. Tables grow from stage to stage as memory and time allow. Each pass gives bounds
    that hold, and the best ones count.

    Parameters
    ----------
    memory : bytes for the tables.
    deadline : `time.monotonic()` at which to end, about; without one the work is the same everywhere.
    sides : the bounds to compute; the other is infinite.
    limit : most entries of a table; by default what memory and time allow.

    Raises
    ------
    NoConfiguration : the upper bound shows that no configuration is possible.
    OutOfTime : the time was up before the first bound.
    """
    found = tightened(graph, memory, deadline, sides=sides, limit=limit)
    for each in found.values():
        if each.side == "upper" and each.value == -math.inf:
            raise NoConfiguration()
    plans = [each.plan for each in found.values() if each.plan]
    exact = [each for each in found.values() if each.plan and each.plan.exact]
    if exact:
        lower = upper = exact[0].value
    else:
        lower = found["lower"].bound if "lower" in found else -math.inf
        upper = min(found["upper"].bound, single_sums_bound(graph)) if "upper" in found else math.inf
    widest = max((node.size for plan in plans for node in plan.nodes), default=1)
    return MiniBucketBounds(lower, upper, bool(exact), widest, sum(each.passes for each in found.values()))


def tightened(
    graph: FactorGraph,
    memory: int,
    deadline: float | None,
    *,
    sides: Sequence[Side] = ("upper", "lower"),
    limit: int | None = None,
    keep: bool = False,
    end: float = math.inf,
) -> dict[Side, Tightened]:
    """The best bounds with the mini-buckets that give them; see `mini_bucket_bounds`.

    Parameters
    ----------
    memory : bytes that the tables may take.
    deadline : as for `mini_bucket_bounds`.
    sides : bounds to compute.
    limit : largest number of entries of a table; what fits if None.
    keep : whether the memory later has to hold all tables at once.
    end : `time.monotonic()` until which samples are drawn afterwards; see `Tightened`.
    """
    planner, found = Planner(graph), {side: Tightened(side, end=end) for side in sides}

    def fits(plan: MiniBucketPlan) -> bool:
        return max(plan.memory, 8 * plan.entries if keep else 0) <= memory

    if limit is not None or deadline is None:
        fixed = planner.plan(limit) if limit is not None else _fixed(planner, fits)
        known = None
        for each in found.values():
            if each.side == "lower":
                known = _known(graph, found, fixed, math.inf if deadline is None else deadline)
            each.run(fixed, PASSES, (deadline, deadline), known)
        return found
    deadline -= RESERVE * (deadline - time.monotonic())
    rule = _better_order(planner, fits, deadline) if "upper" in found else "least fill"
    _stages(graph, planner, found, fits, rule, deadline)
    return found


def _stages(
    graph: FactorGraph,
    planner: Planner,
    found: dict[Side, Tightened],
    fits: Callable[[MiniBucketPlan], bool],
    rule: OrderName,
    deadline: float,
) -> None:
    """Tighten the bounds by small tables, then by as large ones as fit, of one order.

    Raises
    ------
    OutOfTime : the time was up before the first bound.
    """
    known: Ints | None = None
    plan: MiniBucketPlan | None = planner.plan(FIRST, rule)
    passes = FEWEST
    while plan:
        began, before = time.monotonic(), sum(each.passes for each in found.values())
        for k, each in enumerate(found.values()):
            if each.side == "lower" and known is None:
                known = _known(graph, found, plan, deadline)
            now = time.monotonic()
            try:
                each.run(plan, passes, (now + (deadline - now) / (len(found) - k), deadline), known)
            except OutOfTime:
                if all(other.plan is None for other in found.values()):
                    raise
        if plan.exact:
            return
        done = sum(each.passes for each in found.values()) - before
        pace = (time.monotonic() - began) / max(1, done) / _work(plan)
        left = deadline - time.monotonic()
        until = deadline - (1 - PLANNING) * left
        seconds = min(left / FEWEST, (min(each.end for each in found.values()) - deadline) / KEEPING)
        larger = _larger(planner, plan, fits, seconds / pace / len(found), rule, until)
        if larger is None and passes == FEWEST:  # the first stage goes on
            larger = plan
        plan, passes = larger, PASSES


def _known(graph: FactorGraph, found: dict[Side, Tightened], plan: MiniBucketPlan, deadline: float) -> Ints | None:
    """A possible configuration for a lower bound, where zeros make one of use."""
    if plan.exact or not graph.has_zeros:
        return None
    upper = found.get("upper")
    seconds = min(SEARCH, SEARCH_SHARE * (deadline - time.monotonic()))
    if seconds < LEAST_SEARCH and found["lower"].plan:  # it was looked for before
        return None
    return possible_states(graph, upper.passes_again() if upper and upper.plan else None, max(LEAST_SEARCH, seconds))


def _fixed(planner: Planner, fits: Callable[[MiniBucketPlan], bool]) -> MiniBucketPlan:
    """The largest mini-buckets within the memory and `WORK`."""
    plan = planner.plan(FIRST)
    return _larger(planner, plan, fits, WORK, "least fill", math.inf) or plan


def _work(plan: MiniBucketPlan) -> int:
    """Time of a pass, in that of one entry of a table."""
    return plan.entries + 5000 * len(plan.nodes)


def _better_order(planner: Planner, fits: Callable[[MiniBucketPlan], bool], deadline: float) -> OrderName:
    """The order that gives the better upper bound after a few passes, with small mini-buckets and then with such that
    their passes take as long.
    """
    rules: tuple[OrderName, ...] = ("least fill", "last first")
    plans = {rule: planner.plan(FIRST, rule) for rule in rules}
    if plans["least fill"].exact:
        return "least fill"
    for _ in range(2):
        found, pace = dict[OrderName, float](), 0.0
        for rule, plan in plans.items():
            trial, now = Tightened("upper"), time.monotonic()
            try:
                trial.run(plan, TRIAL, (now + TRIAL_SHARE * (deadline - now), deadline), None)
            except OutOfTime:
                return "least fill"
            found[rule] = trial.value
            pace = max(pace, (time.monotonic() - now) / trial.passes / _work(plan))
        if found["last first"] >= found["least fill"]:
            break
        left = deadline - time.monotonic()
        for rule, plan in plans.items():
            until = time.monotonic() + TRIAL_SHARE * left
            plans[rule] = _larger(planner, plan, fits, TRIAL_SHARE * left / pace / TRIAL, rule, until) or plan
    return min(rules, key=found.__getitem__)


def _larger(
    planner: Planner,
    plan: MiniBucketPlan,
    fits: Callable[[MiniBucketPlan], bool],
    work: float,
    rule: OrderName,
    until: float,
) -> MiniBucketPlan | None:
    """The largest mini-buckets beyond those of a plan that memory, the work of a pass and the time for plans allow."""
    found: MiniBucketPlan | None = None
    limit, factor = float(max((node.size for node in plan.nodes), default=1)), FACTOR
    while not (found or plan).exact and time.monotonic() < until and factor > 1:
        larger = planner.plan(limit * factor, rule)
        if fitting := _work(larger) <= work and fits(larger):
            limit *= factor
            if larger.entries > (found or plan).entries:
                found = larger
        if factor < FACTOR or not fitting:
            factor = math.isqrt(int(factor))
    return found
