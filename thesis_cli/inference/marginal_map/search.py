"""Depth-first branch and bound over the states of the maximised variables, on bounds by weighted
mini-buckets: sums by Holder's inequality, maxima by the limit of small weights (Liu and Ihler, Journal
of Machine Learning Research 14, 2013).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.marginal_map.search_kernels import DEPTH, LEAVES, BoundTree, Stack, descend, enter, open_bound
from thesis_cli.inference.mini_bucket.passes import Passes
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan

WARMEST, COLDEST, COOLING = 0.5, 0.02, 0.8
"""Sum of the weights of a bucket of a maximised variable in the first pass, at least, and its factor from
pass to pass."""


class MaxSumPasses(Passes):
    """Passes whose bound is on the maximum over some variables of the sum over the others.

    The message of a mini-bucket of a maximised variable is a maximum, so the bound is that of weight 0.
    Only the beliefs that decide what is moved between the mini-buckets of a bucket have a weight above
    0, which falls from pass to pass.

    Parameters
    ----------
    plan : mini-buckets in which the variables to maximise over come last.
    over : those variables.
    deadline : as for `Passes`.
    """

    def __init__(self, plan: MiniBucketPlan, over: Collection[int], deadline: float | None = None) -> None:
        super().__init__(plan, "upper", deadline)
        self._maxima = [plan.nodes[bucket[0]].scope[0] in over for bucket in plan.buckets]
        self._maximised = [node.scope[0] in over for node in plan.nodes]
        self._heat(WARMEST)

    def _heat(self, weight: float) -> None:
        for b, bucket in enumerate(self.plan.buckets):
            if self._maxima[b]:
                self._totals[b] = weight
                for j in bucket:
                    self.state.weights[j] = weight / len(bucket)

    def cool(self) -> None:
        """Lower the weights of maximised variables; between a backward and a forward pass."""
        now = next((total for total, is_max in zip(self._totals, self._maxima, strict=True) if is_max), COLDEST)
        self._heat(max(COLDEST, COOLING * now))

    def _send(self, j: int, table: Floats) -> Floats:
        if not self._maximised[j]:
            return super()._send(j, table)
        return np.asarray(table.reshape(self.plan.nodes[j].shape[0], -1).max(axis=0))

    def _reweigh(self, bucket: list[int], weights: Floats, entropies: Floats) -> None:
        if not self._maximised[bucket[0]]:
            super()._reweigh(bucket, weights, entropies)

    @property
    def sent(self) -> list[Floats]:
        """The message of each mini-bucket in the last forward pass."""
        return self._sent

    def losses(self) -> tuple[list[int], list[Floats]]:
        """Loss of each entry of a mini-bucket of a maximised variable against the largest of its
        column, by mini-bucket; they stay as they are.

        A forward pass without changes comes first, so that `value` is the bound of these tables.
        """
        kept: list[Floats] = []
        self._bare_forward(kept)
        at = [j for j, is_max in enumerate(self._maximised) if is_max]
        return at, kept

    def _bare_forward(self, kept: list[Floats]) -> None:
        """A forward pass that changes neither weights nor shifts, and keeps the losses."""
        plan, total = self.plan, self.plan.constant
        at = {j: b for b, bucket in enumerate(plan.buckets) for j in bucket}
        for j, node in enumerate(plan.nodes):
            table = self._scratch[: node.size]
            self._assemble(at[j], j, table, self.state.shifts[j])
            self._sent[j] = self._send(j, table)
            if self._maximised[j]:
                rows = table.reshape(node.shape[0], -1)
                with np.errstate(invalid="ignore"):
                    loss = rows - self._sent[j]
                loss[np.isnan(loss)] = -np.inf
                kept.append(loss.reshape(-1))
            if node.parent < 0:
                total += float(self._sent[j][0])
        self.value = total


LEAVES_AT_ONCE = 64
"""Configurations whose sums are computed together."""

NODES, MOST_NODES = 2**14, 2**24
"""Nodes of the tree between two looks at the clock, at first and at most."""

SLACK = 1e-10
"""Paths whose bound exceeds the best value by less than this share are pruned."""


class Search:
    """A search that can be interrupted.

    The bound of a path is that of the mini-buckets where its variables have their states, the last
    eliminated ones first: what is left of the maxima below, and of sums, was bounded already.

    Parameters
    ----------
    passes : mini-buckets of the problem.
    over : variables to maximise over.
    variables : number of variables of the model.

    Attributes
    ----------
    sums_exact : whether no sum was bounded, so that the bound of a leaf is its value.
    visited : the largest bound of the configurations visited whose sum is not known.
    """

    def __init__(self, passes: MaxSumPasses, over: frozenset[int], variables: int) -> None:
        plan = passes.plan
        self.visited = -math.inf
        at, losses = passes.losses()
        root = passes.value
        loss_of = dict(zip(at, losses, strict=True))
        self.sums_exact = all(len(b) == 1 for b in plan.buckets if plan.nodes[b[0]].scope[0] not in over)
        buckets = [b for b in reversed(plan.buckets) if plan.nodes[b[0]].scope[0] in over]
        nodes = [plan.nodes[j] for bucket in buckets for j in bucket]
        sizes = np.array([node.size for node in nodes], np.int64)
        steps: list[int] = []
        for node in nodes:
            steps += [math.prod(node.shape[a + 1 :]) for a in range(1, len(node.shape))]
        self._tree = BoundTree(
            np.array([plan.nodes[b[0]].scope[0] for b in buckets], np.int64),
            np.array([plan.nodes[b[0]].shape[0] for b in buckets], np.int64),
            np.cumsum([0, *(len(bucket) for bucket in buckets)]),
            np.cumsum(sizes) - sizes,
            np.array([node.size // node.shape[0] for node in nodes], np.int64),
            np.cumsum([0, *(len(node.scope) - 1 for node in nodes)]),
            np.array([i for node in nodes for i in node.scope[1:]], np.int64),
            np.array(steps, np.int64),
            np.concatenate([np.empty(0), *(loss_of[j] for bucket in buckets for j in bucket)]),
        )
        depth, widest = len(buckets), max((plan.nodes[b[0]].shape[0] for b in buckets), default=1)
        self._stack = Stack(
            np.zeros(2, np.int64),
            np.zeros(variables, np.int64),
            np.empty((depth, widest)),
            np.zeros((depth, widest), np.int64),
            np.zeros(depth, np.int64),
            np.zeros((LEAVES_AT_ONCE, variables), np.int64),
            np.empty(LEAVES_AT_ONCE),
        )
        self._budget = NODES
        enter(self._tree, self._stack, 0, root)

    @property
    def bound(self) -> float:
        """Upper bound on the values of all configurations that were not visited."""
        return float(open_bound(self._tree, self._stack))

    @property
    def ended(self) -> bool:
        """Whether nothing is left to visit."""
        return bool(self._stack.at[DEPTH] < 0)

    def run(self, floor: float, until: float, take: Callable[[Ints, Floats], float]) -> None:
        """Search until a time of `time.monotonic()`, or to the end; a little even if it is over.

        Parameters
        ----------
        floor : value of the best configuration so far.
        take : is given configurations and their bounds, and returns the best value so far.
        """
        stack = self._stack
        while not self.ended:
            began = time.monotonic()
            stack.at[LEAVES] = 0
            slack = SLACK * max(1.0, abs(floor)) if math.isfinite(floor) else 0.0
            descend(self._tree, stack, floor, slack, self.sums_exact, self._budget)
            count = int(stack.at[LEAVES])
            if count < LEAVES_AT_ONCE and time.monotonic() - began < 0.02:
                self._budget = min(2 * self._budget, MOST_NODES)
            if count:
                floor = take(stack.leaves[:count], stack.values[:count])
            if time.monotonic() > until:
                return
