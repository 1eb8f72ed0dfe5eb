"""The release method `subspace`: the span of given points (Thesis section 4.4, Algorithm 2).

The embedding of the table is projected onto the span of the k(z_m, .). Noise makes its coordinates
in an orthonormal basis private, and the release expands the noisy element in the points. Points and
basis are public; the coordinates are passed to `Noise.add` and nowhere else; all that follows is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.embedding.means import mean_at
from thesis_cli.privacy.kernels import Codes, RowKernel, Rows
from thesis_cli.privacy.release.record import Record, Release, uniform_weights
from thesis_cli.privacy.release.release import PUBLIC, ReleasePlan, RowSettings, check_size, digest, uniform_rows
from thesis_cli.privacy.release.vectors import VectorMethod, noisy_vector

Extended = npt.NDArray[np.longdouble]
Constraint = Literal["raw", "l1", "simplex"]

THRESHOLD = 1e-5
"""Least squared norm that a point must add to the span; other points do not count."""

BLOCK = 256
"""Points per block."""

TOLERANCE, FLOOR = 1e-3, 1e-11
"""Relative and absolute excess of the squared distance of constrained weights over the least."""

RIDGE = 1e-12
MORE = 64
"""Vertices for which room is made at a time."""
ROUNDS = 10
"""Largest number of rounds per point in the search for weights; one or two per point of the final
face are enough.
"""

SAFETY = 1.01
"""Factor on norms that are computed in floating point; it covers their rounding many times over."""

NEGLIGIBLE = 1e-8
"""Relative growth of squared norms below which a simple bound on it is good enough."""


@dataclass(frozen=True)
class Basis:
    """Orthonormal basis b_f = sum_g (L^-1)_fg k(z_g, .) of the span of points, g over those that
    count.

    Attributes
    ----------
    parents : numbers of the points that count, ascending, shape (F,). The parents below M give the
        basis of the first M points.
    factor : lower triangular L such that L L^T is the kernel's matrix of the parents, shape (F, F).
    """

    parents: Codes
    factor: Floats

    def first(self, points: int) -> Basis:
        """Basis of the span of the first points."""
        size = int(np.searchsorted(self.parents, points))
        return Basis(self.parents[:size], self.factor[:size, :size])

    def coordinates(self, values: Floats) -> Floats:
        """Coordinates <b_f, h>, shape (F,), of a function h from its values at the points, shape
        (M,).

        They are solved in extended precision.
        """
        right = values[self.parents].astype(np.longdouble)
        for f, row in enumerate(self.factor):
            right[f] = (right[f] - row[:f].astype(np.longdouble) @ right[:f]) / row[f]
        return right.astype(np.float64)

    def expand(self, coordinates: Floats, points: int) -> Floats:
        """Weights w, shape (points,), such that sum_f beta_f b_f = sum_m w_m k(z_m, .); 0 for
        points that do not count.
        """
        from scipy.linalg import solve_triangular

        weights = np.zeros(points)
        weights[self.parents] = solve_triangular(self.factor, coordinates, lower=True, trans="T")
        return weights

    def l2_sensitivity(self, kernel: RowKernel, points: Rows, rows: int) -> float:
        r"""Bound on the distance of the computed coordinates of two tables of N = `rows` rows that
        differ in one.

        It is sqrt(2) / N, because |k(x, .) - k(x', .)|^2 = 2 - 2 k(x, x') <= 2 for a kernel of no
        negative value, plus a bound on rounding that depends on the points alone. (Lemma 6 has 2 /
        N, which no such kernel reaches.)

        With A = L^-1 and E = K - L L^T, the map h -> A (<h, k(z_f, .)>)_f has squared norm |A K
        A^T| <= 1 + |A E A^T|. The last step makes an error of at most 2^-51 in each value at a
        point, whatever N; the kernel values of the row that differs, of some (D + C + 16) 2^-53 /
        N; the solution, of F^(3/2) u |A|, where u is the rounding unit of extended precision.
        """
        from scipy.linalg import solve_triangular

        size, unit = len(self.parents), float(np.finfo(np.longdouble).eps)
        columns = len(kernel.gamma) + len(kernel.rho)
        inverse = solve_triangular(self.factor, np.eye(size), lower=True)
        norm = SAFETY * float(np.linalg.norm(inverse))
        stretch = _stretch(inverse, self._residual(kernel, points[self.parents]))
        # The rounding of K matters where extended precision is that of doubles.
        stretch += norm**2 * SAFETY * (columns + 4) * size * unit
        value = 2.0**-51 + (columns + 16) * 2.0**-52 / rows
        rounding = norm * (math.sqrt(size) * value + 2 * size**1.5 * unit) + 2.0**-51
        return float(math.sqrt(2 * (1 + stretch)) / rows + SAFETY * rounding)

    def _residual(self, kernel: RowKernel, parents: Rows) -> Floats:
        """K - L L^T, far more accurately than in doubles: K in extended precision, L in two parts.

        Products of the high parts, of 20 bits, add up without rounding.
        """
        high = np.round(self.factor * 2.0**20) / 2.0**20
        low, found = self.factor - high, np.empty_like(self.factor)
        for start in range(0, len(parents), BLOCK):
            rows = slice(start, start + BLOCK)
            residual = _extended_matrix(kernel, parents[rows], parents) - high[rows] @ high.T
            found[rows] = residual - (high[rows] @ low.T + low[rows] @ high.T) - low[rows] @ low.T
        return found


def _stretch(inverse: Floats, residual: Floats) -> float:
    """Bound on |A E A^T|, for the computed A and E.

    The bound |A|^2 |E| is larger by a factor near the number F of rows, because rounding errors in
    E are as good as independent. It is also as uncertain as rounding: where it is 1e-3, processors
    differ in the fourth digit of the noise. The last term is the rounding of the two products.
    """
    simple = SAFETY * float(np.linalg.norm(inverse) ** 2 * np.linalg.norm(residual))
    if simple <= NEGLIGIBLE:
        return simple
    return SAFETY * float(np.linalg.norm(inverse @ residual @ inverse.T)) + len(inverse) * 2.0**-51 * simple


def _extended_matrix(kernel: RowKernel, a: Rows, b: Rows) -> Extended:
    exponent = np.zeros((len(a), len(b)), np.longdouble)
    for d, gamma in enumerate(kernel.gamma):
        exponent -= gamma * np.subtract.outer(a.reals[:, d].astype(np.longdouble), b.reals[:, d]) ** 2
    found = np.exp(exponent)
    for c, rho in enumerate(kernel.rho):
        found *= np.where(np.equal.outer(a.codes[:, c], b.codes[:, c]), 1.0, rho)
    return found


def orthonormal_basis(kernel: RowKernel, points: Rows) -> Basis:
    """Gram-Schmidt in the order of the points, without those that add less than THRESHOLD
    (Algorithm 2, line 4).

    It is computed as a Cholesky factorisation, block by block, that skips such rows.

    Raises
    ------
    InputError : there are no points.
    """
    from scipy.linalg import solve_triangular

    if not len(points):
        raise InputError("there are no public points", "give at least one")
    factor, parents = np.zeros((0, 0)), np.zeros(0, np.int64)
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK]
        known = solve_triangular(factor, kernel.matrix(points[parents], block), lower=True).T
        kept, within = _skip_cholesky(kernel.matrix(block, block) - known @ known.T)
        above = np.zeros((len(parents), len(kept)))
        factor = np.block([[factor, above], [known[kept], within]])
        parents = np.concatenate([parents, start + kept])
    return Basis(parents, factor)


def _skip_cholesky(matrix: Floats) -> tuple[Codes, Floats]:
    """Kept rows, and the lower triangular factor of their submatrix."""
    rest, kept, columns = matrix.copy(), [], []
    for i in range(len(matrix)):
        if rest[i, i] >= THRESHOLD:
            column = rest[:, i] / math.sqrt(rest[i, i])
            rest -= np.multiply.outer(column, column)
            kept.append(i)
            columns.append(column)
    chosen = np.array(kept, np.int64)
    return chosen, np.tril(np.array(columns).reshape(len(kept), len(matrix)).T[chosen])


@dataclass(frozen=True)
class Subspace:
    """Map from a table to the coordinates of its embedding in the span of public points (Algorithm
    2, lines 3 to 6).
    """

    kernel: RowKernel
    points: Rows
    basis: Basis

    @classmethod
    def of(cls, kernel: RowKernel, points: Rows) -> Subspace:
        """Span of public points."""
        return cls(kernel, points, orthonormal_basis(kernel, points))

    @property
    def count(self) -> int:
        """Number F of coordinates."""
        return len(self.basis.parents)

    def embed(self, rows: Rows) -> Floats:
        """Coordinates of each row, shape (N, F): those of `mean`, up to rounding."""
        from scipy.linalg import solve_triangular

        values = self.kernel.matrix(self.points[self.basis.parents], rows)
        return np.asarray(solve_triangular(self.basis.factor, values, lower=True).T)

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Coordinates of the embedding of a table given in blocks, shape (F,)."""
        return self.basis.coordinates(mean_at(self.kernel, blocks, self.points, jobs, progress))

    def l2_sensitivity(self, rows: int) -> float:
        """Sensitivity of the coordinates, as in `Basis.l2_sensitivity`."""
        return self.basis.l2_sensitivity(self.kernel, self.points, rows)


