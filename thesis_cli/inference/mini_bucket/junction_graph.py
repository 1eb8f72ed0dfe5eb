"""Generalised belief propagation on a join graph (Mateescu, Kask, Gogate and Dechter 2010)."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import NoConfiguration, OutOfTime
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.mini_bucket.kernels import gather, spread
from thesis_cli.inference.mini_bucket.passes import Passes
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan, Planner, Scope
from thesis_cli.models.factor_graph import FactorGraph

WORK = 2**21
"""Entries of all clusters, by default."""
SWEEPS = 200
"""Most sweeps."""
LEAST = 1e-300
"""Least belief, relative to the largest, whose logarithm is taken."""


@dataclass(frozen=True)
class JunctionGraphResult:
    """The approximation of ln Z on a join graph.

    Attributes
    ----------
    value : approximation of ln Z, nats.
    converged : whether the messages reached a fixed point.
    exact : whether the clusters form a junction tree, so that `value` is ln Z up to rounding.
    sweeps : number of sweeps.
    largest : entries of the largest cluster.
    """

    value: float
    converged: bool
    exact: bool
    sweeps: int
    largest: int


def junction_graph_log_partition_function(
    graph: FactorGraph,
    size: int | None = None,
    *,
    memory: int = DEFAULT_MEMORY,
    deadline: float | None = None,
    damping: float = 0.3,
    tolerance: float = 1e-8,
) -> JunctionGraphResult:
    """Approximate ln Z by sum-product on a join graph whose clusters are mini-buckets.

    A mini-bucket is joined to the one that takes its message, by the variables of the message, and
    to the next one of its bucket, by the eliminated variable, so that the clusters with a variable
    form a tree. Messages start uniform; a sweep goes through the clusters in the order of
    elimination and back. At a fixed point, ln Z is approximated by the free energy in which each
    cluster counts 1 and each separator -1 (Yedidia, Freeman and Weiss 2005): the sum over clusters
    of ln sum psi_c prod m, less the sum over separators of ln sum m m'. It is exact on a tree.

    Parameters
    ----------
    size : most entries of a cluster; by default what the memory and the deadline allow.
    memory : bytes for the clusters.
    deadline : `time.monotonic()` at which to end.
    damping : share of the old log-message that is kept.
    tolerance : sweeps end when none moves a log-message, relative to its largest entry, this much.

    Raises
    ------
    NoConfiguration : the messages show that no configuration is possible.
    OutOfTime : the time was up before the first sweep ended.
    """
    planner = Planner(graph)
    plan = planner.plan(size) if size is not None else _plan(planner, memory, deadline)
    largest = max((node.size for node in plan.nodes), default=1)
    if plan.exact:
        elimination = Passes(plan, "upper", deadline)
        elimination.forward()
        return JunctionGraphResult(_possible(elimination.value), True, True, 1, largest)
    work = _Propagation(plan, deadline)
    change, sweeps = math.inf, 0
    try:
        while sweeps < SWEEPS:
            change = work.sweep(damping if sweeps else 0.0)
            sweeps += 1
            if change <= tolerance:
                break
    except OutOfTime:
        if not sweeps:
            raise
    return JunctionGraphResult(_possible(work.free_energy()), change <= tolerance, False, sweeps, largest)


def _possible(log_z: float) -> float:
    if log_z == -math.inf:
        raise NoConfiguration()
    return log_z


def _plan(planner: Planner, memory: int, deadline: float | None) -> MiniBucketPlan:
    """The largest clusters within the memory and, at 10 million entries a second, a fifth of the time
    for 20 sweeps, or `WORK`."""
    most = WORK if deadline is None else 1e5 * (deadline - time.monotonic())
    limit, found = 2.0**8, planner.plan(2.0**8)
    while not found.exact:
        limit *= 4
        plan = planner.plan(limit)
        if plan.memory > memory or plan.entries > most:
            break
        found = plan
    return found


class _Edge:
    """A separator between two clusters, with the message in each direction: out of `ends[0]`, then out of `ends[1]`."""

    def __init__(self, a: int, b: int, scope: Scope, size: int) -> None:
        self.ends, self.scope = (a, b), scope
        self.messages = [np.zeros(size), np.zeros(size)]

    def towards(self, cluster: int) -> Floats:
        """The message into one of the ends."""
        return self.messages[0 if self.ends[1] == cluster else 1]


class _Propagation:
    """Sum-product on the join graph of a plan."""

    def __init__(self, plan: MiniBucketPlan, deadline: float | None) -> None:
        self._plan, self._deadline = plan, deadline
        sizes = {i: k for node in plan.nodes for i, k in zip(node.scope, node.shape, strict=True)}
        self._edges: list[_Edge] = []
        self._at: list[list[_Edge]] = [[] for _ in plan.nodes]
        pairs = [(j, node.parent, node.scope[1:]) for j, node in enumerate(plan.nodes) if node.parent >= 0]
        pairs += [(a, b, plan.nodes[a].scope[:1]) for bucket in plan.buckets for a, b in itertools.pairwise(bucket)]
        for a, b, scope in pairs:
            edge = _Edge(a, b, scope, math.prod(sizes[i] for i in scope))
            self._edges.append(edge)
            self._at[a].append(edge)
            self._at[b].append(edge)
        self._scratch = np.empty(max((node.size for node in plan.nodes), default=1))

    def sweep(self, damping: float) -> float:
        """Send all messages up the order and down again; the largest change of a log-message."""
        change = 0.0
        forward = range(len(self._plan.nodes))
        for later, order in ((True, forward), (False, reversed(forward))):
            for j in order:
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise OutOfTime("the time is up")
                edges = [e for e in self._at[j] if (max(e.ends) > j) == later]
                if edges:
                    change = max(change, self._send(j, edges, damping))
        return change

    def _belief(self, j: int) -> tuple[Floats, float, Floats]:
        """exp of the potential and messages of a cluster less their largest, this, and 1 for each possible entry."""
        plan, node = self._plan, self._plan.nodes[j]
        table = self._scratch[: node.size]
        table.fill(0.0)
        spread(table, node.base, *plan.offsets(j, node.base_scope))
        for edge in self._at[j]:
            spread(table, edge.towards(j), *plan.offsets(j, edge.scope))
        top = float(table.max())
        if top > -math.inf:
            table -= top
        possible = (table > -np.inf).astype(np.float64)
        np.exp(table, out=table)
        return table, top, possible

    def _send(self, j: int, edges: list[_Edge], damping: float) -> float:
        change = 0.0
        belief, top, possible = self._belief(j)
        if top == -math.inf:
            raise NoConfiguration()
        for edge in edges:
            own, counts = np.zeros((2, edge.messages[0].size))
            gather(belief, own, *self._plan.offsets(j, edge.scope))
            gather(possible, counts, *self._plan.offsets(j, edge.scope))
            left = counts > 0  # of the rest, no configuration is possible
            side = 0 if edge.ends[0] == j else 1
            old, new = edge.messages[side], np.full(own.size, -np.inf)
            new[left] = np.log(np.maximum(own[left], LEAST)) - edge.towards(j)[left]
            new[left] -= new.max()
            both = left & (old > -np.inf)
            new[both] += damping * (old[both] - new[both])
            moved = float(np.abs(new[both] - old[both]).max(initial=0.0))
            change = max(change, math.inf if (left != (old > -np.inf)).any() else moved)
            edge.messages[side] = new
        return change

    def free_energy(self) -> float:
        """The approximation of ln Z at these messages."""
        total = self._plan.constant
        for j in range(len(self._plan.nodes)):
            belief, top, _ = self._belief(j)
            if top == -math.inf:
                return top
            total += math.log(belief.sum()) + top
        for edge in self._edges:
            total -= float(np.logaddexp.reduce(edge.messages[0] + edge.messages[1]))
        return total
