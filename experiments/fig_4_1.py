"""Figure 4.1: accuracy of Algorithm 2 where some rows of the table are public."""

from itertools import pairwise

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import furthest, measure, select, together
from thesis_cli.studies.privacy.published import EPSILONS, MOST_POINTS, algorithm_2

DIMENSIONS = 2, 5
KNOWN = "standard_error.notna()"
FEW, LOW = 10, 31
"""Numbers of public points that count as small, and as a low ratio, beside the 100,000 rows."""
MANY, MORE = (600, 1_300), (5_000, MOST_POINTS)
"""Ranges of numbers of public points, with 9 and 8 of the numbers M of the figure."""


def tasks(settings):
    return [
        {"dimension": dimension, **{name: settings[name] for name in ("most", "draws", "constrained")}}
        for dimension in settings["dimensions"]
    ]


def run(seed, dimension, most, draws, constrained):
    """RKHS distances to the table's embedding by number of public points. The noise is seeded: NOT
    PRIVATE.

    `noise` is "published" for the published scale, "today" for the scale of a release, with the
    same draws, and "run" for the published run itself.
    """
    rows = algorithm_2(dimension, "leak", seed, most, draws, constrained)
    found = pd.DataFrame(rows, columns=["curve", "noise", "epsilon", "draw", "points", "distance"])
    return found.assign(dimension=dimension)


def plot(frame):
    dimensions = sorted(frame.dimension.unique())
    figure, axes = panels(2, len(dimensions), height=3.0, sharex=True, sharey=True, squeeze=False)
    for row, (noise, title) in zip(axes, TITLES.items(), strict=True):
        for ax, dimension in zip(row, dimensions, strict=True):
            rows = frame[frame.dimension == dimension]
            for curve, style in (("baseline", "-"), ("projection", ":")):
                found = rows[rows.curve == curve]
                ax.loglog(found.points, found.distance, style, color="black")
            for i, epsilon in enumerate(EPSILONS):
                _curves(ax, rows[rows.epsilon == epsilon], noise, i)
            label(ax, "", "", f"$D$ = {dimension}, {title}")
        row[0].set_ylabel("RKHS distance to the\ntable's embedding")
    for ax in axes[-1]:
        ax.set_xlabel("number $M$ of public rows")
    for epsilon, colour, width in zip(EPSILONS, COLOURS, WIDTHS, strict=False):
        axes[0, 0].plot([], [], color=colour, linewidth=width, label=rf"Algorithm 2, $\varepsilon$ = {epsilon:g}")
    for name, style in LEGEND.items():
        axes[0, 0].plot([], [], label=name, **style)
    return legend_below(figure, axes[0, 0], 3)


def _curves(ax, rows, noise, i):
    """Algorithm 2 at one epsilon, number i; thinner lines lie on wider ones where curves coincide."""
    colour, order = COLOURS[i], 2 + i / 10
    spread = rows[(rows.curve == "Algorithm 2") & (rows.noise == noise)].groupby("points").distance
    ax.fill_between(spread.mean().index, spread.min(), spread.max(), color=colour, alpha=0.3, linewidth=0)
    ax.plot(spread.mean(), color=colour, linewidth=WIDTHS[i], zorder=order)
    if noise == "published":
        run = rows[rows.noise == "run"][i::3]
        ax.plot(run.points, run.distance, "x", color=colour, markersize=4, markeredgewidth=0.8, zorder=3)
        return
    spread = rows[rows.curve == "simplex"].groupby("points").distance
    bars = [spread.mean() - spread.min(), spread.max() - spread.mean()]
    circle = {"fmt": "o", "color": colour, "mfc": "white", "markersize": 7 - 2 * i, "elinewidth": 0.8, "zorder": 3 + i}
    ax.errorbar(spread.mean().index, spread.mean(), bars, **circle)


