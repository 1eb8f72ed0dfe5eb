"""Lemma 2: is it right to add functions in the order of their marginal probabilities?

Four parts. `orders`: random joint distributions of few labels, where the order by marginal
probabilities is compared with all orders. `bounds`: the inequalities of D.5, exactly. `programs`:
the labels are the functions and lambdas of random programs; how much dearer is the order by
marginals than one that heeds correlations? `searches`: Rank losses beside the programs that
Sort and add examines, with the order of the prior and those of the network.
"""

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.studies.synthesis.predictions import predicted, version
from thesis_cli.studies.synthesis.rank_loss import Joint, excess, improved, ranked, total_cost
from thesis_cli.studies.synthesis.timing import solution_of
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.search.depth_first import NONE, SortAndAdd
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.training.corpora import held_out, training_corpus

LENGTHS = (1, 2, 3, 4, 5)
KINDS = {"independent": None, "correlated": 1.0, "strongly correlated": 0.1}
"""Random joint distributions, with the parameter of the Dirichlet distribution of those that are
correlated."""

EXAMPLE_15 = (1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1)
"""The order of Example 15, whose listing is lost, by its words: six labels are relevant, the last at place
11, and two of the five redundant ones stand before two of them."""

QUANTITIES = {"loss": "$L_r$", "power": "$L_r^T$", "cost": "total cost"}
"""Quantities that judge an order, as figures name them."""

RESAMPLES = 1000
SEARCH = SortAndAdd(NONE, again=True)
"""Search of section 5.4.4: every program over a set is examined, and again over the next set."""
FINDING = "5.4.5, Lemma 2"
ROUNDING = 1e-9
SEEN = 1e-3
"""An excess over the best order, as a share, that must be seen."""

NOT_CATACLYSMIC = Reading("not cataclysmic: at most a tenth more", 0.0)


def tasks(settings):
    orders = [
        {"part": "orders", "kind": kind, "labels": labels, "distributions": settings["distributions"]}
        for kind in KINDS
        for labels in settings["labels"]
    ]
    programs = [{"part": "programs", "length": length, "count": settings["programs"]} for length in settings["lengths"]]
    guides = ["prior", version("lines-3")]
    searches = [{"part": "searches", "guide": guide, "programs": settings["searches"]} for guide in guides]
    return [*orders, {"part": "bounds"}, *programs, *searches]


def run(seed, part, **parameters):
    """Rows of `part`, `what`, `of` (what it is about), `length` T or the row of a program, and
    `value` with its `standard_error`."""
    found = {"orders": _orders, "bounds": _bounds, "programs": _programs, "searches": _searches}[part](
        np.random.default_rng(seed), **parameters
    )
    return labelled(found, ["what", "of", "length", "value", "standard_error"], part=part)


def _orders(rng, kind, labels, distributions):
    """Excess of the order by marginals over the best one: the largest, and the share of
    distributions in which it does."""
    rows = []
    joints = [
        Joint.independent(rng.random(labels)) if KINDS[kind] is None else Joint.random(labels, rng, KINDS[kind])
        for _ in range(distributions)
    ]
    for length in LENGTHS:
        found = [excess(joint, length) for joint in joints]
        for name in QUANTITIES:
            values = np.array([getattr(each, name) for each in found])
            rows.append((f"{name}, most", f"{kind}, {labels} labels", length, values.max(), 0))
            rows.append((f"{name}, share", f"{kind}, {labels} labels", length, (values > ROUNDING).mean(), 0))
    return rows