def reweighted(
    kernel: RowKernel, points: Rows, basis: Basis, coordinates: Floats, constraint: Constraint, most: float = 1.0
) -> Floats:
    """Weights under a constraint whose element is nearest to sum_f beta_f b_f in the RKHS, shape
    (M,).

    Parameters
    ----------
    points : M public points.
    basis, coordinates : orthonormal basis b of their span, and the noisy beta, shape (F,).
    constraint, most : weights that are allowed, and bound on sum |w| for `l1`.
    """
    raw = basis.expand(coordinates, len(points))
    if constraint == "raw" or (constraint == "l1" and np.abs(raw).sum() <= most):
        return raw
    parents = basis.parents
    values = kernel.matrix(points, points[parents]) @ raw[parents]
    squared_norm = float(coordinates @ coordinates)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # small products
        return _nearest(kernel, points, values, squared_norm, most if constraint == "l1" else None)


def _nearest(kernel: RowKernel, points: Rows, values: Floats, squared_norm: float, most: float | None) -> Floats:
    """Weights of the element nearest to one of known values: with sum |w| <= most, or on the
    simplex if None.

    This is Wolfe's algorithm (1976) for the nearest point of a polytope; its vertices are the
    k(z_m, .), times +-most for the L1 ball. It keeps the vertices of a face. Each round adds the
    vertex of steepest descent, and drops those that the best affine combination makes negative. It
    ends when the squared distance is within TOLERANCE of the least.
    """
    from thesis_cli.privacy.release.faces import combine

    size, radius = len(points), most or 1.0
    face, shares, weights = _Face(size, radius), np.zeros(0), np.zeros(size)
    for _ in range(ROUNDS * size):
        weights = np.zeros(size)
        np.add.at(weights, face.chosen, shares * face.heights)
        slope = -values
        combine(shares * face.heights, face.slots, face.rows, slope)
        best = int((slope if most is None else -np.abs(slope)).argmin())
        height = radius if most is None or slope[best] < 0 else -radius
        gap = float(weights @ slope) - height * slope[best]
        squared = float(weights @ (slope - values)) + squared_norm
        held = ((face.chosen == best) & (face.heights == height)).any()
        if held or (shares.size and gap <= TOLERANCE * squared + FLOOR * radius**2):
            break
        shares = np.append(shares, 0.0 if shares.size else 1.0)
        face.enter(best, height, kernel.matrix(points[best : best + 1], points)[0], height * values[best])
        while True:
            target = face.affine()
            if (target > 0).all():
                shares = target
                break
            blocking = np.flatnonzero(target <= 0)
            steps = shares[blocking] / (shares[blocking] - target[blocking])
            shares = shares + steps.min() * (target - shares)
            shares[blocking[steps.argmin()]] = 0
            face.leave(np.flatnonzero(shares <= 0))
            shares = shares[shares > 0]
    return weights