WIDTHS = 3.2, 2.0, 0.9
TITLES = {"published": "noise of the thesis", "today": "noise of a release today"}
LEGEND = {
    "uniform weights": {"color": "black"},
    "projection, without noise": {"color": "black", "linestyle": ":"},
    "range of ten draws": {"color": "grey", "alpha": 0.3, "linewidth": 6},
    "run of the thesis": {"color": "grey", "marker": "x", "markersize": 4, "linestyle": ""},
    "Algorithm 2, weights on the simplex": {
        **{"color": "grey", "marker": "o", "linestyle": ""},
        **{"markerfacecolor": "white", "markersize": 5},
    },
}


def _spread(noise, curve="Algorithm 2"):
    """Mean distances by dimension, epsilon and number of points."""
    return select(curve=curve, noise=noise).number("distance").means("dimension", "epsilon", "points")


def _over_baseline(*points):
    """Largest ratio of the distance to that of uniform weights at some numbers of points."""
    near = PUBLISHED.where(points=list(points))
    return near.over(BASELINE, "dimension", "points").where(KNOWN).largest()


@measure
def _more_over_many(frame, dimension, epsilon):
    """Ratio of the distances in the range `MORE` of M to those in `MANY`, both geometric means; the
    noise of each M is drawn anew."""
    drawn = select(curve="Algorithm 2", noise="published", dimension=dimension, epsilon=epsilon)
    rows = drawn(frame)
    logs = rows.assign(log=np.log(rows.distance)).pivot_table(index="draw", columns="points", values="log")
    many, more = (logs.loc[:, low:high] for low, high in (MANY, MORE))
    if more.empty or len(logs) < 3:
        return None
    found = more.mean(axis=1) - many.mean(axis=1)
    ratio = np.exp(found.mean())
    return Measurement(ratio, ratio * found.sem())


def _simplex(points):
    """Ratio of the distance with weights on the simplex to that with free weights, both geometric
    means."""
    by = "dimension", "epsilon", "draw"
    constrained, free = (
        select(curve=curve, noise="today", points=points).number(lambda found: np.log(found.distance))
        for curve in ("simplex", "Algorithm 2")
    )
    logs = constrained.less(free, *by).means("dimension", "epsilon").where(KNOWN)
    return logs.number(lambda found: np.exp(found.value), lambda found: np.exp(found.value) * found.standard_error)


PUBLISHED = _spread("published")
BEST = [PUBLISHED.best("dimension", "epsilon").where(epsilon=epsilon) for epsilon in EPSILONS]
BASELINE = select(curve="baseline").number("distance")


def _typical(frame):
    """Mean over M of the published run's distance over the mean distance, the furthest from 1 of
    all D and epsilons."""
    rows = frame[(frame.curve == "Algorithm 2") & frame.noise.isin(["published", "run"])]
    by = ["dimension", "epsilon", "points"]
    fresh = rows[rows.noise == "published"].groupby(by).distance.mean()
    ratios = rows.set_index([*by, "noise", "draw"]).distance / fresh
    each = ratios.groupby(level=["noise", "dimension", "epsilon", "draw"]).mean()
    if rows.draw.nunique() < 5:  # too few for an estimate of their spread
        return None
    run, spread = each.loc["run"].droplevel("draw"), each.loc["published"].groupby(level=[0, 1]).agg(["std", "size"])
    return furthest(run, spread["std"] * (1 + 1 / spread["size"]) ** 0.5, 1.0)


CAPTION = (
    "RKHS distance of released weights to the embedding of a table of N = 100,000 rows of a Gaussian mixture in "
    "the plane (left) and in five dimensions (right), by the number M of its rows that are public; lower is "
    "better. The upper panels repeat Thesis Figure 4.1: crosses are the run that it plots, with the same random "
    "numbers (a third of them, others for each epsilon), and lines are means of ten fresh draws, with their range "
    "as a band. Solid black lines weight the public rows uniformly, and dotted ones are the projection onto their "
    "span, which needs no noise. Colours are values of epsilon, at delta = 1e-6; where curves coincide, thinner "
    "lines lie on wider ones. The lower panels are not in the thesis: Algorithm 2 with the smaller noise that a "
    "release has today, and, as circles, with its weights on the simplex; bars are ranges of ten draws, most of "
    "them smaller than the circles."
)

