"""Figure 5.3a: what the predictions of a network save searches for programs of 5 lines.

100 held-out programs of 5 lines, five examples each, and a network that was trained on programs of
4 lines, whose prior is that of searches without it. The searches are those of `table-5-1`. All are
stopped after a number of programs, so that the result is the same on every machine; what is not
reached is a bound, as in the source, and a share of the tasks that neither search reaches has no
claim. The deductive search is left out: it solves too few of these tasks in the seconds that an
experiment has.
"""

from math import log10

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement
from thesis_cli.studies.synthesis.guided_searches import SOURCE, plan, run
from thesis_cli.studies.synthesis.published_speedups import FIGURE_5_3A
from thesis_cli.studies.synthesis.speedup_figures import draw_table
from thesis_cli.studies.synthesis.speedup_sizes import LENGTH_5
from thesis_cli.studies.synthesis.speedups import difference, gain, more_solved
from thesis_cli.studies.synthesis.timing import SHARES

TITLE = "Seconds for each task by which shares of the tasks of $T = 5$ are solved"
PROJECT = "goal of this project"
REACHED = {"dfs, source": (0.2, 0.4), "sort-and-add, source": (0.2,)}
"""Shares of the tasks that the source's searches solve within the limits, at least with the network.
There are claims about these alone."""

CERTAIN = 0.02
"""Tolerance of a log10 from which its sign is not decided."""


def plot(frame):
    return draw_table(frame, FIGURE_5_3A, TITLE)


def _gain(search, share, against):
    def measure(frame):
        found = gain(frame, search, share)
        return None if found is None else Measurement(*found.against(against))

    return measure


def _pair(function, *what):
    def measure(frame):
        found = function(frame, *what)
        return None if found is None else Measurement(*found)

    return measure


def _cells():
    for search, cells in FIGURE_5_3A.items():
        for cell in [cell for cell in cells if cell.share in REACHED.get(search, ())]:
            what = f"{cell.search}, {cell.share:.0%}"
            shown = f"at T = 5 ({cell.share:.0%} of tasks; log10 of the speedup)"
            yield Claim(
                id=f"{what}, faster",
                source="Balog et al. 2017, Figure 3a (thesis Figure 5.3a)",
                statement=f"the network makes {cell.search} faster {shown}",
                published=0.0,
                relation=">",
                measure=_gain(search, cell.share, 0.0),
                scale=CERTAIN,
            )
            least = log10(cell.speedup)
            yield Claim(
                id=f"{what}, as much",
                source="Balog et al. 2017, Figure 3a (thesis Figure 5.3a)",
                statement=f"the network makes {cell.search} {cell.speedup:g} times as fast {shown}",
                published=least,
                relation=">",
                measure=_gain(search, cell.share, least),
                rounding=log10(1 + 0.05 / cell.speedup),
                scale=CERTAIN,
            )


def _orders():
    for share in REACHED["sort-and-add, source"]:
        yield Claim(
            id=f"Sort and add over DFS, {share:.0%}",
            source="Thesis 5.5.1",
            statement=f"the network gains more with Sort and add than with DFS ({share:.0%} of tasks; difference of "
            "the log10 of speedups)",
            published=0.0,
            relation=">",
            measure=_pair(difference, "sort-and-add, source", "dfs, source", share),
            scale=CERTAIN,
        )
    for search, name in (("sort-and-add, source", "Sort and add"), ("sort-and-add", "today's sort-and-add")):
        yield Claim(
            id=f"{name}, solved",
            source="Thesis 5.5.1, Figure 5.3a" if search in SOURCE else PROJECT,
            statement=f"with the network, {name} solves more tasks of T = 5 within as many programs (share of tasks)",
            published=0.0,
            relation=">",
            measure=_pair(more_solved, search),
            scale=CERTAIN,
        )
    for search in SOURCE.values():
        for share in SHARES:
            yield Claim(
                id=f"today's {search}, {share:.0%}",
                source=PROJECT,
                statement=f"the network, with its call, makes today's {search} faster at T = 5 ({share:.0%} of tasks; "
                "log10 of the speedup)",
                published=0.0,
                relation=">",
                measure=_gain(search, share, 0.0),
                scale=CERTAIN,
            )


EXPERIMENT = Experiment(
    id="fig-5-3a",
    title="Search speedups at T = 5 by a network trained on T = 4",
    source="Thesis 5.5.1, Figure 5.3a",
    version=1,
    presets=LENGTH_5,
    tasks=plan,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "call": NOT_REPEATABLE},
    claims=[*_cells(), *_orders()],
)
