"""Ranges and Lipschitz constants of functions, and what distributions say of themselves."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from thesis_cli.embeddings.expansion import Expansion, wasserstein
from thesis_cli.semantics.distributions import DISTRIBUTIONS, cell_means, drawn
from thesis_cli.semantics.functions import FUNCTIONS
from thesis_cli.semantics.ranges import Operand, times

SPANS = [(-2.0, -0.5), (-1.0, 2.0), (0.5, 3.0), (0.0, 1.0), (2.0, 2.0)]
CONTINUOUS = [name for name, family in DISTRIBUTIONS.items() if family.quantile]
PARAMETERS = {
    "normal": (-1.0, 2.0),
    "laplace": (1.0, 0.5),
    "uniform": (-1.0, 3.0),
    "exponential": (2.0,),
    "gamma": (0.7, 2.0),
    "beta": (2.0, 0.5),
}
POWERS = [(2.0, 2.0), (3.0, 3.0), (-1.0, -1.0), (0.5, 0.5), (1.0, 1.0), (-2.0, 1.0)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_lie_in_the_range_and_move_no_faster_than_the_constants(name):
    """Random pairs of arguments in random ranges."""
    function, rng = FUNCTIONS[name], np.random.default_rng(0)
    finite = 0
    for _ in range(60):
        spans = [SPANS[rng.integers(len(SPANS))] for _ in range(function.least)]
        if name == "**":
            spans[1] = POWERS[rng.integers(len(POWERS))]
        operands = [Operand(span) for span in spans]
        a = [rng.uniform(*span, 200) for span in spans]
        b = [rng.uniform(*span, 200) for span in spans]
        with np.errstate(all="ignore"):
            x, y = function.apply(*a), function.apply(*b)
        low, high = function.ranging(operands)
        known = x[np.isfinite(x)]
        assert (known >= low - 1e-12).all()
        assert (known <= high + 1e-12 * abs(high)).all()
        constants = function.sloping(operands)
        moved = sum(times(c, np.abs(p - q)) for c, p, q in zip(constants, a, b, strict=True))
        if np.isfinite(moved).all():
            finite += 1
            defined = np.isfinite(x) & np.isfinite(y)  # clamp is not, where low exceeds high
            assert (np.abs(x - y) <= moved * (1 + 1e-9) + 1e-12)[defined].all()
    assert finite or function.jumps


@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "==", "!="])
def test_ranges_of_comparisons_are_those_of_their_values(relation):
    """Over ranges that overlap, touch, or are single numbers; points have all ends among them."""
    spans = [(float(a), float(b)) for a in range(3) for b in range(a, 3)]
    for one, other in itertools.product(spans, spans):
        x, y = np.meshgrid(np.linspace(*one, 5), np.linspace(*other, 5))
        values = FUNCTIONS[relation].apply(x, y)
        assert FUNCTIONS[relation].ranging([Operand(one), Operand(other)]) == (values.min(), values.max())


def test_constants_are_attained():
    """They are the least that hold, and no more than that is claimed."""
    at = [Operand((1.0, 4.0)), Operand((2.0, 5.0))]
    assert tuple(FUNCTIONS["*"].sloping(at)) == (5.0, 4.0)
    assert tuple(FUNCTIONS["/"].sloping(at)) == (0.5, 1.0)
    assert FUNCTIONS["exp"].sloping(at[:1])[0] == math.exp(4)
    assert FUNCTIONS["sqrt"].sloping(at[:1])[0] == 0.5
    assert FUNCTIONS["**"].sloping([at[0], Operand((2.0, 2.0))])[0] == 8.0
    assert FUNCTIONS["log"].sloping([Operand((0.0, 1.0))])[0] == math.inf
    assert FUNCTIONS["<"].ranging([Operand((0.0, 1.0)), Operand((1.5, 2.0))]) == (1.0, 1.0)
    assert tuple(FUNCTIONS["*"].sloping([Operand((-math.inf, math.inf), 0.5), at[0]])) == (4.0, 0.5)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_integrals_and_shares_agree_with_quantiles(name):
    family, parameters = DISTRIBUTIONS[name], PARAMETERS[name]
    shares = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    points = family.quantile(shares, *parameters)
    assert family.share(points, *parameters) == pytest.approx(shares, abs=1e-9)
    found = [integrate.quad(lambda u: family.quantile(np.array(u), *parameters), 0.01, u)[0] for u in shares]
    integral = family.integral(shares, *parameters)
    assert integral - integral[0] == pytest.approx(found, abs=1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_error_of_cells_is_their_wasserstein_distance(name):
    family, parameters = DISTRIBUTIONS[name], [np.array(p) for p in PARAMETERS[name]]
    points, error = cell_means(family, 5, parameters)
    fine = Expansion(cell_means(family, 20_000, parameters)[0])
    assert error == pytest.approx(wasserstein(fine, Expansion(points)), rel=1e-3)
    whole = family.integral(np.array(1.0), *parameters)
    assert points.mean() == pytest.approx(whole, abs=1e-9)
    points, bound = drawn(family, 5, np.full(5, 0.2), parameters)
    assert wasserstein(fine, Expansion(points)) <= bound * (1 + 1e-3)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_move_no_faster_than_their_constants(name):
    """W1 of two parameter values that differ in one of them."""
    family = DISTRIBUTIONS[name]
    parameters = PARAMETERS.get(name, (0.3,) if name == "bernoulli" else (0.2, 0.3, 0.5))
    operands = [Operand((p, p + 0.2), p + 0.2) for p in parameters]
    for k, constant in enumerate(family.sloping(operands)):
        if math.isinf(constant):
            assert name == "beta"
            continue
        moved = list(parameters)
        moved[k] += 0.2
        if name == "categorical":
            moved[0] -= 0.2  # the probabilities sum to 1
        expansions = []
        for values in (parameters, moved):
            arrays = [np.array(v) for v in values]
            if family.probabilities:
                weights = family.probabilities(*arrays)
                expansions.append(Expansion(np.arange(len(weights), dtype=float), weights))
            else:
                expansions.append(Expansion(cell_means(family, 2000, arrays)[0]))
        assert wasserstein(*expansions) <= 0.2 * constant + 1e-3
        if family.probabilities:
            assert all((e.points >= 0).all() for e in expansions)
