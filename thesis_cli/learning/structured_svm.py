"""Structured SVM by stochastic subgradients (Hazan et al. section V).

The objective is that of `perturb_max` without noise: the mean over pairs of max_y {score(y) +
loss(y)} - score(clean), plus the squared norm. The source has no label loss. Weights of 0 then
reach the least value, 0, so that the objective cannot tell what denoises; where the steps end is
what counts, as for a perceptron with decay (docs/errata.md).
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.learning.course import Course
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.problem import Problem

TRACED = 50
"""Rows of the trace, each of which takes a MAP problem for each image."""


def hamming(images: Floats) -> Floats:
    """Label loss as log-potentials: 1 for the state that a pixel of a clean image has not, shape
    (..., 2).
    """
    return np.stack([images > 0, images < 0], axis=-1).astype(np.float64)


def descend(problem: Problem, seed: int, course: Course) -> Floats:
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
    state = course.restored(vector=np.zeros(layout.size), t=0)
    vector, start = state["vector"], int(state["t"])
    if start == 0:
        course.row(0, objective(problem, vector, label_loss), step=rate)
    for t in range(start, total):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,)))
        images = rng.permutation(problem.count)[:size]
        weights = problem.weights(vector)
        noisy, clean = problem.noisy[images], problem.clean[images]
        loss = hamming(clean) if label_loss else None
        _, found = Decoder(weights).maximise(problem.own(weights, images), loss)
        course.map_calls += size
        gradient = layout.features(noisy, found) - layout.features(noisy, clean)
        gradient += 2 * settings.regularisation * vector
        vector = problem.moved(vector, gradient, rate)
        if (t + 1) % every == 0 or t + 1 == total:
            course.row(t + 1, objective(problem, vector, label_loss), step=rate)
        course.done(1, {"vector": vector, "t": np.asarray(t + 1)})
    return vector


def objective(problem: Problem, vector: Floats, label_loss: bool) -> float:
    """The objective, exact: a MAP call for each image."""
    weights, total = problem.weights(vector), 0.0
    decoder = Decoder(weights)
    for images in problem.blocks():
        loss = hamming(problem.clean[images]) if label_loss else None
        total += decoder.maximise(problem.own(weights, images), loss)[0].sum()
    return total / problem.count - problem.scores(vector) + problem.norm(vector)
