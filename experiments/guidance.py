"""Where a guide pays: today's searches with and without a network, for programs of 3 to 10 lines.

All searches get the same held-out tasks with five examples, and the same time, as a number of programs
that each examines in it (`timing.RATES`), so that another machine solves the same tasks. Seconds are
processor seconds until the program is found, of the machine named in the record; another machine gives
other times. The source's depth-first search (`dfs, source`) is timed by its programs, 3e6 a second.
"""

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement
from thesis_cli.reproduction.measuring import measure
from thesis_cli.studies.synthesis.guidance import CALL, SOURCE, STATE, plan, ratio, run, times
from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, RATE

BOTH = [PRIOR, NETWORK]
STATES = [PRIOR, STATE]
SEARCHES = ("dfs", "sort-and-add", "bottom-up", "join", "auto")
GUIDED = [*((search, BOTH) for search in SEARCHES), ("guided", STATES)]
"""Searches of up to 5 lines, with their guides."""

LONG = [("join", BOTH), ("auto", STATES), ("guided", STATES)]
"""Those of 6 and 7 lines. A search with the guide `state` has that of the network for its order, too."""

STYLES = dict(zip((*SEARCHES, "guided", SOURCE), COLOURS, strict=False))
DASHES = {PRIOR: ":", NETWORK: "-", STATE: "--"}
MARKS = {PRIOR: "s", NETWORK: "o", STATE: "^"}
NAMES = {PRIOR: "prior alone", NETWORK: "network", STATE: "network that reads partial programs"}
ENOUGH = 6
"""Least number of tasks that a claim is measured on."""


def plot(frame):
    frame = frame[frame.search != CALL]
    lengths = [int(length) for length in sorted(frame.length.unique())]
    figure, axes = panels(4, 2, height=2.0, squeeze=False)
    ax, *others = axes.flat
    _plot_ratios(ax, frame, lengths)
    for ax, search in zip(others, STYLES, strict=True):
        _plot_times(ax, frame, search, lengths)
    return legend_below(figure, others[-2], 3)


def _plot_ratios(ax, frame, lengths):
    """Mean ratio of the times with and without a guide, call included, with two standard errors."""
    for place, (search, guide) in enumerate([*_modes(GUIDED), ("auto", STATE), (SOURCE, NETWORK)]):
        points = [(length, ratio(frame, search, guide, length, RATE)) for length in lengths]
        points = [(length, found.mean(), _error(found)) for length, found in points if len(found) > 1]
        if points:
            x, y, error = np.array(points).T
            low, high = (10**y - 10 ** (y + sign * 2 * error) for sign in (-1, 1))
            colour, line = STYLES[search], DASHES[guide]
            x = x + 0.07 * (place - 3.5)  # so that none hides another
            ax.errorbar(x, 10**y, yerr=(low, -high), fmt=MARKS[guide], linestyle=line, color=colour, markersize=3)
    ax.axhline(1, color="black", linewidth=0.6)
    ax.set_yscale("log")
    ax.set_xticks(lengths)
    label(ax, "length $T$", "guided over unguided time", "below 1 a guide pays")


def _plot_times(ax, frame, search, lengths):
    """Median and quartiles of the seconds of a search, by the length and the guide."""
    for place, guide in enumerate(DASHES):
        found = [(length, times(frame, search, guide, length, RATE)) for length in lengths]
        rows = [(length, *np.quantile(seconds, [0.25, 0.5, 0.75])) for length, seconds in found if len(seconds)]
        x, low, middle, high = np.array(rows).reshape(-1, 4).T
        how = {"fmt": MARKS[guide], "linestyle": DASHES[guide], "color": STYLES[search] if guide != PRIOR else "0.5"}
        ax.errorbar(
            x + 0.1 * (place - 1), middle, yerr=(middle - low, high - middle), markersize=4, **how, label=NAMES[guide]
        )
    ax.set(yscale="log", xlim=(min(lengths) - 0.5, max(lengths) + 0.5))
    ax.set_xticks(lengths)
    label(ax, "length $T$", "seconds a task", search)


