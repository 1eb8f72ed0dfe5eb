"""`thesis-cli posterior`: sample a continuous density, and estimate its integral (the evidence)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, WorkFailed, about, counted
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, Tick
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import confidence_option, jobs_option, label, seed_option, seed_or_fresh
from thesis_cli.commands.core.fields import Request, given, option, settings_of
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
    unknown,
)
from thesis_cli.perturbation.tricks.trick_rows import TrickChoice

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.targets import Regression, Target
    from thesis_cli.perturbation.a_star.a_star import TargetMaxima
    from thesis_cli.perturbation.estimate import Estimate

    TargetSource = str | Target | Callable[[Floats], Any] | Any
    """A name, `module:object` or `file.py:object`; a `Target`; or a function."""

    RegressionSource = str | Path | pd.DataFrame | Floats | tuple[Any, Any]
    """A path, a DataFrame, a matrix whose last column is the response, or a pair (x, y)."""
else:
    TargetSource = RegressionSource = str


class FunctionBox(NamedTuple):
    """Bounds of the box on which a plain function is a log-density, and on its slope there.

    Attributes
    ----------
    low, high : corners of the box.
    slope : largest absolute derivative along any axis.
    """

    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    slope: float | None


def open_target(source: TargetSource, box: FunctionBox) -> Target:
    """The target of a name, an object or a function.

    Raises
    ------
    InputError : no such object, one that is no target, or a function without a box.
    """
    from thesis_cli.models.target_objects import checked_target, load_object

    def made(found: Any) -> Target:
        return checked_target(_boxed(found, box))

    if not isinstance(source, str):
        return made(source)
    if source.endswith(".py"):
        raise InputError(f"{source} names no object", f"it must be {source}:object", source="--target")
    return load_object(source, made)


def _boxed(found: Any, box: FunctionBox) -> Any:
    """The object itself, or a target made from a function and its box."""
    from thesis_cli.models.target_objects import FunctionTarget

    options = ("--low", "--high", "--slope")
    if callable(found) and not isinstance(found, type) and not hasattr(found, "proposal"):
        for option, value in zip(options, box, strict=True):
            if value is None:
                raise InputError(f"a function as target needs {option}", "give --low, --high and --slope")
        assert box.low is not None
        assert box.high is not None
        assert box.slope is not None
        if len(box.low) != len(box.high):
            raise InputError(f"--low has {len(box.low)} numbers, --high {len(box.high)}", "give as many of each")
        return FunctionTarget(found, box.low, box.high, box.slope)
    for option, value in zip(options, box, strict=True):
        if value is not None:
            raise InputError(f"{option} does not go with a target that has a proposal", "it is for a function")
    return found


def at_work(source: TargetSource | None) -> AbstractContextManager[None]:
    """A context for calls of the target's code.

    An error in the code of a target that was loaded by its name is one line that names the place.
    Errors of an object that was passed in Python keep their traceback.
    """
    from thesis_cli.models.target_objects import own_code

    return own_code(source) if isinstance(source, str) else nullcontext()


def open_regression(source: RegressionSource, prior_scale: float, noise_scale: float) -> Regression:
    """The posterior of a regression.

    Raises
    ------
    InputError : a file that cannot be read, columns that are no numbers, or shapes that do not fit.
    """
    from thesis_cli.models.targets import Regression, load_regression

    if isinstance(source, str | Path):
        return load_regression(source, prior_scale=prior_scale, scale=noise_scale)
    x, y, names = _columns(source)
    try:
        return Regression(x, y, prior_scale=prior_scale, scale=noise_scale, names=names)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the data of the regression are no numbers ({error})", "drop or encode the column") from None


def _columns(source: Any) -> tuple[Any, Any, Sequence[str] | None]:
    """Features, response and names of the features."""
    if isinstance(source, tuple | list) and len(source) == 2:
        names = getattr(source[0], "columns", None)
        return *source, None if names is None else [str(name) for name in names]
    if hasattr(source, "columns"):
        response = "y" if "y" in source.columns else source.columns[-1]
        features = source.drop(columns=[response])
        return features.to_numpy(), source[response].to_numpy(), [str(name) for name in features.columns]
    if getattr(source, "ndim", 0) != 2:
        raise InputError(
            f"--regression is a {type(source).__name__}", "give a file, a DataFrame, a matrix or a pair (x, y)"
        )
    return source[:, :-1], source[:, -1], None


logger = logging.getLogger("thesis_cli")

OF_FUNCTIONS, OF_REGRESSIONS = ("low", "high", "slope"), ("prior_scale", "noise_scale")


@dataclass(frozen=True, kw_only=True)
class PosteriorRequest(Request):
    """Sample a continuous density by A* sampling, and estimate its integral (the evidence)."""

    usual = ("target", "regression", "low", "high", "trick", "samples", "quantity", "exact", "draws", "seed")

    target: TargetSource | None = option(
        None,
        "Density: a Python object or function, by its name.",
        metavar="MODULE:OBJECT",
        names="object",
        objects=True,
    )
    regression: RegressionSource | None = option(
        None,
        "CSV file of a linear regression with Cauchy noise: features and a response, the column y or the last.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    low: tuple[float, ...] | None = option(None, "Lowest value of each coordinate, if the target is a function.")
    high: tuple[float, ...] | None = option(None, "Highest value of each coordinate, if the target is a function.")
    slope: float | None = option(
        None, "Largest slope of the log-density along any axis, if the target is a function.", least=0
    )
    prior_scale: float = option(2.0, "Standard deviation of each weight of a regression, before the data.", above=0)
    noise_scale: float = option(1.0, "Scale of the Cauchy noise of a regression.", above=0)
    trick: TrickChoice | None = trick_option()
    alpha: float | None = alpha_option()
    threshold: float | None = threshold_option()
    samples: int | None = samples_option()
    quantity: QuantityName = quantity_option()
    debias: bool = debias_option()
    confidence: float = confidence_option()
    exact: bool = option(False, "Add the exact answer, by quadrature.")
    draws: Path | None = option(
        None, "File for the samples, .csv.", metavar="FILE", names="output", not_swept="a task writes its table only"
    )
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse no target, two targets, and options of the other kind of target."""
        if (self.target is None) == (self.regression is None):
            problem = "no density is given" if self.target is None else "--target and --regression are both given"
            raise InputError(problem, "give one of --target and --regression")
        others, kind = (OF_REGRESSIONS, "regression") if self.regression is None else (OF_FUNCTIONS, "target")
        for name in others:
            if name in given(self):
                raise InputError(f"--{name.replace('_', '-')} without --{kind}", f"it is for --{kind}")
        check_tricks(self)
        if self.draws is not None and self.samples == 0:
            raise InputError("--draws does not go with --samples 0", "it needs samples")


