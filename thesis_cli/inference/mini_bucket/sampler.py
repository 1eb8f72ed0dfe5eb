"""Configurations drawn from the mini-buckets of an upper bound."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.inference.external.cost_function_search import CostFunctionSearch
from thesis_cli.inference.mini_bucket.kernels import SequentialProposal, draw
from thesis_cli.inference.mini_bucket.passes import Passes
from thesis_cli.models.factor_graph import FactorGraph

BATCH = 1024
"""Samples drawn at once."""
STRIDE, RESAMPLED = 16, 0.5
"""Variables between two looks at the weights, and the share of effective ones below which they are resampled."""
DROPPED = 0.8
"""Share of the draws above a floor below which only these go on."""
BATCHES = 4
"""Batches in which a possible configuration is looked for."""


class MiniBucketSampler:
    """Draws configurations from the mini-buckets of an upper bound.

    Each variable, the last eliminated first, is drawn from the mixture q = sum_r w_r q_r of what its
    mini-buckets say, with their Holder weights (Liu, Fisher and Ihler 2015).

    Parameters
    ----------
    passes : an upper bound, in its state.
    variables : number of variables of the model.
    """

    def __init__(self, passes: Passes, variables: int) -> None:
        plan, state, shares = passes.plan, passes.state, list[Floats]()
        passes.forward(shares)
        nodes, buckets = plan.nodes, plan.buckets[::-1]
        drawn = [j for bucket in buckets for j in bucket]
        sizes = np.array([share.size for share in shares], np.int64)
        starts = np.cumsum(sizes) - sizes
        strides: list[int] = []
        for j in drawn:
            step = nodes[j].shape[0]
            own = []
            for k in reversed(nodes[j].shape[1:]):
                own.append(step)
                step *= k
            strides += own[::-1]
        self._proposal = SequentialProposal(
            np.array(plan.order[::-1], np.int64),
            np.array([nodes[bucket[0]].shape[0] for bucket in buckets], np.int64),
            np.cumsum([0, *(len(bucket) for bucket in buckets)]),
            np.array([state.weights[j] for j in drawn]),
            starts[drawn],
            np.cumsum([0, *(len(nodes[j].scope) - 1 for j in drawn)]),
            np.array([i for j in drawn for i in nodes[j].scope[1:]], np.int64),
            np.array(strides, np.int64),
            _joined(shares, int(sizes.sum())),
        )
        self._variables = variables
        self._most = max(map(len, buckets), default=1), int(self._proposal.states.max(initial=1))
        self._last_use = np.full(variables, -1)  # place of the last variable whose law depends on each
        for place, bucket in enumerate(buckets):
            self._last_use[[i for j in bucket for i in nodes[j].scope[1:]]] = place

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Ints, Floats]:
        """Independent configurations, shape (variables, count), and ln of weight over bound of each."""
        states, found = np.zeros((self._variables, count), np.int64), np.zeros(count)
        self._draw(0, rng.random((len(self._proposal.variables), count)), states, found)
        return states, found

    def ratios(self, rng: np.random.Generator, count: int, floor: float) -> Floats:
        """ln of weight over bound of independent configurations, shape (count,), or more where that is below a floor:
        what it was when it fell below, since it never rises.
        """
        order, found, at = self._proposal.variables, np.empty(count), np.arange(count)
        states, now = np.zeros((self._variables, count), np.int64), np.zeros(count)
        for start in range(0, len(order), STRIDE):
            stop = min(start + STRIDE, len(order))
            self._draw(start, rng.random((stop - start, at.size)), states, now)
            above = np.flatnonzero(now >= floor)
            if above.size < DROPPED * at.size or stop == len(order):
                found[at] = now
                live = order[:stop][self._last_use[order[:stop]] >= stop]
                states[live, : above.size] = states[np.ix_(live, above)]
                at, now = at[above], now[above]
                if not at.size:
                    break
        return found

    def _draw(self, start: int, uniforms: Floats, states: Ints, ratios: Floats) -> None:
        places, mixed = np.empty((self._most[0], ratios.size), np.int64), np.empty(self._most[1])
        draw(self._proposal, start, uniforms, states, places, mixed, ratios)

    def population(self, rng: np.random.Generator, count: int) -> float:
        """ln of an unbiased estimate of Z over the bound, by draws that are resampled on the way.

        When few of the partial configurations bear most of the weight, all are replaced by copies of some,
        each as often as its weight says (Doucet, de Freitas and Gordon 2001).
        """
        order, found = self._proposal.variables, 0.0
        states, ratios = np.zeros((self._variables, count), np.int64), np.zeros(count)
        for start in range(0, len(order), STRIDE):
            stop = min(start + STRIDE, len(order))
            self._draw(start, rng.random((stop - start, count)), states, ratios)
            if (top := float(ratios.max())) == -np.inf:
                return top
            weights = np.exp(ratios - top)
            total = float(weights.sum())
            if stop == len(order) or total**2 < RESAMPLED * count * float(weights @ weights):
                found += top + float(np.log(total / count))
                levels = (np.arange(count) + rng.random()) * (total / count)
                chosen = np.minimum(np.searchsorted(np.cumsum(weights), levels, side="right"), count - 1)
                live = order[:stop][self._last_use[order[:stop]] >= stop]
                states[live] = states[np.ix_(live, chosen)]
                ratios[:] = 0.0
        return found


def _joined(parts: list[Floats], size: int) -> Floats:
    """All parts in one array; each is freed once it is copied, since they may take most of the memory."""
    found, end = np.empty(size), size
    while parts:
        part = parts.pop()
        found[end - part.size : end] = part
        end -= part.size
    return found


def possible_states(graph: FactorGraph, upper: Passes | None, seconds: float) -> Ints | None:
    """A possible configuration, shape (n,): the best one of some samples, or else what a search finds.

    Parameters
    ----------
    upper : passes of an upper bound to draw from.
    seconds : time limit of the search, which needs the package of toulbar2.
    """
    if upper is not None:
        rng, sampler = np.random.default_rng(0), MiniBucketSampler(upper, len(graph.cardinalities))
        for _ in range(BATCHES):
            states, ratios = sampler.draw(rng, BATCH)
            if (found := ratios > -np.inf).any():
                possible = states.T[found]
                return np.asarray(possible[graph.log_potential(possible).argmax()])
    try:
        search = CostFunctionSearch(graph, seconds)
    except InputError:  # the package is missing, or the tables are too large
        return None
    values, rows = search.maximise(np.zeros((1, sum(graph.cardinalities))))
    return rows[0] if values[0] > -np.inf else None
