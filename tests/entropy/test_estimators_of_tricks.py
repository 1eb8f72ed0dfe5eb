"""Entropies from perturbed maxima by the relatives of the Gumbel trick."""

import math

import numpy as np
import pytest
from scipy.special import digamma, logsumexp

from tests.entropy.conftest import LOG_Z, PHI, entropy, parts, repeated
from thesis_cli.entropy.estimators import renyi_entropy
from thesis_cli.perturbation.tricks.tricks import power


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0, math.inf])
def test_the_exponential_trick_is_unbiased_less_its_known_bias(unshared, alpha):
    """ln of the sum of M exponential clocks is digamma(M) - ln Z on average: at M = 1 it is the
    Gumbel trick.
    """

    def log_z(values, debias):
        m = values.size
        return (float(digamma(m)) if debias else math.log(m)) - logsumexp(-np.euler_gamma - values)

    for part in [next(parts(unshared, m)) for m in (1, 2, 5, 1000)]:
        for debias in (True, False):
            found, _ = renyi_entropy(part, alpha, trick=power(1.0), debias=debias)
            assert found.kind == ("unbiased" if debias else "consistent")
            bottom = log_z(part.at_one, debias)
            if alpha == math.inf:
                expected = bottom - PHI.max()
            else:
                expected = (log_z(part.column(alpha), debias) - alpha * bottom) / (1 - alpha)
            assert found.value == pytest.approx(expected, rel=1e-11, abs=1e-11)
        if part.samples == 1:
            gumbels = renyi_entropy(part, alpha)[0].value
            assert renyi_entropy(part, alpha, trick=power(1.0))[0].value == pytest.approx(gumbels, abs=1e-11)
    values, *_ = repeated(next(parts(unshared, 3 * 400)), 3, alpha, trick=power(1.0))
    assert abs(values.mean() - entropy(PHI, alpha)) < 5 * values.std() / math.sqrt(values.size)


def test_the_exponential_trick_with_known_ln_z_is_unbiased(many):
    """Without control: the bias, ln 3 - digamma(3) = 0.18, is no less than 9 standard errors here."""
    values, *_ = repeated(next(parts(many, 3 * 1000)), 3, 0.0, log_z=LOG_Z, trick=power(1.0), control=False)
    assert abs(values.mean() - math.log(6)) < 5 * values.std() / math.sqrt(values.size)


@pytest.mark.parametrize("trick", [power(0.5), power(2.0), power(-0.3), power(1.0)], ids=lambda t: t.label)
@pytest.mark.parametrize("known", [False, True])
def test_every_trick_converges(many, trick, known):
    for alpha in (0.0, 0.5, 1.0, 2.0, math.inf):
        found, _ = renyi_entropy(many, alpha, log_z=LOG_Z if known else None, trick=trick, debias=False)
        assert abs(found.value - entropy(PHI, alpha)) <= 5 * found.standard_error + 1e-12
        if known and alpha == math.inf:
            assert (found.kind, found.standard_error) == ("exact", 0.0)
        elif alpha == 0:
            plain, _ = renyi_entropy(many, alpha, log_z=LOG_Z, trick=trick, control=False)
            expected = math.sqrt(float(trick.relative_variance(0.0)) / many.samples)
            assert plain.standard_error == pytest.approx(expected, rel=0.1)


def test_a_trick_of_infinite_variance_has_an_infinite_error(many):
    few = next(parts(many, 100))
    for alpha in (0.5, 2.0):
        found, _ = renyi_entropy(few, alpha, trick=power(-0.6))
        assert math.isfinite(found.value)
        assert (found.standard_error, found.low, found.high) == (math.inf, -math.inf, math.inf)
