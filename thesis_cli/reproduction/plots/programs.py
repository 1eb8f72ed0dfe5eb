"""Figures of searches for programs: tasks solved against time, and what a guide predicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.plots.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST = 60
"""Characters of a program beside its bar."""
MOST = 40
"""Programs of one task that a figure has room for."""


def solved(run: Run) -> Figure:
    """Numbers of tasks that have a program, and one that is proven shortest, after each time; of one task
    with several programs, how likely each is."""
    from thesis_cli.base.figures import COLOURS, label, panels

    tasks, ranks = run.texts("task"), run.numbers("rank")
    if len(set(tasks)) == 1 and len(tasks) > 1:
        return _programs(run)
    first = [not rank > 1 for rank in ranks]
    total = sum(first)
    after, seconds = run.numbers("found_after"), run.numbers("seconds")
    proven = run.texts("proven")
    found = sorted(time for time, one in zip(after, first, strict=True) if one and math.isfinite(time))
    shortest = sorted(s for s, p, one in zip(seconds, proven, first, strict=True) if one and p == "True")
    figure, axes = panels(1, 1, height=3.0)
    limit = run.settings.get("timeout")
    end = max([*found, *shortest, 1e-4, limit if isinstance(limit, int | float) else 0.0])
    start = min([time for time in (*found, *shortest) if time > 0], default=end / 10) / 2
    for times, name, colour in ((found, "a program is found", 0), (shortest, "it is proven shortest", 1)):
        _steps(axes, times, start, end, f"{name}: {len(times):,} of {total:,}", COLOURS[colour], "-:"[colour])
    if isinstance(limit, int | float):
        axes.axvline(limit, color="black", linewidth=0.8, linestyle="--", label=f"time limit, {limit:g} s")
    axes.set(xscale="log", ylim=(0, total * 1.05))
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="best")
    label(axes, "time of the search, s", "tasks", str(run.settings.get("tasks", run.path.name)).replace("$", r"\$"))
    return figure


def _steps(axes: Axes, times: list[float], start: float, end: float, name: str, colour: str, line: str) -> None:
    """A step up at each time."""
    places = [start, *(max(time, start) for time in times), end]
    axes.step(places, [*range(len(times) + 1), len(times)], where="post", color=colour, linestyle=line, label=name)


def _programs(run: Run) -> Figure:
    """Bars of the prior of the programs of one task, in the order of their ranks."""
    from thesis_cli.base.figures import COLOURS, label, panels

    programs, prior, lengths = run.texts("program"), run.numbers("log_prior"), run.texts("length")
    shown = range(min(MOST, len(programs)))
    figure, axes = panels(1, 1, height=1.0 + 0.25 * len(shown))
    low = min((prior[k] for k in shown if math.isfinite(prior[k])), default=-1.0)
    for k in shown:
        if math.isfinite(prior[k]):
            axes.plot([low * 1.05, prior[k]], [k, k], color=COLOURS[0])
            axes.plot([prior[k]], [k], "o", color=COLOURS[0])
    names = [f"{lengths[k]} lines: {_short(programs[k])}" for k in shown]
    axes.set_yticks(shown, names, fontsize=5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    cut = f"; the first {MOST} of {len(programs):,}" * (len(programs) > MOST)
    label(axes, "ln prior of the program", "", f"programs of {run.texts('task')[0]}{cut}".replace("$", r"\$"))
    return figure


def _short(program: str) -> str:
    """The lines of a program that are no inputs."""
    steps = [line for line in program.split("; ") if "<- int" not in line and "<- [int]" not in line]
    text = "; ".join(steps)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def explained(run: Run) -> Figure:
    """Probabilities of functions and lambdas: bars of one task, a map of several."""
    import numpy as np

    from thesis_cli.commands.figures.attributes import bars_figure, map_figure
    from thesis_cli.synthesis.language.dsl import ATTRIBUTES

    rows = zip(run.texts("task"), run.texts("attribute"), run.numbers("probability"), run.texts("used"), strict=True)
    predicted: dict[str, dict[str, tuple[float, str]]] = {}
    for task, attribute, probability, used in rows:
        predicted.setdefault(task, {})[attribute] = probability, used
    if any(set(found) != set(ATTRIBUTES) for found in predicted.values()):
        raise InputError(
            f"a task has other attributes than the {len(ATTRIBUTES)}", "run explain again", source=run.path
        )
    table = np.array([[found[name][0] for name in ATTRIBUTES] for found in predicted.values()])
    flags = [
        np.array([found[name][1] == "True" for name in ATTRIBUTES]) if any(one[1] for one in found.values()) else None
        for found in predicted.values()
    ]
    names = [name.replace("$", r"\$") for name in predicted]
    if len(names) == 1:
        return bars_figure(table[0], flags[0], names[0])
    guidance = run.record.get("guidance")
    guide = guidance.get("identity") if isinstance(guidance, dict) else run.settings.get("guide")
    return map_figure(names, table, flags, str(guide or run.path.name))
