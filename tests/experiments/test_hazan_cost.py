"""Figures 6 and 7 of Hazan et al. at sizes with exact answers."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import entropy_bound
from thesis_cli.studies.perturbation.maximiser_entropy import product_entropy
from thesis_cli.studies.perturbation.spin_glass_gap import gap

SIZES = {"kind": "mixed", "size": 4, "samples": 300}


def test_claims_on_the_cost_of_sampling_read_small_results():
    gaps = [[3, 2, 200, 1], [4, 2, 200, 2], [5, 2, 200, 2]]
    found = whole("hazan-sampling", gaps=gaps, couplings=[1], paths=[[2, 50, 20, [1]]], attempts=[[2, 50, 20, [1]]])
    assert found.part.value_counts().to_dict() == {"gap": 12, "paths": 2, "attempts": 2}
    copied = rows(found, part="gap", size=3)
    assert copied.expanded.notna().tolist() == [True, False, True, False]


def test_gaps_are_those_of_exact_answers():
    found = run("hazan-sampling", part="gap", coupling=2.0, count=2, copied=1, **SIZES)
    seed = np.random.SeedSequence(0).spawn(2)[0].spawn(2)[0]
    solver = GridTransfer(gap("mixed", 2.0, 4, 2, seed)[0].graph())
    log_z = solver.log_partition_function()
    first = found.iloc[0]
    assert first[["log_z", "log_z_lower", "log_z_upper"]].to_numpy() == pytest.approx(log_z)
    maxima = low_rank_maxima(solver, 3000, np.random.SeedSequence(1)).values
    error = maxima.std() / math.sqrt(3000)
    assert_near(first.gap, math.hypot(first.gap_error, error), maxima.mean() - log_z)
    assert first.mean_field < log_z
    assert found.expanded.notna().tolist() == [True, False]
    alone = run("hazan-sampling", part="gap", coupling=0.0, count=1, copied=0, **SIZES)
    assert one(alone, part="gap").gap == pytest.approx(0, abs=1e-9)


def test_paths_and_attempts_measure_one_acceptance():
    few = {"kind": "mixed", "coupling": 1.0, "size": 2, "copied": 0}
    paths = one(run("hazan-sampling", part="paths", count=200, samples=400, **few), part="paths")
    assert_near(paths.ratio, paths.ratio_error, 1)
    assert paths.log_tries == pytest.approx(paths.gap - math.log(paths.ratio))
    assert paths.clipped_log_tries > paths.log_tries
    assert 1 < paths.steps <= 4
    attempts = one(run("hazan-sampling", part="attempts", count=200, samples=400, **few), part="attempts")
    assert attempts.log_z == paths.log_z
    assert_near(attempts.clipped_log_tries - attempts.gap, attempts.log_tries_error, 0, rounding=0.15)


def test_claims_on_entropy_read_small_results():
    sizes = [[4, 2, 300, [0, 1, 4]], [6, 2, 50, [1]], [8, 2, 50, [1]]]
    found = whole("hazan-entropy", sizes=sizes, extremes=2000)
    sure, uniform = (one(found, origin=origin) for origin in ("certain", "uniform"))
    assert (sure.entropy, sure.marginal) == (0, pytest.approx(0))
    assert_near(sure.noise, sure.noise_error, 0)
    assert_near(uniform.noise, uniform.noise_error, 16 * math.log(2))
    assert uniform["product"] == pytest.approx(16 * math.log(2))
    assert sure["product"] == pytest.approx(0, abs=1e-9)


def test_entropy_bounds_are_those_of_the_library():
    family = {"origin": "random", "kind": "mixed", "field": 1.0, "size": 4, "models": 1}
    found = run("hazan-entropy", coupling=2.0, samples=20_000, **family).iloc[0]
    alone = run("hazan-entropy", coupling=0.0, samples=20_000, **family).iloc[0]
    assert math.isnan(found["product"])
    assert_near(alone.noise, alone.noise_error, alone["product"])
    assert_near(alone.marginal, alone.marginal_error, alone["product"])
    tables = np.random.SeedSequence(0).spawn(1)[0].spawn(2)[0]
    glass = random_spin_glass(4, 4, 2.0, 1.0, "mixed", np.random.default_rng(tables))
    maxima = low_rank_maxima(GridTransfer(glass.graph()), 20_000, np.random.SeedSequence(1))
    bound = entropy_bound(maxima)
    assert_near(found.noise, math.hypot(found.noise_error, bound.standard_error), bound.value)
    codes = maxima.states.astype(np.int64) @ 2 ** np.arange(16)
    p = np.bincount(codes) / 20_000
    plain = -(p[p > 0] * np.log(p[p > 0])).sum()
    assert plain < found.entropy < bound.value
    assert product_entropy(glass.fields) == pytest.approx(alone["product"])
