"""`thesis-cli spin-glass`: bound ln Z of a spin glass on a grid, several methods side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, counted
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, silent
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    SolverName,
    bytes_of,
    confidence_option,
    jobs_option,
    memory_option,
    seed_option,
    seed_or_fresh,
    solver_option,
)
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.figures.bounds import couplings_figure, intervals_figure
from thesis_cli.commands.ln_z.bounds import UNIT, any_alpha_option, check_interval, exact_bound, interval_option
from thesis_cli.commands.ln_z.estimates import IntervalName, LnZOptions
from thesis_cli.commands.ln_z.methods import answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate

COMPARED = ("unary", "average", "bethe", "trw")
"""Methods of `bound` that stand side by side, as in Thesis Figure 2.4."""
MOST_SITES = 10**6
MOST_CONFIGURATIONS = 2**20
"""Configurations to enumerate for the exact answer, where no grid or elimination gives it."""


@dataclass(frozen=True, kw_only=True)
class SpinGlassRequest(Request):
    """Bound ln Z of a spin glass on a grid: exact, perturb-and-MAP, Bethe and TRW side by side."""

    usual = ("size", "coupling", "field", "kind", "samples", "solver", "seed")

    size: str = option("10x10", "Size of the grid, rows x columns.", metavar="ROWSxCOLUMNS")
    coupling: tuple[float, ...] = option(
        (1.0,),
        "Strength C: couplings are U[0, C] if attractive, U[-C, C] if mixed. Several share their random numbers.",
        least=0,
        most=1e30,
    )
    field: float = option(1.0, "Strength f: fields are U[-f, f].", least=0, most=1e30)
    kind: Literal["attractive", "mixed"] = option("attractive", "Kind of the couplings.")
    published: str | None = option(
        None,
        "Strength C of a model of Thesis Figure 2.4, as the author's generator makes it, such as 1.66667.",
        metavar="NUMBER",
    )
    model_seed: int | None = option(
        None,
        "Seed of the random model.",
        least=0,
        default_text="the value of --seed",
    )
    samples: int = option(1000, "Number of MAP calls for each of the two bounds.", least=1, most=10**8)
    alpha: tuple[float, ...] | None = option(
        None,
        "Exponent of the bounds U(alpha) and L(alpha); 0 is the Gumbel trick.",
        above=-1,
        most=1000,
        default_text="0 and -0.4/sqrt(sites)",
    )
    any_alpha: bool = any_alpha_option()
    confidence: float = confidence_option()
    confidence_method: IntervalName = interval_option()
    solver: SolverName = solver_option()
    save: Path | None = option(
        None,
        "File for the model, .uai.",
        names="output",
        not_swept="the tasks of a sweep would overwrite each other's file",
    )
    memory: float = memory_option()
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options that do not go together, and a grid that is none."""
        self.shape()
        check_interval(self.confidence_method, self.alpha)
        if self.published is not None:
            self.refuse(("coupling", "field", "model_seed"), "--published", "the author's model has its own")
            if not _is_number(self.published):
                raise InputError(f"--published is {self.published[:40]}", "it must be a number")
        if not self.coupling:
            raise InputError("--coupling is empty", "give one or more numbers")
        if self.save is not None and len(self.couplings()) > 1:
            raise InputError(f"--save does not go with {len(self.coupling)} couplings", "give one --coupling")

    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid.

        Raises
        ------
        InputError : the size is no grid, or one that is too large.
        """
        match = re.fullmatch(r"(\d{1,7})x(\d{1,7})", self.size.strip().lower())
        if not match:
            raise InputError(f"--size is {self.size[:40]}", "it must be rows x columns, as in 10x10")
        rows, columns = int(match[1]), int(match[2])
        if not 1 <= rows * columns <= MOST_SITES:
            raise InputError(f"--size {self.size} has {rows * columns:,} sites", f"1 to {MOST_SITES:,} are allowed")
        return rows, columns

    def couplings(self) -> tuple[float, ...]:
        """The strengths, each once."""
        return tuple(dict.fromkeys(self.coupling))


class BoundedGlass(NamedTuple):
    """One model and its bounds: the exact ln Z first, if it can be had."""

    coupling: float | str
    description: str
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SpinGlassResult(Result):
    """Bounds on ln Z of one model for each coupling.

    Attributes
    ----------
    models : one for each coupling.
    map_calls : number of MAP problems solved for all of them.
    """

    models: tuple[BoundedGlass, ...]
    map_calls: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The bounds of the first model."""
        return self.models[0].estimates

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Each model with a line for each bound."""
        lines = []
        s = self.settings
        for model in self.models:
            what = f"{s['kind']} {s['size']}, coupling {model.coupling}, field {s['field']}"
            lines.append(("model", f"{what}: {model.description}"))
            lines += [(e.target, f"{e.text()}  ({e.method}, {e.kind})") for e in model.estimates]
        return [*lines, ("work", counted(self.map_calls, "MAP call"))]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The bounds of all models, for JSON."""
        rows = [{"coupling": model.coupling, **e.row()} for model in self.models for e in model.estimates]
        return {"estimates": rows, "map_calls": self.map_calls}

    @presentation
    def draw(self) -> Figure:
        """Bounds against the coupling; of one model, its bounds with their intervals."""
        if len(self.models) == 1:
            return intervals_figure(self.estimates)
        s = self.settings
        title = f"{s['kind']} {s['size']}, {s['samples']:,} MAP calls each"
        return couplings_figure([(float(model.coupling), model.estimates) for model in self.models], title)


