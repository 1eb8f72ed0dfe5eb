"""Training: gradients, bounds, resuming."""

import dataclasses

import numpy as np
import pytest

from tests.learning.models import all_images, pairs, scores
from thesis_cli.base.errors import InputError
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.perturb_max import ADAM_RATE, PerturbMaxObjective, adam, average, descend
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.structured_svm import objective
from thesis_cli.learning.train import train
from thesis_cli.learning.training_run import TrainingRun


def vectors(problem, seed=0):
    return problem.feasible(np.random.default_rng(seed).normal(0.2, 0.5, problem.layout.size))


def differences(function, vector, step=1e-6):
    """Gradient by central differences."""
    moves = step * np.eye(len(vector))
    return np.array([(function(vector + move) - function(vector - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("bias", [False, True])
def test_gradient_of_perturbed_maxima(bias):
    problem = Problem(*pairs(), Settings(bias=bias, perturbations=3))
    maxima, vector = PerturbMaxObjective(problem, 1), vectors(problem) + 0.01
    value, found = maxima.estimate(vector, 4)
    assert value == maxima.estimate(vector, 4)[0] != maxima.estimate(vector, 5)[0]
    assert found == pytest.approx(differences(lambda v: maxima.estimate(v, 4)[0], vector), abs=1e-6)


def test_the_objective_bounds_that_of_the_random_field():
    problem = Problem(*pairs(2), Settings(perturbations=1000))
    vector = np.where(np.arange(problem.layout.size) < problem.layout.unary, 0.1, 1.0)
    weights, images = problem.weights(vector), all_images(3, 3)
    log_z = [np.logaddexp.reduce(scores(weights, noisy, images)) for noisy in problem.noisy]
    exact = np.mean(log_z) - problem.scores(vector) + problem.norm(vector)
    found = [PerturbMaxObjective(problem, seed).estimate(vector, 0)[0] for seed in range(8)]
    assert np.mean(found) - exact > 5 * np.std(found, ddof=1) / np.sqrt(8)


METHODS = [
    Settings(iterations=6),
    Settings(iterations=6, schedule="decaying", bias=True),
    Settings(iterations=6, schedule="adam", weights="shared", patch=3, hidden=2),
    Settings("structured-svm", iterations=30),
    Settings("structured-svm", iterations=30, loss="hamming", images_per_step=None),
    Settings("svm-frank-wolfe", iterations=6, regularisation=0.1),
    Settings("crf", iterations=6),
    Settings("pseudo-likelihood", iterations=6, couplings="any", bias=True),
]


class Stopped(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("settings", METHODS, ids=lambda s: f"{s.method}-{s.loss}-{s.schedule}")
def test_a_training_that_was_cut_short_ends_in_the_same_weights(tmp_path, settings):
    noisy, clean = pairs(4, 4, 3)
    whole = train(noisy, clean, settings, 3)
    if settings.schedule != "adam":  # which estimates the objective by other noise in each step
        assert (whole.trace.objective.to_numpy() > -1e-9).all()
    left = [0]

    def stop(done):
        left[0] -= done
        if left[0] <= 0:
            raise Stopped

    file = tmp_path / "checkpoint"
    for steps in (1, 2):
        left[0] = steps
        with pytest.raises(Stopped):
            train(noisy, clean, settings, 3, stop, file, every=0)
    again = train(noisy, clean, settings, 3, None, file, every=0)
    assert again.weights.to_bytes() == whole.weights.to_bytes()
    same = [name for name in whole.trace if name != "seconds"]
    assert again.trace[same].equals(whole.trace[same])
    assert again.map_calls == whole.map_calls
    with pytest.raises(InputError, match="of other settings or images"):
        train(noisy, clean, dataclasses.replace(settings, regularisation=0.5), 3, None, file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="not a whole checkpoint"):
        train(noisy, clean, settings, 3, None, file)


@pytest.mark.parametrize("method", ["perturb-max", "crf", "pseudo-likelihood"])
def test_couplings_stay_at_0_or_above_unless_told_otherwise(method):
    rng = np.random.default_rng(0)
    clean = np.indices((4, 4)).sum(axis=0)[None] % 2 == rng.integers(0, 2, (6, 1, 1))  # neighbours differ
    kept = train(clean, clean, Settings(method, iterations=5), 0).weights
    assert (kept.right == 0).all()
    assert (kept.down == 0).all()
    free = train(clean, clean, Settings(method, iterations=5, couplings="any"), 0).weights
    assert (free.right < 0).all()


def test_weights_of_0_are_the_best_of_the_source_s_svm():
    """Without a label loss the objective is never below 0, its value there."""
    problem = Problem(*pairs(), Settings("structured-svm"))
    assert objective(problem, np.zeros(problem.layout.size), label_loss=False) == 0
    assert all(objective(problem, vectors(problem, seed), label_loss=False) > 0 for seed in range(5))


def test_images_that_do_not_fit_are_refused():
    noisy, clean = pairs()
    with pytest.raises(InputError, match="give as many of the same size"):
        train(noisy, clean[:, :2], Settings(), 0)
    with pytest.raises(InputError, match="have shape"):
        train(noisy[:0], clean[:0], Settings(), 0)
    with pytest.raises(InputError, match="regularisation"):
        train(noisy, clean, Settings(regularisation=0.0), 0)


@pytest.mark.parametrize("schedule", ["halving", "decaying"])
def test_map_calls_are_the_images_that_were_solved(monkeypatch, schedule):
    solved, maximise = [], Decoder.maximise

    def counted(self, own, *noise):
        solved.append(len(own))
        return maximise(self, own, *noise)

    monkeypatch.setattr(Decoder, "maximise", counted)
    found = train(*pairs(4), Settings(iterations=3, schedule=schedule, perturbations=2), 0)
    assert found.map_calls == sum(solved)


class Kept(TrainingRun):
    """Keeps the state after each iteration."""

    def done(self, iterations, state):
        self.states = [*getattr(self, "states", []), state]


def test_steps_that_shrink_are_averaged_with_weights_that_grow():
    """The mean of the weights after steps 1, 2, ... is theirs with the shares 1, 2, ...; a step t has
    the length 1 / (2 regularisation t).
    """
    settings, course = Settings(iterations=5, schedule="decaying", couplings="any"), Kept({})
    problem = Problem(*pairs(), settings)
    mean = average(problem, 3, course)
    found = [state["vector"] for state in course.states]
    assert mean == pytest.approx(np.average(found, axis=0, weights=[1, 2, 3, 4, 5]))
    before = [np.zeros_like(mean), *found[:-1]]
    for t, (old, new) in enumerate(zip(before, found, strict=True)):
        gradient = PerturbMaxObjective(problem, 3).estimate(old, t)[1]
        assert new == pytest.approx(old - gradient / (2 * settings.regularisation * (t + 1)))


def test_a_step_is_halved_until_the_objective_falls():
    course = Kept({})
    problem = Problem(*pairs(), Settings(iterations=5))
    vector, step = descend(problem, 3, course) * 0, 1.0
    for t, state in enumerate(course.states):
        value, gradient = PerturbMaxObjective(problem, 3).estimate(vector, t)
        while PerturbMaxObjective(problem, 3).estimate(problem.moved(vector, gradient, step), t)[0] >= value:
            step /= 2
        vector = problem.moved(vector, gradient, step)
        assert (state["step"], state["vector"].tolist()) == (step, vector.tolist())
    assert step < 1


def test_adam_ends_in_the_mean_of_the_second_half_of_its_steps():
    """The first has the length of the rate in each weight; the last are short."""
    settings = Settings(iterations=6, schedule="adam", weights="shared", patch=3, hidden=2, couplings="any")
    course, problem = Kept({}), Problem(*pairs(), settings)
    mean = adam(problem, 3, course)
    found = [state["vector"] for state in course.states]
    assert mean == pytest.approx(np.mean(found[3:], axis=0))
    start = problem.layout.start(np.random.default_rng(np.random.SeedSequence(3, spawn_key=(6,))))
    first = np.abs(found[0] - start)
    assert first[first > 1e-6] == pytest.approx(ADAM_RATE, rel=1e-4)
    assert (first > 1e-6).sum() > problem.layout.size / 2
    last = np.abs(found[5] - found[4])
    assert 0 < last.max() < 3 * ADAM_RATE / 6
