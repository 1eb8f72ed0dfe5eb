"""Marginals without the packages that choose them."""

import math

import numpy as np
import pytest

from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.marginals import Marginal


@pytest.fixture
def counted(monkeypatch):
    """Marginals with noise of a generator in the place of OpenDP's, of all columns and one pair."""
    rng = np.random.default_rng(5)

    def measure(cells, sizes, rho, algorithm, charge):
        charge()
        names = list(sizes)
        columns = [*((name,) for name in names), (names[0], names[-1])]
        deviation = marginals.REPLACED / math.sqrt(2 * rho / len(columns))
        exact = [marginals.counts_of(own, cells, sizes) for own in columns]
        noisy = [x + deviation * rng.normal(size=x.size) for x in exact]
        return [Marginal(own, deviation, tuple(x.tolist())) for own, x in zip(columns, noisy, strict=True)]

    monkeypatch.setattr(marginals, "opendp_marginals", measure)
    monkeypatch.setattr(marginals, "extra_packages", lambda: (None, None))
