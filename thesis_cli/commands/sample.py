"""`thesis-cli sample`: draw configurations from a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import UnsuitableModel, about
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    SolverName,
    bytes_of,
    evidence_option,
    format_option,
    jobs_option,
    label,
    max_configurations_option,
    memory_option,
    model_argument,
    open_model,
    probabilities_option,
    seed_option,
    seed_or_fresh,
    solver_option,
)
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.outputs.variables import column_names, distribution_lines, state_names

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.inference.solver import MapSolver
    from thesis_cli.models.factor_graph import FactorGraph, Model

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True, kw_only=True)
class SampleRequest(Request):
    """Draw configurations from the Gibbs distribution of a model, or near it."""

    usual = ("count", "method", "evidence", "seed")

    model: ModelSource = model_argument()
    count: int = option(1000, "Configurations to draw.", least=1, most=10**8)
    method: Literal["exact", "sequential", "perturb"] = option(
        "exact", "Method: exact is backward sampling, sequential Thesis Algorithm 1, perturb MAP under unary noise."
    )
    alpha: float = option(0.0, "Exponent of the bound U(alpha).", methods=("sequential",))
    samples: int = option(1000, "MAP calls for each bound.", least=1, methods=("sequential",))
    solver: SolverName = solver_option(methods=("sequential", "perturb"))
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    max_configurations: int = max_configurations_option(methods=("exact",))
    memory: float = memory_option()
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleResult(Result):
    """The configurations that were drawn.

    Attributes
    ----------
    table : a row for each draw and a column for each variable, of state numbers; for a vector the
        column `index`.
    algorithm : how the configurations were drawn.
    distribution : the distribution that they follow.
    search : costs of `sequential`: attempts, acceptance, clipped steps, U(alpha) and MAP calls.
    states : for each variable, by its name or as x0, x1, ..., the names of its states, else their
        numbers; empty for a vector.
    frequencies : one array for each of these variables: the share of the draws in each state.
    description : size of the model.
    """

    algorithm: str
    distribution: str
    search: Mapping[str, Any] = field(default_factory=dict)
    states: Mapping[str, Sequence[str]]
    frequencies: list[Floats]
    description: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, how the draws were made, and how often the first variables had each state."""
        search = self.search
        lines = [
            ("model", f"{self.settings['model']}: {self.description}"),
            ("draws", f"{self.columns.count:,} by {self.algorithm}: {self.distribution}"),
        ]
        if search:
            lines.append(
                (
                    "accepted",
                    f"{search['acceptance']:.3g} of {search['attempts']:,} attempts, {search['clipped']:,} clipped "
                    f"steps, {search['map_calls']:,} MAP calls",
                )
            )
        return [*lines, *distribution_lines(self.states, self.frequencies)]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Method and cost of the draws, and the frequencies of the states."""
        return {
            "algorithm": self.algorithm,
            "distribution": self.distribution,
            **self.search,
            "states": self.states,
            "frequencies": [shares.tolist() for shares in self.frequencies],
        }


@dataclass(frozen=True)
class _Draws:
    """Configurations, shape (count, n), numbered as without evidence, and how they were drawn."""

    states: Ints
    algorithm: str
    distribution: str
    search: Mapping[str, Any] = field(default_factory=dict)


def run(request: SampleRequest, progress: Progress) -> SampleResult:
    """Draw by the method asked for."""
    import numpy as np

    from thesis_cli.models.factor_graph import FactorGraph

    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    seed = seed_or_fresh(request.seed)
    with about(label(request.model)):
        if request.method == "exact":
            draws = _exact(model, request, seed)
        elif not isinstance(model, FactorGraph):
            raise UnsuitableModel(f"--method {request.method} takes models with variables, not a vector", "use exact")
        else:
            draw = _perturbed if request.method == "perturb" else _sequential
            draws = draw(model, request, seed, progress)
    states = state_names(model) if isinstance(model, FactorGraph) else {}
    pairs = zip(states.values(), draws.states.T, strict=False)
    return SampleResult(
        columns=Columns(dict(zip(column_names(model), draws.states.T, strict=True))),
        request=request,
        settings=settings_of(request, seed=seed),
        algorithm=draws.algorithm,
        distribution=draws.distribution,
        search=draws.search,
        states=states,
        frequencies=[np.bincount(drawn, minlength=len(own)) / request.count for own, drawn in pairs],
        description=model.describe(),
    )


def _exact(model: Model, request: SampleRequest, seed: int) -> _Draws:
    import numpy as np

    from thesis_cli.inference.sampling.draws import exact_samples

    states, how = exact_samples(
        model,
        request.count,
        np.random.default_rng(seed),
        memory=bytes_of(request.memory),
        max_configurations=request.max_configurations,
    )
    return _Draws(states, how, "Gibbs, exact")


def _perturbed(graph: FactorGraph, request: SampleRequest, seed: int, progress: Progress) -> _Draws:
    """Maximisers under unary Gumbel noise."""
    import numpy as np

    from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima

    solver = _solver(graph, request)
    root = np.random.SeedSequence(seed)
    with progress(request.count, "draws") as tick:
        maxima = low_rank_maxima(solver, request.count, root, jobs=jobs_or_all(request.jobs), progress=tick)
    states = graph.original_states(maxima.states)
    return _Draws(states, solver.name, "that of the maximiser under unary noise, not Gibbs")


def _sequential(graph: FactorGraph, request: SampleRequest, seed: int, progress: Progress) -> _Draws:
    """Thesis Algorithm 1."""
    import numpy as np

    from thesis_cli.perturbation.low_rank.sequential import SequentialSampler

    solver = _solver(graph, request)
    sampler = SequentialSampler(solver, request.alpha, request.samples, np.random.SeedSequence(seed))
    with progress(request.count, "draws") as tick:
        draws = sampler.draw(request.count, tick)
    clipped = ", except for the clipped steps" * (draws.clipped > 0)
    rough = ", except that the solver is approximate" * (solver.guarantee != "exact")
    return _Draws(
        graph.original_states(draws.states),
        solver.name,
        f"Gibbs{clipped}{rough}",
        {
            "attempts": draws.attempts,
            "acceptance": draws.acceptance,
            "clipped": draws.clipped,
            "log_bound": sampler.log_bound,
            "map_calls": sampler.map_calls,
        },
    )


def _solver(graph: FactorGraph, request: SampleRequest) -> MapSolver:
    """The MAP solver that was named or chosen; a message says which."""
    from thesis_cli.inference.choose import map_solver

    solver, why = map_solver(graph, request.solver, bytes_of(request.memory))
    logger.debug("MAP by %s%s", solver.name, f" ({why})" if why else "")
    return solver


COMMAND = Command(
    SampleRequest,
    run,
    examples=(
        "sample data/models/asia.bif --evidence xray=yes --count 1000 --seed 1",
        "sample data/models/ising-4x4.uai --method perturb --count 100",
        "sample data/models/zipf-1000.csv --count 10",
    ),
)
