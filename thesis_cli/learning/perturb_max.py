"""Learning by expected perturbed maxima (Hazan et al. section V).

The objective is the mean over pairs of E[max_y {score(y) + sum_i gamma_i(y_i)}] - score(clean) plus
the squared norm, an upper bound on that of the conditional random field, since the expected maximum
is one on ln Z (eq. 35). Its gradient is that of the features of the maximisers.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.training_run import TrainingRun
from thesis_cli.perturbation.noise import gumbel

RATE = 1.0
"""First step size by default."""

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
