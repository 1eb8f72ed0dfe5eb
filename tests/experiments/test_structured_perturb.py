"""The experiment on perturb-and-MAP of structures, against closed forms."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.ranges import map_range
from thesis_cli.studies.structured.exact_ratios import needed, perturbations, with_span

SIZES = {"calls": 400, "runs": 3, "epsilons": [0.5], "lengths": [1]}


def test_independent_bits_have_closed_forms():
    """U is a sum of d Gumbel maxima, L the same over d; full-rank maxima are Gumbel with mean ln Z."""
    found = run("structured-perturb", part="errors", space="hypercube", features="linear", elements=3, span=4, **SIZES)
    upper = one(found, method="upper, bits")
    assert_near(upper.bias, upper.standard_error, 0)
    assert upper.deviation == pytest.approx(math.pi / math.sqrt(2), rel=0.3)
    every = one(found, method="noise on every structure")
    assert every.calls == perturbations(0.5) == 41
    assert every.runs == 400 // 41
    assert_near(every.bias, math.pi / math.sqrt(6 * 41 * every.runs), 0)
    assert one(found, method="lower, bits").bias < 0
    assert rows(found, method="uniform structures").calls.tolist() == [100, 1000, 10_000]
    assert one(found, method="product, META").calls > one(found, method="product, draws").calls


def test_needed_work_of_two_structures_by_hand():
    """One bit with weight w: variances, spans and steps of META in closed form."""
    bit = space("hypercube", 1, "linear")
    found = needed(bit, np.array([1.0]), 0.5)
    z, twice = 1 + math.e, 1 + math.e**2
    assert found.uniform == pytest.approx((2 * twice / z**2 - 1) / ((1 - 1 / 1.5) ** 2 / 4))
    assert found.perturbations == math.ceil(4 * math.pi**2 / 6 / math.log(1.5) ** 2)
    # span 1, radius 1/2: q = 1.5, steps at 2/3 and 1; R |w| = 1: 3 steps
    counts = [math.sinh(step / 2) ** 2 for step in (2 / 3, 1 / 3)]
    target = math.log1p((1 - 1 / 1.5) ** 2 / 4)
    samples = [math.ceil(math.sqrt(v) * sum(map(math.sqrt, counts)) / target) for v in counts]
    assert found.draws == sum(samples)
    each = [2 * math.exp(beta) / (1 + math.exp(beta)) for beta in (2 / 3, 1)]
    assert found.steps == pytest.approx(sum(n * s for n, s in zip(samples, each, strict=True)))
    assert found.theorem == 3 * math.ceil(65 * 3 * math.exp(2 / 3) / 0.25)


def test_weights_have_the_span():
    cycles = space("cycles", 5)
    weights = with_span(cycles, 7.0, np.random.default_rng(1))
    assert map_range(cycles, weights).span == pytest.approx(7)


def test_every_claim_reads_the_table():
    spaces = [["hypercube", "linear", 2], ["permutations", "orders", 3], ["partitions", "pairs", 3]]
    frame = whole("structured-perturb", spaces=spaces, calls=100, runs=2)
    sizes = frame[frame.part == "sizes"]
    assert (sizes[sizes.method.str.startswith("needed")].calls > 0).all()
