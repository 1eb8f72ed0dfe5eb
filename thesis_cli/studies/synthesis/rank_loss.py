"""The argument of Lemma 2 in numbers: Rank loss, active sets, and orders of labels (Thesis 5.4.5
and D.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """Losses of an order of C labels on P sets of relevant labels, each of shape (P,).

    Attributes
    ----------
    relevant : number C_P of relevant labels.
    active : size C_A of the active set once it has them all; 0 if there are none.
    loss : Rank loss L_r: pairs of a relevant label and an irrelevant one before it (eq. D.2).
    """

    relevant: Ranks
    active: Ranks
    loss: Ranks

    @property
    def redundant(self) -> Ranks:
        """D: irrelevant labels in the active set."""
        return self.active - self.relevant


def ranked(labels: Bools, order: Sequence[int]) -> Ranked:
    """Rank loss and active sets.

    Parameters
    ----------
    labels : which labels are relevant, shape (P, C).
    order : the labels, the first one to be added first.
    """
    sorted_labels = labels[:, list(order)]
    places = np.arange(1, labels.shape[1] + 1)
    before = np.cumsum(~sorted_labels, axis=1)
    return Ranked(
        sorted_labels.sum(axis=1),
        np.max(sorted_labels * places, axis=1, initial=0),
        (sorted_labels * before).sum(axis=1),
    )


def total_cost(active: Ranks, length: int) -> Floats:
    """1^T + ... + C_A^T, the cost of all searches of Sort and add under the assumption of 5.4.5."""
    powers = np.cumsum(np.arange(int(active.max(initial=0)) + 1, dtype=np.float64) ** length)
    return np.asarray(powers[active])


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint distribution of C labels.

    Attributes
    ----------
    labels : sets of relevant labels, shape (S, C).
    weights : their probabilities, shape (S,).
    """

    labels: Bools
    weights: Floats

    @classmethod
    def random(cls, count: int, rng: np.random.Generator, sparsity: float = 1.0) -> Joint:
        """Distribution of all 2^C sets, with probabilities from a Dirichlet distribution; the
        smaller its parameter `sparsity`, the stronger the correlations."""
        labels = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
        return cls(labels, rng.dirichlet(np.full(2**count, sparsity)))

    @classmethod
    def independent(cls, marginals: Floats) -> Joint:
        """Distribution of independent labels."""
        count = len(marginals)
        labels = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
        return cls(labels, np.where(labels, marginals, 1 - marginals).prod(axis=1))

    @property
    def marginals(self) -> Floats:
        """Probability of each label, shape (C,)."""
        return np.asarray(self.weights @ self.labels)

    @property
    def by_marginals(self) -> list[int]:
        """The labels in the order of decreasing marginal probabilities; ties by number."""
        return [int(c) for c in np.argsort(-self.marginals, kind="stable")]

    def expected(self, values: Ranks | Floats) -> float:
        """Mean of what each set has."""
        return float(self.weights @ values)


@dataclass(frozen=True)
class Excess:
    """Excess of the order by marginals over the best order of all, as a share of the best.

    Attributes
    ----------
    loss : excess of the expected Rank loss.
    power : excess of the expectation of L_r^T, the bound that D.5 ends with.
    cost : excess of the expected total cost of Sort and add.
    """

    loss: float
    power: float
    cost: float


def excess(joint: Joint, length: int) -> Excess:
    """The order by marginals against all C! orders."""

    def costs(order: Sequence[int]) -> list[float]:
        found = ranked(joint.labels, order)
        values = found.loss, found.loss.astype(np.float64) ** length, total_cost(found.active, length)
        return [joint.expected(value) for value in values]

    best = np.min([costs(order) for order in permutations(range(joint.labels.shape[1]))], axis=0)
    by_marginals = costs(joint.by_marginals)
    return Excess(*(float((m - b) / b) if b else 0.0 for m, b in zip(by_marginals, best, strict=True)))


def improved(joint: Joint, order: Sequence[int], length: int) -> list[int]:
    """An order with a smaller expected total cost: labels are moved, one at a time, to wherever the
    cost is least, until no move helps.

    The cost depends on the order only through the probabilities that no label of a tail is
    relevant, so that a label is moved in one pass.
    """
    order = list(order)

    def cost(of: Sequence[int]) -> float:
        return joint.expected(total_cost(ranked(joint.labels, of).active, length))

    least, moved = cost(order), True
    while moved:
        moved = False
        for label in list(order):
            rest = [c for c in order if c != label]
            found = _insertion_costs(joint, rest, label, length)
            place = int(np.argmin(found))
            if found[place] < least * (1 - 1e-12):
                order, least, moved = [*rest[:place], label, *rest[place:]], float(found[place]), True
    return order


def _insertion_costs(joint: Joint, rest: Sequence[int], label: int, length: int) -> Floats:
    """Expected total cost with a label inserted at each of the C places of an order of the
    others."""
    last = ranked(joint.labels[:, list(rest)], range(len(rest))).active
    places = np.arange(len(rest) + 1)
    powers = np.cumsum(np.arange(len(rest) + 2, dtype=np.float64) ** length)
    has = joint.labels[:, label]
    # Behind the inserted label, the last relevant one moves by a place.
    active = np.where(last[:, None] > places, last[:, None] + 1, last[:, None])
    active = np.where(has[:, None], np.maximum(active, places + 1), active)
    return np.asarray(joint.weights @ powers[active])
