"""Vembu et al. 2.1 and 4: counts, uniform samplers and subtree formulas, and the reduction of Theorem 2.1."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.structured.catalogue import names, space
from thesis_cli.structured.pairs import bit_rows
from thesis_cli.studies.structured import brute_force, hamiltonian
from thesis_cli.studies.structured import uniformity as subtree_formulas
from thesis_cli.studies.structured.uniformity import SAMPLERS, fits

LISTED = 6
"""Vertices of the largest graphs of which all are tried."""

SPREADS = 1, 3, 10
COLUMNS = ["part", "case", "elements", "trial", "quantity", "value", "standard_error"]

CAPTION = """\
(a) Chi-square statistic over its degrees of freedom of the uniform samplers, and of two rules that \
are not uniform (as numbers), with two standard errors. (b) Share of the prefixes T' of random trees for which a \
formula gives the number of subtrees with that prefix, by the leaves of T': prod f(v) - |L| as \
printed, if T'' may add nodes anywhere, or below the leaves alone, and the product over all children \
that hang off T'. (c) Largest ln Z over the threshold of Theorem 2.1 among graphs without a \
Hamiltonian cycle, and the least among those with one; the reduction decides by 1. Up to six vertices \
these are all graphs, then random ones. (d) Median relative error of Ryser's signed formula for \
permanents of exp(s W), W standard normal, against sums over subsets without signs. The source has no figure."""


def tasks(settings):
    sampled = [
        {"part": "samplers", "elements": 0, "trial": t, "size": settings["samples"]}
        for t in range(settings["repetitions"])
    ]
    trees = [
        {"part": "trees", "elements": d, "trial": 0, "size": settings["trees"]} for d in range(4, settings["nodes"] + 1)
    ]
    graphs = [{"part": "graphs", "elements": d, "trial": 0, "size": settings["graphs"]} for d in settings["vertices"]]
    others = [
        {"part": "counts", "elements": 0, "trial": 0, "size": 1},
        {"part": "permanents", "elements": settings["items"], "trial": 0, "size": settings["matrices"]},
    ]
    return [*others, *sampled, *trees, *graphs]


def run(seed, part, elements, trial, size):
    """Rows of one part: a number of a quantity for each case.

    `counts`: ln of the size of a space over its count by definition. `samplers`: the statistic of a
    sampler. `trees`: over random trees, equation 2 at the root, the number of subtrees, and shares of
    prefixes that formulas count rightly. `graphs`: wrong decisions and extremes of ln Z over the
    threshold. `permanents`: median relative error of Ryser's formula.
    """
    rng = np.random.default_rng(seed)
    made = {"counts": _counts, "samplers": _samplers, "trees": _trees, "graphs": _graphs, "permanents": _permanents}
    rows = list(made[part](rng, elements, size))
    frame = pd.DataFrame(rows, columns=["case", "elements", "quantity", "value", "standard_error"])
    return frame.assign(part=part, trial=trial)[COLUMNS]


def _counts(rng, elements, size):
    for name in names():
        for d in range(3, 7):
            parents = subtree_formulas.random_tree(d + 2, rng) if name == "subtrees" else None
            count = d + 2 if parents else d
            true = brute_force.count(name, count, parents)
            yield name, count, "size over count, ln", np.log(space(name, count, None, parents).size() / true), 0.0
    for d in range(3, 13):
        sets = space("cycle-sets", d).size()
        yield "cycle-sets", d, "size over |V|! |V|", np.exp(np.log(sets) - hamiltonian.strength(d)), 0.0


def _samplers(rng, elements, size):
    for name, found in fits(size, rng):
        yield name, None, "statistic", found.statistic, found.standard_error


def _trees(rng, nodes, size):
    formulas = "printed, anywhere", "printed, leaves", "corrected"
    right = {}
    excess, distances = [], []
    for _ in range(size):
        parents = subtree_formulas.random_tree(nodes, rng)
        subtrees = brute_force.subtrees(parents)
        tree = space("subtrees", nodes, parents=parents)
        found = subtree_formulas.prefixes(parents, subtrees)
        corrected = np.array([tree.extensions(row) for row in subtrees])
        pairs = (found.printed, found.containing), (found.printed, found.grown), (corrected, found.containing)
        for name, (counted, true) in zip(formulas, pairs, strict=True):
            for leaves in np.unique(found.leaves):
                here = found.leaves == leaves
                right.setdefault((name, int(leaves)), []).extend(counted[here] == true[here])
        excess.append(subtree_formulas.printed_counts(parents)[0] - len(subtrees))
        chances = subtree_formulas.probabilities(parents, subtree_formulas.printed_coins(parents), subtrees)
        distances.append(np.abs(chances - 1 / len(subtrees)).sum() / 2)
    yield "equation 2", nodes, "least excess over the nonempty subtrees", min(excess), 0.0
    yield "equation 2", nodes, "largest excess over the nonempty subtrees", max(excess), 0.0
    yield "printed coins", nodes, "total variation", np.mean(distances), np.std(distances) / len(distances) ** 0.5
    for (name, leaves), answers in sorted(right.items()):
        yield name, leaves, "share right", np.mean(answers), 0.0
        yield name, leaves, "prefixes", len(answers), 0.0


def _graphs(rng, vertices, size):
    pairs = vertices * (vertices - 1) // 2
    if vertices <= LISTED:
        edges = bit_rows(np.arange(2**pairs), pairs).astype(float)
    else:
        edges = hamiltonian.random_graphs(size, vertices, rng)
    found = hamiltonian.decisions(edges, vertices)
    yes = found.hamiltonian
    for name, ratio in (("once", found.once), ("twice", found.twice)):
        yield name, vertices, "graphs", len(yes), 0.0
        yield name, vertices, "without Hamiltonian cycle", (~yes).sum(), 0.0
        yield name, vertices, "share wrong", ((ratio >= 1) != yes).mean(), 0.0
        yield name, vertices, "largest without", ratio[~yes].max() if not yes.all() else None, 0.0
        yield name, vertices, "least with", ratio[yes].min() if yes.any() else None, 0.0


def _permanents(rng, elements, size):
    for d in range(4, elements + 1, 2):
        for spread in SPREADS:
            matrices = spread * rng.normal(size=(size, d, d))
            matrices -= matrices.max(axis=(1, 2))[:, None, None]
            log_z = space("permutations", d, "positions").log_partition(matrices.reshape(size, -1))
            ratios = [brute_force.ryser(np.exp(m)) / np.exp(v) for m, v in zip(matrices, log_z, strict=True)]
            yield f"spread {spread}", d, "Ryser, relative error", np.median(np.abs(np.array(ratios) - 1)), 0.0


def _pick(frame, part, quantity, case=None):
    rows = frame[(frame.part == part) & (frame.quantity == quantity)]
    return rows if case is None else rows[rows.case == case]


def plot(frame):
    figure, axes = panels(2, 2, height=2.4)
    _plot_samplers(axes[0, 0], _pick(frame, "samplers", "statistic"))
    styles = {"printed, anywhere": "o", "printed, leaves": "s", "corrected": "^"}
    for (name, marker), colour in zip(styles.items(), COLOURS[1:], strict=False):
        right, many = (_pick(frame, "trees", quantity, name) for quantity in ("share right", "prefixes"))
        both = right.assign(prefixes=many.value.to_numpy(), right=lambda f: f.value * f.prefixes)
        sums = both.groupby("elements")[["right", "prefixes"]].sum()
        axes[0, 1].plot(sums.index, sums.right / sums.prefixes, f"{marker}-", color=colour, label=name)
    label(axes[0, 1], "leaves of the prefix $T'$", "share of prefixes counted rightly", "(b) prefixes of subtrees")
    axes[0, 1].legend(loc="center right")
    for name, colour in (("once", COLOURS[0]), ("twice", COLOURS[1])):
        for quantity, marker, words in (("least with", "^", "with one"), ("largest without", "v", "without")):
            rows = _pick(frame, "graphs", quantity, name).dropna(subset="value")
            axes[1, 0].plot(rows.elements, rows.value, marker, color=colour, label=f"{words}, edges {name}")
    axes[1, 0].axhline(1, color=COLOURS[6], linewidth=0.8)
    label(axes[1, 0], "vertices", r"$\ln Z$ / threshold", "(c) Hamiltonian cycle or not")
    axes[1, 0].legend(loc="upper right", bbox_to_anchor=(1.0, 0.62), labelspacing=0.2)
    axes[1, 0].set_ylim(0.75, 2.1)
    for spread, colour in zip(SPREADS, COLOURS, strict=False):
        rows = _pick(frame, "permanents", "Ryser, relative error", f"spread {spread}")
        rows = rows[rows.value > 0]  # less than 1e-12 is written as 0
        axes[1, 1].semilogy(rows.elements, rows.value, "o-", color=colour, label=f"$s$ = {spread}")
    label(axes[1, 1], "items $d$", "relative error", "(d) Ryser's formula")
    axes[1, 1].legend(loc="upper left")
    return figure


def _plot_samplers(ax, rows):
    """Statistics of samplers; those of rules that are not uniform are numbers at the edge."""
    ax.axvline(1, color=COLOURS[6], linewidth=0.8)
    for at, (name, part) in enumerate(rows.groupby("case", sort=False)):
        mean, error = part.value.mean(), (part.standard_error**2).sum() ** 0.5 / len(part)
        if name in SAMPLERS:
            ax.errorbar(mean, at, xerr=2 * error, fmt="o", color=COLOURS[0])
        else:
            ax.text(1.19, at, f"{mean:,.0f} \u2192", ha="right", va="center", color=COLOURS[1], fontsize=7)
    ax.set_yticks(range(rows.case.nunique()), rows.case.unique())
    ax.set(xlim=(0.8, 1.2), ylim=(rows.case.nunique() - 0.5, -0.5))
    label(ax, r"$\chi^2$ / degrees of freedom", "", "(a) samplers")


def _largest(part, quantity, **case):
    """The number furthest from 0."""
    return select("value == value", part=part, quantity=quantity, **case).number("value").most_off(0.0, error=1e-12)


def _wrong(case):
    return select(part="graphs", quantity="share wrong", case=case).number("value").largest()


@measure
def _share_right(frame, *cases):
    """Share of prefixes with several leaves that a formula counts rightly, under its best reading."""
    several = select("elements > 1", part="trees")
    shares = []
    for case in cases:
        right, many = (several.where(quantity=name, case=case)(frame).value for name in ("share right", "prefixes"))
        if not many.sum():
            return None
        shares.append(np.average(right, weights=many))
    return Measurement(max(shares), error=1e-12)


OWN, PREFIXES = "this project", "Vembu et al. 4: 'The number of subtrees with'"
WRONG = "(largest share of graphs that it decides wrongly)"
EXCESS = select(part="trees", quantity="largest excess over the nonempty subtrees").number("value")

# fmt: off
CLAIMS = [
    Claim("sizes", "Vembu et al. 2.2, footnote 1", "identity", "=", 0.0, _largest("counts", "size over count, ln"),
        "|Y| is known in all applications: sizes of the spaces are those of a count by definition (ln of the "
        "ratio, furthest from 0)", scale=0.01),
    Claim("number of cycles", "Vembu et al. Theorem 2.1, proof: 'First, observe that'",
        "bound", "<", 1.0, _largest("counts", "size over |V|! |V|"),
        "the cycles over subsets of V are fewer than |V|! |V| (largest ratio, 3 to 12 vertices)"),
    Claim("reduction", "Vembu et al. Theorem 2.1", "identity", "=", 0.0,
        _wrong("twice"),
        "G has a Hamiltonian cycle if and only if ln Z >= |V| ln(|V|! |V|), with psi over Sigma x Sigma and a "
        f"symmetric adjacency matrix {WRONG}", finding="Vembu et al. Theorem 2.1, edges counted twice", tag="slip",
        weight=5, scale=0.01),
    Claim("reduction, edges once", "Vembu et al. Theorem 2.1", "identity", "=", 0.0,
        _wrong("once"),
        f"G has a Hamiltonian cycle if and only if ln Z >= |V| ln(|V|! |V|), with psi over unordered pairs {WRONG}",
        scale=0.01),
    *(
        Claim(name, source, "identity", "=", 1.0, select(part="samplers", quantity="statistic", case=name).pooled(),
            f"{statement} (chi-square over its degrees of freedom)", scale=0.25)
        for name, source, statement in (
            ("hypercube", "Vembu et al. 4: 'Vertices of a hypercube'",
                "d unbiased coins are an exact uniform sample of the hypercube"),
            ("permutations", "Vembu et al. 4: 'Permutations'",
                "drawing positions without replacement is an exact uniform sample"),
            ("subtrees", "Vembu et al. 4: 'Subtrees of a tree'",
                "subtrees sampled by counts of subtrees with a prefix are exactly uniform"),
            ("cycles", OWN, "Hamiltonian cycles have an efficient uniform sampler"),
            ("cycle sets", "Vembu et al. Corollary 2.2", "cyclic permutations have an efficient uniform sampler"),
            ("partitions", OWN, "equivalence relations have an efficient uniform sampler"),
        )
    ),
    Claim("equation 2", "Vembu et al. equation 2", "identity", "=", 0.0,
        EXCESS.largest(),
        "f(r) = 1 + prod f(c) is the number of subtrees rooted at r (largest excess over the nonempty subtrees)",
        finding="Vembu et al. 4, equation 2", tag="reading", weight=1, scale=0.5),
    Claim("equation 2, empty tree", f"{OWN} (Vembu et al. equation 2)", "identity", "=", 1.0,
        EXCESS.largest(),
        "f(r) = 1 + prod f(c) counts the subtrees rooted at r and the empty tree (largest excess over the nonempty "
        "subtrees)"),
    Claim("prefixes", PREFIXES, "identity", "=", 1.0, _share_right("printed, anywhere", "printed, leaves"),
        "prod f(v) - |L(T')| over the leaves v is the number of subtrees with T' as prefix (share of prefixes of "
        "two leaves and more for which it is, under the better of two readings)",
        finding="Vembu et al. 4, subtrees with a prefix", tag="substantive", weight=4),
    Claim("prefixes, corrected", f"{OWN} (Vembu et al. 4)", "identity", "=", 1.0, _share_right("corrected"),
        "the number of subtrees with T' as prefix is the product of f(c) over the children c that hang off T' "
        "(share of prefixes of two leaves and more for which it is)"),
    Claim("coins", "Vembu et al. 4: 'Now, we can generate a sequence of d bits'", "identity", "=", 0.0,
        select(part="trees", quantity="total variation").largest(weakest=False),
        "coins of success probability f(u) / f(v), with v read as the node above u, give a uniform subtree (total "
        "variation from it, largest mean over random trees of one size)",
        finding="Vembu et al. 4, coins of the sampler of subtrees", tag="reading", weight=2, scale=0.05),
]
# fmt: on

EXPERIMENT = Experiment(
    id="structured-spaces",
    title="Spaces of combinatorial structures: counts, uniform samplers, and a reduction from Hamiltonian cycles",
    source="Vembu et al. 2.1 and 4",
    version=1,
    presets={
        "quick": {
            **{"samples": 4000, "repetitions": 4, "nodes": 7, "trees": 20, "graphs": 20, "items": 10, "matrices": 5},
            "vertices": [4, 5, 8],
        },
        "paper": {
            **{"samples": 20000, "repetitions": 40, "nodes": 9, "trees": 200, "graphs": 200, "items": 18},
            **{"matrices": 25, "vertices": [4, 5, 6, 7, 8, 9, 10, 11, 12]},
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(absolute=1e-12)},
    # what is left of sums that cancel is rounding noise
    rows=lambda cells: NOT_REPEATABLE if cells["part"] == "permanents" else None,
    claims=CLAIMS,
)
