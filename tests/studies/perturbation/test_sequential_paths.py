import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.perturbation.sequential_paths import paths, without_drawing

REPEATS = 60


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2), (1, 4)])
def test_the_product_of_sums_is_z_over_the_bound(rows, columns):
    glass = random_spin_glass(rows, columns, 2.0, 1.0, "mixed", np.random.default_rng(1))
    found = paths(glass, 30, 3000, np.random.SeedSequence(4))
    ratios = np.exp(found.log_sums.sum(axis=1) + found.log_bound - GridTransfer(glass.graph()).log_partition_function())
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(3000)
    assert set(np.unique(found.spins)) == {-1.0, 1.0}
    assert found.map_calls == (2 * rows * columns - 3) * 30


def test_clipped_paths_accept_as_often_as_the_sampler():
    glass = random_spin_glass(2, 2, 1.5, 1.0, "attractive", np.random.default_rng(1))
    phi = glass.graph().log_potential(np.indices((2,) * 4).reshape(4, -1).T).reshape((2,) * 4)
    seeds = np.random.SeedSequence(2).spawn(REPEATS)
    computed = np.array([without_drawing(phi, 0.0, 20, seed, True).acceptance for seed in seeds])
    drawn = []
    for seed in np.random.SeedSequence(3).spawn(REPEATS):
        log_sums = paths(glass, 20, 50, seed).log_sums
        drawn.append(np.exp(np.minimum(0, log_sums).sum(axis=1)).mean())
    difference = np.mean(drawn) - computed.mean()
    assert abs(difference) < 5 * np.hypot(np.std(drawn), computed.std()) / np.sqrt(REPEATS)


def test_large_models_are_searched():
    glass = random_spin_glass(12, 2, 1.0, 1.0, "mixed", np.random.default_rng(1))
    found = paths(glass, 5, 40, np.random.SeedSequence(4))
    log_z = GridTransfer(glass.graph()).log_partition_function()
    logs = found.log_sums.sum(axis=1)
    error = np.exp(logs - logs.max()).std() / np.exp(logs - logs.max()).mean() / np.sqrt(40)
    assert abs(logsumexp(logs) - np.log(40) + found.log_bound - log_z) < 5 * error
