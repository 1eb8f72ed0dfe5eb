"""Weighted mini-bucket elimination: passes that tighten a bound on ln Z (Liu and Ihler 2011)."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import OutOfTime
from thesis_cli.inference.mini_bucket.kernels import gather, spread
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan, largest

Side = Literal["upper", "lower"]

UNIT = 2.0**-52
FLOOR = 1e-300
"""Least share of a belief whose logarithm is taken."""
LOWER_WEIGHT = 1.0
"""Minus the weight of each mini-bucket but one of a lower bound, at first."""
STEP = 2.0
"""Length of a step of the weights of an upper bound along the gradient, relative to the mean entropy, which depends on
the number of states."""
LOWER_STEP, LEAST_ENTROPY = 3.0, 0.3
"""The same for a lower bound, in nats, and the least entropy that a step is relative to."""
LEAST_WEIGHT = 1e-6
"""Least magnitude of a weight."""


class BoundParameters(NamedTuple):
    """Parameters of a bound, which holds for any values of them.

    Attributes
    ----------
    weights : Holder weight of each mini-bucket.
    shifts : log-potential moved into each mini-bucket, over the shared variables of its bucket;
        those of a bucket sum to zero. None where nothing was moved.
    impossible : configurations of the shared variables of each bucket that some mini-bucket
        forbids, and so all may leave out.
    """

    weights: list[float]
    shifts: list[Floats | None]
    impossible: list[Bools | None]

    def copy(self) -> BoundParameters:
        """The same numbers, which later passes leave alone."""
        return BoundParameters(list(self.weights), list(self.shifts), list(self.impossible))

    def halfway(self, other: BoundParameters) -> BoundParameters:
        """The mean of these weights and shifts and of others; what is impossible in either."""
        weights = [(a + b) / 2 for a, b in zip(self.weights, other.weights, strict=True)]
        shifts = [_mean(a, b) for a, b in zip(self.shifts, other.shifts, strict=True)]
        return BoundParameters(weights, shifts, list(other.impossible))


class Passes:
    """Forward and backward passes over mini-buckets for one side of ln Z.

    The sum over the variable of a bucket of a product of functions f_r is at most the product of
    (sum f_r^(1/w_r))^w_r for positive weights that sum to 1 (Holder), and at least that product if
    exactly one of them is positive (reverse Holder). Moving a function of shared variables from one
    mini-bucket to another changes nothing but the bound. The bound is stationary where the beliefs
    of the mini-buckets of a bucket agree on what they share; a pass makes them agree, one bucket
    after the other, with the messages of the last backward pass.

    Where a mini-bucket of negative weight has a zero, the bound is 0. A lower bound may leave states
    out of a sum, so where a possible configuration is known, states with zeros are left out as far
    as that configuration stays in, and the bound is at least its potential.

    Parameters
    ----------
    plan : the mini-buckets.
    side : side of ln Z that is bounded.
    deadline : `time.monotonic()` at which to end.
    known : states of all variables in a possible configuration.

    Attributes
    ----------
    state : the weights and shifts now.
    value, margin : the bound of the last forward pass, and how far rounding may have moved it.
    step : length of the steps of a pass, as a share of those that make the beliefs of one bucket agree.
    """

    def __init__(
        self, plan: MiniBucketPlan, side: Side, deadline: float | None = None, known: Ints | None = None
    ) -> None:
        self.plan, self._sign, self.deadline = plan, side == "upper", deadline
        self._known = known if side == "lower" else None
        nodes = plan.nodes
        weights = [1.0] * len(nodes)
        for bucket in plan.buckets:
            for r, j in enumerate(self._positive_first(bucket)):
                if side == "upper":
                    weights[j] = 1 / len(bucket)
                else:
                    weights[j] = 1 + LOWER_WEIGHT * (len(bucket) - 1) if r == 0 else -LOWER_WEIGHT
        self.state = BoundParameters(weights, [None] * len(nodes), [None] * len(plan.buckets))
        self._totals = [1.0] * len(plan.buckets)  # sum of the weights of each bucket
        self._sent: list[Floats] = [np.empty(0)] * len(nodes)
        self._returned: list[Floats | None] = [None] * len(nodes)
        self._largest = [0.0] * len(nodes)  # largest magnitude of each message
        self._errors = [0.0] * len(nodes)
        self.value, self.margin, self.step = np.inf, 0.0, 1.0
        self._needed = [False] * len(nodes)  # whether a backward message into it is of use
        for bucket in plan.buckets:
            for j in bucket:
                self._needed[j] = len(bucket) > 1 or any(self._needed[c] for c in nodes[j].children)
        largest = max((sum(nodes[j].size for j in bucket) for bucket in plan.buckets), default=0)
        self._scratch = np.empty(2 * largest)

    def _positive_first(self, bucket: list[int]) -> list[int]:
        """The mini-bucket whose weight is positive in a lower bound first: the one with zeros, which a
        negative weight could not take, or the largest."""
        nodes = self.plan.nodes
        return sorted(
            bucket,
            key=lambda j: (not any(np.isneginf(values).any() for values, _ in nodes[j].parts), -nodes[j].size, j),
        )

    def forward(self, shares: list[Floats] | None = None) -> None:
        """Sum out all variables, and tighten the bound on the way.

        Parameters
        ----------
        shares : a list for (f / sum f^(1/w)^w)^(1/w) of each mini-bucket, with the eliminated variable
            as the last axis: the bound then stays as it is, and messages are forgotten once they are used.

        Raises
        ------
        OutOfTime : the deadline passed; `value` is that of the pass before.
        """
        plan, total, margin = self.plan, self.plan.constant, UNIT * abs(self.plan.constant)
        for b, bucket in enumerate(plan.buckets):
            check_time(self.deadline)
            tables, start = [], 0
            for j in bucket:
                table = self._scratch[start : start + plan.nodes[j].size]
                self._assemble(b, j, table, self.state.shifts[j])
                tables.append(table)
                start += table.size
            if len(bucket) > 1 and shares is None:
                self._match(b, tables)
            for j, table in zip(bucket, tables, strict=True):
                self._sent[j] = self._send(j, table)
                self._largest[j] = largest(self._sent[j])
                if shares is not None:
                    shares.append(_shares(table.reshape(plan.nodes[j].shape[0], -1)))
                    for c in plan.nodes[j].children:
                        self._sent[c] = np.empty(0)
                if plan.nodes[j].parent < 0:
                    total += float(self._sent[j][0])
                    margin += self._errors[j] + UNIT * (abs(total) if np.isfinite(total) else 0.0)
        self.value, self.margin = total, margin

    def _assemble(self, b: int, j: int, table: Floats, shift: Floats | None) -> None:
        """The factors, messages and shift of a mini-bucket in one table; its rounding errors."""
        plan, node = self.plan, self.plan.nodes[j]
        parts = [*node.parts]
        parts += [(self._sent[c], plan.nodes[c].scope[1:]) for c in node.children]
        if shift is not None:
            parts.append((shift, plan.shared[b]))
        table.fill(0.0)
        for values, scope in parts:
            spread(table, values, *plan.offsets(j, scope))
        size = node.largest + sum(self._largest[c] for c in node.children)
        if shift is not None:
            size += largest(shift)
        self._errors[j] = sum(self._errors[c] for c in node.children) + UNIT * (len(parts) + 8) * size
        self._errors[j] += abs(self.state.weights[j]) * UNIT * (node.shape[0] + 16)
        if (mask := self.state.impossible[b]) is not None:
            self._forbid(b, j, table, mask)

    def _forbid(self, b: int, j: int, table: Floats, mask: Bools) -> None:
        """Leave configurations out of the sum: 0 for a positive weight, infinity for a negative one."""
        out = -np.inf if self.state.weights[j] > 0 else np.inf
        spread(table, np.where(mask, out, 0.0), *self.plan.offsets(j, self.plan.shared[b]))
        if out > 0:
            table[np.isnan(table)] = np.inf

    def _send(self, j: int, table: Floats) -> Floats:
        """w ln sum exp(table / w) over the eliminated variable; the table becomes that of the
        exponentials up to a factor of each column."""
        weight, rows = self.state.weights[j], table.reshape(self.plan.nodes[j].shape[0], -1)
        if weight != 1:
            rows /= weight
        message = log_sum(rows)
        if weight < 0:
            message[message == -np.inf] = 0.0  # all is left out; the positive mini-bucket sends 0 there
        if weight != 1:
            message *= weight
        return message

    def _match(self, b: int, tables: list[Floats]) -> None:
        """Make the beliefs of the mini-buckets of a bucket agree on the variables that they share."""
        plan, state = self.plan, self.state
        bucket, scope = plan.buckets[b], plan.shared[b]
        weights = np.array([state.weights[j] for j in bucket])
        zeros, logs, entropies = None, [], []
        for j, table in zip(bucket, tables, strict=True):
            belief = self._scratch[-table.size :]
            self._belief(j, table, belief)
            offsets = plan.offsets(j, scope)
            own = np.zeros(self._shared_size(b))
            if table.min() == -np.inf:
                counts = np.zeros(own.size)
                gather((table > -np.inf).astype(np.float64), counts, *offsets)
                zeros = (counts == 0) if zeros is None else zeros | (counts == 0)
            gather(belief, own, *offsets)
            if (total := own.sum()) == 0:
                return
            logs.append(np.log(np.maximum(own / total, FLOOR)))
            entropies.append(_conditional_entropy(belief.reshape(plan.nodes[j].shape[0], -1)) / total)
        if self._known is not None:
            zeros = self._left_out(b, tables, zeros)
        if zeros is not None and zeros.any():
            known = state.impossible[b]
            state.impossible[b] = zeros if known is None else zeros | known
            for j, table in zip(bucket, tables, strict=True):
                self._forbid(b, j, table, zeros)
        mean = weights @ np.array(logs) / self._totals[b]
        moved = self.step * weights[:-1, None] * (mean - np.array(logs)[:-1])
        if (mask := state.impossible[b]) is not None:
            moved[:, mask] = 0.0
        rest = np.zeros(mean.size)
        for j, table, part in zip(bucket, tables, [*moved, None], strict=True):
            old = state.shifts[j]
            if part is None:
                shift = -rest
            else:
                shift = part if old is None else old + part
                rest += shift
            spread(table, shift - (0.0 if old is None else old), *plan.offsets(j, scope))
            state.shifts[j] = shift
            self._errors[j] += UNIT * (len(bucket) + 4) * 2 * largest(shift)

        self._reweigh(bucket, weights, np.array(entropies))

    def _left_out(self, b: int, tables: list[Floats], zeros: Bools | None) -> Bools:
        """Configurations of the shared variables that a bound without zeros leaves out.

        They are those that are impossible, and those for which a negative weight meets a zero. Where
        that is all, the known state of the eliminated variable stays in; and always where the other
        shared variables have their known states.
        """
        plan, bucket = self.plan, self.plan.buckets[b]
        out = np.zeros(self._shared_size(b), np.bool_) if zeros is None else zeros.copy()
        if (mask := self.state.impossible[b]) is not None:
            out |= mask
        bad = np.zeros(out.size)
        for j, table in zip(bucket, tables, strict=True):
            if self.state.weights[j] < 0:
                gather((table == -np.inf).astype(np.float64), bad, *plan.offsets(j, plan.shared[b]))
        out |= bad > 0
        assert self._known is not None
        variable, *others = plan.shared[b]
        node = plan.nodes[bucket[0]]
        sizes = dict(zip(node.scope, node.shape, strict=True))
        columns = out.reshape(sizes[variable], -1)
        keep = np.asarray(columns.all(axis=0))
        column = 0
        for i in others:
            column = column * sizes[i] + int(self._known[i])
        keep[column] = True
        row = int(self._known[variable])
        columns[row] &= ~keep
        return out

    def _reweigh(self, bucket: list[int], weights: Floats, entropies: Floats) -> None:
        """Move weights along the gradient of the bound, the entropy of the eliminated variable given the others."""
        if self._sign:
            mean = float(weights @ entropies)
            gain = (entropies - mean) / max(LEAST_ENTROPY, mean)
            weights = np.maximum(weights * np.exp(np.clip(-self.step * STEP * weights * gain, -1, 1)), LEAST_WEIGHT)
            weights /= weights.sum()
        else:
            positive = weights > 0
            gain = entropies[positive] - entropies
            moved = weights * np.exp(np.clip(-self.step * LOWER_STEP * weights * gain, -1, 1))
            weights = np.where(positive, 0.0, np.minimum(moved, -LEAST_WEIGHT))
            weights[positive] = 1 - weights.sum()
        for j, weight in zip(bucket, weights.tolist(), strict=True):
            self.state.weights[j] = weight

    def _shared_size(self, b: int) -> int:
        node = self.plan.nodes[self.plan.buckets[b][0]]
        sizes = dict(zip(node.scope, node.shape, strict=True))
        return int(np.prod([sizes[i] for i in self.plan.shared[b]]))

    def _belief(self, j: int, table: Floats, out: Floats) -> None:
        """exp((table + returned message) / w) up to a factor; 0 where that is infinite."""
        weight, node = self.state.weights[j], self.plan.nodes[j]
        back = self._returned[j]
        if back is None:
            np.copyto(out, table)
        else:
            np.add(table.reshape(node.shape[0], -1), back, out=out.reshape(node.shape[0], -1))
        if weight != 1:
            out /= weight
        top = out.max()
        if top == np.inf:
            out[out == np.inf] = -np.inf
            top = out.max()
        out -= top if np.isfinite(top) else 0.0
        np.exp(out, out=out)

    def backward(self) -> None:
        """Send messages back, against which the next forward pass compares beliefs.

        Raises
        ------
        OutOfTime : the deadline passed.
        """
        plan = self.plan
        at = [b for b, bucket in enumerate(plan.buckets) for _ in bucket]
        for j in reversed(range(len(plan.nodes))):
            wanted = [c for c in plan.nodes[j].children if self._needed[c]]
            if not wanted:
                continue
            check_time(self.deadline)
            size = plan.nodes[j].size
            table, belief = self._scratch[:size], self._scratch[-size:]
            self._assemble(at[j], j, table, self.state.shifts[j])
            self._belief(j, table, belief)
            belief /= max(belief.sum(), FLOOR)
            for c in wanted:
                own = np.zeros(self._sent[c].size)
                gather(belief, own, *plan.offsets(j, plan.nodes[c].scope[1:]))
                with np.errstate(invalid="ignore"):
                    back = self.state.weights[c] * np.log(np.maximum(own, FLOOR)) - self._sent[c]
                self._returned[c] = np.where(np.isfinite(back), back, 0.0)


def _mean(a: Floats | None, b: Floats | None) -> Floats | None:
    """The mean of two shifts; None is zero."""
    if a is None or b is None:
        given = b if a is None else a
        return None if given is None else given / 2
    return (a + b) / 2


def _conditional_entropy(rows: Floats) -> float:
    """Entropy of the first axis given the others, times the sum of `rows`; no product by a library whose threads
    would wait for busy cores.
    """
    sums = rows.sum(axis=0)
    logs = np.maximum(rows, FLOOR)
    np.log(logs, out=logs)
    logs *= rows
    return float((sums * np.log(np.maximum(sums, FLOOR))).sum() - logs.sum())


def check_time(deadline: float | None) -> None:
    """Raise `OutOfTime` past a deadline."""
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTime("the time is up")


def _shares(rows: Floats) -> Floats:
    """Each row of the transpose divided by its sum, one after the other; 0 where that is 0. A copy, since
    the next bucket overwrites `rows`."""
    rows /= np.maximum(rows.sum(axis=0), FLOOR)
    return rows.T.flatten()


def log_sum(rows: Floats) -> Floats:
    """ln of the sum of exp over the first axis, shape (columns,); `rows`, shape (rows, columns), becomes
    exp(rows - the largest of each column).
    """
    top = rows.max(axis=0)
    top[~np.isfinite(top)] = 0.0
    rows -= top
    with np.errstate(divide="ignore", over="ignore"):  # over where the largest is inf
        np.exp(rows, out=rows)
        found: Floats = np.log(rows.sum(axis=0))
    found += top
    return found
