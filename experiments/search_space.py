"""The space of programs: its size, the speed of enumeration, and the time that searches take to
solve random tasks.

All searches use only the prior, how often each function occurs in a corpus. Times are processor
seconds of the machine named in the record; another machine gives other times. The thesis has its
times for T = 3 alone (Table 5.1), of other tasks on another machine.
"""

from functools import cache

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement
from thesis_cli.studies.synthesis.goals import GOALS, PUBLISHED, TOWARD_GOALS, published
from thesis_cli.studies.synthesis.timing import SHARES, examine, time_limits, timed, unsolvable, until_found
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.corpus_maker import random_tasks
from thesis_cli.synthesis.dsl import LIST
from thesis_cli.synthesis.program import search_space
from thesis_cli.synthesis.program_codes import SIGNATURES
from thesis_cli.synthesis.solver import Limits
from thesis_cli.synthesis.solvers import SOLVERS, UNGUIDED

LENGTHS = (1, 2, 3, 4, 5)
GONE_THROUGH = 3
"""Largest length T at which every program is examined."""
BATCH = 20
"""Number of random tasks in one task of the experiment."""
ENOUGH = 10
"""Least number of random tasks for a comparison of two solvers."""
RESAMPLES = 1000
COMPILED = [name for name in UNGUIDED if SOLVERS[name].compiled]

GOAL = "goal of this project"
BEYOND = "5.5.1, programs of 5 lines and more"
"""Heading of docs/errata.md with goals that are not reached."""
FULL, LAZY = "examined in full", "examined lazily"
UNPRUNED = ("dfs, unpruned", "sort-and-add, unpruned")
STYLES = {name: (colour, "-") for name, colour in zip(UNGUIDED, COLOURS, strict=False)}
STYLES |= {name: (STYLES[name.removesuffix(", unpruned")][0], ":") for name in UNPRUNED}

ENOUGH_FOR_GOALS = 50
"""Least number of random tasks that decides on a goal."""


def tasks(settings):
    sizes = [{"part": "size", "signature": place, "repeats": settings["repeats"]} for place in range(len(SIGNATURES))]
    searches = [
        {
            "part": "solve",
            "length": length,
            "solvers": names,
            "tasks": settings["tasks"][str(length)],
            "first": first,
            "last": min(first + BATCH, count) - 1,
            "timeout": timeout,
        }
        for names, length, count, timeout in settings["solve"]
        for first in range(0, count, BATCH)
    ]
    return sizes + searches


def run(seed, part, **parameters):
    """A row for each size that was counted (`counted`) or enumerated, or for each random task.

    `programs` is the number of programs counted or examined, `seconds` the time of the whole
    search, `found` the part of it before the program was found, `answer` the length of that
    program, both empty if there is none, and `proven` whether no shorter one fits. Random tasks do
    not depend on `seed`: all solvers get the same.
    """
    rows = _sizes(**parameters) if part == "size" else _solved(**parameters)
    return pd.DataFrame(
        rows, columns=["part", "inputs", "length", "method", "task", "programs", "seconds", "found", "answer", "proven"]
    ).astype({"programs": "int64"})


def _sizes(signature, repeats):
    inputs = SIGNATURES[signature]
    task = unsolvable(inputs, np.random.default_rng(signature))
    rows = [("size", _text(inputs), length, "counted", "", search_space(inputs, length)) for length in LENGTHS]
    for length in range(1, GONE_THROUGH + 1):
        for method in (FULL, LAZY):
            found = [examine(task, length, method is LAZY) for _ in range(repeats)]
            seconds = min(seconds for _, seconds in found)
            rows.append(("size", _text(inputs), length, method, "", found[0][0], _rounded(seconds)))
    return [(*row, *[""] * (10 - len(row))) for row in rows]


