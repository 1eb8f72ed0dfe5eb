"""Errors of releases of a discrete population, against embeddings written out on the grid."""

import math

import numpy as np
import pytest

from thesis_cli.studies.privacy import consistency
from thesis_cli.studies.privacy.consistency import GRID, LINE, WeightedPoints, errors, releases, shares


def test_the_population_is_a_distribution() -> None:
    probabilities = shares(np.random.default_rng(0))
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities.min() > 0


def test_a_release_of_the_population_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights on the grid itself: only the other sample of the MMD is random."""
    probabilities = shares(np.random.default_rng(1))

    def exact(of, rows, rng):
        return {name: WeightedPoints(GRID, of) for name in ("Algorithm 2", "C = 1", "C = 2", "Algorithm 3")}, 0.0

    monkeypatch.setattr(consistency, "releases", exact)
    found = errors(10**12, np.random.default_rng(1))
    assert max(found.values()) < 1e-5
    monkeypatch.setattr(consistency, "releases", lambda of, rows, rng: exact(probabilities[::-1], rows, rng))
    assert min(x for name, x in errors(100, np.random.default_rng(1)).items() if "projection" not in name) > 1e-3


def test_the_distance_to_a_function_is_that_of_the_mapped_points() -> None:
    rng = np.random.default_rng(2)
    probabilities, _ = shares(rng), shares(rng)
    found, _ = releases(probabilities, 100, rng)
    again = errors(100, np.random.default_rng(2))
    points, weights = found["C = 2"]
    everything = np.concatenate([points.reals.max(1), GRID.reals.max(1)])
    both = np.concatenate([weights, -probabilities])
    gram = np.exp(-LINE.gamma[0] * np.subtract.outer(everything, everything) ** 2)
    assert again["C = 2: maximum"] == pytest.approx(math.sqrt(both @ gram @ both), rel=1e-9)
    assert np.abs(weights).sum() <= 2 + 1e-9
