"""Perturb-and-MAP on the spaces of Vembu et al. beside telescoping products and uniform structures."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import lowest, measure, select
from thesis_cli.structured.catalogue import space as space_named
from thesis_cli.structured.ranges import map_range
from thesis_cli.studies.structured import products as ways
from thesis_cli.studies.structured.exact_ratios import needed, with_span
from thesis_cli.studies.structured.uniformity import random_tree

NEEDED, TWENTY_FIVE = "needed, ", "Theorem 2.5"
EPSILON = 0.1
"""Error for which work is compared."""

SPACES = [
    *(["hypercube", "linear", 10], ["hypercube", "pairs", 10], ["cycles", "edges", 8], ["cycle-sets", "edges", 7]),
    *(["permutations", kind, 7] for kind in ("positions", "ranks", "orders")),
    *(["subtrees", "nodes", 14], ["partitions", "pairs", 8]),
]
SIZES = [
    *(["hypercube", "pairs", [4, 6, 8, 10, 12]], ["permutations", "positions", [4, 6, 8, 10, 12]]),
    *(["cycles", "edges", [4, 6, 8, 10]], ["partitions", "pairs", [4, 6, 8, 10]]),
    ["subtrees", "nodes", [4, 8, 12, 16, 20]],
]
FEW = [["hypercube", "linear", 4], ["permutations", "orders", 5], ["partitions", "pairs", 5]]
PRESETS = {
    "quick": {
        **{"spaces": FEW, "sizes": [["permutations", "positions", [3, 4]]], "spans": [3, 10]},
        **{"calls": 1000, "runs": 8, "epsilons": [0.5], "lengths": [1, 10]},
    },
    "paper": {
        **{"spaces": SPACES, "sizes": SIZES, "spans": [3, 10, 20]},
        **{"calls": 20_000, "runs": 30, "epsilons": [0.5, 0.2], "lengths": [1, 10, 100]},
    },
}
COLUMNS = [
    *("part", "space", "features", "elements", "span", "method", "epsilon"),
    *("calls", "runs", "bias", "standard_error", "deviation", "rms", "within"),
]


def tasks(settings):
    common = {key: settings[key] for key in ("calls", "runs", "epsilons", "lengths")}
    errors = [
        {"part": "errors", "space": name, "features": kind, "elements": d, "span": span, **common}
        for name, kind, d in settings["spaces"]
        for span in settings["spans"]
    ]
    sizes = [
        {"part": "sizes", "space": name, "features": kind, "elements": d, "span": None, **common}
        for name, kind, counts in settings["sizes"]
        for d in counts
    ]
    return errors + sizes


def run(seed, part, space, features, elements, span, calls, runs, epsilons, lengths):
    """Rows for one weight vector; errors are those of ln Z.

    `errors`: normal weights of a span. For bounds, `bias` is the mean over `calls` MAP calls less ln
    Z, `deviation` that of one; for estimates, they are over `runs`, each of `calls` perturbations,
    draws or uniform structures on average, and `within` is the share of runs with Z within a factor
    of 1 +- `epsilon`. `sizes`: standard normal weights; bounds, and rows "needed" with the work that
    guarantees epsilon = 0.1.
    """
    weighting, noises, chains = seed.spawn(3)
    rng = np.random.default_rng(weighting)
    parents = random_tree(elements, rng) if space == "subtrees" else None
    found = space_named(space, elements, features, parents)
    weights = rng.standard_normal(found.dimension) if span is None else with_span(found, span, rng)
    log_z = float(found.log_partition(weights[None])[0])
    rows = list(ways.bound_rows(found, weights, log_z, calls, noises))
    if part == "sizes":
        span = map_range(found, weights).span
        names = (ways.EVERY, ways.UNIFORM, ways.DRAWN, ways.COUPLED, TWENTY_FIVE)
        work = zip(names, needed(found, weights, EPSILON), strict=True)
        rows += [{"method": NEEDED + name, "epsilon": EPSILON, "calls": count} for name, count in work]
    else:
        rows += ways.estimate_rows(found, weights, log_z, ways.Repetitions(calls, runs, epsilons, lengths), chains)
    task = {"part": part, "space": space, "features": features, "elements": elements, "span": span}
    return pd.DataFrame(rows).assign(**task).reindex(columns=COLUMNS)


def _bias(start, part="errors"):
    """Bias of the bounds whose names begin so."""
    found = select(part=part).then(lambda rows: rows[rows.method.str.startswith(start)])
    return found.number("bias", "standard_error")


STYLES = {ways.UNIFORM: (COLOURS[2], "o"), ways.DRAWN: (COLOURS[3], "s"), ways.COUPLED: (COLOURS[4], "^")}
NUMBERS = np.geomspace(10, 1e6, 60)


def plot(frame):
    figure, axes = panels(4, 3, height=2.1)
    errors = frame[frame.part == "errors"]
    spans = sorted(errors.span.unique())
    shown = errors[errors.span == spans[len(spans) // 2]]
    for ax, ((space, features), rows) in zip(axes.flat, shown.groupby(["space", "features"], sort=False), strict=False):
        _curves(ax, rows)
        title = f"{space}, {features}, d = {rows.elements.iloc[0]:.0f}"
        label(ax, "calls or structures", r"error of ln $Z$, nats", title)
    _sizes(axes[3, 0], axes[3, 1], frame)
    _efficiency(axes[3, 2], errors)
    return legend_below(figure, axes[0, 0], 3)


def _curves(ax, rows):
    """Errors of one space against calls."""
    for start, colour, name in ((ways.UPPER, COLOURS[0], "upper bound"), (ways.LOWER, COLOURS[1], "lower bound")):
        found = rows[rows.method.str.startswith(start)]
        best = found.loc[found.bias.abs().idxmin()]
        bias = best.bias if abs(best.bias) > 3 * best.standard_error else 0.0
        ax.plot(NUMBERS, np.hypot(bias, best.deviation / NUMBERS**0.5), color=colour, label=f"{name}, MAP calls")
    ax.plot(NUMBERS, np.pi / 6**0.5 / NUMBERS**0.5, "--", color=COLOURS[6], label="noise on every structure")
    for method, (colour, marker) in STYLES.items():
        found = rows[rows.method == method]
        ax.plot(found.calls, found.rms, marker, color=colour, label=method, markersize=4)
    cut = rows[rows.method.str.startswith(ways.CUT)]
    ax.plot(cut.calls, cut.rms, "x", color=COLOURS[5], label="product, META chains of 1, 10, 100", markersize=4)
    ax.set(xscale="log", yscale="log", ylim=(8e-4, 15))


def _sizes(left, right, frame):
    """Bounds, and the work that an error of a tenth takes, by the number of elements."""
    sizes = frame[frame.part == "sizes"]
    for (name, rows), colour in zip(sizes.groupby("space", sort=False), COLOURS, strict=False):
        for start, style in ((ways.UPPER, "-"), (ways.LOWER, "--")):
            found = rows[rows.method.str.startswith(start)].groupby("elements").bias
            best = found.min() if start == ways.UPPER else found.max()
            left.plot(best.index, best, style, color=colour, label=name if style == "-" else None)
        for method, style in ((ways.UNIFORM, "-"), (ways.COUPLED, ":")):
            found = rows[rows.method == NEEDED + method]
            right.plot(found.elements, found.calls, style, color=colour)
    every = sizes[sizes.method == NEEDED + ways.EVERY]
    right.axhline(every.calls.iloc[0], linestyle="--", color=COLOURS[6])
    right.set_yscale("log")
    label(left, "elements d", r"bound less ln $Z$, nats", "standard normal weights")
    label(right, "elements d", "work for a tenth of $Z$", "uniform (line), META (dots)")
    left.set_ylim(-17)
    left.legend(fontsize=6, loc="lower left", ncol=2)


def _efficiency(ax, errors):
    """Calls times squared error, the geometric mean over spaces."""
    spans = sorted(errors.span.unique())
    for method, (colour, marker) in STYLES.items():
        means = [np.exp(np.log(_work(errors[errors.span == span], method)).mean()) for span in spans]
        ax.plot(spans, means, marker + "-", color=colour, markersize=4)
    ax.axhline(np.pi**2 / 6, linestyle="--", color=COLOURS[6])
    ax.set_yscale("log")
    label(ax, "span of log-potentials, nats", "calls x squared error", "mean over the spaces")


def _work(rows, method):
    """Calls times mean squared error of each space, at its most calls."""
    found = rows[rows.method == method]
    found = found.loc[found.groupby(["space", "features", "span"]).calls.idxmax()]
    return (found.calls * found.rms**2).to_numpy()


TIGHT = "space == 'hypercube' and features == 'linear'"
"""Independent bits, whose upper bounds are exact."""
STRONG = ["permutations", "cycles", "cycle-sets", "partitions"]
"""Spaces whose variables depend on each other strongly."""


def _unbiased(frame):
    found = select(part="errors", method=ways.EVERY, epsilon=frame.epsilon.max())
    return found.number("bias", "standard_error").furthest()(frame)


@measure
def _share_within(frame, *methods, widest=False):
    """Share of all runs of some methods that keep the guarantee; at the largest span alone if `widest`."""
    found = select("within == within", method=list(methods))(frame)
    found = found[found.span == found.span.max()] if widest else found
    if found.empty:
        return None
    runs = found.runs.sum()
    share = (found.within * found.runs).sum() / runs
    return share, max(share * (1 - share), 1 / runs) ** 0.5 / runs**0.5


@measure
def _ratio(frame, above, below):
    """Mean over spaces and spans of the ln of a method's calls x squared error over another's."""
    spans = frame[frame.part == "errors"].groupby("span")
    logs = np.concatenate([np.log(_work(part, above)) - np.log(_work(part, below)) for _, part in spans])
    return (logs.mean(), logs.std(ddof=1) / len(logs) ** 0.5) if len(logs) > 1 else None


@measure
def _tighter(frame, *cases):
    """The worse upper bounds less the better ones, means over spans; the space that is fewest
    standard errors above 0.
    """
    means, errors = [], []
    for space, better, worse in cases:
        bounds = [
            select(part="errors", space=space, method=ways.UPPER + name).number("bias", "standard_error")
            for name in (worse, better)
        ]
        found = bounds[0].less(bounds[1], "features", "span")(frame)
        means.append(found.value.mean())
        errors.append(found.standard_error.max() / len(found) ** 0.5)
    return lowest(means, errors)


def _least_needed(above, below):
    """Least ratio of the work that two ways need, over all sizes."""
    work = [select(part="sizes", method=NEEDED + name).number("calls") for name in (above, below)]
    return work[0].over(work[1], "space", "elements").least(1e-6)


OWN, GUARANTEE = "this project", "Vembu et al. Definition 2.1"
LN = "(mean over spaces and spans of the ln of calls x squared error, over the other's)"

CAPTION = """\
First three rows: error of ln Z against the number of MAP calls, perturbations, exact draws or uniform \
structures, for normal weights that give the log-potentials a span of the middle preset value; lines are mean and \
deviation of perturb-and-MAP, marks root mean square errors of repeated estimates. META chains of 1, \
10 and 100 steps replace exact samples in the product with epsilon = 1/2. Last row: \
bounds (upper, solid; lower, dashed) against the number of elements, with standard normal weights; the \
uniform structures that guarantee Z to a tenth with probability 3/4 by an average (solid) and by a telescoping \
product with META (dotted), and the perturbations of all structures (dashed); calls times squared error \
against the span. The source has no figure."""

# fmt: off
CLAIMS = [
    Claim("upper bound", "Thesis 2.3: 'Unary perturbations provide the upper bound'",
        "bound", ">", 0.0, _bias(ways.UPPER, ["errors", "sizes"]).where(f"not ({TIGHT})").lowest(),
        "the mean maximum under noise on variables that determine a structure is above ln Z (difference, fewest "
        "standard errors above 0)", scale=0.5),
    Claim("lower bound", "Thesis 2.3.4: 'is the Gumbel trick lower bound'",
        "bound", "<", 0.0, _bias(ways.LOWER, ["errors", "sizes"]).lowest(sign=-1),
        "the mean maximum under the noise over its number of terms is below ln Z (difference, fewest standard "
        "errors below 0)", scale=0.5),
    Claim("independent bits", OWN, "identity", "=", 0.0, _bias(ways.UPPER).where(TIGHT).furthest(),
        "for independent bits the upper bound is ln Z (difference, most standard errors from 0)", scale=0.3),
    Claim("every structure", "Thesis eq. 2.1'", "identity", "=", 0.0, _unbiased,
        "the mean maximum under noise on every structure is ln Z (difference, most standard errors from 0)", scale=0.1),
    Claim("perturbations for the promise", GUARANTEE, "bound", ">", 0.75, _share_within(ways.EVERY),
        "(pi^2/6) / (ln(1 + epsilon)^2 / 4) perturbations of all structures give Z within a factor of 1 +- epsilon "
        "with probability 3/4, whatever the space and its size"),
    Claim("product with exact samples", f"{OWN} (Vembu et al. {TWENTY_FIVE})", "bound", ">", 0.75,
        _share_within(ways.DRAWN, ways.COUPLED),
        "a product with exact samples gives Z within a factor of 1 +- epsilon with probability 3/4, also with far "
        "fewer samples than the theorem's, by the sharp variance bound (share of runs, draws and META)"),
    Claim("chains that are cut", "Vembu et al. Theorem A.1", "comparison", "<", 0.75,
        _share_within(f"{ways.CUT}1", widest=True),
        "chains must be long enough: with one step, products miss the promise at the widest span (share of runs "
        "within a factor of 1 +- 1/2)"),
    Claim("META beside an average", OWN, "comparison", ">", 0.0, _ratio(ways.COUPLED, ways.UNIFORM),
        f"a product with META takes more uniform structures than their average does for the same error {LN}"),
    Claim("META beside an average, guaranteed", OWN, "comparison", ">", 1.0,
        _least_needed(ways.COUPLED, ways.UNIFORM),
        "also for the guarantee of a tenth (least ratio over spaces and sizes)"),
    Claim("Theorem 2.5 beside perturbations", f"Vembu et al. {TWENTY_FIVE}", "comparison", ">", 1000.0,
        _least_needed(TWENTY_FIVE, ways.EVERY),
        "for a tenth of Z the theorem asks for more than 1,000 times as many exact samples as there need be "
        "perturbations of all structures (least ratio over spaces and sizes)"),
    Claim("upper bounds do not converge", OWN, "comparison", ">", 0.0,
        _bias(ways.UPPER).where(space=STRONG).best("space", "features", "span").minus(0.3).lowest(),
        "for permutations, cycles and partitions the upper bound stays more than 0.3 nats above ln Z, however many "
        "MAP calls there are (difference less 0.3, fewest standard errors above 0)"),
    Claim("few variables with noise", OWN, "comparison", ">", 0.0,
        _tighter(("permutations", "positions", "orders"), ("partitions", "blocks", "pairs")),
        "noise on few variables with many states gives tighter upper bounds than on pairs: positions of items, "
        "blocks of elements (mean difference over spans, fewest standard errors above 0)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="structured-perturb",
    title="Perturb-and-MAP on combinatorial spaces beside telescoping products",
    source="Vembu et al. 2.2, 3; Thesis 2.3",
    version=1,
    presets=PRESETS,
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={column: Tolerance(absolute=1e-10) for column in ("bias", "standard_error", "deviation", "rms")},
    claims=CLAIMS,
)
