"""Max-product belief propagation as the author of Figure 2.4 ran it, update by update.

The author's program called libDAI, which is deterministic: it shuffles the messages before each
sweep with a Mersenne twister that always starts from the seed 42, and that goes on from one MAP
problem to the next. With its rules below, and a damping of 0.1, the 100,000 values that the author
published for each of two models come out to all printed digits.

* The factor graph has a factor for the field of each variable, one for the noise of each variable,
  and one for each coupling. A message goes from a factor to a variable; a sweep computes each once.
* All messages begin uniform. Those from fields and noise are damped, too, so that these enter over
  the first sweeps: it decides which of several fixed points is reached.
* A sweep is the last if it changed no probability of a belief by more than 1e-9. The beliefs of
  variables are products of undamped messages, those of factors contain damped ones.
* The maximiser is read off depth first, from the belief of the first field on: a variable takes the
  state that is best in the belief of the coupling that leads to it, given the other variable.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.inference.message_passing.belief_propagation import perturbed_values
from thesis_cli.inference.message_passing.message_arrays import UpdateSchedule
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.studies.perturbation.published_kernels import STATE, Wiring

SEED = 42
"""Seed of libDAI's generator."""
SCHEDULE = UpdateSchedule(damping=0.1, tolerance=1e-9, max_sweeps=10_000)
"""Damping and tolerance of the published values; here the tolerance is one of probabilities."""


def wiring(model: SpinGlass) -> Wiring:
    """The messages of a model."""
    rows, columns = model.fields.shape
    source: list[int] = []
    target: list[int] = []
    reverse: list[int] = []
    strength: list[float] = []

    def alone(v: int, value: float) -> None:
        source.append(-1)
        target.append(v)
        reverse.append(len(reverse))
        strength.append(2 * value)

    def couple(low: int, high: int, value: float) -> None:
        at = len(source)
        source.extend([high, low])
        target.extend([low, high])
        reverse.extend([at + 1, at])
        strength.extend([2 * value, 2 * value])

    for i in range(rows):
        for j in range(columns):
            v = i * columns + j
            alone(v, model.fields[i, j])
            if i:
                couple(v - columns, v, model.down[i - 1, j])
            if j:
                couple(v - 1, v, model.right[i, j - 1])
    for v in range(rows * columns):
        alone(v, 0.0)
    into = np.argsort(target, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(target))])
    return Wiring(
        np.array(source), np.array(target), np.array(reverse), np.array(strength), first.astype(np.int64), into
    )


class PublishedMaxProduct:
    """The author's solver. Its random numbers go on from call to call, so that rows that follow
    each other in the published stream of noise must be given in that order.

    Parameters
    ----------
    seed : seed of the orders of updates; `SEED` gives the published ones.
    schedule : damping, tolerance and the largest number of sweeps.

    Attributes
    ----------
    sweeps : number of sweeps of each row of the last call, shape (batch,).
    """

    def __init__(self, model: SpinGlass, seed: int = SEED, schedule: UpdateSchedule = SCHEDULE) -> None:
        self.graph = model.graph()
        self.sweeps: Ints = np.empty(0, np.int64)
        self._wiring = wiring(model)
        self._schedule = schedule
        words: Words = np.zeros(STATE, np.uint64)
        words[:624] = np.random.RandomState(seed).get_state(legacy=False)["state"]["key"]
        words[624] = 624
        self._generator = words

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """Values and configurations for each row of noise, as `MapSolver.maximise`."""
        from thesis_cli.studies.perturbation.published_kernels import max_product

        noise = np.ascontiguousarray(noise, np.float64)
        states = np.empty((len(noise), noise.shape[1] // 2), np.int64)
        self.sweeps = np.empty(len(noise), np.int64)
        max_product(self._wiring, noise, self._generator, self._schedule, states, self.sweeps)
        return perturbed_values(self.graph, noise, states), states


def prepare() -> None:
    """Call the kernel, so that it is compiled."""
    PublishedMaxProduct(SpinGlass(np.zeros((2, 2)), np.ones((2, 1)), np.ones((1, 2)))).maximise(np.zeros((1, 8)))
