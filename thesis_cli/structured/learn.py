"""MAP estimation of structured predictors (Vembu et al. eq. 1).

The joint features are phi(x, y) = x (x) psi(y), so that the parameters are a matrix Theta of shape
(p, dimension), and x @ Theta are the weights of the space of structures given x. The objective

    F(Theta) = lambda |Theta|^2 + mean_i [ ln Z(x_i @ Theta) - <psi(y_i), x_i @ Theta> ]

is 2 lambda-strongly convex, so a gradient g says how far Theta is from the best one: F is at most
|g|^2 / (4 lambda) above its minimum, and Theta at most |g| / (2 lambda) from it. That holds as well if some
squares of parameters count more than once. It does not if rankings are known in part: then F is a
difference of convex functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.structured.observations import Known
from thesis_cli.structured.space import Space

TOLERANCE = 1e-9
"""Excess of the objective, nats an observation, below which a fit ends unless told otherwise."""

MOST_SCALED = 500
"""Most inputs, most weights of a space and most observations whose curvature is looked at."""

Seen = Callable[[int, Floats], None]
"""Called after each iteration with its number and the parameters, shape (p, dimension)."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Observations of structures, and how strongly their model is regularised. Raises InputError if
    there is no observation, the shapes do not fit, an input is not finite, a row is no structure,
    or the regularisation is not positive.

    Attributes
    ----------
    space : space of the structures.
    inputs : x_1 to x_m, shape (m, p).
    structures : y_1 to y_m, shape (m, width).
    regularisation : lambda of Vembu et al. eq. 1.
    known : what is known of rankings that are not known whole, of which `structures` then hold one
        that agrees; the likelihood is that of all that agree.
    penalties : how often the square of each parameter counts, 1 or more, shape (p, dimension); None for 1.
    """

    space: Space
    inputs: Floats
    structures: Ints
    regularisation: float
    known: Known | None = None
    penalties: Floats | None = None

    def __post_init__(self) -> None:
        if self.inputs.ndim != 2 or 0 in self.inputs.shape:
            raise InputError(f"the inputs have shape {self.inputs.shape}", "give a row of numbers an observation")
        if len(self.structures) != len(self.inputs):
            raise InputError(
                f"there are {len(self.inputs)} inputs and {len(self.structures)} structures", "give one for each"
            )
        wrong = ~np.isfinite(self.inputs).all(axis=1)
        if wrong.any():
            raise InputError(f"input {int(wrong.argmax()) + 1} has a number that is not finite", "remove it")
        if not 0 < self.regularisation < math.inf:
            raise InputError(f"the regularisation is {self.regularisation:g}", "it must be positive")
        self.space.check(self.structures)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters."""
        return self.inputs.shape[1], self.space.dimension

    @cached_property
    def observed(self) -> Floats:
        """Mean of phi(x_i, y_i), shape (p, dimension)."""
        return np.asarray(self.inputs.T @ self.space.features(self.structures) / len(self.inputs))

    @cached_property
    def _shared(self) -> tuple[Floats, Ints, Floats]:
        """The different inputs, which of them each observation has, and its share of the observations."""
        rows = np.ascontiguousarray(self.inputs).view(np.dtype((np.void, 8 * self.inputs.shape[1])))[:, 0]
        firsts, which, counts = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)[1:]
        return self._rounded[firsts], which, counts / len(which)

    @cached_property
    def _rounded(self) -> Floats:
        """The inputs with as many digits as the sums of the space."""
        return cast(Floats, self.inputs.astype(self.space.precision))

    @cached_property
    def _seen(self) -> Known | None:
        """Partly known rankings, in the form that a space with nonlinear log-potentials needs."""
        return self.known if self.space.linear else self.known or Known(self.structures)

    @property
    def radius(self) -> float:
        """R: an upper bound of |phi(x_i, y)|, which is |x_i| |psi(y)|."""
        return float(np.linalg.norm(self.inputs, axis=1).max()) * self.space.radius

    def norm_bounds(self) -> tuple[float, float]:
        """Upper bounds of the norm of the best parameters.

        The first compares the objective with that at 0 (Vembu et al. Proposition C.1):
        sqrt(ln |Y| / lambda). The second follows from the gradient, which is 0 at the best
        parameters: |Theta| = |mean phi(x_i, y_i) - mean E phi(x_i, y)| / (2 lambda) <= R / lambda.
        """
        return math.sqrt(math.log(self.space.size()) / self.regularisation), self.radius / self.regularisation

    def subset(self, rows: Ints, regularisation: float) -> Problem:
        """The problem of some of the observations."""
        known = None if self.known is None else self.known[rows]
        return Problem(self.space, self.inputs[rows], self.structures[rows], regularisation, known, self.penalties)

    def losses(self, parameters: Floats) -> Floats:
        """-ln p(y_i | x_i) of each observation, nats, shape (m,). Raises ModelTooLarge if ln Z has
        no exact algorithm."""
        return negative_log_likelihood(self.space, self.inputs @ parameters, self.structures, self.known)

    def evaluate(self, parameters: Floats) -> tuple[float, Floats]:
        """F of parameters, nats, and its gradient, shape (p, dimension); sums over structures are
        computed once for each different input. Raises ModelTooLarge as for `losses`."""
        inputs, which, shares = self._shared
        weights = inputs @ parameters.astype(inputs.dtype)
        log_z, mean = self.space.sums(weights)
        if self.space.linear and self.known is None:
            seen = float(np.sum(self.observed * parameters))
            gradient = inputs.T @ (shares[:, None] * mean).astype(inputs.dtype) - self.observed
        else:
            each, slopes = self.space.seen(weights[which], self.structures, self._seen)
            seen = float(each.mean())
            gradient = self._rounded.T @ ((mean[which] - slopes) / len(slopes)).astype(inputs.dtype)
        value, gradient = float(shares @ log_z) - seen, gradient.astype(float)
        gradient[:, : self.space.frozen] = 0.0
        moved = self.regularisation * (parameters if self.penalties is None else self.penalties * parameters)
        moved[:, : self.space.frozen] = 0.0
        return value + float(np.sum(moved * parameters)), np.asarray(gradient + 2 * moved)

    def objective(self, parameters: Floats) -> float:
        """F of parameters, nats."""
        return self.evaluate(parameters)[0]

    def gradient(self, parameters: Floats) -> Floats:
        """Gradient of F, shape (p, dimension)."""
        return self.evaluate(parameters)[1]

    @cached_property
    def convex(self) -> bool:
        """Whether F is known to be convex: rankings are known whole, or Plackett-Luce draws them one by one."""
        if self.known is None or not self.known.partly.any():
            return True
        return not (self.space.linear or self.space.frozen or self.known.tied.any())

    def excess(self, gradient: Floats) -> float:
        """Upper bound on how far F is above its minimum where it has a gradient, nats; nan if F is not known to
        be convex."""
        return float(np.sum(gradient**2)) / (4 * self.regularisation) if self.convex else math.nan


