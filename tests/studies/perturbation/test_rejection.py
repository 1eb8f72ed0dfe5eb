import math

import numpy as np
import pytest
from scipy import stats

from tests.perturbation.a_star.test_a_star import LEVEL, SEED, Plain, gumbel, lowered, mixture, regression
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.models.quadrature import integrate
from thesis_cli.models.targets import published_regression
from thesis_cli.perturbation.a_star.a_star import a_star
from thesis_cli.studies.perturbation.sampler_costs import rejection


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("target", [mixture(1), mixture(2)], ids=["line", "plane"])
def test_rejection_gives_exact_samples_and_values(target, adaptive):
    found = rejection(target, 1500 if adaptive else 300, SEED(1), adaptive=adaptive)
    assert gumbel(found.values, math.log(3)) > LEVEL
    others = a_star(target, 5000, SEED(2))
    for d in range(found.locations.shape[1]):
        assert stats.ks_2samp(found.locations[:, d], others.locations[:, d]).pvalue > LEVEL
    assert stats.ks_2samp(found.potentials, others.potentials).pvalue > LEVEL
    assert stats.spearmanr(found.values, found.locations[:, 0]).pvalue > LEVEL


def test_plain_rejection_takes_a_geometric_number_of_evaluations():
    target = mixture(1)
    found = rejection(target, 500, SEED(3), adaptive=False)
    accepted = 3 * math.exp(-target.bound(target.proposal.low, target.proposal.high))
    error = math.sqrt(1 - accepted) / accepted / math.sqrt(500)
    assert abs(found.evaluations.mean() - 1 / accepted) < 5 * error
    assert not found.splits.any()


def test_the_adaptive_envelope_learns():
    target = published_regression()
    found = rejection(target, 2000, SEED(4))
    assert gumbel(found.values, integrate(target).log_z) > LEVEL
    assert found.evaluations[0] > 10
    assert found.evaluations[-1000:].mean() < 1.2
    rejected = found.evaluations - 1
    np.testing.assert_array_equal(found.splits, rejected)
    np.testing.assert_array_equal(found.bounds, 2 * rejected)


def test_the_plain_one_is_hopeless_there():
    with pytest.raises(WorkFailed, match="no sample after 500 evaluations"):
        rejection(published_regression(), 1, SEED(5), adaptive=False, budget=500)


def test_bad_targets():
    with pytest.raises(WorkFailed, match="bound is violated"):
        rejection(lowered(regression(1), 1.0), 500, SEED(6))
    with pytest.raises(InputError, match="bound of the whole proposal is inf"):
        rejection(Plain(mixture(1), bound=lambda low, high: math.inf), 1, SEED(7))
    with pytest.raises(NoConfiguration, match="0 everywhere"):
        rejection(Plain(mixture(1), bound=lambda low, high: -math.inf), 1, SEED(8))
    with pytest.raises(InputError, match="0 samples"):
        rejection(mixture(1), 0, SEED(9))
