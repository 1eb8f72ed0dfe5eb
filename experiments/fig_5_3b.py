"""Figure 5.3b: networks trained on programs of one length, on held-out programs of other lengths.

Sort-and-add runs with the network's order and with the prior of the same training corpus, until it
has solved 20 % of the tasks. What counts are programs examined, so that the result is the same on
every machine. Where 20 % are not solved within the limit, the speedup is a bound. The source's
search examines all programs, and starts anew with each set; today's leaves out most programs.
"""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.studies.synthesis.speedups import Speedup, needed_for_share

SHARE = 0.2
SEARCHES = {"sort-and-add, source": "the source's Sort and add", "sort-and-add": "today's sort-and-add"}
BEYOND = [("sort-and-add, source", 1, 4), ("sort-and-add, source", 1, 5), ("sort-and-add, source", 2, 5)]
"""Lengths of training and test programs of which 20 % are solved neither way within the limits."""


def tasks(settings):
    return [
        {"search": search, "trained": trained, "length": length, "count": count, "nodes": nodes}
        for search, most in settings["nodes"].items()
        for trained in settings["trained"]
        for length, count, nodes in zip(settings["lengths"], settings["counts"], most, strict=True)
    ]


def run(seed, search, trained, length, count, nodes):
    """A row: programs needed for each task with the prior and with the network (`exact`: 1, or 0
    for a lower bound), and log10 of their ratio."""
    return pd.DataFrame([needed_for_share(search, trained, length, count, SHARE, nodes)])


def plot(frame):
    searches = [name for name in SEARCHES if name in set(frame.search)]
    figure, axes = panels(1, len(searches), squeeze=False, sharey=True)
    for ax, search in zip(axes.flat, searches, strict=True):
        for trained, rows in frame[frame.search == search].groupby("trained"):
            known = rows[rows.relation != "?"]
            colour = COLOURS[trained - 1]
            y = 10**known.log10
            ax.errorbar(
                known.length + 0.06 * (trained - 2.5),
                y,
                yerr=[y - 10 ** (known.log10 - known.standard_error), 10 ** (known.log10 + known.standard_error) - y],
                color=colour,
                label=f"trained on $T = {trained}$",
            )
            for relation, marker in (("=", "o"), (">", "^"), ("<", "v")):
                some = known[known.relation == relation]
                ax.plot(some.length + 0.06 * (trained - 2.5), 10**some.log10, marker, color=colour, markersize=4)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set_yscale("log")
        ax.set_xticks(sorted(frame.length.unique()))
        label(ax, "length of the test programs", "", SEARCHES[search])
    axes[0, 0].set_ylabel("speedup, 20 % of tasks solved;\nbars are one standard error")
    handles, names = axes[0, 0].get_legend_handles_labels()
    bound = axes[0, 0].plot([], [], "^", color="black", markersize=4)
    figure.legend([*handles, *bound], [*names, "lower bound"], loc="outside lower center", ncol=5)
    return figure


def _measure(search, trained, length):
    def measure(frame):
        rows = frame[(frame.search == search) & (frame.trained == trained) & (frame.length == length)]
        if rows.empty or rows.relation.iloc[0] == "?":
            return None
        row = rows.iloc[0]
        return Measurement(*Speedup(row.log10, row.standard_error, row.relation).against(0.0))

    return measure


def _beyond(frame):
    """Mean of log10 of the speedups of the source's search on programs longer than those of training;
    bounds count as they are. Networks share the test programs of a length: their errors there are
    taken for the same, which overstates the standard error."""
    rows = frame[(frame.search == "sort-and-add, source") & (frame.length > frame.trained)]
    rows = rows[rows.relation.isin(["=", ">"])]
    if rows.empty:
        return None
    errors = rows.groupby("length").standard_error.sum()
    return Measurement(rows.log10.mean(), float(np.sqrt((errors**2).sum())) / len(rows))


def _claims():
    yield Claim(
        id="beyond",
        source="Thesis 5.5.2",
        statement="networks generalise beyond programs of the length that they were trained on (mean log10 of the "
        "speedup of Sort and add on longer programs, mean over the lengths of training and test programs)",
        published=0.0,
        relation=">",
        measure=_beyond,
        kind="comparison",
    )
    for search, name in SEARCHES.items():
        for trained in (1, 2, 3, 4):
            for length in [length for length in range(trained, 6) if (search, trained, length) not in BEYOND]:
                longer = f"programs of length {length}" if length > trained else f"held-out programs of length {length}"
                yield Claim(
                    id=f"{search}, {trained} to {length}",
                    source="Thesis 5.5.2, Figure 5.3b" if "source" in search else "this project",
                    statement=f"a network trained on programs of length {trained} speeds up {name} on {longer} (log10 "
                    "of the ratio of programs examined until 20% of the tasks are solved)",
                    published=0.0,
                    relation=">",
                    measure=_measure(search, trained, length),
                    kind="comparison",
                )


EXPERIMENT = Experiment(
    id="fig-5-3b",
    title="Generalisation of networks across lengths of programs",
    source="Thesis 5.5.2, Figure 5.3b",
    version=1,
    presets={
        "quick": {
            "trained": [1, 4],
            "lengths": [2, 3],
            "counts": [20, 20],
            "nodes": {"sort-and-add, source": [2_000_000] * 2, "sort-and-add": [200_000] * 2},
        },
        "paper": {
            "trained": [1, 2, 3, 4],
            "lengths": [1, 2, 3, 4, 5],
            "counts": [6, 100, 100, 200, 20],
            "nodes": {
                "sort-and-add, source": [10_000_000, 10_000_000, 10_000_000, 4_000_000, 15_000_000],
                "sort-and-add": [2_000_000] * 5,
            },
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=list(_claims()),
    caption="Speedup by networks trained on programs of one length, on held-out programs of other lengths: programs "
    "that Sort and add examines with the prior of the training corpus, over those with the network, until 20 % of the "
    "tasks are solved; at the black line the network saves nothing. Left the source's search, right this project's of "
    "today, which prunes most programs; bars are one standard error of the choice of tasks, triangles lower bounds "
    "where the prior's search was stopped. Points of the left panel are missing where both searches were stopped: T = "
    "4 and 5 for the network of one line, and T = 5 for that of two. Test programs are 6, 100, 100, 200 and 20 of T = "
    "1 to 5. The thesis has the same figure as bars, without printed numbers.",
)
