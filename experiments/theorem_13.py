"""Theorem 13: Algorithm 2 with a bound on the sum of absolute weights, for tables of growing
size."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.privacy.embedding.means import distance, mean_at, mean_of_matrix
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release.subspace import orthonormal_basis, reweighted
from thesis_cli.reproduction.experiment import Claim, Experiment, Reading, Tolerance
from thesis_cli.reproduction.measuring import pooled_by, select
from thesis_cli.studies.privacy.published import DELTA, EPSILONS, kernel, mixture, wide_points
from thesis_cli.studies.privacy.seeded import SeededGaussian

CONSTRAINTS = {"raw": ("raw", 1.0), "C = 2": ("l1", 2.0), "C = 1": ("l1", 1.0), "simplex": ("simplex", 1.0)}
BOUNDS = {"C = 2": 2.0, "C = 1": 1.0}
FUNCTIONS = {
    "product": lambda x: Rows.of_reals(x[:, :1] * x[:, 1:] / 100),
    "maximum": lambda x: Rows.of_reals(x.max(1, keepdims=True)),
}
"""f of Theorem 13, from the plane to the line."""


def tasks(settings):
    return [{"rows": rows, "draws": settings["draws"], "sample": settings["sample"]} for rows in settings["rows"]]


def run(seed, rows, draws, sample):
    """Norms and distances of Algorithm 2 on fresh tables of N rows of the mixture in the plane.

    It uses M = sqrt(N) points of N(0, 500^2). `norm` is sum |w|, `distance` the distance to the
    embedding of the mixture itself, and the other columns are distances to the embeddings of f(X),
    estimated from `sample` more rows. The plane is not compact, unlike the space of Theorem 10. The
    noise is seeded: NOT PRIVATE.
    """
    found, k, line = mixture(2), kernel(2), kernel(1)
    fresh, *children = seed.spawn(1 + draws)
    others = found.draw(sample, np.random.default_rng(fresh)).reals
    images = {name: f(others) for name, f in FUNCTIONS.items()}
    norms = {name: mean_of_matrix(line, image) for name, image in images.items()}
    squared_norm = found.squared_norm(k)
    records = []
    for draw, child in enumerate(children):
        rng = np.random.default_rng(child)
        table, points = found.draw(rows, rng), wide_points(2, math.isqrt(rows), rng)
        basis = orthonormal_basis(k, points)
        coordinates = basis.coordinates(mean_at(k, [table], points))
        sensitivity, values = basis.l2_sensitivity(k, points, rows), found.embedding(k, points)
        at = {name: f(points.reals) for name, f in FUNCTIONS.items()}
        values_at = {name: mean_at(line, [images[name]], at[name]) for name in FUNCTIONS}
        for epsilon in EPSILONS:
            noised = SeededGaussian(rng, "analytic").add(coordinates, sensitivity, Budget(epsilon, DELTA)).values
            for name, (constraint, most) in CONSTRAINTS.items():
                weights = reweighted(k, points, basis, noised, constraint, most)
                record = {"rows": rows, "points": len(points), "draw": draw, "epsilon": epsilon, "weights": name}
                record["norm"] = np.abs(weights).sum()
                record["distance"] = distance(k, points, weights, values, squared_norm)
                for f in FUNCTIONS:
                    record[f] = distance(line, at[f], weights, values_at[f], norms[f])
                records.append(record)
    return pd.DataFrame(records)


PANELS = {
    "norm": r"sum of weights $\Sigma_m |w_m|$",
    "distance": r"distance to $\mu_X$",
    "product": "distance to $\\mu_{f(X)}$,\n$f = x_1 x_2 / 100$",
    "maximum": "distance to $\\mu_{f(X)}$,\n$f = \\max(x_1, x_2)$",
}


def plot(frame):
    figure, axes = panels(len(PANELS), len(EPSILONS), height=1.95, sharex=True, sharey="row")
    for row, (quantity, name) in zip(axes, PANELS.items(), strict=True):
        for ax, epsilon in zip(row, EPSILONS, strict=True):
            for (weights, style), colour in zip(MARKERS.items(), COLOURS, strict=False):
                logs = _logs(quantity, epsilon=epsilon, weights=weights).means("rows")(frame)
                low, middle, high = (np.exp(logs.value + s * logs.standard_error) for s in (-2, 0, 2))
                bars = [middle - low, high - middle]
                ax.errorbar(logs.rows, middle, bars, color=colour, label=LEGEND[weights], **style)
            ax.set(xscale="log", yscale="log")
            ax.yaxis.set_minor_formatter("")
            if quantity == "norm":
                ax.set_title(rf"$\varepsilon$ = {epsilon:g}")
            if quantity == "product":
                ax.set_ylim(bottom=0.1)  # room for a second label
        row[0].set_ylabel(name)
    for ax in axes[-1]:
        label(ax, "rows $N$ of the table", ax.get_ylabel())
    return legend_below(figure, axes[0, 0], 2)


MARKERS = {
    "raw": {"fmt": "s-"},
    "C = 2": {"fmt": "o-"},
    "C = 1": {"fmt": "D-", "markersize": 5.5, "markerfacecolor": "white", "linewidth": 2.4},
    "simplex": {"fmt": "^:"},
}
LEGEND = {
    "raw": "no constraint (Algorithm 2)",
    "C = 2": r"$\Sigma |w| \leq 2$",
    "C = 1": r"$\Sigma |w| \leq 1$",
    "simplex": r"$w \geq 0$, $\Sigma w = 1$",
}


def _logs(quantity, **equal):
    return select(**equal).number(lambda found: np.log(found[quantity]))


def _growth(quantity, *names, since="rows.min()"):
    """ln ratios, at each epsilon, of the mean values at the largest N and at another; none if the sizes are too near
    each other to show a limit."""
    logs = _logs(quantity, weights=list(names)).then(lambda f: f if f.rows.max() >= APART * f.rows.min() else f.head(0))
    last, first = (logs.where(f"rows == {size}").means("weights", "epsilon") for size in ("rows.max()", since))
    return last.less(first, "weights", "epsilon")


def _paired(quantity, epsilon):
    """Mean ln ratios, over all N, of constrained to raw weights with the same noise."""
    logs = _logs(quantity, epsilon=epsilon)
    ratios = logs.where(weights=HELD).less(logs.where(weights="raw"), "rows", "draw")
    return ratios.means("weights", "rows").then(pooled_by("weights"))


HELD = ["C = 2", "C = 1", "simplex"]
APART = 100
"""Least ratio of the largest table to the smallest that can show what happens as N grows."""

HALVED = Reading("tends to 0: at most half of the distance is left", 0.0)
"""A distance that has a floor falls, too."""

FALLS = Reading("tends to 0: it still falls over the last factor of ten", 0.0)
"""The distances of f(X) rise before they fall, so that those of the smallest tables tell nothing."""

CAPTION = (
    "Algorithm 2 on fresh tables of N rows of a Gaussian mixture in the plane, with M = sqrt(N) points of N(0, "
    "500^2), by N; columns are values of epsilon, at delta = 1e-6. Rows of panels show the sum of absolute "
    "weights, the RKHS distance of the release to the embedding of X, and its distances to the embeddings of two "
    "functions f of X, to whose values the released points are mapped. Marks are geometric means of 30 draws, "
    "bars two standard errors; weights with a bound of 1 and weights on the simplex nearly coincide. Without a bound "
    "the sum of weights rises, and ends below its largest value or near it. The thesis "
    "proves, and does not plot, that weights with a bound on their sum (eq. C.7) are consistent for X and for "
    "f(X) (eq. C.8). This is a limit: with C = 2 and the product the distance rises before it falls, as 30 to 100 "
    "points so wide apart are few, and a million rows leave more than half of it; "
    "and the plane is not compact, as Theorem 10 asks."
)

# fmt: off
CLAIMS = [
    Claim("norm", "Thesis eq. C.7", "bound", "<", 1.0,
        select(weights=list(BOUNDS)).number("norm").per(lambda found: found.weights.map(BOUNDS)).largest(1e-9),
        "the sum of the absolute weights that Algorithm 2 releases under a bound C is at most C (largest ratio to "
        "C)", scale=0.01),
    Claim("raw norm", "Thesis 4.4: 'This is not enforced by'",
        "comparison", ">", 0.0, _growth("norm", "raw").least(),
        "Algorithm 2 does not bound the sum of absolute weights: with M = sqrt(N) the sum is larger for the "
        "largest table than for the smallest (least ln ratio of all epsilons)"),
    Claim("consistent", "Thesis Theorem 13", "comparison", "<", -math.log(2), _growth("distance", *HELD).largest(),
        "bounded weights stay consistent for the embedding of X: the distance tends to 0 (ln of the distance for "
        "the largest table over that for the smallest, the largest of all epsilons and bounds)", reading=HALVED),
    *(
        Claim(f"consistent, {f}, {name}", "Thesis eq. C.8", "comparison", "<", 0.0,
            _growth(f, name, since="rows.max() / 10").largest(),
            f"weights whose absolute values sum to at most {name} are consistent for f(X), f the {f}: the distance "
            "to its embedding tends to 0 (ln of the distance for the largest table over that for a tenth of its rows, "
            "the largest of all epsilons)", reading=FALLS)
        for f in FUNCTIONS
        for name in BOUNDS
    ),
    Claim("raw weights, product", "Thesis 4.4: 'there is a technical condition'",
        "comparison", ">", 0.0, _growth("product", "raw").largest(),
        "a bound on absolute weights may be needed: with raw weights the distance to the embedding of f(X), f the "
        "product, is larger for the largest table than for the smallest at some epsilon (largest ln ratio)"),
    Claim("much noise", "beyond the source", "comparison", "<", 0.0, _paired("distance", 0.01).largest(),
        "at epsilon = 0.01 bounded weights are nearer to the embedding of X than raw ones with the same noise (ln "
        "ratio of the distances, mean over N, the largest of all bounds)"),
    Claim("little noise", "beyond the source", "comparison", ">", 0.0, _paired("distance", 1.0).least(),
        "at epsilon = 1 bounded weights have a price, as few points so wide apart do not represent X by positive "
        "weights: with every bound the release is further from the embedding of X than with raw weights (ln ratio "
        "of the distances, mean over N, the least of all bounds)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="theorem-13",
    title="Theorem 13: bounded weights (seeded noise: NOT PRIVATE)",
    source="Thesis Theorem 13",
    version=2,
    presets={
        "quick": {"rows": [400, 4000], "draws": 3, "sample": 2000},
        "paper": {"rows": [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000], "draws": 30, "sample": 50_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Weights with C = 2 have vertices that nearly depend on each other: their rounding changes 1e-8 of a distance.
    tolerances=dict.fromkeys(("distance", *FUNCTIONS), Tolerance(relative=1e-6)),
    caption=CAPTION,
    claims=CLAIMS,
)