def negative_log_likelihood(space: Space, weights: Floats, structures: Ints, known: Known | None = None) -> Floats:
    """-ln p(y) of structures, each under weights of its own; shapes (m, dimension), (m, width) -> (m,).
    `known` is that of `Problem`."""
    return np.asarray(space.sums(weights)[0] - space.seen(weights, structures, known)[0])


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters that were learnt.

    Attributes
    ----------
    parameters : Theta, shape (p, dimension).
    objective : F, nats; nan if it has no exact algorithm.
    excess : upper bound on how far F is above its minimum, nats; nan as above.
    trace : iteration, objective and excess of the iterations; of sampled gradients the passes, the
        structures sampled and proposed so far, and the norm of the parameters.
    """

    parameters: Floats
    objective: float
    excess: float
    trace: Columns


def fit(
    problem: Problem,
    iterations: int = 1000,
    start: Floats | None = None,
    progress: Tick | None = None,
    seen: Seen | None = None,
    tolerance: float = TOLERANCE,
    decrease: float = 0.0,
    near: bool = False,
) -> Fit:
    """Minimise F with exact gradients, by L-BFGS, until it is at most `tolerance` above its
    minimum, or an iteration gains at most `decrease`. Raises ModelTooLarge if the space has no exact
    ln Z of that size.

    Parameters
    ----------
    iterations : most iterations.
    start : parameters to begin with, shape (p, dimension); 0 by default.
    progress : called with the number of iterations just done.
    seen : called after each iteration.
    tolerance : excess at which a fit ends, nats an observation.
    decrease : gain of an iteration at which a fit ends, nats an observation.
    near : whether the start is so near that the curvature there scales the coordinates.
    """
    from scipy import optimize

    begun = np.zeros(problem.shape) if start is None else np.array(start, float)
    basis = _Basis.at(problem, begun) if near and max(problem.shape) <= MOST_SCALED else _Basis()
    descent = _Descent(problem, basis, tolerance, decrease, progress, seen)
    begun = basis.inverse(begun).ravel()
    descent.evaluate(begun)
    descent.record(begun)
    if iterations and not descent.rows[-1]["excess"] <= tolerance:  # nan as well
        minimize: Any = optimize.minimize
        options = {"maxiter": iterations, "maxfun": 20 * iterations + 20, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
        minimize(descent.evaluate, begun, jac=True, method="L-BFGS-B", callback=descent.iterated, options=options)
    names = ("iteration", "objective", "excess")
    last, trace = descent.rows[-1], Columns({name: [row[name] for row in descent.rows] for name in names})
    return Fit(descent.parameters, last["objective"], last["excess"], trace)


@dataclass(frozen=True, eq=False)
class _Basis:
    """Coordinates of the parameters for a descent: left @ (scale * coordinates) @ right.T; the parameters
    themselves by default."""

    left: Floats | None = None
    right: Floats | None = None
    scale: Floats | float = 1.0

    @classmethod
    def at(cls, problem: Problem, parameters: Floats) -> _Basis:
        """Coordinates in which the curvature near some parameters is about 1.

        The curvature without the penalty is about the second moment of x times that of the gradient of
        ln p by the weights, as if they were independent.
        """
        count = len(problem.inputs)
        some = np.arange(0, count, math.ceil(count / MOST_SCALED))
        weights = problem.inputs[some] @ parameters
        known = None if problem._seen is None else problem._seen[some]
        slopes = problem.space.seen(weights, problem.structures[some], known)[1] - problem.space.sums(weights)[1]
        first, left = np.linalg.eigh(problem.inputs.T @ problem.inputs / count)
        second, right = np.linalg.eigh(slopes.T @ slopes / len(slopes))
        penalties = 1.0 if problem.penalties is None else left.T**2 @ problem.penalties @ right**2
        curvature = np.outer(np.maximum(first, 0), np.maximum(second, 0)) + 2 * problem.regularisation * penalties
        return cls(left, right, curvature**-0.5)

    def parameters(self, coordinates: Floats) -> Floats:
        if self.left is None or self.right is None:
            return coordinates
        return np.asarray(self.left @ (self.scale * coordinates) @ self.right.T)

    def gradient(self, gradient: Floats) -> Floats:
        """Gradient by the coordinates, from that by the parameters."""
        if self.left is None or self.right is None:
            return gradient
        return np.asarray(self.scale * (self.left.T @ gradient @ self.right))

    def inverse(self, parameters: Floats) -> Floats:
        """Coordinates of parameters."""
        if self.left is None or self.right is None:
            return parameters
        return np.asarray(self.left.T @ parameters @ self.right / self.scale)


class _Descent:
    """Objective that L-BFGS evaluates, and the rows of its trace."""

    def __init__(
        self,
        problem: Problem,
        basis: _Basis,
        tolerance: float,
        decrease: float,
        progress: Tick | None,
        seen: Seen | None,
    ) -> None:
        self.problem, self.basis, self.progress, self.seen = problem, basis, progress, seen
        self.tolerance, self.decrease = tolerance, decrease
        self.rows: list[dict[str, float]] = []
        self.parameters = np.zeros(problem.shape)
        self._latest = np.full(0, np.nan)
        self._there = self.parameters
        self._found = (math.nan, math.nan, self._latest)

    def evaluate(self, vector: Floats) -> tuple[float, Floats]:
        self._there = self.basis.parameters(vector.reshape(self.problem.shape)).copy()
        value, gradient = self.problem.evaluate(self._there)
        found = self.basis.gradient(gradient).ravel()
        self._found, self._latest = (value, self.problem.excess(gradient), found), vector.copy()
        return value, found

    def record(self, vector: Floats) -> None:
        """Add a row for parameters, which are as a rule those that were evaluated last."""
        if not np.array_equal(vector, self._latest):
            self.evaluate(vector)
        value, excess, _ = self._found
        self.rows.append({"iteration": len(self.rows), "objective": value, "excess": excess})
        self.parameters = self._there

    def iterated(self, intermediate_result: Any) -> None:
        self.record(np.array(intermediate_result.x))
        if self.progress:
            self.progress(1)
        if self.seen:
            self.seen(len(self.rows) - 1, self.parameters)
        gained = self.rows[-2]["objective"] - self.rows[-1]["objective"]
        if self.rows[-1]["excess"] <= self.tolerance or gained <= self.decrease:
            raise StopIteration
