import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.embedding.test_means import columns, kernel_and_rows
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, Calibration, Noised
from thesis_cli.privacy.release import subspace
from thesis_cli.privacy.release.subspace import orthonormal_basis, reweighted, uniform_weights
from thesis_cli.studies.privacy.evaluation import squared_distance
from thesis_cli.studies.privacy.seeded import subspace_release

BUDGET = Budget(0.5, 1e-6)
CONSTRAINTS = ("raw", "l1", "simplex")


class Recorder:
    """Noise that records its arguments and returns a fixed answer, or the vector itself."""

    def __init__(self, answer=None):
        self.answer, self.calls = answer, []

    def calibrate(self, size, l2_sensitivity, budget):
        return Calibration(mechanism="recorder", scale=1, granularity=0, epsilon=1, delta=0, sensitivity=l2_sensitivity)

    def add(self, vector, l2_sensitivity, budget):
        self.calls.append((vector.copy(), l2_sensitivity, budget))
        values = vector if self.answer is None else self.answer[: vector.size]
        return Noised(values, self.calibrate(vector.size, l2_sensitivity, budget))


def gram_schmidt(kernel, points):
    """Coefficients of orthonormal elements in the k(z_m, .), shape (F, M), and the points that they
    come from.
    """
    matrix, found, parents = kernel.matrix(points, points), [], []
    for m in range(len(points)):
        element = np.eye(len(points))[m]
        for _ in range(2):
            for b in found:
                element = element - (b @ matrix @ element) * b
        norm = element @ matrix @ element
        if norm >= 1e-5:
            found.append(element / math.sqrt(norm))
            parents.append(m)
    return np.array(found), np.array(parents)


# The basis


