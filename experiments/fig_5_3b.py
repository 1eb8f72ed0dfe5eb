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
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.synthesis.guided_searches import SOURCE
from thesis_cli.studies.synthesis.predictions import over_trainings, trainings
from thesis_cli.studies.synthesis.speedups import Speedup, needed_for_share

SHARE = 0.2
SEARCHES = {"sort-and-add, source": "the source's Sort and add", "sort-and-add": "today's sort-and-add"}
UNSOLVED = [("sort-and-add, source", trained, length) for trained, length in ((1, 4), (1, 5), (2, 5), (3, 5), (4, 5))]
"""Lengths of training and test programs of which 20 % are solved neither way within the limits."""


def tasks(settings):
    return [
        {
            **{"search": search, "trained": trained, "length": length, "count": count, "nodes": nodes},
            "networks": trainings(f"lines-{trained}")[: None if _several(search, trained, length) else 1],
        }
        for search, most in settings["nodes"].items()
        for trained in settings["trained"]
        for length, count, nodes in zip(settings["lengths"], settings["counts"][search], most, strict=True)
    ]


def _several(search, trained, length):
    """Whether several trainings guide a search: the source's, on programs at most two lines longer."""
    return search in SOURCE and length <= trained + 2


def run(seed, search, trained, networks, length, count, nodes):
    """A row for each training: programs needed for each task with the prior and with the network
    (`exact`: 1, or 0 for a lower bound), and log10 of their ratio."""
    return pd.DataFrame(needed_for_share(search, trained, networks, length, count, SHARE, nodes))


def plot(frame):
    searches = [name for name in SEARCHES if name in set(frame.search)]
    figure, axes = panels(1, len(searches), squeeze=False, sharey=True)
    for ax, search in zip(axes.flat, searches, strict=True):
        for trained, rows in frame[frame.search == search].groupby("trained"):
            known = _mean_speedups(rows)
            colour = COLOURS[trained - 1]
            low, y, high = (10 ** (known.log10 + sign * known.standard_error) for sign in (-1, 0, 1))
            x = known.length + 0.06 * (trained - 2.5)
            ax.errorbar(x, y, yerr=[y - low, high - y], color=colour, label=f"trained on $T = {trained}$")
            for relation, marker in (("=", "o"), (">", "^"), ("<", "v")):
                some = known.relation == relation
                ax.plot(x[some], y[some], marker, color=colour, markersize=4)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set_yscale("log")
        ax.set_xticks(sorted(frame.length.unique()))
        label(ax, "length of the test programs", "", SEARCHES[search])
    axes[0, 0].set_ylabel("speedup, 20 % of tasks solved;\nbars are one standard error")
    handles, names = axes[0, 0].get_legend_handles_labels()
    bound = axes[0, 0].plot([], [], "^", color="black", markersize=4)
    figure.legend([*handles, *bound], [*names, "lower bound"], loc="outside lower center", ncol=5)
    return figure


def _mean_speedups(rows):
    """Mean over the trainings for each length, with its standard error; a bound if one of them is one,
    and none where they are bounds on either side or one is not known."""
    found = []
    for length, same in rows.groupby("length"):
        relation = RELATIONS.get("".join(sorted(same.relation.unique())))
        if relation:
            mean, error = over_trainings(list(zip(same.log10, same.standard_error, strict=True)))
            found.append((length, mean, error, relation))
    return pd.DataFrame(found, columns=["length", "log10", "standard_error", "relation"])


RELATIONS = {"=": "=", ">": ">", "=>": ">", "<": "<", "<=": "<"}
"""Relation of a mean to its parts, by the relation of the parts to the published ones."""


@measure
def _measure(frame, search, trained, length):
    chosen = select(search=search, trained=trained, length=length)
    known = _mean_speedups(chosen(frame))
    if known.empty:
        return None
    row = known.iloc[0]
    return Measurement(*Speedup(row.log10, row.standard_error, row.relation).against(0.0))


def _beyond(frame):
    """Mean of log10 of the speedups of the source's search on programs longer than those of training, of
    the lengths at which each training has one; bounds count as they are."""
    rows = select("length > trained", search="sort-and-add, source", relation=["=", ">"])(frame)
    everywhere = rows.groupby(["trained", "length"]).training.transform("nunique") == frame.training.nunique()
    found = over_trainings([_mean_log10(each) for _, each in rows[everywhere].groupby("training")])
    return found and Measurement(*found)


def _mean_log10(rows):
    """Networks share the test programs of a length: their errors there are taken for the same, which
    overstates the standard error."""
    errors = rows.groupby("length").standard_error.sum()
    return rows.log10.mean(), float(np.sqrt((errors**2).sum())) / len(rows)


# fmt: off
CLAIMS = [
    Claim("beyond", "Thesis 5.5.2: 'generalize beyond programs of the same length that they were trained on'",
        "comparison", ">", 0.0, _beyond,
        "networks generalise beyond programs of the length that they were trained on (mean log10 of the speedup of "
        "Sort and add on longer programs, mean over the lengths of training and test programs)"),
    *(
        Claim(f"{search}, {trained} to {length}", source, "comparison", ">", 0.0, _measure(search, trained, length),
            f"a network trained on programs of length {trained} speeds up {name} on "
            f"{'held-out ' * (length == trained)}programs of length {length} (log10 of the ratio of programs "
            "examined until 20% of the tasks are solved)")
        for (search, name), source in zip(SEARCHES.items(), ("Thesis 5.5.2, Figure 5.3b", "this project"), strict=True)
        for trained in (1, 2, 3, 4)
        for length in range(trained, 6)
        if (search, trained, length) not in UNSOLVED
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-5-3b",
    title="Generalisation of networks across lengths of programs",
    source="Thesis 5.5.2, Figure 5.3b",
    version=1,
    presets={
        "quick": {
            **{"trained": [1, 4], "lengths": [2, 3], "counts": {search: [20, 20] for search in SEARCHES}},
            "nodes": {"sort-and-add, source": [2_000_000] * 2, "sort-and-add": [200_000] * 2},
        },
        "paper": {
            "trained": [1, 2, 3, 4],
            "lengths": [1, 2, 3, 4, 5],
            "counts": {
                "sort-and-add, source": [6, 200, 500, 500, 150],
                "sort-and-add": [6, 100, 100, 200, 20],
            },
            "nodes": {
                "sort-and-add, source": [10_000_000, 10_000_000, 10_000_000, 4_000_000, 15_000_000],
                "sort-and-add": [2_000_000] * 5,
            },
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=CLAIMS,
    caption="Speedup by networks trained on programs of one length, on held-out programs of other lengths: programs "
    "that Sort and add examines with the prior of the training corpus, over those with the network, until 20 "
    "% of the tasks are solved; at the black line the network saves nothing. Left the source's search, right "
    "this project's of today, which prunes most programs; bars are one standard error of the choice of tasks "
    "and of the training, triangles lower bounds where the prior's search was stopped. Points of the left "
    "panel are missing where both searches were stopped: T = 4 for the network of one line, and T = 5. Test "
    "programs are 6, 200, 500, 500 and 150 of T = 1 to 5 on the left, 6, 100, 100, 200 and 20 on the right. "
    "On the left, points are means over five trainings of the network; on the right each has one. "
    "The thesis has the same figure as bars, without printed numbers.",
)
