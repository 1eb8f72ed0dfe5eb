"""Quadrature against known integrals, and where it fails."""

import math

import numpy as np
import pytest

from tests.models.test_targets import mixture, regression
from thesis_cli.base.errors import NoConfiguration, WorkFailed
from thesis_cli.models.proposals import Normal
from thesis_cli.models.quadrature import integrate, log_densities
from thesis_cli.models.targets import Mixture, published_regression


def test_the_published_evidence():
    """Figure 2.3a, integrated with its maximum taken out."""
    found = integrate(published_regression())
    assert found.log_z == pytest.approx(-532.4153167492, abs=1e-10)
    assert found.error < 1e-10


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 1.0])
def test_quadrature_of_narrow_peaks_on_a_line(scale):
    target = Mixture([1.0, 3.0], [[-1.2], [4.5]], [[scale], [2 * scale]], Normal(np.zeros(1), np.array([5.0])))
    assert integrate(target).log_z == pytest.approx(math.log(4), abs=1e-10)


@pytest.mark.parametrize("target", [mixture(1), mixture(2), mixture(3)])
def test_quadrature_of_mixtures(target):
    found = integrate(target, 1e-10 if target.proposal.low.size == 1 else 1e-4)
    assert abs(found.log_z - math.log(3.5)) <= max(found.error, 1e-12)


def test_quadrature_of_two_features_is_a_sum_over_a_grid():
    target = regression(2, 100)
    side = np.linspace(0, 2, 801)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    expected = np.logaddexp.reduce(log_densities(target, points)) + 2 * math.log(side[1] - side[0])
    assert integrate(target, 1e-6).log_z == pytest.approx(expected, abs=2e-6)


def test_quadrature_that_does_not_converge_is_an_error():
    with pytest.raises(
        WorkFailed, match=r"quadrature did not converge: its error is .* of Z after .* evaluations, above 1e-05"
    ):
        integrate(regression(4, 300), max_evaluations=2**14)


class Nowhere:
    proposal = Normal(np.zeros(1), np.ones(1))

    def log_ratio(self, x):
        return -math.inf

    bound = log_ratio


@pytest.mark.parametrize(("value", "dimension"), [(math.nan, 1), (math.nan, 2), (math.inf, 1)])
def test_errors_give_the_place_of_a_log_ratio_that_is_no_number(value, dimension):
    class Holed:
        proposal = Normal(np.zeros(dimension), np.ones(dimension))

        def log_ratio(self, x):
            return value if x[0] > 30 else 0.0

        def bound(self, low, high):
            return 0.0

    with pytest.raises(WorkFailed, match=rf"quadrature met a log-ratio that is {value:g}, at \(3\d\.\d+"):
        integrate(Holed())


def test_quadrature_of_a_point_does_not_converge():
    class Spike:
        proposal = Normal(np.zeros(1), np.ones(1))

        def log_ratio(self, x):
            return 0.0 if x[0] == 0 else -math.inf

    with pytest.raises(WorkFailed, match="did not converge: its error is inf"):
        integrate(Spike())


def test_quadrature_of_a_target_that_is_0_everywhere():
    with pytest.raises(NoConfiguration, match="0 everywhere"):
        integrate(Nowhere())


@pytest.mark.parametrize("tolerance", [1e-5, 1e-7])
def test_the_error_holds_if_the_proposal_peaks_and_the_ratio_is_flat(tolerance: float) -> None:
    target = Mixture([1.0], [[0.0, 0.0]], [[0.5, 1.5]], Normal(np.zeros(2), np.full(2, 2.0)))
    found = integrate(target, tolerance)
    assert abs(found.log_z) <= found.error <= tolerance
