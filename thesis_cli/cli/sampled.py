"""MAP calls on what is no table: a continuous target by A* sampling, a matrix of factors by racing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.cli.full_rank import Calls
from thesis_cli.cli.options import logger
from thesis_cli.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.cli.options import Tick
    from thesis_cli.models.factor_graph import Floats
    from thesis_cli.models.targets import Target
    from thesis_cli.perturbation.a_star import TargetMaxima
    from thesis_cli.perturbation.racing import RacingMaxima

BoundName = Literal["normal", "bernstein-serfling"]

PriorScale = Annotated[
    float | None,
    typer.Option(help="Standard deviation of each weight of a regression, before the data.", show_default="2"),
]
NoiseScale = Annotated[float | None, typer.Option(help="Scale of the Cauchy noise of a regression.", show_default="1")]


Figure = Annotated[bool, typer.Option("--figure", help="Draw the samples of a continuous target, beside --out.")]


@dataclass(frozen=True)
class Racing:
    """How states race: see `perturbation.racing.race`."""

    delta: float = 0.01
    bound: BoundName = "normal"


def load_target(name: str, prior_scale: float | None, noise_scale: float | None) -> Target:
    """A regression from a CSV file, or an object of the user's own, `module:object`."""
    from thesis_cli.models.target_files import load_object, load_regression

    if name != "-" and not Path(name).exists() and ":" in name:
        if prior_scale is not None or noise_scale is not None:
            raise InputError("--prior-scale and --noise-scale do not go with an object", "they are for a regression")
        return load_object(name)
    given = {"prior_scale": prior_scale, "scale": noise_scale}
    return load_regression(name, **{key: scale for key, scale in given.items() if scale is not None})


