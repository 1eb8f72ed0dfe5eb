"""Learning by smooth objectives, with L-BFGS: the conditional random field, and pseudo-likelihood.

`crf` takes ln Z itself where `perturb_max` takes its upper bound (Lafferty, McCallum and Pereira,
2001), which needs a narrow grid. `pseudo-likelihood` takes the probability of each pixel given its
neighbours in the clean image (Besag, 1975), which needs no inference at all.

`moments` computes ln Z of narrow grids and the means of y_i and y_i y_j, for many images at once. A
table over the states of a boundary, one pixel of each column, moves on by a pixel at a time, and the
derivatives of ln Z are carried back through the same steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.training_run import TrainingRun

WIDEST = 12
"""Shorter side of the images up to which `crf` takes them."""

MEMORY = 2**28
"""Bytes of tables for images whose moments are computed together."""

Objective = Callable[[Floats], tuple[float, Floats]]


def random_field(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Minimise the exact objective of the conditional random field. Raises ModelTooLarge if the
    images are wider than 12."""
    height, width = problem.layout.height, problem.layout.width
    if min(height, width) > WIDEST:
        raise ModelTooLarge(
            f"the exact gradient takes images up to {WIDEST} pixels wide, and these are {height} x {width}",
            "give --method perturb-max, which bounds it",
        )
    return _minimise(problem, run, lambda vector: likelihood(problem, vector))


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
        gradient += layout.pull(vector, problem.noisy[start : start + size], found.own, found.right, found.down)
    gradient = gradient / problem.count - problem.features + 2 * problem.settings.regularisation * vector
    return log_z / problem.count - problem.scores(vector) + problem.norm(vector), gradient


