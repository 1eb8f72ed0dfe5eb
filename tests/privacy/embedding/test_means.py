import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding import means as embedding
from thesis_cli.privacy.embedding.means import distance, mean_at, mean_of_matrix
from thesis_cli.privacy.kernels import UNIT, RowKernel, Rows
from thesis_cli.studies.privacy.evaluation import squared_distance

CLOSE = 2.0**-49
NUMPY = 1e-15
"""Rounding of the plain reference, a mean in NumPy."""


def kernel_and_rows(seed, reals, cardinalities, *sizes, scale=1.0):
    rng = np.random.default_rng(seed)
    kernel = RowKernel(rng.uniform(0.1, 5, reals), rng.choice([0.0, 0.3, 0.9], len(cardinalities)))
    limits = np.array(cardinalities, np.int64)
    draw = [Rows(scale * rng.normal(size=(n, reals)), rng.integers(0, limits, (n, limits.size))) for n in sizes]
    return kernel, *draw


columns = st.tuples(
    st.integers(0, 2**32), st.integers(0, 4), st.lists(st.integers(1, 4), max_size=3).map(tuple), st.integers(1, 60)
)


@given(columns, st.integers(1, 300))
def test_mean_at_is_the_mean_of_the_kernel(drawn, points):
    kernel, rows, at = kernel_and_rows(*drawn, points)
    expected = [math.fsum(column) / len(rows) for column in kernel.matrix(at, rows)]
    np.testing.assert_allclose(mean_at(kernel, [rows], at), expected, rtol=0, atol=CLOSE + NUMPY)


def test_no_order_blocks_or_threads_change_a_bit():
    kernel, rows, at = kernel_and_rows(1, 3, (2, 4), 9000, 150)
    one = mean_at(kernel, [rows], at)
    shuffled = rows[np.random.default_rng(2).permutation(9000)]
    done = []
    for blocks, jobs in (([shuffled], 1), ([rows], 3), ([rows[:1], rows[1:5000], rows[5000:5000], rows[5000:]], 2)):
        assert mean_at(kernel, iter(blocks), at, jobs, done.append).tobytes() == one.tobytes()
    assert sum(done) == 3 * 9000


def test_a_sum_is_the_sum_of_its_rows_to_the_last_bit():
    kernel, rows, at = kernel_and_rows(3, 2, (3,), 8192, 5)
    each = np.array([mean_at(kernel, [rows[n : n + 1]], at) for n in range(len(rows))])
    units = each / UNIT
    assert (units == np.round(units)).all()
    exact = [sum(map(int, column)) for column in units.T]
    assert (mean_at(kernel, [rows], at) / UNIT * 8192).tolist() == [float(x) for x in exact]


def test_the_exponential_is_good_over_its_range():
    kernel = RowKernel(np.ones(1), np.zeros(0))
    x = np.concatenate([np.linspace(0, 6.5, 20_000), [26.7, 40.0, 1e10, 1e200, math.inf, math.nan]])[:, np.newaxis]
    found = mean_at(kernel, [Rows.of_reals(np.zeros((1, 1)))], Rows.of_reals(x))
    np.testing.assert_allclose(found[:-6], np.exp(-(x[:-6, 0] ** 2)), rtol=0, atol=2.0**-51 + 2.0**-52)
    assert (found[-6:] == 0).all()
    assert found[0] == 1
    assert found.max() <= 1


def test_a_sum_of_ones_does_not_overflow():
    kernel, rows, _ = kernel_and_rows(4, 2, (2,), 1, 1)
    table = rows[np.zeros(20_000, np.int64)]
    assert mean_at(kernel, [table], rows).tolist() == [1.0]
    assert mean_of_matrix(kernel, table) == 1.0


@given(columns)
def test_mean_of_matrix_over_pairs(drawn):
    kernel, rows = kernel_and_rows(*drawn)
    assert mean_of_matrix(kernel, rows) == pytest.approx(kernel.matrix(rows, rows).mean(), rel=0, abs=CLOSE + NUMPY)


@pytest.mark.parametrize("jobs", [1, 3])
def test_mean_of_matrix_in_several_parts(monkeypatch, jobs):
    monkeypatch.setattr(embedding, "BLOCK_ROWS", 256)
    kernel, rows = kernel_and_rows(5, 2, (3,), 1000)
    each = kernel.matrix(rows, rows)
    assert mean_of_matrix(kernel, rows, jobs) == pytest.approx(math.fsum(each.ravel()) / 1e6, rel=0, abs=CLOSE)