def _bounds(rng):
    """The largest ratio of the two sides of each inequality, over all sizes that C = 34 allows."""
    count = len(ATTRIBUTES)
    active = np.arange(1, count + 1)
    rows = []
    for length in LENGTHS:
        total = total_cost(active, length)
        power = active.astype(float) ** length
        rows.append(("total over C_A^(T+1)", "bound", length, (total / (power * active)).max(), 0))
        rows.append(("C_A^(T+1) over C C_A^T", "bound", length, (active / count).max(), 0))
        rows.append(("C C_A^T over total", "bound", length, np.median(count * power / total), 0))
        rows.append(("total less C^T D", "bound", length, _linear_gap(count, length), 0))
    labels = np.arange(2**12)[1:, None] >> np.arange(12) & 1 == 1
    found = ranked(labels, range(12))
    rows.append(("least L_r - D", "12 labels", 0, (found.loss - found.redundant).min(), 0))
    rows.append(("least C_P D - L_r", "12 labels", 0, (found.relevant * found.redundant - found.loss).min(), 0))
    example = ranked(np.array([EXAMPLE_15], dtype=bool), range(len(EXAMPLE_15)))
    for name, value in (("C_P", example.relevant), ("C_A", example.active), ("D", example.redundant)):
        rows.append((name, "Example 15", 0, value[0], 0))
    rows.append(("L_r", "Example 15", 0, example.loss[0], 0))
    return rows


def _linear_gap(count, length):
    """Largest excess of the total cost over total(C_P) + C^T D, over all C_P and D: a search with a
    redundant label costs at most C^T."""
    total = total_cost(np.arange(count + 1), length)
    own, redundant = np.triu_indices(count, 1)
    own, redundant = own + 1, redundant - own
    kept = own + redundant <= count
    gaps = total[own + redundant] - total[own] - float(count) ** length * redundant
    return gaps[kept].max() / total[count]


def _programs(rng, length, count):
    """Mean total cost over programs that were not used to choose the order, as a ratio: that of
    the order by marginals over that of the improved one, which starts from it. A half of the
    programs chooses."""
    corpus = training_corpus(length, count, 1)
    chosen, others = corpus.subset(slice(0, None, 2)), corpus.subset(slice(1, None, 2))
    joint = Joint(chosen.attributes, np.full(len(chosen), 1 / len(chosen)))
    orders = joint.by_marginals, improved(joint, joint.by_marginals, length)
    costs = np.array([total_cost(ranked(others.attributes, order).active, length) for order in orders])
    weights = rng.multinomial(len(others), np.full(len(others), 1 / len(others)), RESAMPLES) / len(others)
    means, resampled = costs.mean(axis=1), weights @ costs.T
    loss = [ranked(others.attributes, order).loss.mean() for order in orders]
    return [
        ("cost by marginals over improved", "random programs", length, means[0] / means[1],
         (resampled[:, 0] / resampled[:, 1]).std()),
        ("Rank loss by marginals over improved", "random programs", length, loss[0] / loss[1], 0),
    ]  # fmt: skip


def _searches(rng, guide, programs):
    """A row for each program and number: its Rank loss, active set, and programs examined."""
    corpus = held_out(3, programs)
    test = [corpus.task(row) for row in range(len(corpus))]
    orders = [prior.load()] * len(test)
    if guide != "prior":
        orders = [Order(tuple(each)) for each in predicted(guide, test)]
    rows = []
    for row, (task, order) in enumerate(zip(test, orders, strict=True)):
        found = ranked(corpus.attributes[row : row + 1], order.attributes)
        nodes = solution_of(SEARCH, task, order, Limits(3)).nodes
        numbers = {"loss": found.loss[0], "active": found.active[0], "relevant": found.relevant[0], "nodes": nodes}
        rows += [(name, guide.split()[0], row, number, 0) for name, number in numbers.items()]
    return rows


def plot(frame):
    figure, axes = panels(2, 2)
    (orders, programs), (losses, sizes) = axes
    _plot_orders(orders, frame[frame.part == "orders"])
    _plot_programs(programs, frame[frame.part == "programs"])
    for ax, name, x in ((losses, "loss", "Rank loss $L_r$"), (sizes, "active", "size $C_A$ of the active set")):
        for colour, (guide, part) in zip(COLOURS[3:], _wide(frame).groupby("of", sort=False), strict=False):
            jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(part))
            ax.plot(part[name] + jitter, part.nodes, ".", color=colour, markersize=3, alpha=0.6, label=_title(guide))
        ax.set_yscale("log")
        label(ax, x, "programs examined")
    c = np.arange(1, len(ATTRIBUTES) + 1)
    sizes.plot(c, c**3.0, "k-", label="$C_A^3$")
    sizes.legend(loc="lower right", markerscale=2)
    for ax in (losses, sizes):
        ax.set_title("Sort and add, $T = 3$, test programs")
    return legend_below(figure, orders, 3)


