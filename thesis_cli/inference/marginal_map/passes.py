"""Weighted mini-buckets for marginal MAP: sums bounded by Holder's inequality, maxima by the limit of
small weights (Liu and Ihler, Journal of Machine Learning Research 14, 2013).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from thesis_cli.base.arrays import Floats
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
