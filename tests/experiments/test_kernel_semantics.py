"""The experiment on kernel semantics, against closed forms."""

import numpy as np
import pytest

from tests.experiments.runs import one, run, whole
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian
from thesis_cli.privacy.release.files import read_release

COMMON = {"kernel": "gaussian", "sizes": [10], "repeats": 1}


def test_a_maximum_of_cells_has_its_exact_law():
    """Of three uniform variables on a grid of ten cells, whose points are the middles."""
    found = one(run("kernel-semantics", part="reductions", subject="maximum", method="quantiles", **COMMON))
    middles = (np.arange(10) + 0.5) / 10
    weights = (np.arange(1, 11) ** 3 - np.arange(10) ** 3) / 1000
    exact = np.cbrt((np.arange(50_000) + 0.5) / 50_000)
    scale = np.median(np.abs(np.subtract.outer(exact[::50], exact[::50]))[np.triu_indices(1000, 1)])
    assert found.error == pytest.approx(
        Gaussian(scale).distance(Expansion(middles, weights), Expansion(exact)), rel=0.01
    )
    assert found.distance == pytest.approx(0.025, rel=0.01)
    assert found.distance_bound == pytest.approx(0.075)
    assert found.monte_carlo > found.error


def test_a_release_reduces_as_any_expansion_does():
    found = one(run("kernel-semantics", part="release", subject="people", method="quantiles", **COMMON))
    assert found.bound == pytest.approx(found.error, abs=1e-6)
    assert found.reductions == 1
    assert found["values"] >= len(read_release("data/releases/people.csv").weights)


def test_claims_read_small_runs():
    few = {"examples": ["sum"], "methods": ["random", "quantiles"], "runs": 2, "repeats": 3}
    frame = whole("kernel-semantics", samples=[4, 8], sizes=[5, 10], **few)
    assert (frame.error > 0).all()
    (weighted,) = frame[(frame.method == "decaying") & (frame["size"] == 8)].rate
    alpha = np.arange(1.0, 9) ** -0.7
    assert weighted == pytest.approx(2 * np.sqrt((alpha**2).sum()) / alpha.sum())
