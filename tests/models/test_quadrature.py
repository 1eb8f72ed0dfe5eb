"""Quadrature against known integrals, where it fails, and targets that a proposal cuts off."""

import math

import numpy as np
import pytest

from tests.models.test_targets import mixture, regression
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.models import quadrature, target_objects
from thesis_cli.models.proposals import REACH, Normal, Uniform
from thesis_cli.models.quadrature import LOOSEST, check_samples, evidence, integrate, log_densities
from thesis_cli.models.target_objects import LARGEST, UsersTarget
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


class Own:
    """A target by its log-ratio."""

    def __init__(self, log_ratio, proposal=None, bound=lambda low, high: 0.0):
        self.proposal = proposal or Normal([0.0], [2.0])
        self.log_ratio, self.bound = log_ratio, bound


def student(degrees):
    """Log-ratio of Student's t, without its constant, to the normal proposal."""
    return Own(lambda x: -(degrees + 1) / 2 * math.log1p(x[0] ** 2 / degrees) + x[0] ** 2 / 8)


@pytest.mark.parametrize("grows", [1.0, 1 / 8, 0.1249])
def test_a_target_that_a_normal_proposal_cuts_off_has_no_evidence(grows):
    """At 1 there is no integral, at 1/8 the target is flat, at 0.1249 normal with scale 71."""
    with pytest.raises(InputError, match=r"^the target is cut off: it has not vanished at -?75, 37.5 scales"):
        evidence(Own(lambda x: grows * x[0] ** 2))


def test_quadrature_in_two_dimensions_does_not_converge_if_the_ends_matter():
    q = Normal([0.0, 0.0], [1.0, 1.0])
    flat = Own(lambda x: x[0] ** 2 / 2, q, lambda low, high: max(low[0] ** 2, high[0] ** 2) / 2)
    with pytest.raises(WorkFailed, match="did not converge"):
        integrate(flat, max_evaluations=2**16)


def test_a_uniform_proposal_may_cut_a_target_off():
    up = Own(lambda x: x[0], Uniform([0.0], [3.0]))
    assert evidence(up).log_z == pytest.approx(math.log(math.expm1(3) / 3), abs=1e-12)
    check_samples(up, np.array([[0.0], [3.0]]))


@pytest.mark.parametrize("degrees", [3, 5])
def test_the_error_covers_the_mass_beyond_the_ends(degrees):
    found = evidence(student(degrees))
    density = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    truth = -density - 0.5 * math.log(2 * math.pi) - math.log(2.0)
    assert 1e-12 < abs(found.log_z - truth) < found.error < LOOSEST


def test_samples_at_the_ends_are_refused():
    target = Own(lambda x: 0.0, Normal([0.0, 1.0], [1.0, 2.0]))
    inside = np.array([[0.0, 1.0], [-0.94 * REACH, 1 + 0.94 * 2 * REACH]])
    check_samples(target, inside)
    for d, place in ((0, 0.96 * REACH), (1, 1 - 0.96 * 2 * REACH)):
        points = inside.copy()
        points[0, d] = place
        with pytest.raises(InputError, match=f"has not vanished at {place:.6g}"):
            check_samples(target, points)


def test_a_value_within_the_loosest_tolerance_has_its_error(monkeypatch):
    """In one dimension and in more, quadrature misses the default tolerance."""
    sharp = Mixture([1.0], [[0.3, 0.1]], [[0.01, 0.02]], Normal(np.zeros(2), np.full(2, 2.0)))
    monkeypatch.setitem(quadrature.TOLERANCES, 2, 1e-30)
    monkeypatch.setattr(quadrature.integrate, "__defaults__", (None, 2**14))
    found = evidence(sharp)
    assert abs(found.log_z) <= found.error <= LOOSEST
    monkeypatch.setattr(quadrature, "_line", lambda target: quadrature.Integral(1.0, 2e-5, 9))
    assert evidence(Own(lambda x: 0.0)).error == pytest.approx(2e-5)
    monkeypatch.setattr(quadrature, "_line", lambda target: quadrature.Integral(1.0, 2e-3, 9))
    with pytest.raises(WorkFailed, match="did not converge"):
        evidence(Own(lambda x: 0.0))


def test_a_noisy_log_ratio_reaches_the_limit(monkeypatch):
    monkeypatch.setattr(target_objects, "MOST_EVALUATIONS", 20_000)
    rng = np.random.default_rng(0)
    noisy = UsersTarget(Own(lambda x: -(x[0] ** 2) + 0.1 * rng.random()))
    with pytest.raises(WorkFailed, match=r"did not converge in 20,000 evaluations of log_ratio; is that smooth"):
        evidence(noisy)
    for _ in range(20_001):  # the limit is that of quadrature
        noisy.log_ratio(np.zeros(1))


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (np.zeros(2), "an array of shape (2,)"),
        ([], "an array of shape (0,)"),
        (None, "None"),
        ("1.5", "'1.5'"),
        (1j, "1j"),
        (object, "<class 'object'>"),
    ],
)
def test_errors_show_a_result_that_is_no_number(returned, shown):
    target = UsersTarget(Own(lambda x: returned, bound=lambda low, high: returned))
    x = np.zeros(1)
    for what, call in (("log_ratio", lambda: target.log_ratio(x)), ("bound", lambda: target.bound(x, x))):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value).startswith(f"{what} returned {shown}; ")


@pytest.mark.parametrize("one", [2, 2.0, np.float32(2), np.array(2), np.array([2.0]), np.int64(2)])
def test_numbers_of_any_type_are_accepted(one):
    target = UsersTarget(Own(lambda x: one, bound=lambda low, high: one))
    assert type(target.log_ratio(np.zeros(1))) is float
    assert target.log_ratio(np.zeros(1)) == target.bound(np.zeros(1), np.ones(1)) == 2.0


def test_log_ratios_too_large_for_adding_1():
    """A large negative log-ratio counts as -inf; NaN is left to quadrature, which gives its place."""
    for value, expected in ((-1e300, -math.inf), (-math.inf, -math.inf), (-9e14, -9e14), (9e14, 9e14)):
        assert UsersTarget(Own(lambda x, value=value: value)).log_ratio(np.zeros(1)) == expected
    assert math.isnan(UsersTarget(Own(lambda x: math.nan)).log_ratio(np.zeros(1)))
    with pytest.raises(InputError, match=r"log_ratio is 1e\+15 at \[0.0\]"):
        UsersTarget(Own(lambda x: LARGEST)).log_ratio(np.zeros(1))
    steep = UsersTarget(Own(lambda x: -(x[0] ** 20)))
    assert evidence(steep).error < 1e-10


def test_arguments_are_read_only():
    """An attempt to change them is an error and changes nothing."""

    def shift(x, *_):
        x += 1.0

    target, x = UsersTarget(Own(shift, bound=shift)), np.zeros(1)
    for call in (lambda: target.log_ratio(x), lambda: target.bound(x, x)):
        with pytest.raises(ValueError, match="read-only"):
            call()
    assert x == 0
    x += 1  # the caller's own stays writeable


@pytest.mark.parametrize("level", [math.inf, math.nan])
def test_infinite_bounds_are_refused(level):
    target = UsersTarget(Own(lambda x: 0.0, bound=lambda low, high: level))
    with pytest.raises(InputError, match=rf"the bound of the box from \[0.0\] to \[1.0\] is {level:g}"):
        target.bound(np.zeros(1), np.ones(1))