@settings(max_examples=examples(20))
@given(columns, st.sampled_from([0.02, 0.3, 3.0]), st.sampled_from([3, 256]))
def test_skip_cholesky_is_gram_schmidt(drawn, scale, block):
    seed, reals, cardinalities, size = drawn[0], drawn[1], drawn[2], drawn[3] // 2 + 1
    kernel, points, others = kernel_and_rows(seed, reals, cardinalities, size, 3, scale=scale)
    points = Rows.concatenate([points, points[: size // 2], others])
    elements, parents = gram_schmidt(kernel, points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subspace, "BLOCK", block)
        basis = orthonormal_basis(kernel, points)
    assert basis.parents.tolist() == parents.tolist()
    values, large = kernel.matrix(points, others).mean(1), float(np.linalg.norm(elements))
    np.testing.assert_allclose(basis.coordinates(values), elements @ values, rtol=0, atol=1e-14 * large**2)
    coordinates = np.random.default_rng(0).normal(size=len(parents))
    expected = coordinates @ elements
    np.testing.assert_allclose(basis.expand(coordinates, len(points)), expected, rtol=0, atol=1e-13 * large**3)
    for m in (1, len(points) // 2, len(points)):
        part, alone = basis.first(m), orthonormal_basis(kernel, points[:m])
        assert part.parents.tolist() == alone.parents.tolist()
        np.testing.assert_allclose(part.factor, alone.factor, atol=1e-10)


def test_points_that_add_less_than_the_threshold_do_not_count():
    kernel = RowKernel(np.ones(1), np.zeros(0))
    for residual, counts in ((0.9e-5, False), (1.1e-5, True)):
        apart = math.sqrt(-0.5 * math.log1p(-residual))  # the second point adds 1 - k^2
        basis = orthonormal_basis(kernel, Rows.of_reals(np.array([[0.0], [apart]])))
        assert basis.parents.tolist() == ([0, 1] if counts else [0])


def test_the_residual_of_the_factor_is_seen_below_the_rounding_of_doubles():
    kernel, points = kernel_and_rows(3, 2, (3,), 300, scale=0.5)
    basis = orthonormal_basis(kernel, points)
    parents = points[basis.parents]
    exact = subspace._extended_matrix(kernel, parents, parents)
    np.testing.assert_allclose(exact.astype(float), kernel.matrix(parents, parents), rtol=1e-14)
    factor = basis.factor.astype(np.longdouble)
    expected = float(np.sqrt(((exact - factor @ factor.T) ** 2).sum()))
    assert 0 < expected < 1e-13
    assert np.linalg.norm(basis._residual(kernel, parents)) == pytest.approx(expected, rel=1e-2)


# Sensitivity


def sent(kernel, points, table, **options):
    noise = Recorder()
    subspace_release(kernel, points, [table], len(table), noise, BUDGET, **options)
    [(vector, sensitivity, budget)] = noise.calls
    assert budget == BUDGET
    return vector, sensitivity


def corners(reals, categories):
    """Opposite corners of the bounds, and every other one, with each level of two-level
    categories.
    """
    rows = itertools.product(*[(0.0, 1.0)] * reals, *[(0, 1)] * categories)
    grid = np.array(list(rows), dtype=float).reshape(-1, reals + categories)
    return Rows(grid[:, :reals], grid[:, reals:].astype(np.int64))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    ("gamma", "rho", "reals", "categories"), [(50.0, 0.0, 2, 0), (3.0, 0.4, 1, 2), (0.05, 0.9, 2, 1)]
)
def test_the_sensitivity_covers_every_pair_of_neighbours(count, gamma, rho, reals, categories):
    """The differing rows and the points are all corners; the rest of the table repeats one row."""
    kernel = RowKernel(np.full(reals, gamma), np.full(categories, rho))
    points = corners(reals, categories)
    worst = 0.0
    for rest in (points[:1], points[1:2]):
        tables = [Rows.concatenate([*[rest] * (count - 1), points[i : i + 1]]) for i in range(len(points))]
        vectors, sensitivities = zip(*(sent(kernel, points, table) for table in tables), strict=True)
        assert len(set(sensitivities)) == 1
        apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2)]
        assert max(apart) <= sensitivities[0]
        worst = max(worst, *apart)
    farthest = 2 - 2 * kernel.matrix(points, points).min()
    assert worst == pytest.approx(math.sqrt(farthest) / count, rel=1e-9)
    assert math.sqrt(2) / count < sensitivities[0] < math.sqrt(2) / count * (1 + 1e-6)


@settings(max_examples=examples(20))
@given(columns, st.sampled_from([0.01, 0.3, 3.0, 100.0]), st.sampled_from([1, 2, 5]))
def test_the_sensitivity_covers_neighbours_at_random(drawn, scale, count):
    """Also for points so close that coordinates are barely determined."""
    seed, reals, cardinalities, size = drawn
    kernel, points, table, others = kernel_and_rows(seed, reals, cardinalities, size, count, 6, scale=scale)
    others = Rows.concatenate([others, points[:3], Rows(others.reals + 1e6, others.codes)])
    vector, sensitivity = sent(kernel, points, table)
    for i in range(len(others)):
        other, same = sent(kernel, points, Rows.concatenate([table[:-1], others[i : i + 1]]))
        assert same == sensitivity
        assert np.linalg.norm(vector - other) <= sensitivity


def test_rounding_of_a_badly_conditioned_basis_is_counted():
    """An error of 1e-9 in the factor lengthens feature maps by at most 1e-9 |L^-1|^2."""
    kernel = RowKernel(np.array([1.0]), np.zeros(0))
    points = Rows.of_reals(np.linspace(0, 1, 40)[:, np.newaxis])
    basis = orthonormal_basis(kernel, points)
    good = basis.l2_sensitivity(kernel, points, 10)
    noise = 1e-9 * np.tril(np.random.default_rng(0).normal(size=basis.factor.shape))
    spoilt = subspace.Basis(basis.parents, basis.factor + noise)
    images = np.array([spoilt.coordinates(row) for row in kernel.matrix(points, points)])
    longest = np.linalg.norm(images[:, np.newaxis] - images, axis=2).max() / 10
    assert spoilt.l2_sensitivity(kernel, points, 10) >= max(good, longest)
    assert spoilt.l2_sensitivity(kernel, points, 10) > good * (1 + 1e-8)


def test_processors_agree_on_the_sensitivity_of_a_badly_conditioned_basis():
    """Last bits of kernel values and of products differ between processors."""
    points = Rows.of_reals(np.random.default_rng(0).normal(size=(100, 2)))
    kernel, eps = RowKernel(np.ones(2), np.zeros(0)), np.finfo(float).eps
    basis = orthonormal_basis(kernel, points)
    found = []
    for seed in range(3):
        bits = np.random.default_rng(seed).integers(-1, 2, basis.factor.shape)
        other = subspace.Basis(basis.parents, basis.factor * (1 + eps * bits))
        found.append(other.l2_sensitivity(kernel, points, 100_000))
    assert np.linalg.norm(np.linalg.inv(basis.factor)) > 5e3
    assert max(found) / min(found) - 1 < 1e-10


# Releases


@pytest.mark.parametrize("weights", CONSTRAINTS)
def test_no_byte_released_changes_with_the_table_while_the_noisy_vector_is_held(weights):
    kernel, points, one, other = kernel_and_rows(5, 2, (3,), 40, 30, 30)
    answer = np.random.default_rng(1).normal(size=40)
    released = []
    for blocks in ([one], [other], [other[:7], other[7:]]):
        noise = Recorder(answer)
        found = subspace_release(kernel, points, blocks, 30, noise, BUDGET, weights, most=2.0)
        text = json.dumps(found.record, sort_keys=True)
        released.append(
            found.points.reals.tobytes() + found.points.codes.tobytes() + found.weights.tobytes() + text.encode()
        )
        assert len(noise.calls) == 1
    assert len(set(released)) == 1
    assert json.loads(text)["sensitivity"] == noise.calls[0][1]
    assert (found.record["points"], found.record["weights"]) == (40, weights)
    assert found.record["basis"] == noise.calls[0][0].size


@given(columns, st.sampled_from([0.3, 3.0]))
def test_without_noise_the_release_is_the_projection(drawn, scale):
    """The remainder is orthogonal to the span: <k(z_m, .), mu - sum w k> = 0 at the points that
    count.
    """
    seed, reals, cardinalities, size = drawn
    kernel, points, table = kernel_and_rows(seed, reals, cardinalities, size, 20, scale=scale)
    weights = subspace_release(kernel, points, [table], 20, Recorder(), BUDGET).weights
    left = kernel.matrix(points, points) @ weights - kernel.matrix(points, table).mean(1)
    parents = orthonormal_basis(kernel, points).parents
    assert np.abs(left[parents]).max() < 1e-12 * (1 + np.abs(weights).sum())
    assert (np.delete(weights, parents) == 0).all()


def faces(size, most):
    """Vertices of each face of the polytope of weights, as columns."""
    for signs in itertools.product(*[(0, 1) if most is None else (-1, 0, 1)] * size):
        if any(signs):
            yield np.diag(signs)[:, np.flatnonzero(signs)] * (most or 1.0)


def nearest(matrix, inner, squared_norm, most):
    """Least squared distance over all faces: of each, the best affine combination if it is
    inside.
    """
    best = math.inf
    for vertices in faces(len(matrix), most):
        gram, b = vertices.T @ matrix @ vertices, vertices.T @ inner
        n = len(b)
        system = np.block([[gram, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        shares = np.linalg.solve(system, np.append(b, 1))[:n]
        if (shares >= 0).all():
            w = vertices @ shares
            best = min(best, w @ matrix @ w - 2 * inner @ w + squared_norm)
    return best


@given(
    st.integers(0, 2**32),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([0.03, 0.3, 3.0]),
    st.sampled_from([None, 1.0, 2.5]),
)
def test_constrained_weights_are_the_nearest(seed, reals, size, noise, most):
    kernel, points = kernel_and_rows(seed, reals, (2,), size)
    basis = orthonormal_basis(kernel, points)
    coordinates = noise * np.random.default_rng(seed).normal(size=len(basis.parents))
    raw = reweighted(kernel, points, basis, coordinates, "raw")
    found = reweighted(kernel, points, basis, coordinates, "simplex" if most is None else "l1", most or 1.0)
    if most is None:
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1, abs=1e-9)
    elif np.abs(raw).sum() <= most:
        assert found.tobytes() == raw.tobytes()
        return
    else:
        assert np.abs(found).sum() == pytest.approx(most, abs=1e-9)
    matrix = kernel.matrix(points, points)
    least = nearest(matrix, matrix @ raw, float(coordinates @ coordinates), most)
    at = squared_distance(kernel, points, found, points, raw)
    rounding = 4 * np.finfo(float).eps * (1 + np.abs(raw).sum()) ** 2  # of a squared norm of such weights
    assert least - rounding <= at <= least * (1 + 2 * subspace.TOLERANCE) + 1e-10 + rounding


def test_constrained_weights_of_many_points_satisfy_the_conditions_of_the_optimum():
    kernel, points = kernel_and_rows(9, 2, (3,), 400, scale=0.5)
    points = Rows.concatenate([points, points[:50]])
    basis = orthonormal_basis(kernel, points)
    for noise in (1e-3, 0.1, 1e3):
        coordinates = basis.coordinates(kernel.matrix(points, points).mean(1))
        coordinates += noise * np.random.default_rng(2).normal(size=coordinates.size)
        raw = reweighted(kernel, points, basis, coordinates, "raw")
        for constraint, most in (("simplex", 1.0), ("l1", 1.0), ("l1", 4.0)):
            found = reweighted(kernel, points, basis, coordinates, constraint, most)
            assert np.abs(found).sum() <= most + 1e-9
            slope = kernel.matrix(points, points) @ (found - raw)
            vertex = slope.min() if constraint == "simplex" else -most * np.abs(slope).max()
            squared = squared_distance(kernel, points, found, points, raw)
            assert found @ slope - vertex <= 2 * subspace.TOLERANCE * squared + 1e-9


def test_constraints_help_against_noise():
    kernel, table = kernel_and_rows(11, 2, (), 500, scale=0.5)
    points = table[:100]
    errors = dict.fromkeys(CONSTRAINTS, 0.0)
    for seed in range(10):
        basis = orthonormal_basis(kernel, points)
        coordinates = basis.coordinates(kernel.matrix(points, table).mean(1))
        coordinates += 0.02 * np.random.default_rng(seed).normal(size=coordinates.size)
        for constraint in CONSTRAINTS:
            weights = reweighted(kernel, points, basis, coordinates, constraint)
            errors[constraint] += squared_distance(kernel, points, weights, table, uniform_weights(table))
    assert errors["simplex"] < errors["raw"] / 2
    assert errors["l1"] < errors["raw"] / 2


def test_the_baseline():
    assert uniform_weights(kernel_and_rows(0, 1, (), 4)[1]).tolist() == [0.25] * 4


# Bad input


def test_what_is_refused():
    kernel, points, table = kernel_and_rows(12, 2, (2,), 5, 8)
    noise = Recorder()
    for most in (0.5, math.nan, math.inf):
        with pytest.raises(InputError, match="sum of absolute weights"):
            subspace_release(kernel, points, [table], 8, noise, BUDGET, "l1", most=most)
    with pytest.raises(InputError, match="no public points"):
        subspace_release(kernel, points[:0], [table], 8, noise, BUDGET)
    with pytest.raises(InputError, match="has 0 rows"):
        subspace_release(kernel, points, [], 0, noise, BUDGET)
    for count in (7, 9):
        with pytest.raises(InputError, match=rf"^the table has 8 rows and not {count};"):
            subspace_release(kernel, points, [table], count, noise, BUDGET)
    assert noise.calls == []
