"""Table 5.1: what the predictions of a network save searches for programs of 3 lines.

500 held-out programs of 3 lines, five examples each, and a network that was trained on other
programs of 3 lines. Each search runs with the network's order, and with the prior alone: how often
the training programs use each function. The first two searches are the source's own: they examine
all programs, and Sort-and-add starts anew with each set. Their time is the number of programs over
the source's 3e6 a second (appendix D.4), the same on every machine. Others are processor seconds
of the machine named in the record, on fewer tasks where they are slow; today's searches leave out
most programs, and their seconds contain the call of the network.
"""

from math import log10

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement
from thesis_cli.studies.synthesis.guided_searches import SOURCE, plan, run
from thesis_cli.studies.synthesis.published_speedups import TABLE_5_1
from thesis_cli.studies.synthesis.speedup_figures import draw_table
from thesis_cli.studies.synthesis.speedup_sizes import LENGTH_3
from thesis_cli.studies.synthesis.speedups import difference, gain, slower
from thesis_cli.studies.synthesis.timing import SHARES

TITLE = "Seconds for each task by which shares of the tasks of $T = 3$ are solved"
PROJECT = "goal of this project"
FINDINGS = {
    "deductive": "Table 5.1, speedups of lambda^2 and Sketch",
    "smt": "Table 5.1, speedups of lambda^2 and Sketch",
}
TODAY = {"dfs": "Table 5.1, guidance of today's searches"}
CERTAIN = 0.02
"""Tolerance of a log10 from which its sign is not decided."""


def plot(frame):
    return draw_table(frame, TABLE_5_1, TITLE)


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
    for search, cells in TABLE_5_1.items():
        for cell in cells:
            what = f"{cell.search}, {cell.share:.0%}"
            shown = f"at T = 3 ({cell.share:.0%} of tasks; log10 of the speedup)"
            yield Claim(
                id=f"{what}, faster",
                source="Thesis Table 5.1",
                statement=f"the network makes {cell.search} faster {shown}",
                published=0.0,
                relation=">",
                measure=_gain(search, cell.share, 0.0),
                finding=FINDINGS.get(search, ""),
                scale=CERTAIN,
            )
            least = log10(cell.speedup)
            yield Claim(
                id=f"{what}, as much",
                source="Thesis Table 5.1",
                statement=f"the network makes {cell.search} {cell.speedup:g} times as fast {shown}",
                published=least,
                relation=">",
                measure=_gain(search, cell.share, least),
                rounding=log10(1 + 0.05 / cell.speedup),
                finding=FINDINGS.get(search, ""),
                scale=CERTAIN,
            )


def _orders():
    for share in SHARES:
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
    for slow, fast, names in (
        ("beam", "dfs, source", "Beam takes longer than DFS"),
        ("smt", "deductive", "Sketch (here: SMT) takes longer than lambda^2 (here: the deductive search)"),
        ("deductive", "dfs, source", "lambda^2 (here: the deductive search) takes longer than DFS"),
    ):
        yield Claim(
            id=f"{slow} and {fast}",
            source="Thesis Table 5.1, DeepCoder",
            statement=f"with the network, {names} at T = 3 (20% of tasks; log10 of the ratio)",
            published=0.0,
            relation=">",
            measure=_pair(slower, slow, fast, 0.2),
            scale=CERTAIN,
        )
    for search in SOURCE.values():
        for share in SHARES:
            yield Claim(
                id=f"today's {search}, {share:.0%}",
                source=PROJECT,
                statement=f"the network, with its call, makes today's {search} faster at T = 3 ({share:.0%} of tasks; "
                "log10 of the speedup)",
                published=0.0,
                relation=">",
                measure=_gain(search, share, 0.0),
                finding=TODAY.get(search, ""),
                scale=CERTAIN,
            )


def not_repeatable(row):
    """A timeout ended the search."""
    return NOT_REPEATABLE if row["stopped"] == "timeout" else None


EXPERIMENT = Experiment(
    id="table-5-1",
    title="Search speedups at T = 3 by a network trained on T = 3",
    source="Thesis 5.5.1, Table 5.1",
    version=1,
    presets=LENGTH_3,
    tasks=plan,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "call": NOT_REPEATABLE},
    rows=not_repeatable,
    claims=[*_cells(), *_orders()],
)
