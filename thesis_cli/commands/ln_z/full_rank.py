"""Full-rank perturb-and-MAP for several commands: the options of tricks, and their estimates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import given, option
from thesis_cli.commands.ln_z.estimates import LnZAnswer, LnZOptions, TrickRequest, in_unit
from thesis_cli.perturbation.tricks.trick_rows import TRICKS, TrickName, make_trick
from thesis_cli.perturbation.tricks.trick_rows import TrickChoice as TrickChoice

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.base.progress import Progress, Tick
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.tricks.tricks import GammaPosterior

SAMPLES = 100

PILOT_CALLS = 16
"""MAP calls that set t of the tail trick: ln Z to 0.25, which leaves it near its best."""


MOST_MAXIMUM = 1e100
"""Largest perturbed maximum whose sums and squares stay far from overflow."""


def trick_option(**about: Any) -> Any:
    """The estimator; its type is `TrickChoice | None`."""
    return option(
        None,
        "Estimator that averages the perturbed maxima; all compares the estimators on the same maxima.",
        default_text="gumbel",
        **about,
    )


def alpha_option(**about: Any) -> Any:
    """Exponent of a trick; its type is `float | None`."""
    return option(
        None,
        "Exponent of --trick weibull (above 0) or frechet (between -1 and 0).",
        default_text="0.5 or -0.2",
        **about,
    )


def threshold_option(**about: Any) -> Any:
    """Threshold of the tail trick; its type is `float | None`."""
    return option(
        None,
        f"Threshold t of --trick tail; by default it is found from {PILOT_CALLS} further MAP calls.",
        default_text="1.59 / Z",
        above=0,
        **about,
    )


def samples_option(**about: Any) -> Any:
    """Number of perturbed maxima; its type is `int | None`."""
    return option(
        None,
        "Number of MAP calls; 0 with --exact prints only the exact answer.",
        default_text=str(SAMPLES),
        least=0,
        most=10**8,
        **about,
    )


def debias_option(**about: Any) -> Any:
    """Whether to remove known bias; its type is `bool`."""
    return option(True, "Remove the bias where it is known exactly.", **about)


OF_SAMPLES = ("trick", "alpha", "threshold", "debias", "confidence")
"""Fields that mean nothing without samples."""


def check_tricks(request: TrickRequest) -> None:
    """Refuse options of tricks that do not go together (`InputError`)."""
    name = request.trick or "gumbel"
    if request.samples == 0:
        if not request.exact:
            raise InputError("--samples is 0", "add --exact, or ask for 1 sample or more")
        unheeded = [f"--{field}" for field in OF_SAMPLES if field in given(request)]
        if unheeded or request.quantity == "f":
            raise InputError(f"{(*unheeded, '--quantity f')[0]} does not go with --samples 0", "it needs samples")
    if request.quantity == "f" and not request.debias:
        raise InputError("--no-debias does not go with --quantity f", "its estimate has no bias")
    for field, value in (("alpha", request.alpha), ("threshold", request.threshold)):
        owners = [trick for trick, row in TRICKS.items() if row.parameter and row.parameter.name == field]
        if value is None or (name == "all" and len(owners) == 1):
            continue
        if name not in owners:
            raise InputError(f"--{field} does not go with --trick {name}", f"it is for {', '.join(owners)}")
        parameter = TRICKS[name].parameter
        assert parameter is not None
        if not parameter.allows(value):
            raise InputError(f"--{field} is {value:g}", f"it must be {parameter.range_text} for --trick {name}")


def samples_of(request: TrickRequest) -> int:
    """The number of samples of a request, or the default."""
    return SAMPLES if request.samples is None else request.samples


class PilotedMaxima(ABC):
    """Perturbed maxima of one target: those that are averaged, and an independent pilot.

    Attributes
    ----------
    piloted : whether the pilot has been asked for since this was last set to False.
    """

    piloted = False

    def __init__(self, seed: int) -> None:
        import numpy as np

        self._seed, self._pilot_seed = np.random.SeedSequence(seed).spawn(2)

    @abstractmethod
    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        """Perturbed maxima, each distributed as Gumbel(ln Z - c), shape (count,)."""

    def values(self, count: int, tick: Tick) -> Floats:
        """The maxima that are averaged, shape (count,)."""
        return self.draw(count, self._seed, tick)

    def log_scale(self) -> float:
        """ln of a number of the size of Z or less, independent of the values."""
        return self.log_z()

    def log_z(self) -> float:
        """The pilot's estimate of ln Z."""
        self.piloted = True
        return self._pilot_log_z

    @cached_property
    def _pilot_log_z(self) -> float:
        return float(self.draw(PILOT_CALLS, self._pilot_seed, None).mean())


class ModelMaxima(PilotedMaxima):
    """Perturbed maxima of a model whose configurations are enumerated."""

    def __init__(self, model: Model, seed: int, jobs: int, max_configurations: int | None) -> None:
        super().__init__(seed)
        self._model, self._jobs, self._most = model, jobs, max_configurations
        self._highest = math.nan

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima

        limit = {} if self._most is None else {"max_configurations": self._most}
        found = perturbed_maxima(self._model, count, seed, jobs=self._jobs, progress=tick, **limit)
        self._highest = found.highest
        return found.values

    def log_scale(self) -> float:
        """max phi <= ln Z, which every draw finds."""
        return self._highest


def full_rank(model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """Estimates by noise on every configuration, and the posterior of Z.

    Raises
    ------
    ModelTooLarge : there are more configurations than the options allow.
    NoConfiguration : no configuration is possible.
    """
    assert options.tricks is not None
    maxima = ModelMaxima(model, options.seed, options.jobs, options.max_configurations)
    with progress(model.size * options.samples, "clocks") as tick:
        estimates, posterior = full_rank_estimates(options.tricks, maxima, tick)
    return LnZAnswer(estimates, posterior=posterior)


def full_rank_estimates(
    request: TrickRequest, maxima: PilotedMaxima, tick: Tick
) -> tuple[tuple[Estimate, ...], GammaPosterior]:
    """Estimates by the requested tricks, all from the same maxima, and the posterior of Z."""
    import numpy as np

    from thesis_cli.perturbation.tricks.tricks import GammaPosterior, estimate

    samples = samples_of(request)
    values = maxima.values(samples, tick)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if largest > MOST_MAXIMUM:
        raise InputError(f"a maximum is {largest:g} in size", f"averages take at most {MOST_MAXIMUM:g}")
    target = "lnZ" if request.quantity == "log10Z" else request.quantity
    estimates = []
    for name in TRICKS if request.trick == "all" else (request.trick or "gumbel",):
        maxima.piloted = False
        trick = make_trick(name, _parameter(name, request), maxima)
        found = estimate(trick, values, target=target, debias=request.debias, confidence=request.confidence)
        found = replace(found, map_calls=samples + PILOT_CALLS * maxima.piloted)
        estimates.append(in_unit(found, request.quantity))
    return tuple(estimates), GammaPosterior.from_log_times(-np.euler_gamma - values)


def _parameter(name: TrickName, request: TrickRequest) -> float | None:
    """The value that the request gives to a trick's parameter."""
    parameter = TRICKS[name].parameter
    return None if parameter is None else {"alpha": request.alpha, "threshold": request.threshold}[parameter.name]