def _title(guide):
    return guide if guide == "prior" else "network"


def _plot_orders(ax, rows):
    """The share of distributions, those of the most labels, in which another order is better than
    that by marginals."""
    most = rows.of.str.extract(r", (\d+) labels")[0].astype(int)
    rows = rows[most == most.max()]
    for kind, style in zip(KINDS, (":", "--", "-"), strict=True):
        for (name, shown), colour in zip(QUANTITIES.items(), COLOURS, strict=False):
            of = rows[(rows.what == f"{name}, share") & rows.of.str.startswith(f"{kind},")]
            ax.plot(of.length, of.value, style, marker="o", color=colour, label=f"{shown}, {kind}")
    ax.set_ylim(-0.03, 1.03)
    ax.set_xticks(LENGTHS)
    label(ax, "length $T$", "share of distributions", f"another order of {most.max()} labels has a smaller mean")


def _plot_programs(ax, rows):
    cost = rows[rows.what.str.startswith("cost")]
    marks(ax, cost, "length", color=COLOURS[2], label="total cost")
    loss = rows[rows.what.str.startswith("Rank")]
    ax.plot(loss.length, loss.value, "s--", color=COLOURS[0], label="Rank loss")
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set_xticks(sorted(set(rows.length)))
    label(ax, "length $T$", "by marginals, over improved", "random programs: what correlations are worth")
    ax.legend()


def _wide(frame):
    rows = frame[frame.part == "searches"]
    return rows.pivot(index=["of", "length"], columns="what", values="value").reset_index()


def _most(name, *kinds):
    """The largest excess over kinds of distributions, sizes and lengths from 2 on, as a share."""
    found = select("length >= 2", what=f"{name}, most")
    return found.then(lambda f: f[f.of.str.startswith(tuple(f"{kind}," for kind in kinds))]).largest(ROUNDING)


def _bound(what):
    return select(part="bounds", what=what)


def _correlation(frame):
    """Spearman's rank correlation of the Rank loss with the programs examined; its standard error by
    the bootstrap over programs."""
    from scipy.stats import spearmanr

    wide = _wide(frame)
    programs = wide.length.unique()
    by_program = [wide[wide.length == program][["loss", "nodes"]].to_numpy() for program in programs]
    rng = np.random.default_rng(0)

    def correlation(of):
        return spearmanr(*np.vstack([by_program[i] for i in of]).T).statistic

    resampled = [correlation(rng.integers(len(programs), size=len(programs))) for _ in range(200)]
    return Measurement(correlation(range(len(programs))), np.std(resampled))


LOSSES = select(part="searches", what="loss")