class _Face:
    """Vertices heights * k(z_chosen, .) of a face, and the Cholesky factor of their matrix.

    As the shares of a combination sum to 1, adding a constant to the matrix changes nothing; it
    allows a vertex together with its opposite. The ridge is as large as the rounding of the matrix,
    and keeps it positive definite if vertices are nearly dependent.

    Attributes
    ----------
    chosen, heights, slots : of each vertex the number of its point, +-radius, and its row in `rows`.
    rows : kernel of a point with all points, shape (capacity, M).
    """

    def __init__(self, points: int, radius: float) -> None:
        self.chosen, self.heights, self.slots = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        self.rows, self._upper, self._solved = np.empty((0, points)), np.empty((0, 0)), np.empty((2, 0))
        self._square = radius**2

    def enter(self, point: int, height: float, row: Floats, inner: float) -> None:
        """Add a vertex, whose inner product with the target is `inner`."""
        from thesis_cli.privacy.release.faces import enter

        size = len(self.chosen)
        if size == len(self.rows):
            self.rows = np.pad(self.rows, ((0, MORE), (0, 0)))
            self._upper, self._solved = np.pad(self._upper, (0, MORE)), np.pad(self._solved, ((0, 0), (0, MORE)))
        free = np.ones(len(self.rows), bool)
        free[self.slots] = False
        slot = int(free.argmax())
        self.rows[slot] = row
        self.chosen, self.heights = np.append(self.chosen, point), np.append(self.heights, height)
        self.slots = np.append(self.slots, slot)
        column = height * self.heights * row[self.chosen] + self._square
        column[size] += RIDGE * self._square
        enter(self._upper, self._solved, size, column, np.array([inner, 1.0]), RIDGE * self._square)

    def leave(self, places: Codes) -> None:
        """Remove vertices."""
        from thesis_cli.privacy.release.faces import leave

        for place in places[::-1]:
            leave(self._upper, self._solved, len(self.chosen), int(place))
            self.chosen, self.heights = np.delete(self.chosen, place), np.delete(self.heights, place)
            self.slots = np.delete(self.slots, place)

    def affine(self) -> Floats:
        """Coefficients, of sum 1, of the affine combination of the vertices that is nearest to the target."""
        from thesis_cli.privacy.release.faces import affine

        found = np.empty(len(self.chosen))
        affine(self._upper, self._solved, found)
        return found


