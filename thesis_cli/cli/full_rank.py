"""Full-rank perturb-and-MAP as the command line asks for it: its options checked, its scales set."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.base.progress import Tick
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.posterior import GammaPosterior
    from thesis_cli.perturbation.tricks import Trick

TrickName = Literal["gumbel", "exponential", "weibull", "frechet", "pareto", "tail", "all"]
DEFAULT_ALPHA = {"weibull": 0.5, "frechet": -0.2}

PARETO_SCALE = 0.1
"""s of the Pareto trick in units of exp(max phi) <= Z, or of a pilot's Z: its asymptotic variance is then within 1.3%
of the best."""
PILOT_CALLS = 16
"""MAP calls that set t of the tail trick: ln Z to 0.25, which leaves it near its best."""


def check_parameters(name: TrickName, alphas: Sequence[float] | None, threshold: float | None) -> float | None:
    """Refuse options that do not go together; returns the one alpha."""
    if alphas and len(alphas) > 1:
        raise InputError(f"{len(alphas)} times --alpha", "a trick has one")
    alpha = alphas[0] if alphas else None
    if alpha is not None and name not in DEFAULT_ALPHA:
        raise InputError(f"--alpha does not go with --trick {name}", "it belongs to weibull and frechet")
    if threshold is not None and name not in ("tail", "all"):
        raise InputError(f"--threshold does not go with --trick {name}", "it belongs to tail")
    if threshold is not None and not 0 < threshold < math.inf:
        raise InputError(f"--threshold is {threshold:g}", "a number above 0 is wanted")
    if alpha is not None:
        from thesis_cli.perturbation.tricks import power

        if power(alpha).name not in (name, "exponential"):
            raise InputError(
                f"--alpha {alpha:g} does not go with --trick {name}", "weibull has it above 0, frechet below"
            )
    return alpha


def full_rank(
    trick: TrickName,
    alpha: float | None,
    threshold: float | None,
    calls: Calls,
    samples: int,
    tick: Tick,
    *,
    target: str,
    debias: bool,
    confidence: float,
) -> tuple[list[Estimate], GammaPosterior]:
    """What the tricks asked for make of the same MAP values, and the posterior."""
    import numpy as np

    from thesis_cli.perturbation.estimators import estimate
    from thesis_cli.perturbation.posterior import GammaPosterior

    values = calls.values(samples, tick)
    estimates = []
    for each in _tricks(trick, alpha, threshold, calls):
        found = estimate(each, values, target=target, debias=debias, confidence=confidence)
        piloted = each.name in calls.piloted and not (each.name == "tail" and threshold is not None)
        pilot = PILOT_CALLS if piloted else 0
        estimates.append(replace(found, map_calls=samples + pilot))
    return estimates, GammaPosterior.from_log_times(-np.euler_gamma - values)


class Exact(NamedTuple):
    """ln Z, the method, its error where that is known to matter, and what to call the value."""

    log_z: float
    method: str
    error: float = 0.0
    kind: str = "exact"


class Calls(ABC):
    """MAP calls on one target: those that are averaged, and a pilot that is independent of them.

    Attributes
    ----------
    piloted : tricks whose scale the pilot sets.
    size, terms : what there is to sum for the exact answer, and what that is called.
    unit : of the work that `draw` tells a progress bar, `size` for each draw.
    settings : what a record is to tell.
    """

    piloted: tuple[str, ...] = ("pareto", "tail")
    size = 1
    terms = unit = "samples"

    @property
    def settings(self) -> dict[str, object]:
        return {}

    @abstractmethod
    def describe(self) -> str:
        """What the target is."""

    @abstractmethod
    def exact(self, tick: Tick) -> Exact:
        """ln Z, without samples."""

    def at_work(self) -> AbstractContextManager[None]:
        """What `draw`, `exact` and figures are to be called in."""
        return nullcontext()

    def lines(self) -> list[tuple[str, str]]:
        """What a summary says besides the estimates."""
        return []

    def facts(self) -> dict[str, object]:
        """The same for programs to read."""
        return {}

    def __init__(self, seed: int) -> None:
        import numpy as np

        self._seed, self._pilot_seed = np.random.SeedSequence(seed).spawn(2)

    @abstractmethod
    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        """Perturbed maxima, each Gumbel(ln Z - c), shape (count,)."""

    def values(self, count: int, tick: Tick) -> Floats:
        return self.draw(count, self._seed, tick)

    def log_scale(self) -> float:
        """ln of a number of the size of Z, independent of the values: the pilot's, unless something is better."""
        return self.pilot_log_z

    @cached_property
    def pilot_log_z(self) -> float:
        return float(self.draw(PILOT_CALLS, self._pilot_seed, None).mean())


class ModelCalls(Calls):
    """MAP calls on a model whose configurations are enumerated."""

    piloted = ("tail",)
    terms, unit = "configurations", "clocks"

    def __init__(self, model: Model, seed: int, jobs: int, limit: int, memory: int) -> None:
        super().__init__(seed)
        self._model, self._jobs, self._limit, self._memory = model, jobs, limit, memory
        self._highest = math.nan
        self.size = model.size

    @property
    def settings(self) -> dict[str, object]:
        return {"configurations": self._model.size}

    def describe(self) -> str:
        return self._model.describe()

    def exact(self, tick: Tick) -> Exact:
        from thesis_cli.inference.exact import exact_log_partition_function

        return Exact(
            *exact_log_partition_function(
                self._model, memory=self._memory, max_configurations=self._limit, progress=tick
            )
        )

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.full_rank import perturbed_maxima

        found = perturbed_maxima(
            self._model, count, seed, jobs=self._jobs, max_configurations=self._limit, progress=tick
        )
        self._highest = found.highest
        return found.values

    def log_scale(self) -> float:
        """max phi <= ln Z, which every draw finds."""
        return self._highest


def _tricks(name: TrickName, alpha: float | None, threshold: float | None, calls: Calls) -> list[Trick]:
    """The tricks asked for. What sets their scale is independent of the MAP values that they average."""
    from thesis_cli.perturbation import tricks

    def tail() -> Trick:
        if threshold is not None:
            return tricks.tail(math.log(threshold))
        return tricks.tail(math.log(tricks.TAIL_OPTIMUM) - calls.pilot_log_z)

    makers = {
        "gumbel": tricks.gumbel,
        "exponential": lambda: tricks.power(1.0),
        "weibull": lambda: tricks.power(DEFAULT_ALPHA["weibull"] if alpha is None else alpha),
        "frechet": lambda: tricks.power(DEFAULT_ALPHA["frechet"] if alpha is None else alpha),
        "pareto": lambda: tricks.pareto(calls.log_scale() + math.log(PARETO_SCALE)),
        "tail": tail,
    }
    return [make() for make in makers.values()] if name == "all" else [makers[name]()]
