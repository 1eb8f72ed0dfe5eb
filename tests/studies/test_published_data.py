"""The author's published data beside the methods and the committed results."""

import csv
import math
from functools import lru_cache

import numpy as np
import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.tricks.tricks import estimate, gumbel, power
from thesis_cli.studies import published_data
from thesis_cli.studies.published_data import race, shipped, spin_glass, tables

REFERENCE = ROOT.parent / "shared" / "reference"
SPIN_GLASSES = {(entry["kind"], round(3 * entry["coupling"])): entry for entry in shipped("fig-2-4")}


@lru_cache
def result(name):
    """Rows of a committed result."""
    with open(ROOT / "results" / f"{name}.csv") as file:
        return list(csv.DictReader(file))


def rows_of(name, **cells):
    """Those that have some cells."""
    return [row for row in result(name) if all(row[key] == value for key, value in cells.items())]


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the published files are not here")
def test_the_tables_are_those_of_the_files():
    """To the last digits, whose rounding depends on the processor."""

    def compare(ours, theirs):
        if isinstance(theirs, dict):
            assert ours.keys() == theirs.keys()
            for key, value in theirs.items():
                compare(ours[key], value)
        elif isinstance(theirs, list):
            for one, other in zip(ours, theirs, strict=True):
                compare(one, other)
        else:
            assert ours == (pytest.approx(theirs, rel=1e-8) if isinstance(theirs, float) else theirs)

    for name, entries in tables(REFERENCE).items():
        compare(entries, shipped(name.removesuffix(".json")))


def test_a_folder_without_the_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="bandits_normal"):
        tables(tmp_path)


def test_the_formulas_of_the_tables_are_those_of_the_methods():
    """On 3,000 Gumbel variables, of mean ln Z = 2."""
    maxima = np.random.default_rng(1).gumbel(2 - np.euler_gamma, size=3000)
    groups = maxima.reshape(-1, published_data.SAMPLES)
    found = spin_glass({"potentials_type": "", "c": 0.0, "lnZ": 2.0, "n": 3, "MAPs_unary_JT": maxima.tolist()})
    bounds, _ = power_bounds(groups, 3, np.array(found["alphas"]))
    np.testing.assert_allclose(found["solvers"]["exact"]["mse"], ((bounds - 2) ** 2).mean(axis=0), rtol=1e-8)
    found = race({"K": 1, "delta": 0.0, "x_scale": 0.0, "lnZ": 2.0, "MAPs_ttest": maxima.tolist()})
    for alpha, mse in zip(found["alphas"], found["mse"], strict=True):
        trick = power(alpha) if alpha else gumbel()
        ours = [estimate(trick, group, target="lnZ", debias=False).value for group in groups]
        assert mse == pytest.approx(np.mean((np.array(ours) - 2) ** 2), rel=1e-8)


@pytest.mark.parametrize("model", SPIN_GLASSES.values(), ids=lambda m: f"{m['kind']} {m['coupling']}")
def test_figure_2_4(model):
    """The committed curve, whose maxima have all digits; those of the source have six."""
    rows = rows_of("fig-2-4", kind=model["kind"], solver="exact")
    ours = {
        round(float(row["alpha"]), 3): row
        for row in rows
        if f"{float(row['coupling']):.6g}" == f"{model['coupling']:.6g}"
    }
    assert f"{float(ours[0.0]['log_z']):.6g}" == f"{model['log_z']:.6g}"
    theirs = model["solvers"]["exact"]
    assert [float(ours[alpha]["mse"]) for alpha in model["alphas"]] == pytest.approx(theirs["mse"], rel=2e-4)
    assert [float(ours[alpha]["mse_error"]) for alpha in model["alphas"]] == pytest.approx(
        theirs["mse_error"], rel=2e-3
    )
    ratio = theirs["variance"] / (100 * math.pi**2 / 6)
    assert float(ours[0.0]["variance_ratio"]) == pytest.approx(ratio, rel=1e-4)


def test_figure_2_3b():
    """The committed maxima come from other races than the author's."""
    (theirs,) = shipped("fig-2-3b")
    ours = {
        (row["quantity"], row["alpha"]): (float(row["mean"]), float(row["standard_error"]))
        for row in rows_of("fig-2-3b", part="curve", delta=f"{theirs['delta']:g}")
    }
    mse = dict(zip(theirs["alphas"], zip(theirs["mse"], theirs["mse_error"], strict=True), strict=True))
    pairs = [
        (ours["value", ""], (theirs["mean"], theirs["mean_error"])),
        (ours["variance", ""], (theirs["variance"], theirs["variance_error"])),
        *((ours["mse, plain", alpha], mse[float(alpha)]) for alpha in ("0", "1")),
    ]
    for (one, error), (other, their_error) in pairs:
        assert abs(one - other) < 5 * math.hypot(error, their_error)


@pytest.mark.parametrize(
    "table", [entry for entry in shipped("fig-4") if entry["algorithm"] == 2], ids=lambda e: e["file"]
)
def test_figures_4_1_and_4_2(table):
    """The committed distances, projected and with the noise of the author's run."""
    figure = {"leak": "fig-4-1", "random": "fig-4-2"}[table["points"]]

    def distances(**cells):
        found = {
            int(row["points"]): float(row["distance"])
            for row in rows_of(figure, dimension=f"{table['dimension']}", **cells)
        }
        return [found[number] for number in table["numbers"]]

    np.testing.assert_allclose(distances(curve="projection"), table["projection"], rtol=1e-5)
    np.testing.assert_allclose(distances(curve="baseline"), table["baseline"], rtol=1e-8)
    for epsilon, released in zip(table["epsilons"], table["released"], strict=True):
        ours = distances(curve="Algorithm 2", noise="run", epsilon=f"{epsilon:g}")
        np.testing.assert_allclose(ours, released, rtol=1e-6)


def test_claims_take_their_numbers_from_the_published_data():
    """To the digits that the claims give."""
    expected = {}
    for (kind, thirds), model in SPIN_GLASSES.items():
        for solver, found in model["solvers"].items():
            mse = dict(zip(model["alphas"], found["mse"], strict=True))
            saved = 1 - min(mse[alpha] for alpha in mse if alpha >= -0.05) / mse[0.0]
            expected["fig-2-4", f"saved, {kind}, {solver}, C = {thirds}/3"] = f"{100 * saved:.0f}"
    (racing,) = shipped("fig-2-3b")
    expected["fig-2-3b", f"best alpha at delta = {racing['delta']}"] = f"{racing['best_alpha']:.2f}"
    expected["fig-2-3b", f"least MSE at delta = {racing['delta']}"] = f"{racing['least_mse']:.4f}"
    expected["fig-2-3b", f"mean at delta = {racing['delta']}"] = f"{racing['mean']:.4f}"
    (points,) = (entry for entry in shipped("fig-4") if entry["algorithm"] == 3)
    for epsilon, released in zip(points["epsilons"], points["released"], strict=True):
        claim = f"published best, D = {points['dimension']}, epsilon = {epsilon:g}"
        expected["fig-4-2", claim] = f"{min(released):.4f}"
        for m in (10, 100):
            claim = f"same random numbers, D = {points['dimension']}, epsilon = {epsilon:g}, M = {m}"
            expected["fig-4-2-algorithm-3", claim] = f"{released[points['numbers'].index(m)]:.4f}"
    ours = {(row["experiment"], row["claim"]): row["published"] for row in result("claims")}
    assert {name: float(ours[name]) for name in expected} == {name: float(text) for name, text in expected.items()}