# fmt: off
CLAIMS = [
    Claim("Rank loss", "Thesis 5.4.5, proof of Lemma 2", "identity", "=", 0.0, _most("loss", *KINDS),
        "the order by true marginal probabilities has the least expected Rank loss (relative excess over the best "
        "of all orders, the largest)", scale=SEEN),
    Claim("power", "Thesis D.5: 'this upper bound can be minimized by optimizing the Rank loss'",
        "identity", "=", 0.0, _most("power", *KINDS),
        "the order by true marginal probabilities minimises the expectation of the bound L_r^T, T > 1 (relative "
        "excess over the best of all orders, the largest)", finding=FINDING, tag="substantive", weight=5,
        scale=SEEN),
    Claim("cost, independent", "this project", "identity", "=", 0.0, _most("cost", "independent"),
        "the order by true marginal probabilities minimises the expected total cost of Sort and add for "
        "independent labels (relative excess over the best of all orders, the largest)", scale=SEEN),
    Claim("cost", "this project (Lemma 2 bounds it only)", "identity", "=", 0.0, _most("cost", *KINDS),
        "the order by true marginal probabilities minimises the expected total cost of Sort and add for any labels "
        "(relative excess over the best of all orders, the largest)", finding=FINDING, scale=SEEN),
    Claim("sum of powers", "Thesis D.5: 'the total time until a solution is found can be upper bounded'",
        "bound", "<", 1.0, _bound("total over C_A^(T+1)").largest(ROUNDING),
        "1^T + ... + C_A^T <= C_A^(T+1) (ratio of the sides, the largest up to C_A = 34 and T = 5)", scale=SEEN),
    Claim("a linear bound", "this project", "bound", "<", 0.0, _bound("total less C^T D").largest(ROUNDING),
        "the total cost of Sort and add is at most that of the C_P labels of the program plus C^T L_r, so that "
        "Lemma 2 holds (largest excess over all C_P and numbers D of redundant labels)", scale=SEEN),
    Claim("L_r >= D", "Thesis D.5: 'Noting that in general'",
        "bound", ">", 0.0, _bound("least L_r - D").least(ROUNDING),
        "the Rank loss is at least the number D of redundant labels (least L_r - D over all sets of 12 labels)",
        scale=1),
    Claim("Example 15, L_r", "Thesis D.5, Example 15", "published", "=", 7,
        select(of="Example 15", what="L_r").read(),
        "the Rank loss of Example 15 is 7 (for the order that its words describe, C_P = 6, C_A = 11, D = 5; its "
        "listing is lost)", scale=1),
    Claim("correlation", "Thesis D.5: 'the relationship between the Rank loss and'",
        "comparison", ">", 0.0, _correlation,
        "programs with a larger Rank loss take Sort and add longer (rank correlation of the Rank loss and the "
        "programs examined)"),
    Claim("smaller Rank loss", "Thesis D.5: 'a sensible step in preparation'", "comparison", ">", 0.0,
        LOSSES.where(of="prior").less(LOSSES.where("of != 'prior'"), "length").mean(),
        "a network trained with cross entropy makes predictions for a small Rank loss (mean over test programs of "
        "T = 3 of the prior's less the network's)"),
    *(
        Claim(f"correlations, T = {length}", "Thesis 5.5.1: 'cataclysmic'", "comparison", "<", 1.1,
            select(part="programs", what="cost by marginals over improved", length=length).read(),
            f"ignoring correlations is not cataclysmic for Sort and add: random programs of T = {length} (total "
            "cost of the order by marginals over that of an improved order)", reading=NOT_CATACLYSMIC)
        for length in (2, 3, 4)
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="lemma-2",
    title="Lemma 2: Rank loss, active sets, and the order by marginal probabilities",
    source="Thesis 5.4.5 (Lemma 2), D.5",
    version=1,
    presets={
        "quick": {"labels": [3, 4], "distributions": 10, "lengths": [2], "programs": 600, "searches": 10},
        "paper": {"labels": [3, 4, 5], "distributions": 300, "lengths": [2, 3, 4], "programs": 30000, "searches": 500},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances=dict.fromkeys(("value", "standard_error"), Tolerance(relative=1e-6, absolute=1e-12)),
    claims=CLAIMS,
    caption="Top left: share of 300 random joint distributions of 5 labels in which some order has a smaller mean of "
    "the Rank loss L_r, of L_r^T or of the total cost than the order by marginal probabilities; dotted lines "
    "of independent labels, and all of L_r, lie on 0. Top right: total cost and Rank loss of the order by marginals on "
    "random programs, over those of an order improved for the cost; bars are two standard errors. Bottom: programs "
    "that the source's Sort and add examines for 500 test programs of 3 lines, against their Rank loss and "
    "the size of the active set; points are moved sideways by up to 0.3, and the line is the C_A^T that "
    "section 5.4.5 assumes, in no unit. The thesis has Lemma 2 and no figure.",
)  # fmt: skip