def _solved(length, solvers, tasks, first, last, timeout):
    order, limits = prior.load(), Limits(length, timeout)
    rows = []
    for name in solvers:
        for number, task in enumerate(_drawn(length, tasks)[first : last + 1], first):
            solution, seconds = timed(name, task, order, limits)
            answer = len(solution.program) if solution.program else ""
            what = ("solve", _text(task.inputs), length, name, number)
            found = _rounded(until_found(solution, seconds)) if solution.program else ""
            rows.append((*what, solution.nodes, _rounded(seconds), found, answer, int(solution.proven)))
    return rows


@cache
def _drawn(length, count):
    return [labelled.task for labelled in random_tasks(length, count, np.random.default_rng(length))]


def _text(inputs):
    return ", ".join(inputs)


def _rounded(seconds):
    return float(f"{seconds:.3g}")


def plot(frame):
    solved, sizes = frame[frame.part == "solve"], frame[frame.method == "counted"]
    figure, axes = panels((solved.length.nunique() + 3) // 2, 2, squeeze=False)
    ax, medians, *others = axes.flat
    for colour, (inputs, rows) in zip(COLOURS, sizes.groupby("inputs", sort=False), strict=False):
        ax.semilogy(rows.length, rows.programs, "o-", color=colour, label=inputs)
    ax.semilogy([3, 5], [2e6, 1e10], "kx", markersize=5, label="the thesis")
    ax.set_xticks(LENGTHS)
    label(ax, "length $T$", "programs", "size of the space, by types of inputs")
    ax.legend(loc="upper left", handlelength=1.2, fontsize=6)
    _plot_medians(medians, solved)
    for ax, (length, rows) in zip(others, solved.groupby("length"), strict=False):
        for method, of in rows.groupby("method", sort=False):
            colour, style = STYLES[method]
            seconds = np.sort(of.found[of.answer.notna()])
            share = np.arange(len(seconds) + 1) / len(of)
            x = np.append(seconds, of.seconds.max())
            ax.step(x, share, where="pre", color=colour, linestyle=style, label=method)
        if length == 3:
            _plot_published(ax)
        if length in GOALS:
            ax.plot([GOALS[length][0], 10], [0.5, GOALS[length][1]], "k+", markersize=7)
        ax.set_xscale("log")
        ax.set_ylim(0, 1.02)
        label(ax, "processor seconds", "share of tasks solved", f"random tasks of length $T = {length}$")
    for ax in others[solved.length.nunique() :]:
        ax.set_axis_off()
    shown = dict(zip(*reversed(medians.get_legend_handles_labels()), strict=True))
    for ax in others:
        shown |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncol=4)
    return figure


def _plot_medians(ax, solved):
    """By length, the seconds by which half of the tasks are solved; bars are the thesis's 40 % to
    60 %."""
    for method, rows in solved.groupby("method", sort=False):
        colour, style = STYLES[method]
        lengths = rows.length.unique()
        half = [time_limits(rows.found[rows.length == length].fillna(np.inf), [0.5])[0] for length in lengths]
        ax.plot(lengths, np.where(np.isfinite(half), half, np.nan), "o", color=colour, linestyle=style, markersize=3)
    for method in PUBLISHED:
        for _, guided, points in published(method):
            seconds = [limit for limit, share in points if share > 0.2]
            x, fill = (2.93, STYLES[method][0]) if guided else (2.86, "none")
            ax.plot([x] * len(seconds), seconds, "^-", color=STYLES[method][0], mfc=fill, markersize=3)
    ax.plot(list(GOALS), [seconds for seconds, _ in GOALS.values()], "k+", markersize=7, label="goal")
    ax.set_yscale("log")
    label(ax, "length $T$", "processor seconds", "half of the tasks are solved")


def _plot_published(ax):
    for method in PUBLISHED:
        for name, guided, points in published(method):
            colour = STYLES[method][0]
            ax.plot(*zip(*points, strict=True), "^", color=colour, mfc=colour if guided else "none", ms=4, label=name)


