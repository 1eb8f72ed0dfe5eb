"""Figure 4.1: accuracy of Algorithm 2 where some rows of the table are public."""

from itertools import pairwise

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.studies.privacy.published import EPSILONS, MOST_POINTS, algorithm_2

DIMENSIONS = 2, 5
FEW = 10
"""Largest number of public points that counts as small beside the 100,000 rows of the table."""
MANY = 1_072
"""Number of public points from which more do not help."""


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
    figure, axes = panels(1, frame.dimension.nunique(), height=3.6, sharey=True, squeeze=False)
    axes = axes[0]
    for ax, (dimension, rows) in zip(axes, frame.groupby("dimension"), strict=True):
        for curve, style in (("baseline", "-"), ("projection", ":")):
            found = rows[rows.curve == curve]
            ax.loglog(found.points, found.distance, style, color="black")
        for epsilon, colour in zip(EPSILONS, COLOURS, strict=False):
            found = rows[rows.epsilon == epsilon]
            for noise, style in (("published", "--"), ("today", "-")):
                spread = found[(found.curve == "Algorithm 2") & (found.noise == noise)].groupby("points").distance
                ax.plot(spread.mean(), style, color=colour, linewidth=1)
                ax.fill_between(spread.mean().index, spread.min(), spread.max(), color=colour, alpha=0.25, linewidth=0)
            run = found[found.noise == "run"][::3]
            ax.plot(run.points, run.distance, "x", color=colour, markersize=2.5, markeredgewidth=0.6)
            spread = found[found.curve == "simplex"].groupby("points").distance
            bars = [spread.mean() - spread.min(), spread.max() - spread.mean()]
            ax.errorbar(spread.mean().index, spread.mean(), bars, fmt="o", color=colour, elinewidth=0.8)
        label(ax, "number $M$ of public rows", "", f"$D$ = {dimension}")
    axes[0].set_ylabel("RKHS distance to the table's embedding")
    for epsilon, colour in zip(EPSILONS, COLOURS, strict=False):
        axes[0].plot([], [], color=colour, label=rf"$\varepsilon$ = {epsilon:g}")
    for name, style in LEGEND.items():
        axes[0].plot([], [], label=name, **style)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    return figure


LEGEND = {
    "baseline: uniform weights": {"color": "black"},
    "projection: no noise": {"color": "black", "linestyle": ":"},
    "published noise, mean and range of draws": {"color": "grey", "linestyle": "--"},
    "published run": {"color": "grey", "marker": "x", "linestyle": ""},
    "noise of a release today": {"color": "grey"},
    "the same, weights on the simplex": {"color": "grey", "marker": "o", "linestyle": ""},
}


def _spread(frame, noise, curve="Algorithm 2"):
    """Mean distances and their standard errors by dimension, epsilon and number of points."""
    rows = frame[(frame.curve == curve) & (frame.noise == noise)]
    return rows.groupby(["dimension", "epsilon", "points"]).distance.agg(["mean", "sem"])


def _ratio(a, b):
    """Ratio of two spreads, or of a spread to exact numbers, where both have values."""
    b = b if isinstance(b, pd.DataFrame) else pd.DataFrame({"mean": b, "sem": 0.0})
    value = a["mean"] / b["mean"]
    error = value * np.hypot(a["sem"] / a["mean"], b["sem"] / b["mean"])
    return pd.DataFrame({"value": value, "error": error}).dropna()


def _extreme(ratios, largest):
    row = ratios.loc[ratios.value.idxmax() if largest else ratios.value.idxmin()]
    return Measurement(row.value, row.error)


def _over_baseline(frame):
    spread = _spread(frame, "published")
    baseline = frame[frame.curve == "baseline"].set_index(["dimension", "points"]).distance
    index = spread.index.droplevel("epsilon")
    return _ratio(spread, pd.Series(baseline.loc[index].to_numpy(), spread.index))


def _few(frame):
    ratios = _over_baseline(frame)
    return _extreme(ratios[ratios.index.get_level_values("points") <= FEW], True)


def _crossing(dimension, epsilon):
    """Largest number of points up to which Algorithm 2 has the smaller mean distance."""

    def measure(frame):
        if dimension not in set(frame.dimension):
            return None
        ratios = _over_baseline(frame).value.loc[dimension, epsilon]
        worse = ratios.index[ratios >= 1]
        return Measurement(ratios.index[ratios.index < worse[0]].max() if worse.size else ratios.index.max())

    return measure