# fmt: off
CLAIMS = [
    Claim("few public rows", "Thesis Figure 4.1", "comparison", "<", 1.0, _over_baseline(*range(FEW + 1)),
        "in all cases, for sufficiently small M Algorithm 2 is more accurate than uniform weights: for every M up "
        f"to {FEW}, D and epsilon (its RKHS distance over theirs, the largest)"),
    Claim("substantial benefit", "Thesis C.2.3: 'provides a substantial benefit over this baseline'",
        "comparison", "<", 2 / 3, _over_baseline(LOW),
        "if the ratio of public to private rows is low enough, Algorithm 2 provides a substantial benefit over "
        f"uniform weights: at M = {LOW} its RKHS distance is less than two thirds of theirs at every D and epsilon "
        "(its distance over theirs, the largest)", reading=Reading("substantial: by a third", 0.0)),
    Claim("epsilon", "Thesis Figure 4.1", "comparison", ">", 1.0,
        together(*(low.over(high, "dimension") for low, high in pairwise(BEST))).where(KNOWN).least(),
        "stricter privacy leads to lower accuracy: Algorithm 2 with a tenth of epsilon has the larger RKHS "
        "distance, each at its best M (least ratio of any D and epsilon)"),
    *(
        Claim(f"more public rows, D = {dimension}, epsilon = {epsilon:g}", "Thesis Figure 4.1", "comparison", ">",
            1.0, _more_over_many(dimension, epsilon),
            f"increasing M does not always improve accuracy: at D = {dimension} and epsilon = {epsilon:g} "
            f"Algorithm 2's RKHS distances at M from {MORE[0]:,} to {MORE[1]:,} are larger than at M from "
            f"{MANY[0]:,} to {MANY[1]:,} (ratio of the two)")
        for dimension in DIMENSIONS
        for epsilon in EPSILONS
    ),
    Claim("published run", "Thesis Figure 4.1", "published", "=", 1.0, _typical,
        "the curves of Algorithm 2 in the figure, whose random numbers are repeated, are those of a typical draw "
        "(mean over M of the distance over the mean of fresh draws; the furthest from 1 of all D and epsilons)",
        printed="curves"),
    Claim("simplex, many rows", "beyond the source", "comparison", "<", 1.0, _simplex(3274).largest(),
        "with 3,274 public rows and the smaller noise of a release today, Algorithm 2 is more accurate with "
        "weights on the simplex than with unconstrained ones at every D and epsilon (largest ratio of RKHS "
        "distances)"),
    Claim("simplex, few rows", "beyond the source", "comparison", ">", 1.0, _simplex(10).least(),
        "with 10 public rows and the smaller noise of a release today, Algorithm 2 is less accurate with weights "
        "on the simplex than with unconstrained ones at every D and epsilon (least ratio of RKHS distances)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-4-1",
    title="Figure 4.1: Algorithm 2 with public rows (seeded noise: NOT PRIVATE)",
    source="Thesis Figure 4.1",
    version=1,
    presets={
        "quick": {"dimensions": [2], "most": 200, "draws": 2, "constrained": [10, 104]},
        "paper": {
            **{"dimensions": list(DIMENSIONS), "most": MOST_POINTS, "draws": 10},
            "constrained": [10, 31, 104, 319, 1072, 3274],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Distances without noise are small differences, and processors round the basis of Algorithm 2 differently.
    tolerances={"distance": Tolerance(relative=1e-6)},
    caption=CAPTION,
    claims=CLAIMS,
)
