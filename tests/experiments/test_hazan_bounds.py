"""The experiments on Hazan et al. V, bounds on ln Z and landscapes, against enumeration and closed forms."""

import itertools
import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.landscape import Landscape, landscape


def test_landscapes_are_those_of_enumeration():
    """Measures of a 2x2 model, from its configurations one by one."""
    glass = random_spin_glass(2, 2, 3.0, 0.3, "mixed", np.random.default_rng(5))
    found = landscape(glass.graph())
    (a, b), (c, d) = glass.fields
    pairs = [(0, 1, glass.right[0, 0]), (2, 3, glass.right[1, 0]), (0, 2, glass.down[0, 0]), (1, 3, glass.down[0, 1])]

    def theta(x):
        return a * x[0] + b * x[1] + c * x[2] + d * x[3] + sum(t * x[i] * x[j] for i, j, t in pairs)

    def flips(x):
        return [(*x[:i], -x[i], *x[i + 1 :]) for i in range(4)]

    every = list(itertools.product((-1, 1), repeat=4))
    z = sum(math.exp(theta(x)) for x in every)
    p = {x: math.exp(theta(x)) / z for x in every}
    assert found.values == pytest.approx([theta(x) for x in every])
    assert found.probabilities == pytest.approx(list(p.values()))
    assert found.local_maxima == sum(theta(x) > max(map(theta, flips(x))) for x in every)
    assert found.local_maxima > 1
    assert found.entropy == pytest.approx(-sum(q * math.log(q) for q in p.values()))
    least = next(k for k in range(17) if sum(sorted(p.values())[16 - k :]) >= 0.9)
    assert found.dominating(0.9).tolist() == np.argsort(-found.probabilities)[:least].tolist()

    def climb(x):
        best = max(flips(x), key=theta)
        return climb(best) if theta(best) > theta(x) else x

    assert [every[k] for k in found.climb()] == [climb(x) for x in every]
    marginals = [sum(q for x, q in p.items() if x[i] == 1) for i in range(4)]
    product = [math.prod(m if s == 1 else 1 - m for m, s in zip(marginals, x, strict=True)) for x in every]
    assert found.dependence == pytest.approx(0.5 * sum(abs(q - r) for q, r in zip(p.values(), product, strict=True)))
    assert found.unevenness == pytest.approx(max(2 * sum(abs(t) for *ij, t in pairs if k in ij) for k in range(4)))


def test_perturbed_maximisers_of_independent_variables_are_exact_samples():
    table = np.add.outer([0.0, 1.0], [0.0, -0.5])
    found = Landscape(table)
    drawn = np.bincount(found.perturbed(4000, np.random.default_rng(1)), minlength=4) / 4000
    assert np.abs(drawn - found.probabilities).max() < 5 * 0.5 / math.sqrt(4000)
    assert found.dependence == pytest.approx(0, abs=1e-15)
    assert found.unevenness == pytest.approx(0, abs=1e-15)


def test_the_landscape_experiment_draws_the_model_that_it_measures():
    frame = whole("hazan-landscape", models=3)
    for coupling, drawn in frame[frame.configuration.notna()].groupby("coupling"):
        measured = rows(frame, coupling=coupling, model=0).iloc[0]
        assert drawn.probability.sum() == pytest.approx(1)
        assert drawn.probability.max() == pytest.approx(measured.largest)
        log_z = np.logaddexp.reduce(drawn.potential)
        assert np.exp(drawn.potential - log_z).tolist() == pytest.approx(drawn.probability.tolist())
        assert (np.sort(drawn.probability)[::-1].cumsum() < 0.9).sum() + 1 == measured.dominating
    free = rows(frame[frame.model.notna()], coupling=0.0)
    assert (free.local_maxima == 1).all()
    assert (free.highest == 1).all()


COPIES = {"copies": 500, "cover_copies": 20}
SIZES = {"side": 2, "models": 2, "few": 2, "expanded": 2, "perturbations": 300, "more": 300, **COPIES}
EXACT = {"trw, uniform", "trw, optimised", "bethe", "bethe, best start"}
NOISY = {
    "expanded",
    "cover",
    "perturb-max",
    "graph cut",
    "alpha 0",
    "0 clamped",
    "4 clamped",
    "blocks 1x2",
    "blocks 2x2",
}


def test_without_couplings_all_bounds_are_ln_z_or_have_a_closed_form():
    found = run("hazan-bounds", kind="attractive", field=1.0, coupling=0.0, **SIZES)
    alone = found[found.less.isna()]
    for method in EXACT:
        assert np.abs(one(alone, method=method)[["lowest", "highest"]].astype(float)).max() < 1e-8
    for method in NOISY:
        number = one(alone, method=method)
        errors = number[["below_error", "above_error"]].to_numpy(float)
        assert_near(number[["below", "above"]], errors, 0, rounding=1e-9)
    assert one(alone, method="max-marginals").highest < 0
    assert one(alone, method="4 clamped").above_error == pytest.approx(0, abs=1e-9)
    between = one(found, method="perturb-max, 10", less="perturb-max")
    ten, all_of_them = (one(alone, method=method) for method in ("perturb-max, 10", "perturb-max"))
    assert between["mean"] == pytest.approx(ten["mean"] - all_of_them["mean"])


@pytest.mark.parametrize("kind", ["attractive", "mixed"])
def test_bounds_of_small_grids_agree_with_enumeration(kind):
    seed = np.random.SeedSequence(0)
    found = run("hazan-bounds", kind=kind, field=1.0, coupling=2.0, **SIZES)
    found = found[found.less.isna()]
    glasses = [
        random_spin_glass(2, 2, 2.0, 1.0, kind, np.random.default_rng(child.spawn(5)[0])) for child in seed.spawn(2)
    ]
    z = np.array([log_partition_function(glass.graph()) for glass in glasses])
    for method in ("perturb-max", "trw, uniform", "trw, optimised", "alpha 0", "1 clamped", "blocks 1x2"):
        number = one(found, method=method)
        assert number.below > -5 * number.below_error - 1e-9
        assert number["mean"] > -1
    for method in (
        "average-unary",
        "max-marginals",
        "mean field",
        "expanded",
        *(["bethe", "bethe, best start"] if kind == "attractive" else []),
    ):
        number = one(found, method=method)
        assert number.above < 5 * number.above_error + 1e-9
    states = np.indices((2,) * 4).reshape(4, -1).T
    largest = []
    for glass, log_z in zip(glasses, z, strict=True):
        theta = glass.graph().log_potential(states)
        sums = [np.logaddexp(theta[states[:, i] == 0].max(), theta[states[:, i] == 1].max()) for i in range(4)]
        largest.append(max(sums) - log_z)
    assert one(found, method="max-marginals")["mean"] == pytest.approx(np.mean(largest))
    whole_grid = one(found, method="blocks 2x2")
    assert_near(whole_grid[["below", "above"]], whole_grid[["below_error", "above_error"]], 0)
    exact = one(found, method="4 clamped")
    assert max(abs(exact.lowest), abs(exact.highest)) < 1e-9


def test_every_claim_about_bounds_reads_the_table():
    frame = whole("hazan-bounds", couplings=[2.0, 4.0], side=2, models=2, few=2, perturbations=10, more=10, copies=20)
    assert set(frame.kind) == {"attractive", "mixed"}
    assert (frame[frame.less.isna()].seconds >= 0).all()
