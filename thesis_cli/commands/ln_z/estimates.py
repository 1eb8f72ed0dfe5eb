"""Answers about ln Z: what its methods are given and return, the unit of a number, and the result of commands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import counted
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.inference.names import SolverName

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.errors import WorkFailed
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