@dataclass(frozen=True, kw_only=True, repr=False)
class PosteriorResult(EstimatesResult):
    """Samples of a density and estimates of its integral Z.

    Attributes
    ----------
    points : exact, independent samples, a row for each and a column for each coordinate; empty
        with --samples 0.
    samples : the same as a DataFrame.
    target : the density.
    maxima : perturbed maxima with their costs; None with --samples 0.
    """

    points: Columns
    target: Target
    maxima: TargetMaxima | None

    title: ClassVar[str] = "target"

    @cached_property
    def samples(self) -> pd.DataFrame:
        return self.points.frame()

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates, moments of the samples, and means of their costs."""
        found = dict(super().facts())
        if self.maxima is not None:
            found["moments"] = [
                {"name": name, "mean": mean, "standard_deviation": deviation}
                for name, mean, deviation in self._moments()
            ]
            found["evaluations_a_sample"] = float(self.maxima.evaluations.mean())
            found["bounds_a_sample"] = float(self.maxima.bounds.mean())
        return found

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """Moments of the samples, and what a sample cost."""
        if self.maxima is None:
            return []
        lines = [
            ("samples" if d == 0 else "", f"{name} = {mean:.4g}, standard deviation {deviation:.3g}")
            for d, (name, mean, deviation) in enumerate(self._moments())
        ]
        evaluations = counted(float(self.maxima.evaluations.mean()), "evaluation", ".3g")
        bounds = counted(float(self.maxima.bounds.mean()), "bound", ".3g")
        return [*lines, ("A*", f"{evaluations} and {bounds} a sample")]

    @presentation
    def draw(self) -> Figure:
        """The samples: against the exact density in one dimension, in more in pairs."""
        from thesis_cli.commands.figures.posterior import posterior_figure

        if self.maxima is None:
            raise InputError("--samples is 0", "a figure needs samples")
        title = f"{self.source}, {counted(self.points.count, 'sample')}"
        assert isinstance(self.request, PosteriorRequest)
        with about(self.source), at_work(self.request.target):
            return posterior_figure(self.target, self.maxima.locations, list(self.points), title)

    def _moments(self) -> list[tuple[str, float, float]]:
        """Name, mean and standard deviation of each coordinate over the samples."""
        assert self.maxima is not None
        x = self.maxima.locations
        return list(zip(self.points, x.mean(axis=0).tolist(), x.std(axis=0).tolist(), strict=True))


def run(request: PosteriorRequest, progress: Progress) -> PosteriorResult:
    """Draw samples, estimate Z, and integrate if that was asked for."""
    seed, source = seed_or_fresh(request.seed), label(request.regression if request.target is None else request.target)
    estimates: list[Estimate] = []
    posterior = None
    samples = samples_of(request)
    if request.draws is not None:
        check_writable("--draws", request.draws, ".csv")
    with about(source):
        target = _target(request)
        maxima = DensityMaxima(target, seed, jobs_or_all(request.jobs))
        with at_work(request.target):
            if request.exact:
                estimates.append(_exact(target, request.quantity, needed=samples == 0))
            if samples:
                with progress(samples, "samples") as tick:
                    found, posterior = full_rank_estimates(request, maxima, tick)
                estimates += found
    points = Columns(dict(zip(_names(target), maxima.locations.T, strict=True)))
    if request.draws is not None:
        write_atomic({request.draws: points.csv()})
    return PosteriorResult(
        columns=estimates_columns(source, seed, estimates),
        request=request,
        settings=settings_of(request, seed=seed, samples=samples),
        estimates=tuple(estimates),
        posterior=posterior,
        source=source,
        description=_description(target),
        points=points,
        target=target,
        maxima=maxima.found,
    )


class DensityMaxima(PilotedMaxima):
    """Perturbed maxima of a continuous target, by A* sampling.

    Attributes
    ----------
    found : the maxima that are averaged, with their locations; None before they are drawn.
    """

    found: TargetMaxima | None = None

    def __init__(self, target: Target, seed: int, jobs: int) -> None:
        super().__init__(seed)
        self._target, self._jobs = target, jobs

    @property
    def locations(self) -> Floats:
        """Samples, shape (M, D); none before they are drawn."""
        import numpy as np

        return np.empty((0, self._target.proposal.low.size)) if self.found is None else self.found.locations

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.models.quadrature import check_samples
        from thesis_cli.models.target_objects import MOST_EVALUATIONS
        from thesis_cli.models.targets import Regression
        from thesis_cli.perturbation.a_star.a_star import a_star
        from thesis_cli.perturbation.a_star.boxes import BUDGET

        # Threads gain a Python object nothing, and would keep a signal from ending the run.
        compiled = isinstance(self._target, Regression)
        jobs, budget = (self._jobs, BUDGET) if compiled else (1, MOST_EVALUATIONS)
        found = a_star(self._target, count, seed, jobs=jobs, budget=budget, progress=tick)
        check_samples(self._target, found.locations)
        if tick is not None:
            self.found = found
        return found.values


def _target(request: PosteriorRequest) -> Target:
    if request.regression is not None:
        return open_regression(request.regression, request.prior_scale, request.noise_scale)
    return open_target(request.target, FunctionBox(request.low, request.high, request.slope))


def _exact(target: Target, quantity: QuantityName, needed: bool) -> Estimate:
    """Z by quadrature; the reason where quadrature fails, unless the answer is needed."""
    from thesis_cli.models.quadrature import TOLERANCES, evidence

    try:
        found = evidence(target)
    except WorkFailed as error:
        if needed:
            raise
        logger.warning("no exact answer: %s", error)
        return unknown(error, quantity)
    kind = "exact" if found.error <= TOLERANCES[len(target.proposal.low)] else f"error {found.error:.1e} of Z"
    return ExactAnswer(found.log_z, "quadrature", found.error, kind).estimate(quantity)


def _names(target: Target) -> list[str]:
    """Names of the coordinates."""
    dimension = target.proposal.low.size
    return [str(name) for name in getattr(target, "names", None) or (f"x{d + 1}" for d in range(dimension))]


def _description(target: Target) -> str:
    from thesis_cli.models.targets import Regression

    if not isinstance(target, Regression):
        return f"continuous target in {counted(target.proposal.low.size, 'dimension')}"
    scales = f"prior scale {float(target.proposal.scale[0])}, noise scale {target.scale}"
    return f"Cauchy regression of {counted(target.y.size, 'point')} on {', '.join(target.names)}; {scales}"


COMMAND = Command(
    PosteriorRequest,
    run,
    examples=(
        "posterior --regression data/models/line.csv --samples 1000 --exact",
        "posterior --regression data/models/line.csv --trick exponential --draws w.csv --figure w.png",
        "posterior --target data/models/double-well.py:log_density --low -2 --high 2 --slope 48 --exact",
    ),
)
