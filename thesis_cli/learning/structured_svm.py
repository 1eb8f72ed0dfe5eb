"""Structured SVM, by stochastic subgradients (Hazan et al. section V) or by block-coordinate Frank-Wolfe
(Lacoste-Julien, Jaggi, Schmidt and Pletscher, 2013), which has a Hamming loss and bounds how far the
weights are from the best ones.

The objective of subgradients is that of `perturb_max` without noise: the mean over pairs of max_y {score(y) +
loss(y)} - score(clean), plus the squared norm. The source has no label loss. Weights of 0 then
reach the least value, 0, so that the objective cannot tell what denoises; where the steps end is
what counts, as for a perceptron with decay (docs/errata.md).

The primal of Frank-Wolfe is lambda |w|^2 + mean_k max_y {loss_k(y) - w . psi_k(y)}, psi_k(y) = features of the
clean image - features of y, lambda the regularisation. The dual has a distribution over y for each
pair; with u = mean_k E[psi_k] / (2 lambda) it is mean_k E[loss_k] - lambda |w|^2 at w = u, or, where
couplings must be attractive, w = u with its negative couplings set to 0: the norm of the projection
on a cone is smooth, with the projection as gradient. A step moves one pair's distribution towards
its loss-augmented maximiser, by the length that maximises a quadratic below the dual.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.training_run import TrainingRun

TRACED = 50
"""Rows of the trace, each of which takes a MAP problem for each image."""


def hamming(images: Floats) -> Floats:
    """Label loss as log-potentials: 1 for the state that a pixel of a clean image has not, shape
    (..., 2).
    """
    return np.stack([images > 0, images < 0], axis=-1).astype(np.float64)


def subgradient(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Subgradient steps of size 10 / sqrt(T), T their number, each with some random images.

    The source counts 10,000 MAP calls for 10,000 iterations, which is one image a step. (It also
    counts 150 for 30 iterations with 5 perturbations of ten images, so it may have meant all.) Step
    sizes 10 / sqrt(t) at step t would multiply the weights by 1 - 20 / sqrt(t), below -1 up to t =
    100.
    """
    settings, layout = problem.settings, problem.layout
    total = settings.total
    rate = 10 / np.sqrt(max(1, total)) if settings.rate is None else settings.rate
    size = min(problem.count, settings.images_per_step or problem.count)
    every = max(1, total // TRACED)
    label_loss = settings.loss == "hamming"
    state = run.restored(vector=np.zeros(layout.size), t=0)
    vector, start = state["vector"], int(state["t"])
    if start == 0:
        run.row(0, objective(problem, vector, label_loss), step=rate)
    for t in range(start, total):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,)))
        images = rng.permutation(problem.count)[:size]
        weights = problem.weights(vector)
        noisy, clean = problem.noisy[images], problem.clean[images]
        loss = hamming(clean) if label_loss else None
        _, found = Decoder(weights).maximise(problem.own(weights, images), loss)
        run.map_calls += size
        gradient = layout.features(noisy, found) - layout.features(noisy, clean)
        gradient += 2 * settings.regularisation * vector
        vector = problem.moved(vector, gradient, rate)
        if (t + 1) % every == 0 or t + 1 == total:
            run.row(t + 1, objective(problem, vector, label_loss), step=rate)
        run.done(1, {"vector": vector, "t": np.asarray(t + 1)})
    return vector


def objective(problem: Problem, vector: Floats, label_loss: bool) -> float:
    """The objective, exact: a MAP call for each image."""
    weights, total = problem.weights(vector), 0.0
    decoder = Decoder(weights)
    for images in problem.blocks():
        loss = hamming(problem.clean[images]) if label_loss else None
        total += decoder.maximise(problem.own(weights, images), loss)[0].sum()
    return total / problem.count - problem.scores(vector) + problem.norm(vector)


TOLERANCE = 1e-3
"""Duality gap, as a share of the objective, at which the descent stops."""


def frank_wolfe(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Passes over the pairs, each in random order, until the gap is a thousandth of the objective.

    A pass takes two MAP calls a pair: one for its step, one for the gap. Raises ModelTooLarge if a
    vector of weights for each pair does not fit into memory.
    """
    size = 8 * problem.count * problem.layout.size
    if size > DEFAULT_MEMORY:
        raise ModelTooLarge(
            f"the pairs have {bytes_text(size)} of dual weights, more than {bytes_text(DEFAULT_MEMORY)}",
            "give fewer or smaller images, or another --method",
        )
    zeros = np.zeros((problem.count, problem.layout.size))
    state = run.restored(shares=zeros, losses=np.zeros(problem.count), t=0, stopped=0)
    dual = Dual(problem, state["shares"], state["losses"])
    stopped = bool(state["stopped"])
    if not run.rows:
        run.map_calls += problem.count
        run.row(0, dual.primal(), step=0.0, gap=dual.primal() - dual.value())
    for t in range(int(state["t"]), problem.settings.total):
        if stopped:
            break
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,)))
        steps = [dual.step(int(k)) for k in rng.permutation(problem.count)]
        primal, value = dual.primal(), dual.value()
        run.map_calls += 2 * problem.count
        run.row(t + 1, primal, step=float(np.mean(steps)), gap=primal - value)
        stopped = primal - value <= TOLERANCE * primal
        kept = {"shares": dual.shares, "losses": dual.losses, "t": np.asarray(t + 1), "stopped": np.asarray(stopped)}
        run.done(1, kept)
    return dual.weights


class Dual:
    """A point of the dual.

    Parameters
    ----------
    problem : the pairs and settings.
    shares : E[psi_k] / (2 lambda count) of each pair, shape (count, weights); changed in place.
    losses : E[loss_k] / count of each pair, shape (count,); changed in place.
    """

    def __init__(self, problem: Problem, shares: Floats, losses: Floats) -> None:
        self.shares, self.losses = shares, losses
        self._problem, self._strength = problem, 2 * problem.settings.regularisation

    @property
    def weights(self) -> Floats:
        """The weights that belong to the point."""
        return self._problem.feasible(self.shares.sum(axis=0))

    def value(self) -> float:
        """The dual objective: at most the primal one of any weights."""
        return float(self.losses.sum()) - self._problem.norm(self.weights)

    def primal(self) -> float:
        """The primal objective of the weights."""
        return objective(self._problem, self.weights, label_loss=True)

    def step(self, k: int) -> float:
        """Move the distribution of a pair; returns the share of the way to its maximiser."""
        problem, layout, one = self._problem, self._problem.layout, slice(k, k + 1)
        vector = self.weights
        weights = problem.weights(vector)
        noisy, clean = problem.noisy[one], problem.clean[one]
        _, found = Decoder(weights).maximise(problem.own(weights, one), hamming(clean))
        psi = layout.features(noisy, clean) - layout.features(noisy, found)
        move = psi / (self._strength * problem.count) - self.shares[k]
        loss = float((found != clean).sum()) / problem.count - self.losses[k]
        rise = loss - self._strength * float(vector @ move)
        square = self._strength * float(move @ move)
        length = min(1.0, max(0.0, rise / square)) if square > 0 else 0.0
        self.shares[k] += length * move
        self.losses[k] += length * loss
        return length
