"""Figure 5.3a: what the predictions of a network save searches for programs of 5 lines.

100 held-out programs of 5 lines, five examples each, and a network that was trained on programs of
4 lines, whose prior is that of searches without it. The searches are those of `table-5-1`. All are
stopped after a number of programs, so that the result is the same on every machine; what is not
reached is a bound, as in the source, and a share of the tasks that neither search reaches has no
claim. The deductive search is left out: it solves too few of these tasks in the seconds that an
experiment has.
"""

from math import log10

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Sample
from thesis_cli.reproduction.measuring import measured, printed
from thesis_cli.studies.synthesis import speedups
from thesis_cli.studies.synthesis.guided_searches import SOURCE, plan, run
from thesis_cli.studies.synthesis.published_speedups import FIGURE_5_3A, LENGTH_5
from thesis_cli.studies.synthesis.speedup_figures import draw_cells, speedup_cells

TITLE = "Seconds for each task by which shares of the tasks of $T = 5$ are solved"
PAPER = "Thesis 5.5.1, Figure 5.3a (its numbers are those of DeepCoder, ICLR 2017)"
TASKS = Sample(100, "tasks")
INPUTS = "The thesis does not say which inputs its tasks have, and these decide how many programs there are."
REACHED = {"dfs, source": (0.2, 0.4), "sort-and-add, source": (0.2,)}
"""Shares of the tasks that the source's searches solve within the limits, at least with the network.
There are claims about these alone."""

CAPTION = (
    "Seconds for each task within which 20, 40 and 60 % of 100 tasks of T = 5 are solved, with the prior and with a "
    "network trained on T = 4, and their ratio: as published, and here (bold). The numbers of the thesis's table are "
    "lost in its text; those shown are of the paper that first published it. DFS and Sort and add are the source's "
    "searches, stopped after 3e8 programs a task, which is 100 s at the source's speed (the source stopped after "
    "10,000 s): a number after > is a bound. Other seconds are processor time here, with the call of the network. The "
    "source's table also has lambda^2, in whose place there is no search here at this length."
)


def cells(frame):
    return speedup_cells(frame, FIGURE_5_3A)


def plot(frame):
    return draw_cells(cells(frame), TITLE)


DFS, ADD = SOURCE
CELLS = [(search, cell) for search, shares in REACHED.items() for cell in FIGURE_5_3A[search] if cell.share in shares]
BASELINES = [FIGURE_5_3A[search][0].prior for search in SOURCE]
"""Seconds by which DFS, and Sort and add, solve 20 % of the tasks with the prior alone."""

# fmt: off
CLAIMS = [
    *(
        claim
        for search, cell in CELLS
        for claim in (
            printed(f"{cell.search}, {cell.share:.0%}", PAPER,
                f"the network makes {cell.search} {cell.speedup:g} times as fast at T = 5 (log10 of the speedup until "
                f"{cell.share:.0%} of the tasks are solved; the error counts the source's 100 tasks as if they varied "
                "like those here)", cell.speedup, 1.0 if cell.speedup > 100 else 0.1,
                measured(speedups.gain_as_printed, search, cell.share, log10(cell.speedup)), f"{cell.speedup:g} x",
                sample=TASKS),
            printed(f"{cell.search}, baseline, {cell.share:.0%}", PAPER,
                f"with the prior alone, {cell.search} solves {cell.share:.0%} of the tasks of T = 5 in "
                f"{cell.prior:g} s each (log10 of seconds, at the source's 3e6 programs a second)", cell.prior, 1.0,
                measured(speedups.baseline, search, cell.share, log10(cell.prior)), f"{cell.prior:g} s",
                not_comparable=INPUTS),
        )
    ),
    *(
        printed("baselines, Sort and add over DFS, 20%", PAPER,
            f"with the prior alone, Sort and add takes {add / dfs:.3g} times as long as DFS at T = 5 (log10 of the "
            "ratio of the times until 20% of the tasks are solved)", add / dfs, add / dfs * (1 / add + 1 / dfs),
            measured(speedups.baselines, ADD, DFS, 0.2, log10(add / dfs)), f"{add:g} s / {dfs:g} s",
            not_comparable=INPUTS)
        for dfs, add in [BASELINES]
    ),
    *(
        Claim(f"{today}{search}, faster", source, "comparison", ">", 0.0, measured(speedups.mean_gain, search),
            f"the network makes {name} at T = 5 (mean over tasks of the log10 of the speedup; a search that was "
            "stopped counts with the time that it spent, a task that is solved neither way counts as 0)")
        for today, source, search, name in (
            *(("", "Thesis 5.5.1: 'shows significant speedups for DFS'",
                search, f"{FIGURE_5_3A[search][0].search} faster") for search in SOURCE),
            *(("today's ", "this project", search, f"this project's {search} faster, call included,")
                for search in SOURCE.values()),
        )
    ),
    Claim("Sort and add over DFS, 20%", "Thesis 5.5.1: 'as compared to gains on DFS'", "comparison", ">", 0.0,
        measured(speedups.difference, ADD, DFS, 0.2),
        "the network gains more with Sort and add than with DFS at T = 5 (difference of the log10 of the speedups "
        "until 20% of the tasks are solved)"),
    *(
        Claim(f"{name}, solved", "Thesis D.2, Figure D.3", "comparison", ">", 0.0,
            measured(speedups.more_solved, search),
            f"with the network, {name} solves more tasks of T = 5 than with the prior by examining the same number "
            "of programs (difference of the shares of tasks)")
        for search, name in ((search, FIGURE_5_3A[search][0].search) for search in SOURCE)
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-5-3a",
    title="Search speedups at T = 5 by a network trained on T = 4",
    source="Thesis 5.5.1, Figure 5.3a",
    version=1,
    presets=LENGTH_5,
    tasks=plan,
    run=run,
    plot=plot,
    cells=cells,
    tolerances={"seconds": NOT_REPEATABLE, "call": NOT_REPEATABLE},
    claims=CLAIMS,
    caption=CAPTION,
)
