"""`thesis-cli race`: estimate ln Z of few states with many factors, from subsamples of the factors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from thesis_cli.base.errors import InputError, about, counted
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, Tick
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    bytes_of,
    confidence_option,
    jobs_option,
    label,
    seed_option,
    seed_or_fresh,
)
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import presentation
from thesis_cli.commands.ln_z.estimates import (
    EstimatesResult,
    ExactAnswer,
    PilotedMaxima,
    QuantityName,
    alpha_option,
    check_tricks,
    debias_option,
    estimates_columns,
    full_rank_estimates,
    quantity_option,
    samples_of,
    samples_option,
    threshold_option,
    trick_option,
)
from thesis_cli.perturbation.tricks.trick_rows import TrickChoice

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.factor_matrix import FactorMatrix
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.racing.racing import RacingMaxima

    FactorSource = str | Path | Floats
    """A path, or a matrix of log-factors of shape (states, factors)."""
else:
    FactorSource = str

logger = logging.getLogger("thesis_cli")

SURE = 2.9e-7
"""Probability beyond 5 standard deviations of a normal, on one side."""


@dataclass(frozen=True, kw_only=True)
class RaceRequest(Request):
    """Estimate ln Z of few states with many factors, from subsamples of the factors."""

    usual = ("delta", "bound", "samples", "quantity", "exact", "seed")

    factors: FactorSource = argument(
        "Matrix of log-factors: an NPY file with a row for each state and a column for each factor.",
        names="file",
        objects=True,
    )
    delta: float = option(0.01, "Largest probability with which a race may end with a wrong state.", above=0, below=1)
    bound: Literal["normal", "bernstein-serfling"] = option(
        "normal", "Confidence bound that rules states out; bernstein-serfling holds for any factors."
    )
    trick: TrickChoice | None = trick_option()
    alpha: float | None = alpha_option()
    threshold: float | None = threshold_option()
    samples: int | None = samples_option()
    quantity: QuantityName = quantity_option()
    debias: bool = debias_option()
    confidence: float = confidence_option()
    exact: bool = option(False, "Add the exact answer, by summing all factors.")
    memory: float = option(
        2.0,
        "Memory in GiB for a copy of the matrix; a larger one is read from its file as needed.",
        least=0.001,
    )
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options of tricks that do not go together."""
        check_tricks(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class RaceResult(EstimatesResult):
    """Estimates from races, and how the races ended.

    Attributes
    ----------
    maxima : winners of the races with their values and costs; None with --samples 0.
    """

    maxima: RacingMaxima | None

    title: ClassVar[str] = "factors"

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates, the share of the factors that was evaluated, and the number of wrong races."""
        races = self.maxima
        more = {} if races is None else {"share_of_evaluations": races.share, "wrong_races": races.errors}
        return {**super().facts(), **more}

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """Cost of the races, and how many ended with a wrong state."""
        if self.maxima is None:
            return []
        races, wrong = counted(self.maxima.values.size, "race"), self.maxima.errors
        spent = f"{100 * self.maxima.share:.3g}% of the factor evaluations spent"
        not_counted = " (intervals ignore them)" * (wrong > 0)
        return [("racing", f"{spent}; {wrong:,} of {races} wrong, at --delta {self.settings['delta']:g}{not_counted}")]


def run(request: RaceRequest, progress: Progress) -> RaceResult:
    """Race the states, and sum all factors if that was asked for."""
    seed, source = seed_or_fresh(request.seed), label(request.factors)
    estimates: list[Estimate] = []
    posterior = None
    samples = samples_of(request)
    with about(source):
        matrix = _matrix(request.factors)
        maxima = RaceMaxima(matrix, request, seed)
        if request.exact:
            estimates.append(_exact(matrix, request.quantity))
        if samples:
            with progress(samples, "races") as tick:
                found, posterior = full_rank_estimates(request, maxima, tick)
            estimates += found
    return RaceResult(
        columns=estimates_columns(source, seed, estimates),
        request=request,
        settings=settings_of(request, seed=seed, samples=samples),
        estimates=tuple(estimates),
        posterior=posterior,
        source=source,
        description=f"{counted(matrix.states, 'state')}, {counted(matrix.factors, 'factor')}",
        maxima=maxima.found,
    )


class RaceMaxima(PilotedMaxima):
    """Perturbed maxima by races of the states.

    Attributes
    ----------
    found : the maxima that are averaged; None before they are drawn.
    """

    found: RacingMaxima | None = None

    def __init__(self, matrix: FactorMatrix, request: RaceRequest, seed: int) -> None:
        super().__init__(seed)
        self._matrix, self._request = matrix, request

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.racing.racing import RaceRules, race

        request = self._request
        found = race(
            self._matrix,
            count,
            request.delta,
            seed,
            RaceRules(bound=request.bound),
            jobs=jobs_or_all(request.jobs),
            memory=bytes_of(request.memory),
            progress=tick,
        )
        if tick is not None:
            self.found = found
            if more_wrong_than_delta(found.errors, count, request.delta):
                logger.warning(
                    "%s of %s races are wrong, more than --delta %g allows: ln Z is too low by %.3g on average, and "
                    "the intervals ignore it; use --bound bernstein-serfling or a smaller --delta",
                    f"{found.errors:,}",
                    f"{count:,}",
                    request.delta,
                    found.losses.mean(),
                )
        return found.values


def more_wrong_than_delta(wrong: int, races: int, delta: float) -> bool:
    """Whether more races are wrong than delta explains, by 5 standard deviations."""
    from scipy.special import bdtrc

    return wrong > 0 and float(bdtrc(wrong - 1, races, delta)) < SURE


def _matrix(source: FactorSource) -> FactorMatrix:
    """A matrix of log-factors, refused where adding 1 to a sum is lost (`InputError`)."""
    import numpy as np

    from thesis_cli.models.factor_matrix import factor_matrix, load_factor_matrix
    from thesis_cli.models.target_objects import LARGEST

    matrix = load_factor_matrix(source) if isinstance(source, str | Path) else factor_matrix(np.asarray(source))
    for what, sizes in (("sum to", np.abs(matrix.totals)), ("range over", matrix.widths)):
        if sizes.max() >= LARGEST:
            problem = f"the log-factors of state {sizes.argmax()} {what} {sizes.max():.3g} in absolute value"
            raise InputError(problem, f"it must be less than {LARGEST:g}, where adding 1 still counts")
    return matrix


def _exact(matrix: FactorMatrix, quantity: QuantityName) -> Estimate:
    from scipy.special import logsumexp

    from thesis_cli.base.rounding import log_of_sum

    return ExactAnswer(log_of_sum(float(logsumexp(matrix.totals))), "all factors").estimate(quantity)


COMMAND = Command(
    RaceRequest,
    run,
    examples=(
        "race data/models/factors-5x2000.npy --delta 0.05 --samples 1000 --exact",
        "race data/models/factors-5x2000.npy --bound bernstein-serfling --trick exponential",
    ),
)
