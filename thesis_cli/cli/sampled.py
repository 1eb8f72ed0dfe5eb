"""MAP calls on what is no table: a continuous target by A* sampling, a matrix of factors by racing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.cli.full_rank import Calls, Exact
from thesis_cli.cli.options import counted, logger, telling_of_compilation
from thesis_cli.cli.sources import BOUND, DELTA, RaceBound, is_object, load_factors, load_target

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.base.progress import Tick
    from thesis_cli.perturbation.a_star import TargetMaxima
    from thesis_cli.perturbation.racing import RacingMaxima

SURE = 2.9e-7
"""Probability beyond 5 standard deviations of a normal, on one side."""


class TargetCalls(Calls):
    """A* sampling of a continuous target."""

    def __init__(self, name: str, prior_scale: float | None, noise_scale: float | None, seed: int, jobs: int) -> None:
        super().__init__(seed)
        self._name, self._is_object, self._jobs = name, is_object(name), jobs
        self._target = load_target(name, prior_scale, noise_scale)
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
            return f"continuous target in {counted(self._target.proposal.low.size, 'dimension')}"
        scales = f"prior scale {self.settings['prior_scale']}, noise scale {self.settings['noise_scale']}"
        return f"Cauchy regression of {counted(self._target.y.size, 'point')} on {', '.join(self.names)}; {scales}"

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.models.target_evidence import check_samples
        from thesis_cli.models.target_objects import MOST_EVALUATIONS
        from thesis_cli.perturbation.a_star import a_star
        from thesis_cli.perturbation.boxes import BUDGET

        # Threads gain a Python object nothing, and would keep a signal from ending the run.
        jobs, budget = (1, MOST_EVALUATIONS) if self._is_object else (self._jobs, BUDGET)
        found = a_star(self._target, count, seed, jobs=jobs, budget=budget, progress=tick)
        check_samples(self._target, found.locations)
        if tick is not None:
            self._maxima = found
        return found.values

    def exact(self, tick: Tick) -> Exact:
        """By quadrature."""
        from thesis_cli.models.quadrature import TOLERANCES
        from thesis_cli.models.target_evidence import evidence

        found = evidence(self._target)
        kind = "exact" if found.error <= TOLERANCES[len(self._target.proposal.low)] else f"error {found.error:.1e} of Z"
        return Exact(found.log_z, "quadrature", found.error, kind)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Say that a target is compiled, and where an object of the user's own goes wrong."""
        from thesis_cli.models.target_objects import own_code
        from thesis_cli.models.targets import compiled

        with ExitStack() as stack:
            if compiled(self._target) is not None:
                stack.enter_context(telling_of_compilation())
            if self._is_object:
                stack.enter_context(own_code(self._name))
            yield

    def save_figure(self, table: Path) -> None:
        """Draw the samples, beside a table."""
        from thesis_cli.base.figures import save
        from thesis_cli.cli.posterior_figure import posterior_figure

        title = f"{self._name}, {counted(len(self.locations), 'sample')}"
        draw = partial(posterior_figure, self._target, self.locations, self.names, title)
        for path in save(draw, table.with_suffix("")):
            logger.info("wrote %s", path)

    def facts(self) -> dict[str, object]:
        """Moments of the samples, and means of what they cost."""
        if self._maxima is None:
            return {}
        return {
            "moments": [
                {"name": name, "mean": mean, "standard_deviation": deviation}
                for name, mean, deviation in self._moments()
            ],
            "evaluations_a_sample": float(self._maxima.evaluations.mean()),
            "bounds_a_sample": float(self._maxima.bounds.mean()),
        }

    def lines(self) -> list[tuple[str, str]]:
        """What the summary says besides the estimates."""
        if self._maxima is None:
            return []
        found = [
            ("samples" if d == 0 else "", f"{name} = {mean:.4g}, standard deviation {deviation:.3g}")
            for d, (name, mean, deviation) in enumerate(self._moments())
        ]
        evaluations = counted(self._maxima.evaluations.mean(), "evaluation", ".3g")
        bounds = counted(self._maxima.bounds.mean(), "bound", ".3g")
        return [*found, ("A*", f"{evaluations} and {bounds} a sample")]

    def _moments(self) -> list[tuple[str, float, float]]:
        """Name, mean and standard deviation of each coordinate over the samples."""
        x = self.locations
        return list(zip(self.names, x.mean(axis=0).tolist(), x.std(axis=0).tolist(), strict=True))


class RacingCalls(Calls):
    """Races of states on subsamples of their factors."""

    unit = "races"

    def __init__(
        self, path: Path, delta: float | None, bound: RaceBound | None, seed: int, jobs: int, memory: int
    ) -> None:
        super().__init__(seed)
        self._matrix, self._jobs, self._memory = load_factors(path), jobs, memory
        self._delta, self._bound = DELTA if delta is None else delta, bound or BOUND
        self._maxima: RacingMaxima | None = None

    @property
    def settings(self) -> dict[str, object]:
        return {"delta": self._delta, "bound": self._bound}

    def describe(self) -> str:
        """What it is."""
        return f"{counted(self._matrix.states, 'state')}, {counted(self._matrix.factors, 'factor')}"

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.racing import RaceRules, race

        found = race(
            self._matrix, count, self._delta, seed, RaceRules(self._bound),
            jobs=self._jobs, memory=self._memory, progress=tick,
        )  # fmt: skip
        if tick is not None:
            self._maxima = found
            if _too_many(found.errors, count, self._delta):
                logger.warning(
                    "%s of %s races wrong, more than --delta %g allows: ln Z is too low, by %.3g on average, and the "
                    "intervals do not tell; --bound bernstein-serfling, or a smaller --delta, is wanted",
                    f"{found.errors:,}", f"{count:,}", self._delta, found.losses.mean(),
                )  # fmt: skip
        return found.values

    def exact(self, tick: Tick) -> Exact:
        """By summing all factors."""
        from scipy.special import logsumexp

        return Exact(float(logsumexp(self._matrix.totals)), "all factors")

    def at_work(self) -> AbstractContextManager[None]:
        """Say that races are compiled."""
        return telling_of_compilation()

    def facts(self) -> dict[str, object]:
        """What the races spent, and how they ended."""
        if self._maxima is None:
            return {}
        return {"share_of_evaluations": self._maxima.share, "wrong_races": self._maxima.errors}

    def lines(self) -> list[tuple[str, str]]:
        """What the summary says besides the estimates."""
        if self._maxima is None:
            return []
        races, wrong = counted(self._maxima.values.size, "race"), self._maxima.errors
        spent = f"{100 * self._maxima.share:.3g}% of the factor evaluations spent"
        left_out = " (no interval counts them)" * (wrong > 0)
        return [("racing", f"{spent}; {wrong:,} of {races} wrong, at --delta {self._delta:g}{left_out}")]


def _too_many(wrong: int, races: int, delta: float) -> bool:
    """Whether more races went wrong than a probability of delta at most explains."""
    from scipy.special import bdtrc

    return wrong > 0 and float(bdtrc(wrong - 1, races, delta)) < SURE