def _size(inputs, length, method="counted"):
    def of(frame):
        rows = frame[(frame.inputs == _text(inputs)) & (frame.length == length) & (frame.method == method)]
        return rows.iloc[0]

    return of


def _programs(inputs, length):
    return lambda frame: Measurement(_size(inputs, length)(frame).programs)


def _order_of_magnitude(inputs, *lengths):
    """log10 of the number of programs of some lengths."""
    return lambda frame: Measurement(np.log10(sum(_size(inputs, length)(frame).programs for length in lengths)))


def _least_growth(frame):
    """Least log10 of the ratio of the sizes at T = 5 and T = 3, over types of inputs."""
    sizes = frame[frame.method == "counted"].pivot(index="inputs", columns="length", values="programs")
    return Measurement(np.log10(sizes[5] / sizes[3]).min())


def _examined(frame):
    """Programs examined by search without pruning, over the number that exist, where the two differ
    most."""
    sizes = frame[frame.part == "size"].pivot(index=["inputs", "length"], columns="method", values="programs")
    ratios = (sizes[[FULL, LAZY]].div(sizes["counted"], axis=0)).dropna().to_numpy().ravel()
    return Measurement(ratios[np.abs(ratios - 1).argmax()])


def _rate(frame):
    row = _size((LIST, LIST), 3, FULL)(frame)
    return Measurement(row.programs / row.seconds)


def _slower(slow, fast, share):
    """log10 of the ratio of the times by which two solvers solve a share of the tasks of length 3
    that both have.

    An unsolved task counts with the time spent on it, so that the ratio can only be too small. The
    standard error is that of the choice of tasks, by the bootstrap.
    """

    def measure(frame):
        rows = frame[(frame.part == "solve") & (frame.length == 3) & frame.method.isin([slow, fast])]
        seconds = rows.pivot(index="task", columns="method", values="seconds").reindex(columns=[slow, fast]).dropna()
        if len(seconds) < ENOUGH:
            return None
        both = seconds.to_numpy()
        rng = np.random.default_rng(0)

        def ratio(of):
            return np.log10(time_limits(of[:, 0], [share])[0] / time_limits(of[:, 1], [share])[0])

        resampled = [ratio(both[rng.integers(len(both), size=len(both))]) for _ in range(RESAMPLES)]
        return Measurement(ratio(both), np.std(resampled))

    return measure


def _goal(length, measure):
    """A measurement of the rows of a length by the solver that decides; None if they are too few.

    It has no standard error: a goal is about these very tasks.
    """

    def of(frame):
        rows = frame[(frame.part == "solve") & (frame.length == length) & (frame.method == TOWARD_GOALS[0])]
        return Measurement(measure(rows)) if len(rows) >= ENOUGH_FOR_GOALS else None

    return of


def _goals():
    for length, (seconds, solved) in GOALS.items():
        what = f"of random tasks of T = {length}, by {TOWARD_GOALS[0]}"
        by_median = _goal(length, lambda rows: rows.found.fillna(rows.seconds).median())
        by_share = _goal(length, lambda rows: rows.answer.notna().mean())
        statement = f"median seconds to a program {what}"
        yield Claim(f"median, T = {length}", GOAL, statement, seconds, "<", by_median, finding=BEYOND)
        yield Claim(
            f"solved, T = {length}", GOAL, f"share {what}, solved in 10 s", solved, ">", by_share, finding=BEYOND
        )


def _orders(slow, fast, names, share, published):
    return Claim(
        id=f"{slow} and {fast}, {share:.0%}",
        source="Thesis Table 5.1, baseline",
        statement=f"{names} at T = 3 ({share:.0%} of tasks solved; orders of magnitude)",
        published=published,
        relation=">",
        measure=_slower(slow, fast, share),
    )


def _not_repeatable(row):
    """Searches that find nothing have met their time limit: every task has an answer."""
    return NOT_REPEATABLE if row["part"] == "solve" and not row["answer"] else None


