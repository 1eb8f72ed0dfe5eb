import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.privacy.embedding.test_means import kernel_and_rows
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.kernels import Rows

columns = st.tuples(st.integers(0, 2**32), st.integers(0, 4), st.lists(st.integers(1, 4), max_size=3).map(tuple))


@given(columns, st.integers(1, 300), st.sampled_from([1e-3, 1.0, 1e3, 1e6]))
def test_the_norm_is_1(drawn, half, scale):
    kernel, rows = kernel_and_rows(*drawn, 20, scale=scale)
    features = draw_features(kernel, drawn[2], 2 * half, np.random.default_rng(drawn[0]))
    found = features.embed(rows)
    assert found.shape == (20, features.count) == (20, 2 * half)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-14
    means = np.array([features.mean([rows[n : n + 1]]) for n in range(20)])
    assert np.abs(np.linalg.norm(means, axis=1) - 1).max() < 1e-14


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_is_the_mean_of_inner_products(seed):
    cardinalities = ((), (3,), (1, 2, 4), (2, 2))[seed % 4]
    kernel, rows = kernel_and_rows(seed, seed % 3, cardinalities, 8, scale=0.5)
    half = 100_000
    features = draw_features(kernel, cardinalities, 2 * half, np.random.default_rng(seed))
    cosines, sines = np.split(features.embed(rows) * math.sqrt(half), 2, axis=1)
    for a in range(8):
        each = cosines[a] * cosines + sines[a] * sines  # cos(angle difference), of independent frequencies
        expected = kernel.matrix(rows[a : a + 1], rows)[0]
        error = each.std(1) / math.sqrt(half)
        assert (np.abs(each.mean(1) - expected) <= 5 * error + 1e-12).all()


@given(columns, st.integers(1, 300), st.integers(1, 50))
def test_the_mean_is_that_of_the_embedded_rows(drawn, half, rows):
    kernel, table = kernel_and_rows(*drawn, rows)
    features = draw_features(kernel, drawn[2], 2 * half, np.random.default_rng(drawn[0]))
    expected = features.embed(table).mean(0)
    np.testing.assert_allclose(features.mean([table]), expected, rtol=0, atol=1e-14 / math.sqrt(half))


def test_no_order_blocks_or_threads_change_a_bit():
    kernel, rows = kernel_and_rows(1, 2, (3, 2), 9000)
    features = draw_features(kernel, (3, 2), 300, np.random.default_rng(0))
    one, done = features.mean([rows]), []
    shuffled = rows[np.random.default_rng(2).permutation(9000)]
    for blocks, jobs in (([shuffled], 1), ([rows], 3), ([rows[:4097], rows[4097:]], 2)):
        assert features.mean(iter(blocks), jobs, done.append).tobytes() == one.tobytes()
    assert sum(done) == 3 * 9000


@pytest.mark.parametrize("x", [1e9, 1e15, 1e18, 1e300, math.inf, math.nan])
def test_no_row_is_longer_than_1(x):
    features = Features(np.array([[1.0], [math.pi], [-2.5]]), ())
    assert np.linalg.norm(features.mean([Rows.of_reals(np.array([[x]]))])) < 1 + 1e-14


@pytest.mark.parametrize("rows", [1, 2, 5, 10_000])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_sensitivity_holds_for_opposite_features_and_is_no_larger(rows, seed):
    """Two rows half a turn apart are at distance 2; a kernel without negative values allows
    sqrt(2).
    """
    rng = np.random.default_rng(seed)
    features = Features(np.full((40, 1), 3.0), (rng.uniform(0, 6, (40, 3)),))
    table = Rows(rng.random((rows, 1)), rng.integers(0, 3, (rows, 1)))
    other = Rows(table.reals.copy(), table.codes)
    other.reals[-1] += math.pi / 3
    apart = float(np.linalg.norm(features.mean([table]) - features.mean([other])))
    bound = features.l2_sensitivity(rows)
    assert apart <= bound <= 2.001 / rows
    assert apart > 1.999 / rows
    assert bound >= 2 / rows


@pytest.mark.parametrize("count", [0, -2, 1, 7])
def test_unpaired_features_are_refused(count):
    kernel, _ = kernel_and_rows(0, 1, (), 1)
    with pytest.raises(InputError, match="it must be even and at least 2"):
        draw_features(kernel, (), count, np.random.default_rng(0))
