"""Distributions of rankings that need no sum over permutations: Plackett-Luce, and Mallows.

Their log-potentials are not linear in the weights.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.observations import Known
from thesis_cli.structured.orderings import sums_over_orders
from thesis_cli.structured.permutations import LARGEST_ORDER, OrderPermutations, Permutations
from thesis_cli.structured.space import Maxima


class RankingDistribution(Permutations):
    """Permutations whose log-potentials are not linear in the weights."""

    linear, by_swaps = False, True
    largest = LARGEST_ORDER

    def features(self, structures: Ints) -> Floats:
        raise TypeError("log-potentials are not linear")

    def scores(self, structures: Ints, weights: Floats) -> Floats:
        return self.seen(np.broadcast_to(weights, (len(structures), self.dimension)), structures)[0]

    @property
    def _row_of(self) -> Ints:
        return np.arange(2**self.elements)

    def _gathered(self, masses: Floats) -> Floats:
        raise TypeError("log-potentials are not linear")


class PlackettLuce(RankingDistribution):
    """A score v_i for each item: the item at each position is drawn from those that are left, with
    probabilities in proportion to exp(v_i). The log-potential is ln p(y), so that Z is 1.

    Parameters
    ----------
    elements : number of items d.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension = elements
        self.radius = 2**0.5 * max(1, elements - 1)  # of the gradient of ln p

    def log_partition(self, weights: Floats) -> Floats:
        return np.zeros(len(self.checked(weights)))

    def sums(self, weights: Floats, known: Known | None = None) -> tuple[Floats, Floats]:
        if known is not None:
            return self.seen(weights, known.levels, known)
        return self.log_partition(weights), np.zeros((len(weights), self.dimension))

    def maximise(self, weights: Floats) -> Maxima:
        best = np.argsort(np.argsort(-self.checked(weights), axis=1, kind="stable"), axis=1, kind="stable")
        return Maxima(self.seen(weights, best)[0], best, exact=True)

    def expected_positions(self, weights: Floats) -> Floats:
        """Sums of the chances that other items come before."""
        weights = self.checked(weights)
        return np.asarray(expit(weights[:, None, :] - weights[:, :, None]).sum(axis=2) - 0.5)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Items sorted by their scores with Gumbel noise."""
        noisy = self.checked(weights[None]) + rng.gumbel(size=(count, self.elements))
        return np.argsort(np.argsort(-noisy, axis=1), axis=1)

    def seen(self, weights: Floats, structures: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
        """ln of the probability of what is known, and its gradient.

        Of a chain of items, those that are not in it drop out (Luce's axiom), and of items that come
        last in unknown order the order has probability 1. Other ties are sums over orders.
        """
        from thesis_cli.structured.sum_kernels import chain_sums

        weights, known = self.checked(weights), known or Known(structures)
        tied, values, slopes = known.tied, np.empty(len(weights)), np.empty(weights.shape)
        chain_sums(np.ascontiguousarray(weights), known.order, known.drawn, known.ranked, values, slopes)
        if tied.any():
            self.check_exact(LARGEST_ORDER, "items of rankings with ties")
            for part in np.array_split(np.flatnonzero(tied), 1 + (tied.sum() * self.elements >> 22 - self.elements)):
                scores = self._scored(weights[part])
                values[part], masses = sums_over_orders(scores, self._row_of, known[part])
                slopes[part] = self._slopes(scores, masses)
        return values, slopes

    def _scored(self, weights: Floats) -> Floats:
        """v_i - ln of the sum of exp(v_j) over the items j that are not in the set."""
        rest = _log_sums(weights)[:, ::-1, None]
        return np.asarray(weights[:, None] - np.where(np.isfinite(rest), rest, 0.0))

    def _slopes(self, scores: Floats, masses: Floats) -> Floats:
        """Gradient of scores times masses: an item is drawn, less its chance to be drawn."""
        there = np.arange(2**self.elements)[:, None] >> np.arange(self.elements) & 1
        chances = np.exp(np.where(there, -np.inf, scores))
        return np.asarray((masses - masses.sum(axis=2, keepdims=True) * chances).sum(axis=1))


class Mallows(RankingDistribution):
    """A score v_i for each item, which order the centre of the distribution, and a dispersion theta:
    the log-potential is -theta times the number of pairs of items that are not in the centre's order,
    which is Kendall's distance.

    Z is the product over j = 1 to d of the sum of exp(-theta r) over r < j: the j-th item of the centre
    is inserted r places before the end (Doignon, Pekec and Regenwetter 2004). No gradient moves the
    scores: learning takes them from Plackett-Luce.

    Parameters
    ----------
    elements : number of items d.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension, self.frozen = elements + 1, elements
        self.radius = float(elements * (elements - 1) // 2)
        self._orders = OrderPermutations(elements)

    def log_partition(self, weights: Floats) -> Floats:
        return self.sums(weights)[0]

    def sums(self, weights: Floats, known: Known | None = None) -> tuple[Floats, Floats]:
        weights = self.checked(weights)
        if known is not None:
            signs, theta = self._signs(weights), weights[:, -1]
            values, mean = self._orders.sums(signs * theta[:, None], known)
            ahead = (signs > 0).sum(axis=1)
            return values - theta * ahead, self._slopes((signs * mean).sum(axis=1) - ahead)
        places = np.arange(self.elements)
        terms = -weights[:, -1:] * places
        sums = np.logaddexp.accumulate(terms, axis=1)
        firsts = np.logaddexp.accumulate(terms[:, 1:] + np.log(places[1:]), axis=1)
        return sums.sum(axis=1), self._slopes(-np.exp(firsts - sums[:, 1:]).sum(axis=1))

    def seen(self, weights: Floats, structures: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
        weights = self.checked(weights)
        before = 2 * self._orders.features(structures) - 1
        distances = (before != self._signs(weights)).sum(axis=1).astype(float)
        values, slopes = -weights[:, -1] * distances, self._slopes(-distances)
        if known is not None and known.partly.any():
            partly = known.partly
            values[partly], slopes[partly] = self.sums(weights[partly], known[partly])
        return values, slopes

    def maximise(self, weights: Floats) -> Maxima:
        weights = self.checked(weights)
        centre = self._centre(weights)
        best = np.where(weights[:, -1:] < 0, self.elements - 1 - centre, centre)
        return Maxima(self.seen(weights, best)[0], best, exact=True)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Items of the centre, inserted one after the other."""
        weights = self.checked(weights[None])
        found = np.zeros((count, self.elements), np.int64)
        for item in range(1, self.elements):
            sums = np.logaddexp.accumulate(-weights[0, -1] * np.arange(item + 1))
            place = item - np.searchsorted(sums[:-1] - sums[-1], np.log1p(-rng.random(count)), side="left")
            found[:, :item] += found[:, :item] >= place[:, None]
            found[:, item] = place
        return found[:, self._centre(weights)[0]]

    def _centre(self, weights: Floats) -> Ints:
        """Position of each item in the centre, shape (n, d)."""
        return np.argsort(np.argsort(-weights[:, :-1], axis=1, kind="stable"), axis=1, kind="stable")

    def _signs(self, weights: Floats) -> Floats:
        """1 for the pairs i < j of which the centre has i first, else -1, shape (n, pairs)."""
        return 2 * self._orders.features(self._centre(weights)) - 1

    def _slopes(self, dispersion: Floats) -> Floats:
        """Gradients that are 0 but for the dispersion."""
        return np.column_stack([np.zeros((len(dispersion), self.elements)), dispersion])

    def _scored(self, weights: Floats) -> Floats:
        return self._orders._scored(self._signs(weights) * weights[:, -1:])


def _log_sums(weights: Floats) -> Floats:
    """ln of the sum of exp(v_i) over the items of each set, as bits; (n, d) to (n, 2^d)."""
    found = np.full((len(weights), 2 ** weights.shape[1]), -np.inf)
    for item, score in enumerate(weights.T):
        found[:, 2**item : 2 ** (item + 1)] = np.logaddexp(found[:, : 2**item], score[:, None])
    return found