def _epsilon(frame):
    """Least ratio of mean distances at neighbouring epsilons."""
    spread = _spread(frame, "published")
    levels = [spread.xs(epsilon, level="epsilon") for epsilon in EPSILONS]
    ratios = [_ratio(low, high) for low, high in pairwise(levels)]
    return _extreme(pd.concat(ratios, ignore_index=True), False)


def _all_over_many(dimension, epsilon):
    """Mean distance at the largest number of points over that at `MANY`."""

    def measure(frame):
        spread = _spread(frame, "published")
        if (dimension, epsilon, MANY) not in spread.index:
            return None
        curve = spread.loc[dimension, epsilon]
        return Measurement(*_ratio(curve.iloc[-1:].reset_index(), curve.loc[[MANY]].reset_index()).iloc[0])

    return measure


def _today(frame):
    return Measurement(_ratio(_spread(frame, "today"), _spread(frame, "published")).value.max())


def _simplex(frame):
    ratios = _ratio(_spread(frame, "today", "simplex"), _spread(frame, "today"))
    chosen = ratios[ratios.index.get_level_values("points") >= MANY]
    return None if chosen.empty else _extreme(chosen, True)


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
    furthest = (run - 1).abs().idxmax()
    std, size = spread.loc[furthest]
    return Measurement(run[furthest], std * (1 + 1 / size) ** 0.5)


EXPERIMENT = Experiment(
    id="fig-4-1",
    title="Figure 4.1: Algorithm 2 with public rows (seeded noise: NOT PRIVATE)",
    source="Thesis Figure 4.1",
    version=1,
    presets={
        "quick": {"dimensions": [2], "most": 200, "draws": 2, "constrained": [10, 104]},
        "paper": {
            "dimensions": list(DIMENSIONS),
            "most": MOST_POINTS,
            "draws": 10,
            "constrained": [10, 31, 104, 319, 1072, 3274],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Distances without noise are small differences; docs/reproduce.md, Rounding in Figures 4.1 and 4.2.
    tolerances={"distance": Tolerance(relative=1e-6)},
    claims=[
        Claim(
            id="few public rows",
            source="Thesis Figure 4.1",
            statement=f"for sufficiently small M Algorithm 2 is more accurate than uniform weights: up to M = {FEW}, "
            "at every D and epsilon (largest ratio of distances)",
            published=1.0,
            relation="<",
            measure=_few,
        ),
        *(
            Claim(
                id=f"crossing, D = {dimension}, epsilon = {epsilon:g}",
                source="beside Thesis Figure 4.1",
                statement=f"at D = {dimension} and epsilon = {epsilon:g} it is so beyond M = {FEW} (largest M before "
                f"uniform weights are as accurate; {MOST_POINTS:,} is all)",
                published=FEW,
                relation=">",
                measure=_crossing(dimension, epsilon),
            )
            for dimension in DIMENSIONS
            for epsilon in EPSILONS
        ),
        Claim(
            id="epsilon",
            source="Thesis Figure 4.1",
            statement="stricter privacy costs accuracy: a tenth of epsilon has the larger distance at every D and M "
            "(least ratio)",
            published=1.0,
            relation=">",
            measure=_epsilon,
        ),
        *(
            Claim(
                id=f"more public rows, D = {dimension}, epsilon = {epsilon:g}",
                source="Thesis Figure 4.1",
                statement=f"more public rows do not always help: at D = {dimension} and epsilon = {epsilon:g} "
                f"{MOST_POINTS:,} are no better than {MANY:,} (ratio of distances)",
                published=1.0,
                relation=">",
                measure=_all_over_many(dimension, epsilon),
            )
            for dimension in DIMENSIONS
            for epsilon in EPSILONS
        ),
        Claim(
            id="published run",
            source="Thesis Figure 4.1",
            statement="the published noise is a typical draw (mean over M of its distance over the mean of fresh "
            "draws; the furthest of all D and epsilons)",
            published=1.0,
            relation="=",
            measure=_typical,
        ),
        Claim(
            id="noise of a release",
            source="beyond the source",
            statement="with the sensitivity sqrt(2)/N and OpenDP's scale the distance is smaller at every D, epsilon "
            "and M (largest ratio, same draws)",
            published=1.0,
            relation="<",
            measure=_today,
        ),
        Claim(
            id="simplex",
            source="beyond the source",
            statement=f"from M = {MANY:,} on, weights on the simplex are more accurate at every D and epsilon (largest "
            "ratio)",
            published=1.0,
            relation="<",
            measure=_simplex,
        ),
    ],
)