class TargetCalls(Calls):
    """A* sampling of a continuous target."""

    def __init__(self, name: str, prior_scale: float | None, noise_scale: float | None, seed: int, jobs: int) -> None:
        super().__init__(seed)
        self._target, self._jobs = load_target(name, prior_scale, noise_scale), jobs
        self._maxima: TargetMaxima | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates."""
        dimension = self._target.proposal.low.size
        return tuple(getattr(self._target, "names", None) or (f"x{d + 1}" for d in range(dimension)))

    @property
    def locations(self) -> Floats:
        """Samples that came with the values that were asked for, shape (M, D); none before."""
        import numpy as np

        return np.empty((0, len(self.names))) if self._maxima is None else self._maxima.locations

    @property
    def settings(self) -> dict[str, object]:
        from thesis_cli.models.targets import Regression

        if not isinstance(self._target, Regression):
            return {}
        return {"prior_scale": float(self._target.proposal.scale[0]), "noise_scale": self._target.scale}

    def describe(self) -> str:
        """What it is."""
        from thesis_cli.models.targets import Regression

        if not isinstance(self._target, Regression):
            return f"continuous target in {self._target.proposal.low.size} dimensions"
        scales = f"prior scale {self.settings['prior_scale']}, noise scale {self.settings['noise_scale']}"
        return f"Cauchy regression of {self._target.y.size:,} points on {', '.join(self.names)}; {scales}"

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.a_star import a_star

        found = a_star(self._target, count, seed, jobs=self._jobs, progress=tick)
        if tick is not None:
            self._maxima = found
        return found.values

    def exact(self, tick: Tick) -> tuple[float, str]:
        """By quadrature, whose error is far below that of any sample."""
        from thesis_cli.models.quadrature import integrate

        return integrate(self._target).log_z, "quadrature"

    def save_figure(self, table: Path, name: str) -> None:
        """Draw the samples, beside a table."""
        from thesis_cli.cli.posterior_figure import posterior_figure
        from thesis_cli.reproduction.figures import save

        title = f"{name}, {len(self.locations):,} samples"
        for path in save(
            lambda: posterior_figure(self._target, self.locations, self.names, title), table.with_suffix("")
        ):
            logger.info("wrote %s", path)

    def facts(self) -> dict[str, float]:
        """Means over the samples of what they cost."""
        if self._maxima is None:
            return {}
        return {
            "evaluations_a_sample": float(self._maxima.evaluations.mean()),
            "bounds_a_sample": float(self._maxima.bounds.mean()),
        }

    def lines(self) -> list[tuple[str, str]]:
        """What the summary says besides the estimates."""
        if self._maxima is None:
            return []
        x, facts = self.locations, self.facts()
        moments = zip(self.names, x.mean(axis=0), x.std(axis=0), strict=True)
        found = [
            ("samples" if d == 0 else "", f"{name} = {mean:.4g}, standard deviation {deviation:.3g}")
            for d, (name, mean, deviation) in enumerate(moments)
        ]
        evaluations, bounds = facts["evaluations_a_sample"], facts["bounds_a_sample"]
        return [*found, ("A*", f"{evaluations:.3g} evaluations and {bounds:.3g} bounds a sample")]


class RacingCalls(Calls):
    """Races of states on subsamples of their factors."""

    unit = "races"

    def __init__(self, path: Path, racing: Racing, seed: int, jobs: int, memory: int) -> None:
        from thesis_cli.models.factor_matrix import load_factor_matrix

        super().__init__(seed)
        self._matrix, self._racing, self._jobs, self._memory = load_factor_matrix(path), racing, jobs, memory
        self._maxima: RacingMaxima | None = None

    def describe(self) -> str:
        """What it is."""
        return f"{self._matrix.states:,} states, {self._matrix.factors:,} factors"

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.racing import race

        racing = self._racing
        found = race(
            self._matrix, count, racing.delta, seed,
            bound=racing.bound, jobs=self._jobs, memory=self._memory, progress=tick,
        )  # fmt: skip
        if tick is not None:
            self._maxima = found
        return found.values

    def exact(self, tick: Tick) -> tuple[float, str]:
        """By summing all factors."""
        from scipy.special import logsumexp

        return float(logsumexp(self._matrix.totals)), "all factors"

    def facts(self) -> dict[str, float]:
        """What the races spent, and how they ended."""
        if self._maxima is None:
            return {}
        return {
            "delta": self._racing.delta,
            "share_of_evaluations": self._maxima.share,
            "wrong_races": self._maxima.errors,
        }

    def lines(self) -> list[tuple[str, str]]:
        """What the summary says besides the estimates."""
        if self._maxima is None:
            return []
        races, wrong = self._maxima.values.size, self._maxima.errors
        spent = f"{100 * self._maxima.share:.3g}% of the factor evaluations spent"
        return [("racing", f"{spent}; {wrong:,} of {races:,} races wrong, {100 * self._racing.delta:g}% are allowed")]


def refuse_of_targets(target: str | None, prior_scale: float | None, noise_scale: float | None, figure: bool) -> None:
    """Refuse what is for a continuous target alone."""
    given = {"--prior-scale": prior_scale, "--noise-scale": noise_scale, "--figure": figure}
    refuse("a continuous --target", target, given)
    for name, scale in (("--prior-scale", prior_scale), ("--noise-scale", noise_scale)):
        if scale is not None and not 0 < scale < math.inf:
            raise InputError(f"{name} is {scale:g}", "a number above 0 is wanted")


def one_source(model: str | None, target: str | None, factors: Path | None = None) -> str:
    """The one thing whose partition function is wanted.

    Raises
    ------
    InputError : none, or more than one.
    """
    given = [str(source) for source in (model, target, factors) if source is not None]
    if len(given) != 1:
        problem = "nothing to estimate" if not given else f"more than one: {' and '.join(given)}"
        raise InputError(problem, "a MODEL, or what stands in its place, is wanted: see --help")
    return given[0]


def refuse(what: str, given: object, options: Mapping[str, object]) -> None:
    """Refuse options that belong to what is not given."""
    for name, value in options.items():
        if value not in (None, False) and given is None:
            raise InputError(f"{name} without {what}", f"it is for {what}")
