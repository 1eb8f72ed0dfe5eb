"""`thesis-cli marginals`: compute the distribution of each variable of a model."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration, UnsuitableModel, WorkFailed, about, nearest
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    bytes_of,
    check_uai,
    evidence_option,
    format_option,
    label,
    max_configurations_option,
    memory_option,
    model_argument,
    open_model,
    seed_option,
    seed_or_fresh,
    uai_option,
    write_uai,
)
from thesis_cli.commands.core.fields import Request, heeding, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.figures.shares import draw_shares
from thesis_cli.commands.ln_z.bounds import variables_of
from thesis_cli.commands.outputs.variables import distribution_lines, naming_columns, state_names

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.factor_graph import FactorGraph

MethodName = Literal["exact", "weighted", "bethe", "trw", "sample"]

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True, kw_only=True)
class MarginalsRequest(Request):
    """Compute the distribution of each variable: exactly, by message passing, or from samples."""

    usual = ("variables", "method", "samples", "evidence", "seed")

    model: ModelSource = model_argument()
    method: Literal["auto", MethodName] = option(
        "auto",
        "Method; auto is exact if that fits the memory, else weighted, or bethe if too few samples are effective.",
    )
    samples: int = option(10_000, "Exact samples to draw.", least=2, most=10**8, methods=("sample",))
    evidence: tuple[str, ...] | None = evidence_option()
    variables: tuple[str, ...] | None = option(
        None, "Variables to show, numbers or names, as in 0,5.", default_text="all", objects=True, metavar="VARIABLES"
    )
    format: FormatName | None = format_option()
    max_configurations: int = max_configurations_option(methods=("exact", "sample"))
    memory: float = memory_option(methods=("exact", "weighted", "sample"))
    seed: int | None = seed_option()
    uai: Path | None = uai_option("MAR")


@dataclass(frozen=True, kw_only=True, repr=False)
class MarginalsResult(Result):
    """The marginals of the variables that were asked for, or of all.

    Attributes
    ----------
    table : a row for each state of each of them: variable, state and probability; their names, if
        the model has them; for samples the standard error.
    states : for each of them, by its name or as x0, x1, ..., the names of its states, else their
        numbers.
    marginals : one array for each of them, the probabilities of its states as they are numbered
        without evidence.
    log_z : ln Z, exact, bounded or approximate as the marginals are; None for samples.
    algorithm : how the marginals were found.
    description : size of the model.
    """

    states: Mapping[str, Sequence[str]]
    marginals: list[Floats]
    log_z: float | None
    algorithm: str
    description: str

    def __getitem__(self, variable: str) -> dict[str, float]:
        """The probabilities of the states of a variable, by their names.

        Raises
        ------
        KeyError : there is no such variable; its text names the nearest.
        """
        if variable not in self.states:
            raise KeyError(f"no variable {variable!r}; {nearest(variable, self.states, 'the variables are')}")
        table = self.marginals[list(self.states).index(variable)]
        return dict(zip(self.states[variable], table.tolist(), strict=True))

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, method, and a line for each of the first variables."""
        return [
            ("model", f"{self.settings['model']}: {self.description}"),
            ("marginals", self.algorithm),
            *distribution_lines(self.states, self.marginals),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Method of the marginals, and the marginals in the order of the variables."""
        return {
            "algorithm": self.algorithm,
            "log_z": self.log_z,
            "states": self.states,
            "marginals": [table.tolist() for table in self.marginals],
        }

    @presentation
    def draw(self) -> Figure:
        """A bar for each variable, or a map of its states if there are many."""
        import numpy as np

        count = max(map(len, self.marginals))
        shares = np.full((len(self.marginals), count), np.nan)
        for row, table in zip(shares, self.marginals, strict=True):
            row[: len(table)] = table
        named = [{own[k] for own in self.states.values() if k < len(own)} for k in range(count)]
        alike = all(len(names) == 1 and not next(iter(names)).isdigit() for names in named)
        labels = {k: next(iter(names)) if alike else f"state {k}" for k, names in enumerate(named)}
        title = f"{self.settings['model']}, {self.algorithm}".replace("$", r"\$")
        return draw_shares(list(self.states), shares, labels, "probability", title)


@dataclass(frozen=True)
class _FoundMarginals:
    """Marginals over the states that evidence leaves, shape (sum of cardinalities,); `trusted` if their standard
    errors mean something.
    """

    probabilities: Floats
    log_z: float | None
    algorithm: str
    standard_errors: Floats | None = None
    trusted: bool = True


def run(request: MarginalsRequest, progress: Progress) -> MarginalsResult:
    """Compute marginals by the method asked for, or the first that takes the model."""
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.models.uai import marginals

    check_uai(request.uai, request)
    method = _method(request)
    model = open_model(request.model, request.format, request.evidence)
    with about(label(request.model)):
        if not isinstance(model, FactorGraph):
            raise UnsuitableModel("this is a vector, not a model with variables", "give a factor graph")
        chosen = _chosen(model, request)
        try:
            found, seed = _compute(model, method, request, progress)
        except ModelTooLarge as error:
            if request.method != "auto" or method != "exact":
                raise
            logger.info("not exact: %s; weighted samples estimate", error.problem)
            method = "weighted"
            found, seed = _compute(model, method, request, progress)
            if not found.trusted:
                logger.info("too few samples are effective; Bethe approximates, with an error that is not known")
                method = "bethe"
                found, seed = _compute(model, method, request, progress)
    tables = model.original_marginals(found.probabilities)
    write_uai(request.uai, marginals(tables))
    states = state_names(model)
    names = list(states)
    return MarginalsResult(
        columns=_columns(model, tables, found.standard_errors, chosen),
        request=request,
        settings=settings_of(request, method=method, seed=seed),
        states={names[i]: states[names[i]] for i in chosen},
        marginals=[tables[i] for i in chosen],
        log_z=found.log_z,
        algorithm=found.algorithm,
        description=model.describe(),
    )


def _chosen(graph: FactorGraph, request: MarginalsRequest) -> list[int]:
    """The variables to show.

    Raises
    ------
    InputError : there is no such variable.
    """
    if request.variables is None:
        return list(range(len(graph.cardinalities)))
    return list(dict.fromkeys(variables_of(graph, request.variables)))


def _method(request: MarginalsRequest) -> MethodName:
    """The method asked for; for `auto` the first that heeds all options given."""
    methods: tuple[MethodName, ...] = get_args(MethodName)
    if request.method != "auto":
        return request.method
    heeded = heeding(request, methods)
    return next(m for m in methods if m in heeded)


def _compute(
    graph: FactorGraph, method: MethodName, request: MarginalsRequest, progress: Progress
) -> tuple[_FoundMarginals, int | None]:
    """The marginals, and the seed if random numbers were drawn."""
    if method == "exact":
        return _exact(graph, request, progress), request.seed
    if method == "trw":
        return _trw(graph), request.seed
    seed = seed_or_fresh(request.seed)
    if method == "bethe":
        return _bethe(graph, seed), seed
    return (_weighted if method == "weighted" else _sample)(graph, request, seed), seed


def _exact(graph: FactorGraph, request: MarginalsRequest, progress: Progress) -> _FoundMarginals:
    from thesis_cli.inference.marginals import exact_marginals

    with progress(graph.size, "configurations") as tick:
        log_z, probabilities, how = exact_marginals(
            graph,
            memory=bytes_of(request.memory),
            max_configurations=request.max_configurations,
            progress=tick,
        )
    return _FoundMarginals(probabilities, log_z, f"exact, by {how}")


def _bethe(graph: FactorGraph, seed: int) -> _FoundMarginals:
    from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function

    found = bethe_log_partition_function(graph, seed=seed)
    return _passed(found.marginals, found.value, found.converged, "Bethe approximation by belief propagation")


def _trw(graph: FactorGraph) -> _FoundMarginals:
    from thesis_cli.inference.message_passing.trw import trw_log_partition_function

    found = trw_log_partition_function(graph)
    return _passed(found.marginals, found.value, found.converged, "tree-reweighted approximation")


def _passed(probabilities: Floats, log_z: float, converged: bool, algorithm: str) -> _FoundMarginals:
    """Marginals that message passing finds."""
    if log_z == -math.inf:  # message passing gives -inf only where ln Z is
        raise NoConfiguration()
    if not converged:
        logger.warning("messages did not converge: the marginals are those of the last messages")
    return _FoundMarginals(probabilities, log_z, algorithm + ("" if converged else ", not converged"))


def _sample(graph: FactorGraph, request: MarginalsRequest, seed: int) -> _FoundMarginals:
    import numpy as np

    from thesis_cli.inference.sampling.draws import exact_samples

    count = request.samples
    states, how = exact_samples(
        graph,
        count,
        np.random.default_rng(seed),
        memory=bytes_of(request.memory),
        max_configurations=request.max_configurations,
    )
    shares = [_shares(graph, states[:, i], i) for i in range(states.shape[1])]
    p = np.concatenate(shares) / count
    errors = np.sqrt(p * (1 - p) / (count - 1))
    return _FoundMarginals(p, None, f"frequencies in {count:,} exact samples, by {how}", errors)


def _weighted(graph: FactorGraph, request: MarginalsRequest, seed: int) -> _FoundMarginals:
    import numpy as np

    from thesis_cli.inference.weighted_marginals import weighted_marginals

    found = weighted_marginals(graph, np.random.SeedSequence(seed), bytes_of(request.memory))
    if not found.trusted and request.method == "weighted":
        raise WorkFailed(f"only {found.effective:.0f} of {found.samples:,} samples are effective: take --method bethe")
    algorithm = f"estimated from {found.samples:,} {found.method}, {found.effective:.0f} of them effective"
    return _FoundMarginals(found.probabilities, found.log_z, algorithm, found.standard_errors, found.trusted)


def _shares(graph: FactorGraph, states: np.ndarray[Any, Any], variable: int) -> np.ndarray[Any, Any]:
    """Frequencies among draws of the states that evidence leaves."""
    import numpy as np

    own = np.zeros_like(states) if variable in graph.observed else states
    return np.bincount(own, minlength=graph.cardinalities[variable])


def _columns(graph: FactorGraph, tables: list[Floats], errors: Floats | None, chosen: list[int]) -> Columns:
    """A row for each state of each variable that is shown."""
    import numpy as np

    variables = np.repeat(chosen, [graph.unobserved[i] for i in chosen])
    states = np.concatenate([np.arange(graph.unobserved[i]) for i in chosen])
    columns = naming_columns(graph, variables, states)
    columns["probability"] = np.concatenate([tables[i] for i in chosen])
    if errors is not None:
        left = np.split(errors, np.cumsum(graph.cardinalities)[:-1])
        whole = [np.zeros(graph.unobserved[i]) if i in graph.observed else left[i] for i in chosen]
        columns["standard_error"] = np.concatenate(whole)
    return Columns(columns)


COMMAND = Command(
    MarginalsRequest,
    run,
    examples=(
        "marginals data/models/asia.bif --evidence xray=yes --variables lung,bronc",
        "marginals data/models/ising-4x4.uai --method bethe --json",
        "marginals data/models/asia.uai --method sample --samples 1000 --seed 1 --uai asia.uai.MAR",
    ),
)
