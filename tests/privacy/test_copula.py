import itertools
import math

import numpy as np
import pytest

from thesis_cli.privacy.columns import Boolean, Category, Integer, Real
from thesis_cli.privacy.copula import Plan
from thesis_cli.privacy.copula_pairs import bins_of
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.schema import Schema

SCHEMA = Schema(
    (
        Real("income", 1, 1000, missing=True, log=True),
        Integer("age", 18, 90),
        Category("region", ("n", "s", "e", "w"), missing=True),
        Category("school", ("low", "middle", "high"), ordered=True),
        Boolean("smokes"),
    )
)


def table(count, seed=1):
    """Rows of SCHEMA in which all columns depend on one number."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=count)
    noisy = [1 / (1 + np.exp(-(z + rng.normal(size=count)))) for _ in range(5)]
    gaps = rng.random(count) < 0.1
    reals = [np.where(gaps, 0.5, noisy[0]), np.rint(noisy[1] * 72) / 72, np.rint(noisy[3] * 2) / 2]
    codes = [gaps, np.floor(noisy[2] * 5), noisy[4] > 0.7]
    return Rows(np.stack(reals, 1), np.stack(codes, 1).astype(np.int64))


def stages_of(plan, rows, seed=None):
    """Stages of a release and their vectors; noise of a seed, or none."""
    stages, vectors = [], []
    while (stage := plan.stage(vectors)) is not None:
        noise = 0 if seed is None else plan.noise(stage) * np.random.default_rng(seed).standard_normal(stage.count)
        stages.append(stage)
        vectors.append(stage.mean([rows]) + noise)
    return stages, vectors


@pytest.fixture(scope="module")
def released():
    rows = table(3000)
    plan = Plan(SCHEMA, 3000, math.inf)
    return rows, plan, *stages_of(plan, rows)


def test_shares_of_the_stages_add_up(released):
    _, _, stages, _ = released
    assert sum(stage.share for stage in stages) == pytest.approx(1)
    assert all(stage.mean([table(50)]).shape == (stage.count,) for stage in stages)


def test_neighbours_are_within_the_sensitivity_and_reach_it(released):
    """Two tables of one row each are the farthest apart: the search finds the worst pair of rows."""
    rows, _, stages, _ = released
    for stage in stages:
        vectors = np.array([stage.mean([rows[n : n + 1]]) for n in range(150)])
        apart = np.sqrt(((vectors[:, None] - vectors[None]) ** 2).sum(-1))
        assert apart.max() <= stage.l2_sensitivity(1)
        assert apart.max() >= 0.9 * stage.l2_sensitivity(1)


def test_order_and_blocks_of_the_rows_change_no_bit(released):
    rows, _, stages, vectors = released
    shuffled = rows[np.random.default_rng(2).permutation(len(rows))]
    for stage, vector in zip(stages, vectors, strict=True):
        assert np.array_equal(stage.mean([shuffled[:7], shuffled[7:]], jobs=2), vector)


def test_without_noise_rows_have_the_tables_of_pairs(released):
    rows, plan, stages, vectors = released
    made = plan.fit(vectors, 3000, np.random.default_rng(3))
    true, found = (bins_of(stages[1].cells, stages[1].trees, x) for x in (rows, made))
    for i, j in itertools.combinations(range(5), 2):
        a, b = (np.bincount(x[:, i] * 16 + x[:, j], minlength=256) / 3000 for x in (true, found))
        assert np.abs(a - b).sum() / 2 < 0.08  # of 256 pairs of bins, and 12 rows in each


def test_fit_repeats(released):
    _, plan, _, vectors = released
    a, b = (plan.fit(vectors, 100, np.random.default_rng(4), jobs) for jobs in (1, 2))
    assert np.array_equal(a.reals, b.reals)
    assert np.array_equal(a.codes, b.codes)
