"""Marginal MAP: exact where tables or a search allow it, otherwise bounds that time tightens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, OutOfTime, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.best_configuration import TIME_LIMIT, TOLERANCE, MapResult, best_configuration
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.marginal_map.elimination import ConditionalSums, Part, Simplified, eliminated
from thesis_cli.inference.marginal_map.search import MaxSumPasses, Search
from thesis_cli.inference.mini_bucket.mini_bucket import mini_bucket_bounds
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan, Planner
from thesis_cli.models.factor_graph import Factor, FactorGraph

Report = Callable[[float, float], None]
"""Called with the lower and the upper bound whenever one of them changes."""

FIRST, FACTOR = 2.0**8, 16.0
"""Largest table of the first stage, in entries, and by how much it grows from stage to stage."""

PLANNING = 0.1
"""Share of the time in which plans are made."""

EXACT_SHARE = 0.5
"""Share of the time that exact elimination may take."""

SECONDS_AN_ENTRY = 2e-8
"""Predicted time of an entry of a table, in an elimination and in a pass."""

PASSES, GAIN = 12, 2e-3
"""Most passes of a stage, which ends when one gains less than this share of what all have gained."""

CONDITIONAL = 2.0**22
"""Most entries of a table of an exact sum for given states."""

AT_ONCE = 2**22
"""Entries of tables for several configurations."""

LOWER_SECONDS = 1.0
"""Seconds for a lower bound on one sum that is not computed exactly."""


def marginal_map(
    graph: FactorGraph,
    over: Sequence[int],
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    time_limit: float = TIME_LIMIT,
    report: Report | None = None,
) -> MapResult:
    """The maximum over some variables of ln of the sum of exp phi over all the others.

    The model is divided into parts that no factor connects. Sums come before maxima in an exact
    elimination. Where its tables are too large, mini-buckets of growing size bound the answer from
    above (Liu and Ihler 2013), and a branch and bound that they guide looks for the best
    configuration, with exact sums where their tables fit, else with lower bounds.

    Parameters
    ----------
    over : the variables to maximise over, some but not all.
    memory, max_configurations : as for `exact.exact_log_partition_function`.
    time_limit : seconds, about; what an exact answer does not depend on.
    report : is told the bounds as they tighten.

    Returns
    -------
    `states` are those of `over`, in its order; `value` is the logarithm of their sum over the other
    variables, or a lower bound on it; `bound` is the upper bound over all states of `over`.

    Raises
    ------
    InputError : `over` is empty, has a variable twice, one that is observed or does not exist, or leaves
        nothing to sum over.
    NoConfiguration : no configuration is possible.
    OutOfTime : no possible configuration was found in time.
    """
    check_query(graph, over)
    end = time.monotonic() + time_limit
    simple = Simplified(graph, over)
    solvers = [_Solver(part, memory, max_configurations) for part in simple.parts]

    def bounds() -> tuple[float, float]:
        return simple.constant + _sum(s.lower for s in solvers), simple.constant + _sum(s.upper for s in solvers)

    last = (-math.inf, math.inf)
    for turn, solver in enumerate(solvers):
        left = end - time.monotonic()
        for _ in solver.improve(time.monotonic() + left / (len(solvers) - turn)):
            if report and (now := bounds()) != last:
                last = now
                report(*now)
    return _result(graph, over, simple, solvers, bounds())


def check_query(graph: FactorGraph, over: Sequence[int]) -> None:
    """Refuse variables that marginal MAP does not maximise over.

    Raises
    ------
    InputError : as for `marginal_map`.
    """
    if not over:
        raise InputError("no variables to maximise over are given", "estimate-z sums over all variables")
    for i in over:
        if not 0 <= i < len(graph.cardinalities):
            raise InputError(f"there is no variable {i}", f"they are 0 to {len(graph.cardinalities) - 1}")
        if i in graph.observed:
            raise InputError(f"variable {graph.variable_name(i)} is observed", "leave it out of the query")
    if len(set(over)) < len(over):
        twice = next(i for k, i in enumerate(over) if i in over[:k])
        raise InputError(f"variable {graph.variable_name(twice)} is named twice", "name each variable once")
    if len(over) + len(graph.observed) == len(graph.cardinalities):
        raise InputError(
            "the query names all variables that are not observed", "map without a query maximises over all"
        )


def _sum(values: Iterator[float]) -> float:
    listed = list(values)
    return -math.inf if -math.inf in listed else math.fsum(listed)


def _result(
    graph: FactorGraph, over: Sequence[int], simple: Simplified, solvers: Sequence[_Solver], bounds: tuple[float, float]
) -> MapResult:
    lower, upper = bounds
    if upper == -math.inf:
        raise NoConfiguration()
    if lower == -math.inf:
        raise OutOfTime("no possible configuration was found in time; raise --time-limit")
    states = simple.original_states([s.states for s in solvers])[list(over)]
    method = " and ".join(dict.fromkeys(s.method for s in solvers)) or "elimination"
    if all(s.proven() for s in solvers):
        return MapResult(lower, states, method, "exact", lower)
    return MapResult(lower, states, method, "approximate", max(upper, lower))


class _Solver:
    """The marginal MAP of one part, in steps: bounds on it, and states whose sum is `lower` or more."""

    def __init__(self, part: Part, memory: int, max_configurations: int) -> None:
        self.lower, self.upper = -math.inf, math.inf
        self.states = np.zeros(len(part.graph.cardinalities), np.int64)
        self.method = "elimination"
        self._part, self._memory, self._max_configurations = part, memory, max_configurations
        self._maximised = np.array(sorted(part.over), np.int64)
        self._sums: ConditionalSums | None = None

    def proven(self) -> bool:
        """Whether the bounds are the answer."""
        return self.upper - self.lower <= TOLERANCE * max(1.0, abs(self.upper)) or self.upper == self.lower

    def improve(self, end: float) -> Iterator[None]:
        """Tighten the bounds until they meet or the time is up; yields after each change."""
        part = self._part
        if not part.over:
            yield from self._summed(end)
        elif len(part.over) == len(part.graph.cardinalities):
            yield from self._maximum(part.graph, 0.0, end - time.monotonic())
        else:
            yield from self._mixed(end)

    def _exactly(self, value: float, states: Ints, method: str) -> None:
        self.lower = self.upper = value
        self.states, self.method = states, method

    def _summed(self, end: float) -> Iterator[None]:
        """A part without variables to maximise over: ln Z."""
        seconds = end - time.monotonic()
        try:
            log_z, method = exact_log_partition_function(
                self._part.graph,
                memory=self._memory,
                max_configurations=min(self._max_configurations, 2**20),
                seconds=EXACT_SHARE * seconds,
                jobs=1,
            )
            self._exactly(log_z, self.states, method)
        except ModelTooLarge:
            found = mini_bucket_bounds(self._part.graph, self._memory, end)
            self.lower, self.upper, self.method = found.lower, found.upper, "mini-bucket"
        yield

    def _maximum(self, graph: FactorGraph, constant: float, seconds: float) -> Iterator[None]:
        """The MAP of a graph over the variables to maximise over."""
        try:
            found = best_configuration(
                graph,
                memory=self._memory,
                max_configurations=self._max_configurations,
                time_limit=max(0.1, seconds),
            )
        except NoConfiguration:
            self.upper = -math.inf
        except WorkFailed:
            return
        else:
            self.upper = min(self.upper, found.bound + constant)
            if found.value + constant > self.lower:
                self.lower, self.states, self.method = found.value + constant, found.states, found.method
            if found.guarantee == "exact":
                self.lower = self.upper = found.value + constant
        yield

    def _mixed(self, end: float) -> Iterator[None]:
        part, began = self._part, time.monotonic()
        variables = len(part.graph.cardinalities)
        plans: list[MiniBucketPlan] = []
        planner, limit = Planner(part.graph, part.over), FIRST
        while not plans or time.monotonic() - began < PLANNING * (end - began):
            plan = planner.plan(limit)
            kept = 0 if plan.exact else 8 * plan.entries
            seconds = SECONDS_AN_ENTRY * plan.entries
            if plans and (plan.memory + kept > self._memory or seconds > EXACT_SHARE * (end - time.monotonic())):
                break
            if plan.exact:
                value, states = eliminated(plan, part.over, variables)
                self._exactly(value, states, "elimination")
                yield
                return
            plans.append(plan)
            limit *= FACTOR
        try:
            self._sums = ConditionalSums(part.graph, part.over, min(CONDITIONAL, self._memory / 64))
        except ModelTooLarge:
            self._sums = None
        yield from self._stages(plans, end)

    def _stages(self, plans: Sequence[MiniBucketPlan], end: float) -> Iterator[None]:
        """Passes over mini-buckets and a search that their bounds guide, the smallest first."""
        part, mapped = self._part, False
        variables = len(part.graph.cardinalities)
        search: Search | None = None
        for stage, plan in enumerate(plans):
            last = stage == len(plans) - 1
            began = time.monotonic()
            if search and 8 * SECONDS_AN_ENTRY * plan.entries > 0.5 * (end - began):
                break
            passes = MaxSumPasses(plan, part.over, end)
            try:
                yield from self._passes(passes, began + 0.5 * (end - began))
                search = Search(passes, part.over, variables)
            except OutOfTime:
                break
            self.upper = min(self.upper, passes.value + passes.margin)
            took = time.monotonic() - began
            yield from self._searched(search, time.monotonic() + max(0.5, took))
            if self.proven():
                return
            if search.sums_exact and not mapped:
                mapped = True
                graph, constant = self._maxima(passes)
                share = 0.7 if last else 0.3
                yield from self._maximum(graph, constant, share * (end - time.monotonic()))
                if self.proven():
                    return
        if search:
            yield from self._searched(search, end)

    def _passes(self, passes: MaxSumPasses, until: float) -> Iterator[None]:
        """Tighten the upper bound while that gains something."""
        first = before = math.inf
        for turn in range(PASSES):
            passes.forward()
            value = passes.value + passes.margin
            if value < self.upper:
                self.upper = value
                yield
            if value == -math.inf or time.monotonic() > until:
                return
            if turn == 0:
                first = value
            elif turn > 2 and before - value <= GAIN * (first - value):
                return
            before = value
            passes.backward()
            passes.cool()

    def _searched(self, search: Search, until: float) -> Iterator[None]:
        """Search for some time; what is left open and what was found bound the answer."""
        while not self.proven() and not search.ended and time.monotonic() < until:
            before = self.lower, self.upper
            search.run(self.lower, min(until, time.monotonic() + 1.0), lambda s, v: self._take(search, s, v, until))
            self.upper = min(self.upper, max(self.lower, search.bound, search.visited))
            if (self.lower, self.upper) != before:
                yield

    def _take(self, search: Search, states: Ints, bounds: Floats, until: float) -> float:
        """The best value so far, with these configurations."""
        if search.sums_exact:
            self._keep(float(bounds[-1]), states[-1], "search")
        elif self._sums:
            values = self._values(states)
            at = int(values.argmax())
            if values[at] > self.lower:
                self._keep(float(values[at]), states[at], "search")
                self._climb(until)
        else:
            search.visited = max(search.visited, float(bounds.max()))
            self._bounded_below(states[int(bounds.argmax())], until)
        return self.lower

    def _keep(self, value: float, states: Ints, method: str) -> None:
        if value > self.lower:
            self.lower, self.states, self.method = value, states.copy(), method

    def _values(self, states: Ints) -> Floats:
        """The exact sum for each configuration."""
        assert self._sums
        rows = max(1, int(AT_ONCE // self._sums.entries))
        return np.concatenate([self._sums.of(states[low : low + rows]) for low in range(0, len(states), rows)])

    def _climb(self, until: float) -> None:
        """Change the state of one variable at a time, the best change first, while that helps."""
        while time.monotonic() < until:
            sizes = self._part.graph.cardinalities
            rows = [(i, x) for i in self._maximised for x in range(sizes[i]) if x != self.states[i]]
            around = np.repeat(self.states[np.newaxis], len(rows), axis=0)
            around[np.arange(len(rows)), [i for i, _ in rows]] = [x for _, x in rows]
            values = self._values(around)
            at = int(values.argmax())
            if not values[at] > self.lower:
                return
            self._keep(float(values[at]), around[at], "search")

    def _bounded_below(self, states: Ints, until: float) -> None:
        """A lower bound on the sum for one configuration."""
        held = {int(i): int(states[i]) for i in self._maximised}
        try:
            graph = self._part.graph.condition(held)
            deadline = min(until, time.monotonic() + LOWER_SECONDS)
            found = mini_bucket_bounds(graph, self._memory, deadline, sides=("lower",))
        except (InputError, OutOfTime):
            return
        self._keep(found.lower, states, "search")

    def _maxima(self, passes: MaxSumPasses) -> tuple[FactorGraph, float]:
        """Problem that remains once all sums are exact: a model of the maximised variables, and nats to
        add to its log-potentials."""
        part, plan = self._part, passes.plan
        factors, constant = list[Factor](), plan.constant
        for node, message in zip(plan.nodes, passes.sent, strict=True):
            if node.scope[0] in part.over:
                sizes = dict(zip(node.scope, node.shape, strict=True))
                factors.append(Factor(node.base_scope, node.base.reshape([sizes[i] for i in node.base_scope])))
            elif node.parent < 0:
                constant += float(message[0])
            elif plan.nodes[node.parent].scope[0] in part.over:
                factors.append(Factor(node.scope[1:], message.reshape(node.shape[1:])))
        return FactorGraph(
            [k if i in part.over else 1 for i, k in enumerate(part.graph.cardinalities)], factors
        ), constant
