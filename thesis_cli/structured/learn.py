"""MAP estimation of structured predictors (Vembu et al. eq. 1).

The joint features are phi(x, y) = x (x) psi(y), so that the parameters are a matrix Theta of shape
(p, dimension), and x @ Theta are the weights of the space of structures given x. The objective

    F(Theta) = lambda |Theta|^2 + mean_i [ ln Z(x_i @ Theta) - <psi(y_i), x_i @ Theta> ]

is 2 lambda-strongly convex, so a gradient g says how far Theta is from the best one: F is at most
|g|^2 / (4 lambda) above its minimum, and Theta at most |g| / (2 lambda) from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.structured.orderings import Known
from thesis_cli.structured.space import Space

TOLERANCE = 1e-9
"""Excess of the objective, nats an observation, below which a fit ends unless told otherwise."""

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
    """

    space: Space
    inputs: Floats
    structures: Ints
    regularisation: float
    known: Known | None = None

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
        places: dict[bytes, int] = {}
        which = np.array([places.setdefault(row.tobytes(), len(places)) for row in self.inputs])
        firsts = np.unique(which, return_index=True)[1]
        return self.inputs[firsts], which, np.bincount(which) / len(which)

    @cached_property
    def _seen(self) -> Known | None:
        """What is known of rankings that the space needs in another form."""
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
        return Problem(self.space, self.inputs[rows], self.structures[rows], regularisation, known)

    def losses(self, parameters: Floats) -> Floats:
        """-ln p(y_i | x_i) of each observation, nats, shape (m,). Raises ModelTooLarge if ln Z has
        no exact algorithm."""
        return negative_log_likelihood(self.space, self.inputs @ parameters, self.structures, self.known)

    def evaluate(self, parameters: Floats) -> tuple[float, Floats]:
        """F of parameters, nats, and its gradient, shape (p, dimension); sums over structures are
        computed once for each different input. Raises ModelTooLarge as for `losses`."""
        inputs, which, shares = self._shared
        log_z, mean = self.space.sums(inputs @ parameters)
        value, gradient = float(shares @ log_z), inputs.T @ (shares[:, None] * mean)
        if self.space.linear and self.known is None:
            value, gradient = value - float(np.sum(self.observed * parameters)), gradient - self.observed
        else:
            seen, slopes = self.space.seen((inputs @ parameters)[which], self.structures, self._seen)
            value, gradient = value - float(seen.mean()), gradient - self.inputs.T @ slopes / len(slopes)
        moved = np.arange(self.space.dimension) >= self.space.frozen
        penalty = self.regularisation * float(np.sum(parameters[:, moved] ** 2))
        return value + penalty, np.asarray((gradient + 2 * self.regularisation * parameters) * moved)

    def objective(self, parameters: Floats) -> float:
        """F of parameters, nats."""
        return self.evaluate(parameters)[0]

    def gradient(self, parameters: Floats) -> Floats:
        """Gradient of F, shape (p, dimension)."""
        return self.evaluate(parameters)[1]

    def excess(self, gradient: Floats) -> float:
        """Upper bound on how far F is above its minimum where it has a gradient, nats."""
        return float(np.sum(gradient**2)) / (4 * self.regularisation)


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
) -> Fit:
    """Minimise F with exact gradients, by L-BFGS, until it is at most `tolerance` above its
    minimum. Raises ModelTooLarge if the space has no exact ln Z of that size.

    Parameters
    ----------
    iterations : most iterations.
    start : parameters to begin with, shape (p, dimension); 0 by default.
    progress : called with the number of iterations just done.
    seen : called after each iteration.
    tolerance : excess at which a fit ends, nats an observation.
    """
    from scipy import optimize

    descent = _Descent(problem, tolerance, progress, seen)
    begun = np.zeros(problem.shape).ravel() if start is None else np.array(start, float).ravel()
    descent.evaluate(begun)
    descent.record(begun)
    if iterations and descent.rows[-1]["excess"] > tolerance:
        minimize: Any = optimize.minimize
        options = {"maxiter": iterations, "maxfun": 20 * iterations + 20, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
        minimize(descent.evaluate, begun, jac=True, method="L-BFGS-B", callback=descent.iterated, options=options)
    names = ("iteration", "objective", "excess")
    last, trace = descent.rows[-1], Columns({name: [row[name] for row in descent.rows] for name in names})
    return Fit(descent.parameters, last["objective"], last["excess"], trace)


class _Descent:
    """Objective that L-BFGS evaluates, and the rows of its trace."""

    def __init__(self, problem: Problem, tolerance: float, progress: Tick | None, seen: Seen | None) -> None:
        self.problem, self.tolerance, self.progress, self.seen = problem, tolerance, progress, seen
        self.rows: list[dict[str, float]] = []
        self.parameters = np.zeros(problem.shape)
        self._latest = np.full(0, np.nan)
        self._found = (math.nan, self._latest)

    def evaluate(self, vector: Floats) -> tuple[float, Floats]:
        parameters = vector.reshape(self.problem.shape)
        value, gradient = self.problem.evaluate(parameters)
        self._found = value, gradient.ravel()
        self._latest = vector.copy()
        return self._found

    def record(self, vector: Floats) -> None:
        """Add a row for parameters, which are as a rule those that were evaluated last."""
        if not np.array_equal(vector, self._latest):
            self.evaluate(vector)
        value, gradient = self._found
        self.rows.append({"iteration": len(self.rows), "objective": value, "excess": self.problem.excess(gradient)})
        self.parameters = vector.reshape(self.problem.shape).copy()

    def iterated(self, intermediate_result: Any) -> None:
        self.record(np.array(intermediate_result.x))
        if self.progress:
            self.progress(1)
        if self.seen:
            self.seen(len(self.rows) - 1, self.parameters)
        if self.rows[-1]["excess"] <= self.tolerance:
            raise StopIteration
