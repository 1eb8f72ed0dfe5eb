"""Learning by expected perturbed maxima (Hazan et al. section V).

The objective is the mean over pairs of E[max_y {score(y) + sum_i gamma_i(y_i)}] - score(clean) plus
the squared norm, an upper bound on that of the conditional random field, since the expected maximum
is one on ln Z (eq. 35). Its gradient is that of the features of the maximisers.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.training_run import TrainingRun
from thesis_cli.perturbation.noise import gumbel

RATE = 1.0
"""First step size by default."""

ADAM_RATE = 0.05
"""First step size of Adam by default."""

BATCH = 8192
"""Pixels, about, of the images in a step of Adam."""

HALVINGS = 10
"""Times that a step is halved before the descent stops."""


class PerturbMaxObjective:
    """Estimates of the objective.

    Parameters
    ----------
    problem : the pairs and settings.
    seed : seed of the noise.

    Attributes
    ----------
    map_calls : MAP problems of one estimate.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        self._problem, self._seed = problem, seed
        self._perturbations = problem.settings.perturbations
        self.map_calls = problem.count * self._perturbations

    def estimate(self, vector: Floats, draw: int) -> tuple[float, Floats]:
        """Value and gradient under the noise of a draw: a number, so that two vectors can be compared
        under the same noise, of which both are exact.
        """
        problem, times = self._problem, self._perturbations
        layout = problem.layout
        weights = problem.weights(vector)
        decoder = Decoder(weights)
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(draw,)))
        total, features = 0.0, np.zeros(layout.size)
        for images in problem.blocks(times):
            own = problem.own(weights, images)
            noise = gumbel(rng, len(own), 2 * layout.pixels).reshape(*own.shape, 2)
            values, found = decoder.maximise(own, noise)
            total += values.sum()
            features += len(found) * layout.features(problem.noisy[images], found)
        count = problem.count * times
        gradient = features / count - problem.features + 2 * problem.settings.regularisation * vector
        return total / count - problem.scores(vector) + problem.norm(vector), gradient


def descend(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Gradient descent as the source has it.

    Each iteration draws its noise anew, so that the weights do not fit one draw. Its gradient and
    all steps that it tries share that noise, so that a step is refused because it is too long and
    not by chance. The step size is halved until the objective falls, up to 10 times, and the next
    iteration begins with it; the descent stops where no step helps.
    """
    settings, objective = problem.settings, PerturbMaxObjective(problem, seed)
    state = run.restored(
        vector=np.zeros(problem.layout.size), step=RATE if settings.rate is None else settings.rate, t=0, stopped=0
    )
    vector, step, start, stopped = state["vector"], float(state["step"]), int(state["t"]), bool(state["stopped"])
    for t in range(start, settings.total):
        if stopped:
            break
        value, gradient = objective.estimate(vector, t)
        run.map_calls += objective.map_calls
        if t == 0:
            run.row(0, value, step=step)
        for _ in range(HALVINGS + 1):
            tried = problem.moved(vector, gradient, step)
            found, _ = objective.estimate(tried, t)
            run.map_calls += objective.map_calls
            if found < value:
                vector, value = tried, found
                break
            step /= 2
        else:
            stopped = True
        run.row(t + 1, value, step=step)
        kept = {"vector": vector, "step": step, "t": t + 1, "stopped": stopped}
        run.done(1, {name: np.asarray(value) for name, value in kept.items()})
    return vector


def average(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Stochastic gradient descent with steps 1 / (2 regularisation t), averaged with weights t: the
    schedule for strongly convex objectives (Lacoste-Julien, Schmidt and Bach, 2012), which compares
    no noisy values.
    """
    settings, objective = problem.settings, PerturbMaxObjective(problem, seed)
    zeros = np.zeros(problem.layout.size)
    state = run.restored(vector=zeros, mean=zeros, t=0)
    vector, mean = state["vector"], state["mean"]
    for t in range(int(state["t"]), settings.total):
        value, gradient = objective.estimate(vector, t)
        run.map_calls += objective.map_calls
        step = 1 / (2 * settings.regularisation * (t + 1))
        run.row(t, value, step=step)
        vector = problem.moved(vector, gradient, step)
        mean = mean + 2 / (t + 2) * (vector - mean)
        run.done(1, {"vector": vector, "mean": mean, "t": np.asarray(t + 1)})
    return mean


def adam(problem: Problem, seed: int, run: TrainingRun) -> Floats:
    """Stochastic gradients of some images each, by Adam (Kingma and Ba, 2015), whose steps shrink to
    0; the weights are the mean of those after the second half of the steps.

    The objective may be of any evidence: a network is learnt by the derivatives of its scores.
    """
    settings, layout = problem.settings, problem.layout
    total, rate = settings.total, ADAM_RATE if settings.rate is None else settings.rate
    vector = layout.start(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(total,))))
    zeros = np.zeros(layout.size)
    state = run.restored(vector=vector, first=zeros, second=zeros, mean=zeros, t=0)
    vector, first, second, mean = (state[name] for name in ("vector", "first", "second", "mean"))
    size = min(problem.count, -(-BATCH // layout.pixels))
    for t in range(int(state["t"]), total):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(t,)))
        images = np.sort(rng.permutation(problem.count)[:size])
        value, gradient = _of_some(problem, vector, images, rng)
        run.map_calls += size * settings.perturbations
        run.row(t, value, step=rate * (1 - t / total))
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        direction = first / (1 - 0.9 ** (t + 1)) / (np.sqrt(second / (1 - 0.999 ** (t + 1))) + 1e-8)
        vector = problem.moved(vector, direction, rate * (1 - t / total))
        if (half := t + 1 - total // 2) > 0:
            mean = mean + (vector - mean) / half
        run.done(1, {"vector": vector, "first": first, "second": second, "mean": mean, "t": np.asarray(t + 1)})
    return mean


def _of_some(problem: Problem, vector: Floats, images: Ints, rng: np.random.Generator) -> tuple[float, Floats]:
    """The objective of some images and its gradient, under noise that is drawn now."""
    times, layout = problem.settings.perturbations, problem.layout
    weights, clean = problem.weights(vector), problem.clean[images]
    own = problem.own(weights, images)
    noise = gumbel(rng, len(own) * times, 2 * layout.pixels).reshape(-1, *own.shape[1:], 2)
    values, found = Decoder(weights).maximise(np.repeat(own, times, axis=0), noise)
    right, down = (
        (found[a] * found[b]).sum(axis=0) / times - (clean[a] * clean[b]).sum(axis=0)
        for a, b in ((np.s_[:, :, :-1], np.s_[:, :, 1:]), (np.s_[:, :-1], np.s_[:, 1:]))
    )
    wrong = found.reshape(len(own), times, *own.shape[1:]).mean(axis=1) - clean
    gradient = layout.pull(vector, problem.noisy[images], wrong, right, down) / len(own)
    score = float((own * clean).sum() + weights.pairs(clean).sum())
    value = (values.sum() / times - score) / len(own) + problem.norm(vector)
    return float(value), gradient + 2 * problem.settings.regularisation * vector
