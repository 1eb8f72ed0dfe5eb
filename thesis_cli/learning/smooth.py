"""Learning by smooth objectives, with L-BFGS: the conditional random field, and pseudo-likelihood.

`crf` takes ln Z itself where `perturb_max` takes its upper bound (Lafferty, McCallum and Pereira,
2001), which needs a narrow grid. `pseudo-likelihood` takes the probability of each pixel given its
neighbours in the clean image (Besag, 1975), which needs no inference at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.learning.course import Course
from thesis_cli.learning.grid_moments import moments, table_bytes
from thesis_cli.learning.problem import Problem

WIDEST = 12
"""Shorter side of the images up to which `crf` takes them."""

MEMORY = 2**28
"""Bytes of tables for images whose moments are computed together."""

Objective = Callable[[Floats], tuple[float, Floats]]


def random_field(problem: Problem, seed: int, course: Course) -> Floats:
    """Minimise the exact objective of the conditional random field.

    Raises
    ------
    ModelTooLarge : the images are wider than 12.
    """
    height, width = problem.layout.height, problem.layout.width
    if min(height, width) > WIDEST:
        raise ModelTooLarge(
            f"the exact gradient takes images up to {WIDEST} pixels wide, and these are {height} x {width}",
            "give --method perturb-max, which bounds it",
        )
    return _minimise(problem, course, lambda vector: likelihood(problem, vector))


def likelihood(problem: Problem, vector: Floats) -> tuple[float, Floats]:
    """Negative conditional log-likelihood, averaged over the pairs, with the regulariser; and its
    gradient.
    """
    layout, weights = problem.layout, problem.weights(vector)
    short, long = sorted((layout.height, layout.width))
    size = max(1, MEMORY // table_bytes(long, short))
    own = problem.own(weights)
    log_z, gradient = 0.0, np.zeros(layout.size)
    for start in range(0, problem.count, size):
        found = moments(own[start : start + size], weights.right, weights.down)
        log_z += found.log_z
        field = (problem.noisy[start : start + size] * found.own).sum(axis=0)
        gradient += layout.gradient(field, found.own.sum(axis=0), found.right, found.down)
    gradient = gradient / problem.count - problem.features + 2 * problem.settings.regularisation * vector
    return log_z / problem.count - problem.scores(vector) + problem.norm(vector), gradient


def pseudo_likelihood(problem: Problem, seed: int, course: Course) -> Floats:
    """Minimise the negative log-pseudo-likelihood."""
    return _minimise(problem, course, lambda vector: conditionals(problem, vector))


def conditionals(problem: Problem, vector: Floats) -> tuple[float, Floats]:
    """-ln p(y_i | neighbours, x), summed over pixels and averaged over the pairs, with the
    regulariser; and its gradient.
    """
    weights, clean = problem.weights(vector), problem.clean
    own = problem.own(weights)
    own[:, :, 1:] += weights.right * clean[:, :, :-1]
    own[:, :, :-1] += weights.right * clean[:, :, 1:]
    own[:, 1:] += weights.down * clean[:, :-1]
    own[:, :-1] += weights.down * clean[:, 1:]
    costs = np.logaddexp(0, -2 * clean * own)
    slopes = -2 * clean * -np.expm1(-costs) / problem.count
    gradient = problem.layout.gradient(
        (problem.noisy * slopes).sum(axis=0),
        slopes.sum(axis=0),
        (slopes[:, :, 1:] * clean[:, :, :-1] + slopes[:, :, :-1] * clean[:, :, 1:]).sum(axis=0),
        (slopes[:, 1:] * clean[:, :-1] + slopes[:, :-1] * clean[:, 1:]).sum(axis=0),
    )
    value = costs.sum() / problem.count + problem.norm(vector)
    return float(value), gradient + 2 * problem.settings.regularisation * vector


def _minimise(problem: Problem, course: Course, objective: Objective) -> Floats:
    """L-BFGS-B (Byrd, Lu, Nocedal and Zhu, 1995), couplings at 0 or above if they are attractive.

    Its checkpoint is all values and gradients so far: run again on these, the algorithm comes to
    the same place.
    """
    from scipy import optimize

    layout, total = problem.layout, problem.settings.total
    kept = course.restored(values=np.zeros(0), gradients=np.zeros((0, layout.size)))
    values, gradients = list(kept["values"]), list(kept["gradients"])
    known = len(course.rows)
    asked = iteration = 0
    last = np.zeros(layout.size)

    def evaluate(vector: Floats) -> tuple[float, Floats]:
        nonlocal asked
        if asked == len(values):
            value, gradient = objective(vector)
            values.append(value)
            gradients.append(gradient)
        if asked == known == 0:
            course.row(0, float(values[0]), step=0.0)
        asked += 1
        return float(values[asked - 1]), np.array(gradients[asked - 1])

    def iterated(intermediate_result: Any) -> None:
        nonlocal iteration, last
        iteration += 1
        vector = np.array(intermediate_result.x)
        if iteration >= known:
            course.row(iteration, float(intermediate_result.fun), step=float(np.abs(vector - last).max()))
            course.done(1, {"values": np.array(values), "gradients": np.array(gradients)})
        last = vector

    if total == 0:
        return last
    low = np.full(layout.size, -np.inf)
    if problem.settings.couplings == "attractive":
        low[layout.unary :] = 0.0
    options = {"maxiter": total, "maxfun": 20 * total + 20}
    minimize: Any = optimize.minimize
    bounds = optimize.Bounds(low, np.inf)
    found = minimize(evaluate, last, jac=True, method="L-BFGS-B", bounds=bounds, callback=iterated, options=options)
    return np.asarray(found.x)