def pseudo_likelihood(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Minimise the negative log-pseudo-likelihood."""
    return _minimise(problem, run, lambda vector: conditionals(problem, vector))


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
    gradient = problem.layout.pull(
        vector,
        problem.noisy,
        slopes,
        (slopes[:, :, 1:] * clean[:, :, :-1] + slopes[:, :, :-1] * clean[:, :, 1:]).sum(axis=0),
        (slopes[:, 1:] * clean[:, :-1] + slopes[:, :-1] * clean[:, 1:]).sum(axis=0),
    )
    value = costs.sum() / problem.count + problem.norm(vector)
    return float(value), gradient + 2 * problem.settings.regularisation * vector


def _minimise(problem: Problem, run: TrainingRun, objective: Objective) -> Floats:
    """L-BFGS-B (Byrd, Lu, Nocedal and Zhu, 1995), couplings at 0 or above if they are attractive.

    Its checkpoint is all values and gradients so far: run again on these, the algorithm comes to
    the same place.
    """
    from scipy import optimize

    layout, total = problem.layout, problem.settings.total
    kept = run.restored(values=np.zeros(0), gradients=np.zeros((0, layout.size)))
    values, gradients = list(kept["values"]), list(kept["gradients"])
    known = len(run.rows)
    asked = iteration = 0
    last = np.zeros(layout.size)

    def evaluate(vector: Floats) -> tuple[float, Floats]:
        nonlocal asked
        if asked == len(values):
            value, gradient = objective(vector)
            values.append(value)
            gradients.append(gradient)
        if asked == known == 0:
            run.row(0, float(values[0]), step=0.0)
        asked += 1
        return float(values[asked - 1]), np.array(gradients[asked - 1])

    def iterated(intermediate_result: Any) -> None:
        nonlocal iteration, last
        iteration += 1
        vector = np.array(intermediate_result.x)
        if iteration >= known:
            run.row(iteration, float(intermediate_result.fun), step=float(np.abs(vector - last).max()))
            run.done(1, {"values": np.array(values), "gradients": np.array(gradients)})
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


_SPIN = np.array([-1.0, 1.0])

_LARGEST = 700.0
"""Nats whose exponential a float still holds."""


class Moments(NamedTuple):
    """Sums over a batch of models, and means under each, added up.

    Attributes
    ----------
    log_z : nats, summed over the batch.
    own : E[y_i] of each model, shape (batch, h, w).
    right, down : E[y_i y_j] summed over the batch, shapes (h, w - 1), (h - 1, w).
    """

    log_z: float
    own: Floats
    right: Floats
    down: Floats


def table_bytes(height: int, width: int) -> int:
    """Bytes of the tables of one model, all of which are kept."""
    return 8 * height * width << width


def moments(own: Floats, right: Floats, down: Floats) -> Moments:
    """Moments of sum_i own_i y_i + sum_ij coupling_ij y_i y_j, in time and memory h w 2^w a model.

    Parameters
    ----------
    own : factors of the pixels of each model, shape (batch, h, w).
    right, down : couplings, shapes (h, w - 1), (h - 1, w).
    """
    if own.shape[2] > own.shape[1]:
        found = moments(own.swapaxes(1, 2), down.T, right.T)
        return Moments(found.log_z, found.own.swapaxes(1, 2), found.down.T, found.right.T)
    batch, height, width = own.shape
    tables = [np.zeros((batch, 1))]
    for r in range(height):
        for c in range(width):
            couplings = right[r, c - 1] if c else None, down[r - 1, c] if r else None
            tables.append(_step(tables[-1], 2**c, own[:, r, c], *couplings))
    last = tables.pop()
    top = last.max(axis=1, keepdims=True)
    weights = np.exp(last - top)
    sums = weights.sum(axis=1, keepdims=True)
    weights /= sums
    means, rights, downs = np.empty_like(own), np.empty_like(right), np.empty_like(down)
    for r in reversed(range(height)):
        for c in reversed(range(width)):
            old = tables.pop()
            now = weights.reshape(batch, 2**c, 2, -1)
            means[:, r, c] = np.einsum("bhni,n->b", now, _SPIN)
            if c:
                rights[r, c - 1] = np.einsum("bhlni,l,n->", now.reshape(batch, -1, 2, *now.shape[2:]), _SPIN, _SPIN)
            if not r:
                weights = now.sum(axis=2).reshape(batch, -1)
                continue
            old = old.reshape(batch, 2**c, 2, 1, -1)
            odds = old[:, :, 1] - old[:, :, 0] + 2 * down[r - 1, c] * _SPIN[:, None]
            above = now / (1 + np.exp(np.minimum(-odds, _LARGEST)))  # where the pixel above is +1
            downs[r - 1, c] = np.einsum("bhni,n->", 2 * above - now, _SPIN)
            weights = np.stack([(now - above).sum(axis=2), above.sum(axis=2)], axis=2).reshape(batch, -1)
    return Moments(float((top + np.log(sums)).sum()), means, rights, downs)


def _step(table: Floats, before: int, own: Floats, right: float | None, down: float | None) -> Floats:
    """The table with the next pixel in place of the one above it; in the first row, as another one.

    Parameters
    ----------
    table : ln of the sums over the pixels that have left the boundary, by the states of those on
        it, shape (batch, 2^boundary); the first column is the slowest.
    before : joint states of the columns before that of the pixel.
    own : factor of the pixel, shape (batch,).
    right, down : couplings to the pixels on its left and above; None if there is none.
    """
    batch = len(table)
    term = own[:, None, None] * _SPIN  # by the state of the pixel on the left and its own
    if right is not None:
        term = term + right * np.multiply.outer(_SPIN, _SPIN)
    if down is None:
        summed = table.reshape(batch, before, 1, 1)
    else:
        above = table.reshape(batch, before, 2, 1, -1)
        coupled = down * _SPIN[:, None]
        summed = np.logaddexp(above[:, :, 0] - coupled, above[:, :, 1] + coupled)
    left = term.shape[1]
    found = summed.reshape(batch, before // left, left, *summed.shape[2:]) + term[:, None, :, :, None]
    return np.asarray(found.reshape(batch, -1))
