"""`thesis-cli explain`: print which functions and lambdas a network predicts from examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about, counted
from thesis_cli.base.progress import Progress, Stopwatch
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.figures.attributes import bars_figure, map_figure
from thesis_cli.commands.inputs.programs import guide_lines, guide_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Bools, Floats
    from thesis_cli.synthesis.language.task import Task
    from thesis_cli.synthesis.prior import Guide

    TaskSource = str | Path | Task | Mapping[str, Any] | list[Any] | tuple[Any, ...]
    """A file, a task, a list of tasks, or examples; see `task.tasks_of`."""
    GuideSource = str | Path | Guide
    """A name, a file, or a guide."""
else:
    TaskSource = GuideSource = str

LISTED = 10
"""Up to so many tasks are listed one by one; more are averaged."""

LIKELY = 0.5
"""From this probability on, an attribute is listed."""

WIDTH = 40
"""Characters of a bar of probability 1."""


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(Request):
    """Print the probability that a program which fits the examples uses each function and lambda.

    These are the predictions that `synthesize --guide` orders a search by.
    """

    tasks: TaskSource = argument(
        "Examples: JSON, or JSON Lines with one task a line; - reads standard input.", names="file", objects=True
    )
    guide: GuideSource = option(
        "network", "Network: network, the name of shipped weights, or a file of weights.", names="file", objects=True
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class ExplainResult(Result):
    """The predicted probabilities.

    Attributes
    ----------
    tasks : in order.
    probabilities : of the attributes of each task, shape (B, 34), in the order of `dsl.ATTRIBUTES`.
    used : which attributes the program of each task uses, shape (34,); None where the task states no
        program.
    guidance : the `identity` of the guide, the `seconds` that it took, and `by_prior`, 0.
    """

    tasks: tuple[Task, ...]
    probabilities: Floats
    used: tuple[Bools | None, ...]
    guidance: Mapping[str, Any]

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Bars of one task, the likely attributes of each of a few, or bars of the means of many."""
        from thesis_cli.synthesis.language.program import signature

        guide = guide_lines(self.guidance, len(self.tasks))
        if len(self.tasks) == 1:
            (task,) = self.tasks
            examples = counted(len(task.examples), "example")
            head = [("task", f"{task.name}: {examples}, {signature(task.inputs)} -> {task.output}")]
            head += [("program", task.program)] if task.program else []
            return [*head, *_bars(self.probabilities[0], self.used[0]), *guide]
        if len(self.tasks) <= LISTED:
            return [
                *((task.name, _likely(row)) for task, row in zip(self.tasks, self.probabilities, strict=True)),
                *guide,
            ]
        head = [("tasks", f"{len(self.tasks):,}, means over them")]
        return [*head, *_bars(self.probabilities.mean(axis=0), None), *guide]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The guide and its time."""
        return {"guidance": self.guidance}

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """Settings and all rows."""
        return {**super().to_dict(), "found": self.columns.records()}

    @presentation
    def draw(self) -> Figure:
        """Bars of one task, in the order of figure 5.2, or a map of several."""
        if len(self.tasks) == 1:
            return bars_figure(self.probabilities[0], self.used[0], self.tasks[0].name)
        return map_figure([task.name for task in self.tasks], self.probabilities, self.used, self.guidance["identity"])


def run(request: ExplainRequest, progress: Progress) -> ExplainResult:
    """Ask the guide once, for all tasks."""
    import numpy as np

    from thesis_cli.synthesis.language.dsl import LONGEST, WIDEST, Semantics
    from thesis_cli.synthesis.language.task import tasks_of

    whole = Stopwatch()
    guide = _guide(request.guide)
    tasks = tasks_of(request.tasks, Semantics(low=-WIDEST, high=WIDEST, longest=LONGEST))
    used = tuple(map(_used, tasks))
    watch = Stopwatch()
    probabilities = np.array(_orders(guide, tasks))
    guidance = {"identity": guide.identity, "seconds": round(watch.seconds, 6), "by_prior": 0}
    parts = zip(tasks, probabilities, used, strict=True)
    named = isinstance(request.guide, str | Path)
    return ExplainResult(
        columns=Columns([row for task, p, use in parts for row in _rows(task.name, p, use)]),
        request=request,
        settings=settings_of(request, **({} if named else {"guide": guide.identity})),
        seconds=whole.seconds,
        tasks=tuple(tasks),
        probabilities=probabilities,
        used=used,
        guidance=guidance,
    )


def _guide(guide: object) -> Guide:
    """A network by name or from a file, or a guide as it is."""
    from thesis_cli.synthesis.prior import Guide

    if isinstance(guide, str | Path):
        return guide_named(guide)
    if not isinstance(guide, Guide):
        remedy = "it must be network, a file of weights, or a Guide"
        raise InputError(f"--guide is an object of type {type(guide).__name__}", remedy)
    return guide


def _orders(guide: Guide, tasks: Sequence[Task]) -> list[tuple[float, ...]]:
    """The probabilities of each task.

    Raises
    ------
    InputError : the guide has none for a task.
    """
    from thesis_cli.synthesis.networks.network_guide import NetworkGuide
    from thesis_cli.synthesis.prior import orders_of

    if isinstance(guide, NetworkGuide) and (refusal := next(filter(None, map(guide.refusal, tasks)), None)):
        raise refusal
    return [order.probabilities for order in orders_of(guide, tasks)]


def _used(task: Task) -> Bools | None:
    """Attributes that the program of a task uses, if it states one."""
    import numpy as np

    from thesis_cli.synthesis.language.dsl import ATTRIBUTES
    from thesis_cli.synthesis.language.program import parse

    if not task.program:
        return None
    with about(task.name):
        used = parse(task.program).attributes
    return np.isin(np.arange(len(ATTRIBUTES)), list(used))


def _rows(name: str, probabilities: Floats, used: Bools | None) -> list[dict[str, Any]]:
    """Rows of a task, the most probable attribute first."""
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES, FUNCTIONS

    return [
        {
            "task": name,
            "rank": rank,
            "attribute": ATTRIBUTES[place],
            "kind": "function" if place < len(FUNCTIONS) else "lambda",
            "probability": round(float(probabilities[place]), 6),
            "used": None if used is None else bool(used[place]),
        }
        for rank, place in enumerate(_ranked(probabilities), 1)
    ]


def _ranked(probabilities: Floats) -> list[int]:
    """Places of the attributes, the most probable first; ties by place."""
    return sorted(range(len(probabilities)), key=lambda place: -float(probabilities[place]))


def _bars(probabilities: Floats, used: Bools | None) -> list[tuple[str, str]]:
    """A line for each attribute, the most probable first."""
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES

    lines = []
    for place in _ranked(probabilities):
        bar = "#" * round(WIDTH * float(probabilities[place]))
        mark = "  in the program" * (used is not None and bool(used[place]))
        lines.append((ATTRIBUTES[place], f"{probabilities[place]:.3f}  {bar}{mark}"))
    return lines


def _likely(probabilities: Floats) -> str:
    """The attributes of at least `LIKELY`, or the most probable one, with their probabilities."""
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES

    places = _ranked(probabilities)
    count = max(1, sum(float(p) >= LIKELY for p in probabilities))
    return ", ".join(f"{ATTRIBUTES[place]} {probabilities[place]:.2f}" for place in places[:count])


COMMAND = Command(
    ExplainRequest,
    run,
    examples=(
        "explain data/tasks/negatives.json",
        "explain data/tasks/all.jsonl --guide lines-3 --figure results/runs/explain.png",
    ),
)