def _error(values):
    return values.std(ddof=1) / len(values) ** 0.5


@measure
def _ratio(frame, search, guide, length):
    found = ratio(frame, search, guide, length, RATE)
    return Measurement(found.mean(), _error(found)) if len(found) >= ENOUGH else None


def _not_repeatable(row):
    """Only a call was timed."""
    return NOT_REPEATABLE if row["search"] == CALL else None


def _searches(length, count, batch, seconds, searches):
    """Searches of a length with their guides, batch by batch."""
    return [
        [search, guides, length, start, min(start + batch, count), batch, None, seconds]
        for start in range(0, count, batch)
        for search, guides in searches
    ]


def _modes(searches):
    """Each search with each of its guides that is no prior."""
    return [(search, guide) for search, guides in searches for guide in guides if guide != PRIOR]


# fmt: off
CLAIMS = [
    Claim(f"{search}, {guide}, T = {length}", "this project", "comparison", "<", 0.0, _ratio(search, guide, length),
        f"the search `{search}` takes less time with the guide `{guide}` than with the prior alone on programs of "
        f"T = {length} (mean over tasks of the log10 of the ratio of times, call of the guide included)",
        finding="5.5.2, where guidance pays today")
    for modes, lengths in (
        ([(SOURCE, NETWORK)], (3, 4)),
        (_modes(GUIDED), (3, 4, 5)),
        (_modes(LONG), (6, 7)),
        ([("join", NETWORK)], (8,)),
        ([("join", NETWORK), ("guided", STATE)], (10,)),
    )
    for length in lengths
    for search, guide in modes
]
# fmt: on

EXPERIMENT = Experiment(
    id="guidance",
    title="Where a guide pays: today's searches with and without a network",
    source="Thesis 5.5.2, 5.7",
    version=2,
    presets={
        "quick": {
            "calls": [1, 256],
            "searches": [*_searches(3, 6, 6, 1, GUIDED), [SOURCE, BOTH, 3, 0, 6, 6, 10**7, None]],
        },
        "paper": {
            "calls": [1, 16, 256],
            "searches": [
                *([SOURCE, BOTH, length, 0, 40, 20, nodes, None] for length, nodes in ((3, 10**8), (4, 3 * 10**8))),
                *_searches(3, 40, 40, 10, GUIDED),
                *_searches(4, 40, 40, 10, GUIDED),
                *_searches(5, 20, 10, 10, GUIDED),
                *_searches(6, 16, 4, 10, LONG),
                *_searches(7, 10, 5, 10, LONG),
                *_searches(8, 10, 2, 60, [("join", BOTH), ("guided", [STATE])]),
                *_searches(10, 6, 2, 10, [("join", BOTH), ("guided", STATES)]),
            ],
        },
    },
    tasks=plan,
    run=run,
    plot=plot,
    tolerances={name: NOT_REPEATABLE for name in ("seconds", "found", "call")},
    rows=_not_repeatable,
    claims=CLAIMS,
    caption="Top left: time of each search with a guide, its call included, over the time with the prior alone, as "
    "the geometric mean over tasks with two standard errors; below 1 the guide pays. Points are moved "
    "sideways so that none hides another. Colours are those of the other panels, one for "
    "each search: the median and the quartiles of the processor seconds of a task, with the prior alone (grey "
    "squares), with the network of appendix D.3 (circles), and with the network that reads partial programs "
    "(triangles); a task that is not solved counts with the time that it was given. dfs, source is the thesis's "
    "depth-first search, timed by its 3 million programs a second; all others are searches of this project, "
    "of which the thesis has none. Tasks are 40 at T = 3 and 4, 20 at T = 5, and 6 to 16 beyond.",
)