EXPERIMENT = Experiment(
    id="search-space",
    title="Size of the space of programs, programs a second, time to solve random tasks without a network",
    source="Thesis 5.5.1, Table 5.1 (baseline), D.4",
    version=2,
    presets={
        "quick": {
            "repeats": 1,
            "tasks": {"3": 12, "5": 6},
            "solve": [[[*COMPILED, *UNPRUNED], 3, 12, 1], [[TOWARD_GOALS[0]], 5, 6, 1]],
        },
        "paper": {
            "repeats": 3,
            "tasks": {"3": 300, "4": 60, "5": 100, "6": 60, "7": 50, "8": 10},
            "solve": [
                *([[name], *given] for name in COMPILED for given in ((3, 300, 10), (4, 60, 10))),
                *([[name], 5, 10, 10] for name in COMPILED if name not in TOWARD_GOALS),
                *([["auto"], *given, 10] for given in ((5, 100), (6, 60), (7, 50), (8, 10))),
                *([["join"], *given, 10] for given in ((5, 20), (6, 20), (7, 10), (8, 5))),
                *([["deductive"], *given] for given in ((3, 40, 10), (4, 5, 5))),
                *([["smt"], *given] for given in ((3, 12, 20), (4, 3, 5))),
                *([[name], 3, 300, 10] for name in UNPRUNED),
            ],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "found": NOT_REPEATABLE},
    rows=_not_repeatable,
    claims=[
        *_goals(),
        Claim(
            id="size, T = 3",
            source="Thesis 5.5.1",
            statement="there are some 2e6 programs of length 3 (on two lists)",
            published=2e6,
            relation="=",
            measure=_programs((LIST, LIST), 3),
            rounding=5e5,
        ),
        Claim(
            id="size, T = 5",
            source="Thesis 5.5.1",
            statement="there are on the order of 1e10 programs of length 5 (on one list; log10)",
            published=10,
            relation="=",
            measure=_order_of_magnitude((LIST,), 5),
            rounding=0.5,
        ),
        Claim(
            id="size, T <= 2",
            source="Thesis 5.5.3",
            statement="there are on the order of 1e3 programs of length up to 2 (on one list; log10)",
            published=3,
            relation="=",
            measure=_order_of_magnitude((LIST,), 1, 2),
            rounding=0.5,
        ),
        Claim(
            id="size, T = 5 over T = 3",
            source="Thesis 5.5.1",
            statement="2e6 and 1e10 are sizes of one space (log10 of their ratio, least over the types of inputs)",
            published=np.log10(1e10 / 2e6),
            relation="<",
            measure=_least_growth,
            rounding=0.5 + np.log10(2e6 / 1.5e6),
            finding="5.5.1, sizes of the search space",
        ),
        Claim(
            id="programs examined",
            source="Thesis D.4",
            statement="depth-first search examines every program, once (its number over the exact one, up to T = 3)",
            published=1,
            relation="=",
            measure=_examined,
        ),
        Claim(
            id="programs a second",
            source="Thesis D.4",
            statement="depth-first search examines 3e6 programs a second (T = 3, two lists, all 5 examples of each)",
            published=3e6,
            relation=">",
            measure=_rate,
        ),
        *(
            _orders(
                "sort-and-add, unpruned",
                "dfs, unpruned",
                "with the prior alone, Sort and add takes longer than depth-first search",
                share,
                0.0,
            )
            for share in SHARES
        ),
        *(
            _orders(
                "deductive",
                "dfs, unpruned",
                "lambda^2 (here: the deductive search) takes over a hundred times as long as depth-first search",
                share,
                2.0,
            )
            for share in SHARES
        ),
        *(
            _orders(
                "smt",
                "deductive",
                "Sketch (here: SMT) takes longer than lambda^2 (here: the deductive search)",
                share,
                0.0,
            )
            for share in SHARES[:2]
        ),
    ],
)
