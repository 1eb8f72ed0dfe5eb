"""Draws from the Gibbs distribution, one variable at a time, by perturb-and-MAP (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.base.progress import Tick
from thesis_cli.inference.solver import MapSolver
from thesis_cli.perturbation.low_rank.clamping import Clamped
from thesis_cli.perturbation.low_rank.low_rank import BLOCK, check_found
from thesis_cli.perturbation.low_rank.low_rank_bounds import check_alphas, power_bounds
from thesis_cli.perturbation.noise import gumbel

ATTEMPTS = 1000
"""Most attempts for each draw, on average; `draw` then gives up."""


@dataclass(frozen=True)
class SequentialDraws:
    """The results of sequential sampling.

    Attributes
    ----------
    states : the accepted configurations, shape (count, n).
    attempts : number of attempts, including rejected ones.
    clipped : number of steps of these attempts at which the estimated probabilities summed to more
        than 1.
    """

    states: Ints
    attempts: int
    clipped: int

    @property
    def acceptance(self) -> float:
        """Share of accepted attempts, without clipping about Z / exp(U(alpha)) (Theorem 3)."""
        return len(self.states) / self.attempts


@dataclass(frozen=True)
class _Step:
    """The choice of one variable given those before it.

    Attributes
    ----------
    cumulative : cumulative probabilities of its states; the rest up to 1 is the probability of a
        rejection.
    clipped : whether the probabilities summed to more than 1 and were scaled to 1.
    """

    cumulative: Floats
    clipped: bool


class SequentialSampler:
    """Sampler by Thesis Algorithm 1, and for alpha = 0 by its original (Hazan et al. Algorithm 1).

    The bound U(alpha) of the model with its first variables held at x_1 .. x_j is estimated once,
    when it is first needed. It is the numerator at one step and the denominator at the next, and
    the last one is phi(x) itself. So an attempt returns x with probability exp(phi(x) - U(alpha)),
    exactly, whatever the errors of the estimates, as long as the probabilities of no step sum to
    more than 1. If they do, they are scaled to 1, which makes the configurations that follow less
    likely by that factor; `SequentialDraws.clipped` counts such steps.

    Two things keep the scaling mild, though not rare. All estimates use the same noise on the
    remaining variables, so the errors of numerator and denominator nearly cancel. And with one
    variable left the bound is the ln Z of the rest, without error. More samples reduce the scaling
    further (measured in the experiment `sequential-sampler`).

    Parameters
    ----------
    solver : solver prepared for the model; it should be exact, as the bounds may fail otherwise.
    alpha : exponent of the bound, above -1 / (2 sqrt(n)) for n variables with two states or more.
    samples_per_estimate : number M of MAP problems for each estimate.
    seed : root of the random streams; the draws depend only on it, not on how they are split over
        calls of `draw`.

    Attributes
    ----------
    log_bound : estimate of U(alpha) of the model, in nats.
    map_calls : number of MAP problems solved so far.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    InputError : alpha is out of range, or there is no sample.
    """

    def __init__(
        self, solver: MapSolver, alpha: float, samples_per_estimate: int, seed: np.random.SeedSequence
    ) -> None:
        if samples_per_estimate < 1:
            raise InputError(
                f"the number of samples for each estimate is {samples_per_estimate}", "it must be 1 or more"
            )
        self._solver, self._alphas, self._samples = solver, np.array([alpha]), samples_per_estimate
        self._variables = [i for i, k in enumerate(solver.graph.cardinalities) if k > 1]
        check_alphas(self._alphas, len(self._variables), unsafe=False)
        draws, self._noise = seed.spawn(2)
        self._rng = np.random.default_rng(draws)
        self._bounds: dict[tuple[int, ...], float] = {}
        self._steps: dict[tuple[int, ...], _Step] = {}
        self.map_calls = 0
        self.log_bound = self._bound(())
        if self.log_bound == -np.inf:
            raise NoConfiguration()

    def draw(self, count: int, progress: Tick | None = None) -> SequentialDraws:
        """Draw configurations, independent given the estimates.

        Parameters
        ----------
        progress : called with 1 at each accepted draw.

        Raises
        ------
        WorkFailed : `count` times 1000 attempts were not enough.
        """
        if count < 1:
            raise InputError(f"the number of draws is {count}", "it must be 1 or more")
        states = np.zeros((count, len(self._solver.graph.cardinalities)), np.int64)
        accepted = attempts = clipped = 0
        while accepted < count:
            if attempts == ATTEMPTS * count:
                raise WorkFailed(
                    f"sequential sampling accepted {accepted} of {attempts} attempts ({accepted / attempts:.2g}); "
                    "the bound is too loose for this model"
                )
            attempts += 1
            prefix: tuple[int, ...] = ()
            while len(prefix) < len(self._variables):
                step = self._step(prefix)
                clipped += step.clipped
                chosen = int(np.searchsorted(step.cumulative, self._rng.random(), side="right"))
                if chosen == step.cumulative.size:
                    break
                prefix = (*prefix, chosen)
            else:
                states[accepted, self._variables] = prefix
                accepted += 1
                if progress:
                    progress(1)
        return SequentialDraws(states, attempts, clipped)

    def _step(self, prefix: tuple[int, ...]) -> _Step:
        """Probabilities exp(U_{j+1} - U_j) of the next variable's states, shifted for its noise."""
        if prefix not in self._steps:
            states = range(self._solver.graph.cardinalities[self._variables[len(prefix)]])
            logs = np.array([self._bound((*prefix, x)) for x in states])
            cumulative = np.cumsum(np.exp(logs - self._bound(prefix)))
            excess = float(cumulative[-1])
            # the last step sums to 1 but for rounding
            self._steps[prefix] = _Step(cumulative / max(1.0, excess), excess > 1 + 1e-9)
        return self._steps[prefix]

    def _bound(self, prefix: tuple[int, ...]) -> float:
        """Estimate of U(alpha) with the first variables held; `-inf` if that is impossible."""
        if prefix not in self._bounds:
            self._bounds[prefix] = self._estimate(prefix)
        return self._bounds[prefix]

    def _estimate(self, prefix: tuple[int, ...]) -> float:
        graph, left = self._solver.graph, self._variables[len(prefix) :]
        if len(left) <= 1:
            every = np.zeros((graph.cardinalities[left[0]] if left else 1, len(graph.cardinalities)), np.int64)
            every[:, self._variables[: len(prefix)]] = prefix
            every[:, left] = np.arange(every.shape[0])[:, np.newaxis]
            return float(np.logaddexp.reduce(graph.log_potential(every)))
        clamped = Clamped(self._solver, dict(zip(self._variables, prefix, strict=False)))
        self.map_calls += self._samples
        values = np.concatenate([clamped.maximise(noise)[0] for noise in self._noise_on(left)])
        try:
            check_found(values, self._solver)
        except NoConfiguration:
            return -np.inf
        return float(power_bounds(values, len(left), self._alphas)[0][0])

    def _noise_on(self, variables: list[int]) -> Iterator[Floats]:
        """Blocks of unary noise on some variables; a variable has the same noise at each call."""
        cardinalities = self._solver.graph.cardinalities
        used = np.repeat([i in set(variables) for i in range(len(cardinalities))], cardinalities)
        rng = np.random.default_rng(self._noise)
        for start in range(0, self._samples, BLOCK):
            yield gumbel(rng, min(BLOCK, self._samples - start), used.size) * used
