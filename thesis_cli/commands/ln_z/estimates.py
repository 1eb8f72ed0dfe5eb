"""Estimates of ln Z: what methods are given and return, the full-rank estimates of tricks and their options,
the unit of a number, and the result of commands.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, counted
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.commands.core.fields import given, option
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.inference.names import SolverName
from thesis_cli.perturbation.tricks.trick_rows import TRICKS, TrickName, make_trick, tricks_with

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.base.errors import WorkFailed
    from thesis_cli.base.progress import Progress, Tick
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.tricks.trick_rows import TrickChoice
    from thesis_cli.perturbation.tricks.tricks import GammaPosterior


QuantityName = Literal["lnZ", "log10Z", "Z", "f"]
"""Quantities that are estimated; f is the function f(Z) that a trick estimates without bias."""

IntervalName = Literal["normal", "concentration"]

LN10 = math.log(10)

TIME_LIMIT = 60.0
"""Seconds for methods that need a limit and are given none."""


class TrickRequest(Protocol):
    """Fields that requests for full-rank estimates share."""

    @property
    def trick(self) -> TrickChoice | None: ...
    @property
    def alpha(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def samples(self) -> int | None: ...
    @property
    def quantity(self) -> QuantityName: ...
    @property
    def debias(self) -> bool: ...
    @property
    def confidence(self) -> float: ...
    @property
    def exact(self) -> bool: ...


@dataclass(frozen=True)
class LnZOptions:
    """Settings that several methods of ln Z share; each method heeds some of them.

    Attributes
    ----------
    samples : number M of perturbations or hashes.
    seed : seed of all random numbers.
    jobs : threads.
    memory : bytes.
    confidence : confidence level of intervals.
    quantity : quantity of exact and full-rank answers; other methods answer with ln Z.
    max_configurations : largest number of configurations to enumerate; None leaves it to the method.
    seconds : time limit of exact algorithms and of WISH; None leaves it to the method.
    deadline : `time.monotonic()` at which methods of `bound` that heed it return the best so far.
    solver : MAP solver, as for `map_solver`.
    alphas : exponents of low-rank bounds, all from the same perturbations.
    interval, any_alpha : as for `upper_bound`.
    table_size : most entries of a table, for methods that choose it otherwise.
    tricks : request whose tricks average full-rank maxima.
    stream : number of the method's own random stream, which its row of the table sets.
    """

    samples: int
    seed: int
    jobs: int = 1
    memory: int = DEFAULT_MEMORY
    confidence: float = 0.95
    quantity: QuantityName = "lnZ"
    max_configurations: int | None = None
    seconds: float | None = None
    deadline: float | None = None
    solver: SolverName = "auto"
    alphas: Sequence[float] = (0.0,)
    interval: IntervalName = "normal"
    any_alpha: bool = False
    table_size: int | None = None
    tricks: TrickRequest | None = None
    stream: int = 0

    def noise(self) -> np.random.SeedSequence:
        """Root of the random stream of the method."""
        import numpy as np

        return np.random.SeedSequence(self.seed, spawn_key=(self.stream, 0))


@dataclass(frozen=True)
class LnZAnswer:
    """Estimates of ln Z by one method or by several.

    Attributes
    ----------
    estimates : estimates of ln Z, the best or the exact one first.
    map_calls : number of MAP problems solved.
    meaning : a sentence on what the estimates prove.
    copies : number of copies and how sure their maximum is, for `expanded`.
    posterior : posterior of Z given full-rank maxima.
    """

    estimates: tuple[Estimate, ...] = ()
    map_calls: int = 0
    meaning: str = ""
    copies: str = ""
    posterior: GammaPosterior | None = None

    def after(self, exact: LnZAnswer) -> LnZAnswer:
        """The same answer behind the estimates of an exact one."""
        return replace(self, estimates=exact.estimates + self.estimates)

    def in_unit(self, quantity: QuantityName) -> LnZAnswer:
        """The same answer with its estimates of ln Z in the unit of the quantity."""
        return replace(self, estimates=tuple(in_unit(e, quantity) for e in self.estimates))


def quantity_option(**about: Any) -> Any:
    """Quantity to estimate; its type is `QuantityName`."""
    return option("lnZ", "Quantity to estimate; f is the function of Z that the trick estimates without bias.", **about)


class ExactAnswer(NamedTuple):
    """An answer without samples.

    Attributes
    ----------
    log_z : ln Z.
    method : how it was found.
    error : absolute error of ln Z, where it is known to matter.
    kind : `exact`, or what else to call the value.
    """

    log_z: float
    method: str
    error: float = 0.0
    kind: str = "exact"

    def estimate(self, quantity: QuantityName) -> Estimate:
        """The answer in the form of an estimate; ln Z where the quantity is f."""
        from thesis_cli.perturbation.estimate import exact_estimate

        found = exact_estimate(self.log_z, "Z" if quantity == "Z" else "lnZ", self.method)
        error = self.error * (found.value if quantity == "Z" else 1.0)
        low, high = found.value - error, found.value + error
        return in_unit(replace(found, standard_error=error, low=low, high=high, kind=self.kind), quantity)


def unknown(error: WorkFailed, quantity: QuantityName) -> Estimate:
    """The row of an exact answer that could not be had, with the reason as its kind."""
    from thesis_cli.perturbation.estimate import Estimate

    nan, name = math.nan, {"Z": "Z", "log10Z": "log10 Z"}.get(quantity, "ln Z")
    return Estimate(nan, nan, nan, nan, name, f"not known ({error})", 1.0, 0, "quadrature", "Thesis section 2.2")


def in_unit(estimate: Estimate, quantity: QuantityName) -> Estimate:
    """An estimate of ln Z in the unit of the quantity; other estimates as they are."""
    if estimate.target != "ln Z":
        return estimate
    return {"log10Z": estimate.in_log10, "Z": estimate.of_z}.get(quantity, lambda: estimate)()


def log_z_of(estimate: Estimate) -> float:
    """ln Z of an estimate of ln Z, log10 Z or Z.

    Raises
    ------
    ValueError : the estimate is of another quantity.
    """
    if estimate.target == "ln Z":
        return estimate.value
    if estimate.target == "log10 Z":
        return estimate.value * LN10
    if estimate.target == "Z":
        return math.log(estimate.value) + estimate.exponent10 * LN10 if estimate.value > 0 else -math.inf
    raise ValueError(estimate.target)


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
        f"Exponent of --trick {' or '.join(f'{name} ({p.range_text})' for name, p in tricks_with('alpha').items())}.",
        default_text=" or ".join(f"{p.default:g}" for p in tricks_with("alpha").values()),
        **about,
    )


def threshold_option(**about: Any) -> Any:
    """Threshold of the tail trick; its type is `float | None`."""
    return option(
        None,
        f"Threshold t of --trick {' or '.join(tricks_with('threshold'))}; by default it is found from {PILOT_CALLS} "
        "further MAP calls.",
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
        owners = tricks_with(field)
        if value is None or (name == "all" and len(owners) == 1):
            continue
        if name not in owners:
            raise InputError(f"--{field} does not go with --trick {name}", f"it is for {', '.join(owners)}")
        if not owners[name].allows(value):
            raise InputError(f"--{field} is {value:g}", f"it must be {owners[name].range_text} for --trick {name}")


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


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimatesResult(Result):
    """Estimates of one partition function.

    Attributes
    ----------
    estimates : the exact answer first, if there is one; then one for each trick or bound.
    posterior : of Z given the perturbed maxima; None without samples.
    source : name of what Z belongs to, a file or an object.
    description : of that.
    map_calls : number of MAP problems that bounds took; all exponents of a bound share them.
    """

    estimates: tuple[Estimate, ...]
    posterior: GammaPosterior | None = None
    source: str
    description: str
    map_calls: int = 0

    title: ClassVar[str] = "model"

    @property
    def estimate(self) -> Estimate:
        """The first of the estimates: the exact answer if there is one."""
        return self.estimates[0]

    @property
    def problems(self) -> int:
        """Number of MAP problems solved in all: estimates by tricks share theirs, one of which may
        have had a pilot.
        """
        return max(e.map_calls for e in self.estimates) if self.posterior else self.map_calls

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """Further lines of the summary."""
        return []

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The target, its estimates and the posterior."""
        lines = [(self.title, f"{self.source}: {self.description}")]
        for e in self.estimates:
            lines.append((e.target, e.kind if math.isnan(e.value) else f"{_text(e)}  ({e.method}, {e.kind})"))
        if self.posterior:
            text = _posterior_text(self.posterior, self._confidence)
            lines.append(("posterior", f"ln Z = {text}  (Bayesian, Jeffreys prior)"))
        lines += self.details()
        if calls := self.problems:
            lines.append(("work", counted(calls, "MAP call")))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates and posterior, for JSON."""
        posterior = self.posterior and _posterior_row(self.posterior, self._confidence)
        return {"estimates": [e.row() for e in self.estimates], "posterior": posterior}

    @property
    def _confidence(self) -> float:
        return float(self.settings["confidence"])


def estimates_columns(source: str, seed: int, estimates: Sequence[Estimate]) -> Columns:
    """One row for each estimate, with the model and the seed."""
    return Columns([{"model": source, "seed": seed, **e.row()} for e in estimates])


@presentation
def _text(e: Estimate) -> str:
    """`Estimate.text`, with no more digits of an answer by quadrature than its error supports."""
    if e.map_calls or e.confidence < 1 or not e.standard_error or not e.value:
        return e.text()
    digits = math.floor(math.log10(abs(e.value))) - math.floor(math.log10(e.standard_error))
    return replace(e, value=float(f"{e.value:.{min(max(digits, 1), 12)}g}")).text()


@presentation
def _posterior_row(posterior: GammaPosterior, confidence: float) -> dict[str, object]:
    low, high = posterior.interval(confidence)
    return {
        "distribution": "Gamma",
        "shape": posterior.shape,
        "log_rate": posterior.log_rate,
        "mean_log_z": posterior.mean_log_z,
        "deviation_log_z": posterior.deviation_log_z,
        "low_log_z": low,
        "high_log_z": high,
        "source": "Thesis eq. 2.5",
    }


@presentation
def _posterior_text(posterior: GammaPosterior, confidence: float) -> str:
    """Mean and deviation with the digits of an estimate of that standard error."""
    from thesis_cli.perturbation.estimate import Estimate

    mean, deviation, calls = posterior.mean_log_z, posterior.deviation_log_z, int(posterior.shape)
    found = Estimate(mean, deviation, *posterior.interval(confidence), "ln Z", "", confidence, calls, "", "")
    return found.text().replace("standard error", "standard deviation")
