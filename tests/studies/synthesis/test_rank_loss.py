"""Rank losses, active sets and best orders against their definitions."""

from itertools import permutations

import numpy as np
import pytest

from thesis_cli.studies.synthesis.rank_loss import Joint, excess, improved, ranked, total_cost


def test_losses_and_active_sets_are_counted_as_defined():
    rng = np.random.default_rng(0)
    labels = rng.random((40, 7)) < 0.4
    labels[0] = False
    order = rng.permutation(7).tolist()
    found = ranked(labels, order)
    for y, loss, active, redundant in zip(labels, found.loss, found.active, found.redundant, strict=True):
        places = {c: place for place, c in enumerate(order)}
        relevant = [places[c] for c in range(7) if y[c]]
        assert loss == sum(places[i] > places[j] for i in range(7) for j in range(7) if y[i] and not y[j])
        assert active == max(relevant, default=-1) + 1
        assert redundant == active - len(relevant)
    assert total_cost(found.active, 3).tolist() == [sum(c**3 for c in range(1, n + 1)) for n in found.active]


def test_independent_labels_have_their_marginals():
    marginals = np.array([0.2, 0.7, 0.4])
    joint = Joint.independent(marginals)
    assert joint.weights.sum() == pytest.approx(1)
    assert joint.marginals == pytest.approx(marginals)
    assert joint.by_marginals == [1, 2, 0]
    assert Joint.random(4, np.random.default_rng(0)).weights.sum() == pytest.approx(1)


def test_the_excess_is_that_over_the_best_order():
    joint = Joint(np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1]], dtype=bool), np.array([0.45, 0.44, 0.11]))
    assert joint.by_marginals == [2, 0, 1]
    found = excess(joint, 1)
    assert found.loss == pytest.approx(0, abs=1e-12)
    # Cost 1 + ... + C_A: 2 0 1 gives (3, 6, 1), and 0 2 1 gives (1, 6, 3).
    assert found.cost == pytest.approx((0.45 * 3 + 0.44 * 6 + 0.11) / (0.45 + 0.44 * 6 + 0.11 * 3) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_an_improved_order_costs_no_more_and_no_move_improves_it(seed):
    joint = Joint.random(4, np.random.default_rng(seed), 0.2)

    def cost(order):
        return joint.expected(total_cost(ranked(joint.labels, order).active, 2))

    found = improved(joint, joint.by_marginals, 2)
    assert cost(found) <= cost(joint.by_marginals) + 1e-12
    for label in found:
        rest = [c for c in found if c != label]
        assert min(cost([*rest[:i], label, *rest[i:]]) for i in range(4)) >= cost(found) * (1 - 1e-9)
    assert cost(found) >= min(map(cost, permutations(range(4)))) - 1e-12