def run(request: SpinGlassRequest, progress: Progress) -> SpinGlassResult:
    """Make the models and bound each of them."""
    from thesis_cli.models import uai

    if request.save is not None:
        check_writable("--save", request.save, ".uai")
    rows, columns = request.shape()
    seed = seed_or_fresh(request.seed)
    model_seed = seed if request.model_seed is None else request.model_seed
    couplings = request.couplings() if request.published is None else (request.published,)
    options = _options(request, seed)
    models, calls = [], 0
    with progress(2 * request.samples * len(couplings), UNIT) as tick:
        for coupling in couplings:
            graph = _graph(request, coupling, model_seed)
            estimates = exact_bound(graph, options.memory, MOST_CONFIGURATIONS, silent)
            for name in COMPARED:
                found = answer(name, graph, options, lambda total, unit: nullcontext(tick))
                estimates += found.estimates
                calls += found.map_calls
            models.append(BoundedGlass(coupling, graph.describe(), tuple(estimates)))
    if request.save is not None:
        write_atomic({request.save: uai.write(graph)})
    same = {"rows": rows, "columns": columns, "model_kind": request.kind, "field": request.field}
    same |= {"samples": request.samples, "seed": seed, "model_seed": model_seed}
    table = [{**same, "coupling": model.coupling, **e.row()} for model in models for e in model.estimates]
    return SpinGlassResult(
        columns=Columns(table),
        request=request,
        settings=settings_of(request, seed=seed, model_seed=model_seed, alpha=list(options.alphas)),
        models=tuple(models),
        map_calls=calls,
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _options(request: SpinGlassRequest, seed: int) -> LnZOptions:
    rows, columns = request.shape()
    alphas = request.alpha
    if alphas is None:
        small = -round(0.4 / math.sqrt(rows * columns), 3)
        alphas = (0.0,) if request.confidence_method == "concentration" else (0.0, small)
    return LnZOptions(
        samples=request.samples,
        seed=seed,
        jobs=jobs_or_all(request.jobs),
        solver=request.solver,
        memory=bytes_of(request.memory),
        alphas=tuple(dict.fromkeys(alphas)),
        confidence=request.confidence,
        interval=request.confidence_method,
        any_alpha=request.any_alpha,
    )


def _graph(request: SpinGlassRequest, coupling: float | str, model_seed: int) -> FactorGraph:
    import numpy as np

    from thesis_cli.models.spin_glass import published_spin_glass, random_spin_glass

    rows, columns = request.shape()
    if request.published is not None:
        return published_spin_glass(coupling, request.kind, rows, columns).graph()
    rng = np.random.default_rng(model_seed)
    return random_spin_glass(rows, columns, float(coupling), request.field, request.kind, rng).graph()


COMMAND = Command(
    SpinGlassRequest,
    run,
    examples=(
        "spin-glass --size 6x6 --coupling 1 --kind mixed --seed 3",
        "spin-glass --published 1.66667 --kind attractive --alpha -0.04 --alpha 0",
        "spin-glass --size 5x5 --coupling 0 --coupling 1 --coupling 2 --samples 200 --figure couplings.png",
        "spin-glass --size 30x30 --field 0.5 --save glass.uai --samples 20",
    ),
)
