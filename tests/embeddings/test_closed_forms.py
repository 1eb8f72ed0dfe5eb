"""Closed forms of embeddings, against dense expansions at the quantiles of the laws."""

import numpy as np
import pytest
from scipy.special import ndtri

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.closed_forms import Laws
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Laplace

LEVELS = (np.arange(4000) + 0.5) / 4000
CASES = {
    "normal": (Laws.normal(0.3, 1.2), 0.3 + 1.2 * ndtri(LEVELS)),
    "uniform": (Laws.uniform(-1, 2), 3 * LEVELS - 1),
    "narrow": (Laws.uniform(1, 1.05), 1 + 0.05 * LEVELS),
    "constant": (Laws.normal(0.4, 0), np.full(1, 0.4)),
    "far": (Laws.uniform(30, 50), 30 + 20 * LEVELS),
}


@pytest.mark.parametrize("bandwidth", [0.05, 3.0])
def test_inner_products(bandwidth):
    kernel = Gaussian(bandwidth)
    for law, x in CASES.values():
        for other, y in CASES.values():
            wanted = kernel.inner(Expansion(x), Expansion(y))
            tails = law.deviations.any() or other.deviations.any()
            assert law.inner(other, kernel) == pytest.approx(wanted, abs=2e-5 if tails else 1e-6)


def test_mixtures_and_distances():
    """A mixture of laws is the mean of their embeddings, and the sum c + s Z + h U a convolution."""
    kernel = Gaussian(0.7)
    mixture = Laws(np.array([0.0, 2.0]), np.array([1.0, 0.0]), np.array([0.5, 1.0]), np.array([0.25, 0.75]))
    level = (np.arange(300) + 0.5) / 300
    first = np.add.outer(ndtri(level), (np.arange(30) - 14.5) / 30).ravel()
    x = Expansion(
        np.concatenate([first, 2 * level + 1]), np.concatenate([np.full(9000, 0.25 / 9000), np.full(300, 0.0025)])
    )
    assert mixture.distance(x, kernel) < 3e-3
    assert mixture.norm(kernel) == pytest.approx(kernel.norm(x), abs=1e-4)
    assert mixture.distance(mixture, kernel) == 0
    far = Laws.normal(100, 0)
    assert mixture.distance(far, kernel) ** 2 == pytest.approx(mixture.norm(kernel) ** 2 + 1)
    shifted = Laws.normal(0, 1).distance(Expansion(np.array([0.0])), Gaussian(1.0))
    assert shifted**2 == pytest.approx(1 / np.sqrt(3) - 2 / np.sqrt(2) + 1)


@pytest.mark.parametrize("numbers", [(np.nan, 1), (0, -1), (0, np.inf)])
def test_refusals(numbers):
    with pytest.raises(InputError, match="law"):
        Laws.normal(*numbers)
    assert Laplace(1.0).bandwidth == 1