@settings(max_examples=examples(15))
@given(st.integers(0, 2**32), st.integers(1, 2), st.floats(0.01, 5))
def test_mean_of_matrix_over_modes(seed, reals, scale):
    """For tables that are narrow, wide or far from 0, and for identical rows."""
    kernel, rows = kernel_and_rows(seed, reals, (), 600, scale=scale / 3)
    kernel = RowKernel(kernel.gamma / 25, kernel.rho)
    rows = Rows.of_reals(rows.reals + 1e3 * (seed % 3))
    rows.reals[: seed % 600] = rows.reals[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "_mean_by_pairs", None)
        found = mean_of_matrix(kernel, rows)
    rounding = 100 * np.finfo(float).eps  # of sums over some hundred modes, in any order
    assert found == pytest.approx(math.fsum(kernel.matrix(rows, rows).ravel()) / 600**2, rel=0, abs=rounding)


@pytest.mark.parametrize(
    ("reals", "cardinalities", "scale", "by_modes"),
    [
        (1, (), 1, True),
        (2, (), 1, True),
        (2, (), 1e6, False),
        (2, (2,), 1, False),
        (3, (), 1, False),
        (0, (2,), 1, False),
    ],
)
def test_modes_are_summed_where_they_are_few(monkeypatch, reals, cardinalities, scale, by_modes):
    kernel, rows = kernel_and_rows(6, reals, cardinalities, 4000, scale=scale)
    used = []
    monkeypatch.setattr(embedding, "_mean_by_modes", lambda *_: used.append("modes"))
    monkeypatch.setattr(embedding, "_mean_by_pairs", lambda *_: used.append("pairs"))
    mean_of_matrix(kernel, rows)
    assert used == ["modes" if by_modes else "pairs"]


@given(columns, st.integers(1, 60), st.booleans())
def test_distances(drawn, points, blocks):
    kernel, rows, at = kernel_and_rows(*drawn, points)
    weights = np.random.default_rng(drawn[0]).normal(size=points)
    both = Rows.concatenate([at, rows])
    signed = np.concatenate([weights, np.full(len(rows), -1 / len(rows))])
    expected = max(0.0, signed @ kernel.matrix(both, both) @ signed)
    size = np.abs(signed).sum() ** 2 * 1e-15
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "BLOCK", 7 if blocks else 1024)
        found = distance(kernel, at, weights, mean_at(kernel, [rows], at), mean_of_matrix(kernel, rows))
        other = squared_distance(kernel, at, weights, rows, np.full(len(rows), 1 / len(rows)))
    assert found**2 == pytest.approx(expected, rel=0, abs=size)
    assert other == pytest.approx(expected, rel=0, abs=size)


def test_the_distance_of_a_table_to_itself_is_0():
    kernel, rows = kernel_and_rows(7, 2, (2,), 50)
    weights = np.full(50, 1 / 50)
    found = distance(kernel, rows, weights, mean_at(kernel, [rows], rows), mean_of_matrix(kernel, rows))
    assert found < 1e-7
    a, b = rows[:1], rows[1:2]
    assert squared_distance(kernel, a, np.ones(1), b, np.ones(1)) == pytest.approx(2 - 2 * kernel.matrix(a, b)[0, 0])


@pytest.mark.parametrize(
    ("gamma", "rho"), [(0, 0.5), (math.inf, 0.5), (math.nan, 0.5), (1, 1), (1, -0.1), (1, math.nan)]
)
def test_parameters_out_of_range_are_refused(gamma, rho):
    with pytest.raises(InputError, match=r"must be a|all must be"):
        RowKernel(np.array([1.0, gamma]), np.array([rho]))


def test_a_table_without_rows_is_refused():
    kernel, rows = kernel_and_rows(8, 2, (2,), 3)
    for blocks in ([], [rows[:0]]):
        with pytest.raises(InputError, match="the table has no rows;"):
            mean_at(kernel, blocks, rows)
    with pytest.raises(InputError, match="no rows"):
        mean_of_matrix(kernel, rows[:0])