class SubspaceMethod(VectorMethod):
    """Noisy coordinates in the span of public points; no kernel value of a subspace is negative."""

    diameter = math.sqrt(2)

    def embedding(self, plan: ReleasePlan) -> Subspace:
        """See `VectorMethod.embedding`."""
        points = uniform_rows(plan.schema, plan.size, plan.entropy) if plan.public is None else plan.public
        return Subspace.of(plan.schema.kernel(), points)

    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """Points with weights, or plain rows drawn by them."""
        schema, vector = record.schema, np.array(noisy_vector(record)[0])
        space = Subspace.of(schema.kernel(), _public_points(record, settings.public))
        check_size("vector", len(vector), space.count)
        constraint = "simplex" if settings.weights == "uniform" else settings.weights
        found = reweighted(space.kernel, space.points, space.basis, vector, constraint, settings.weight_bound)
        if settings.weights == "uniform":
            points = space.points[_systematic(found, settings.count, rng)]
            return Release(schema, points, uniform_weights(points), record)
        return Release(schema, space.points, found, record)

    def check(self, record: Record) -> None:
        """The length of the vector is that of the points' span, which `rows` knows."""


def _public_points(record: Record, public: Rows | None) -> Rows:
    if not record.basis.startswith(PUBLIC):
        return uniform_rows(record.schema, record.size, record.entropy)
    if public is None:
        raise InputError("the release is in the span of public rows", "--public must name their file")
    if record.basis != PUBLIC + digest(public):
        raise InputError("these are not the public rows of the release", "--public must name their file")
    return public


def _systematic(weights: Floats, count: int, rng: np.random.Generator) -> Codes:
    """Indices, `count` of them; each occurs as often as its share of `count`, up to rounding."""
    ends = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(ends, (np.arange(count) + rng.random()) / count), len(weights) - 1)


METHOD = SubspaceMethod()
