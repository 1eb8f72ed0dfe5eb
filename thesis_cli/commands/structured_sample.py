"""`thesis-cli structured sample`: draw structures of an exponential family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about, counted
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import label, seed_option, seed_or_fresh
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.structures import (
    StructuredSource,
    check_linear,
    check_rows,
    noise_option,
    open_structured,
    structured_argument,
)
from thesis_cli.structured.names import NoiseName

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Ints
    from thesis_cli.structured.model_file import StructuredModel

SHOWN = 3
"""Structures that the summary lists."""


@dataclass(frozen=True, kw_only=True)
class StructuredSampleRequest(Request):
    """Draw structures of an exponential family, or near it."""

    usual = ("count", "method", "seed")

    model: StructuredSource = structured_argument()
    count: int = option(1000, "Structures to draw.", least=1, most=10**7)
    method: Literal["draw", "meta", "truncated", "perturb"] = option(
        "draw",
        "Method: the space's own exact algorithm, coupling from the past, ends of chains, or MAP under noise.",
    )
    distance: float = option(
        0.01, "Total variation distance that chains keep.", above=0, below=1, methods=("truncated",)
    )
    steps: int | None = option(
        None, "Steps of a chain.", least=1, default_text="as --distance needs", methods=("truncated",)
    )
    most_steps: int = option(
        10**7, "Uniform structures after which chains give up.", least=1, methods=("meta", "truncated")
    )
    noise: NoiseName | None = noise_option()
    seed: int | None = seed_option()

    def check(self) -> None:
        """Refuse two lengths of a chain."""
        if self.steps is not None and self.distance != 0.01:
            raise InputError("--steps and --distance are both given", "leave one out")


@dataclass(frozen=True, kw_only=True, repr=False)
class StructuredSampleResult(Result):
    """The structures that were drawn.

    Attributes
    ----------
    table : a row for each draw. Columns are elements: bits, positions of items, or numbers of
        blocks; for cycles they are places, and rows list the numbers of vertices, then -1.
    source : name of the model, a file or an object.
    model : the space with its weights.
    structures : the same as an array, shape (count, width).
    algorithm : how they were drawn.
    distribution : the distribution that they follow.
    uniform_structures : uniform structures that chains took in all.
    distance : bound on the total variation distance of a draw from the model; None if there is none.
    """

    source: str
    model: StructuredModel
    structures: Ints
    algorithm: str
    distribution: str
    uniform_structures: int = 0
    distance: float | None = 0.0

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, how the draws were made, and the most frequent structures."""
        count = len(self.structures)
        lines = [
            ("model", f"{self.source}: {self.model.describe()}"),
            ("draws", f"{count:,} by {self.algorithm}: {self.distribution}"),
        ]
        if self.uniform_structures:
            each = self.uniform_structures / count
            lines.append(("chains", f"{counted(self.uniform_structures, 'uniform structure')}, {each:,.4g} a draw"))
        lines += [("frequent", f"{text}  ({share:.1%})") for text, share in self._frequent()]
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Method and cost of the draws, and the most frequent structures."""
        return {
            "algorithm": self.algorithm,
            "distribution": self.distribution,
            "uniform_structures": self.uniform_structures,
            "distance": self.distance,
            "most_frequent": dict(self._frequent()),
        }

    def _frequent(self) -> list[tuple[str, float]]:
        """The most frequent structures with their shares of the draws."""
        import numpy as np

        rows, counts = np.unique(self.structures, axis=0, return_counts=True)
        best = np.argsort(-counts, kind="stable")[:SHOWN]
        return [(self.model.text(rows[k]), float(counts[k]) / len(self.structures)) for k in best]


@dataclass(frozen=True)
class _Drawn:
    """Structures, and how they came about."""

    structures: Ints
    algorithm: str
    distribution: str
    steps: int = 0
    distance: float | None = 0.0


def run(request: StructuredSampleRequest, progress: Progress) -> StructuredSampleResult:
    """Draw by the method asked for."""
    import numpy as np

    seed, source = seed_or_fresh(request.seed), label(request.model)
    with about(source):
        model = open_structured(request.model)
        check_rows("--count", request.count, model)
        if request.method != "draw":
            check_linear(f"--method {request.method}", model)
        root = np.random.SeedSequence(seed)
        if request.method == "perturb":
            drawn = _perturbed(model, request, root, progress)
        elif request.method == "draw":
            rows = model.space.draw(model.weights, request.count, np.random.default_rng(root))
            drawn = _Drawn(rows, "the space's algorithm", "exact")
        else:
            drawn = _chained(model, request, np.random.default_rng(root))
    return StructuredSampleResult(
        columns=Columns(dict(zip(model.columns(), drawn.structures.T, strict=True))),
        request=request,
        settings=settings_of(request, seed=seed),
        source=source,
        model=model,
        structures=drawn.structures,
        algorithm=drawn.algorithm,
        distribution=drawn.distribution,
        uniform_structures=drawn.steps,
        distance=drawn.distance,
    )


def _chained(model: StructuredModel, request: StructuredSampleRequest, rng: np.random.Generator) -> _Drawn:
    """Coupling from the past, or the ends of chains of one length."""
    from thesis_cli.structured.meta import Coupled, Truncated
    from thesis_cli.structured.ranges import map_range

    space, weights = model.space, model.weights
    limits = map_range(space, weights)
    if request.method == "meta":
        found = Coupled(request.most_steps)(space, weights, request.count, rng, limits)
        return _Drawn(found.structures, "META, coupling from the past", "exact", found.steps)
    chains = Truncated(request.distance, request.steps, request.most_steps)
    found = chains(space, weights, request.count, rng, limits)
    length = counted(found.steps // request.count, "step")
    text = f"within {found.distance:.3g} of the model in total variation"
    return _Drawn(found.structures, f"META, chains of {length}", text, found.steps, found.distance)


def _perturbed(
    model: StructuredModel, request: StructuredSampleRequest, seed: np.random.SeedSequence, progress: Progress
) -> _Drawn:
    """Maximisers under noise on variables."""
    from thesis_cli.structured.catalogue import kind_of, noise_on
    from thesis_cli.structured.perturb import structured_maxima

    noise = noise_on(model.space, model.weights, request.noise)
    with progress(request.count, "draws") as tick:
        maxima = structured_maxima(noise, request.count, seed, progress=tick)
    if model.space.name == "hypercube" and kind_of(model.space) == "linear":
        return _Drawn(maxima.structures, "MAP under noise on bits", "exact, since bits are independent")
    solver = "" if maxima.exact else ", by local search"
    text = f"that of the maximiser under noise on {noise.variables}{solver}, not the model's"
    return _Drawn(maxima.structures, f"MAP under noise on {noise.name}", text, distance=None)


COMMAND = Command(
    StructuredSampleRequest,
    run,
    examples=(
        "structured sample data/models/ranking.toml --count 1000 --seed 1",
        "structured sample data/models/taxonomy.toml --method meta --count 500 --seed 1",
        "structured sample data/models/ring.toml --method perturb --count 200 --seed 1",
    ),
)
