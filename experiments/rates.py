"""Rates of convergence to the embedding of the population (Thesis Propositions 11, 12, 13, Lemma 5,
and the remark on delta(N)), measured.

With public rows and with features, X is a mixture of Gaussians with a known embedding, and leaves the
unit box with probability 1e-9. Without public rows, X takes five values, and the kernel exp(-|x - y|)
is Lipschitz and no smoother, so that the projection error shows. Sizes are those of the proofs: M =
N/10 public rows (Proposition 12), M = N^k / 256 points, uniform on the box, with k = 2 - 4/(2D + 2 +
2c) as corrected (11), and J = N^(4/3) features (13). A rate O_p(N^-r) is an upper bound: a steeper
slope agrees with it. Noise is seeded: NOT PRIVATE.
"""

import math

import numpy as np

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.embeddings.simplex import simplex_weights
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.embedding.means import mean_of_matrix
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release.subspace import orthonormal_basis
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import labelled, measure
from thesis_cli.studies.privacy.evaluation import GaussianMixture
from thesis_cli.studies.privacy.seeded import SeededGaussian, rough_release, subspace_release

BUDGET = Budget(1.0, 1e-6)
GAMMA = 8.0
PUBLIC = 0.1
"""Share eta of rows that are public (Proposition 12)."""
C = 0.25
"""The constant c of Proposition 11."""
GRID = np.linspace(0, 1, 129)[:, np.newaxis]
"""Points that Algorithm 3 may weight, at D = 1; the kernel is 32 steps wide."""

VALUES = 5
"""Values that X takes without public rows."""
THIN, THICK = 256, 8
"""M = N^k / THIN points, so that noise does not hide the projection error; N / THICK for "delta"."""

TABLE, BASELINE = "the table itself", "public rows, equal weights"
PROJECTION = "projection of the population"
MISSED = "projection of the table"
RELEASED = {
    "public": "Algorithm 2, public rows",
    "rough": "Algorithm 2, random points",
    "delta": "Algorithm 2, random points",
    "features": "Algorithm 3",
}
RATES = {("public", 2): 1 / 2, **{("rough", d): 1 / (d + 1 + C) for d in (1, 2, 3)}, ("features", 1): 1 / 3}
"""Exponents r of N^-r by part and dimension."""


def tasks(settings):
    return [
        {"part": part, "dimension": dimension, "rows": rows, "repetitions": repetitions}
        for part, dimension, sizes, repetitions in settings["parts"]
        for rows in sizes
    ]


def run(seed, part, dimension, rows, repetitions):
    """A row for each curve and repetition; each repetition has its own population, table, points
    and noise.

    `size` is the number M of points or J of features, `coordinates` the number of coordinates with
    noise, `distance` the distance to mu_X, or, for `MISSED`, that of the table's embedding to its
    projection.
    """
    frames = []
    for repetition, child in enumerate(seed.spawn(repetitions)):
        rng = np.random.default_rng(child)
        if part in ("public", "features"):
            population = _population(dimension)
            found = (_public if part == "public" else _features)(population, population.draw(rows, rng), rng)
        else:
            found = _rough(part, dimension, rows, rng)
        frames += [{"repetition": repetition, **row} for row in found]
    frame = labelled(frames, part=part, dimension=dimension, rows=rows)
    return frame.assign(distance=[float(f"{x:.6g}") for x in frame.distance])


def _population(dimension):
    """Five components in [0.25, 0.75]^D."""
    rng = np.random.default_rng(dimension)
    weights = 1 / np.arange(1.0, 6.0)
    return GaussianMixture(weights / weights.sum(), rng.uniform(0.25, 0.75, (5, dimension)), 0.04)


def _kernel(dimension):
    return RowKernel(np.full(dimension, GAMMA), np.zeros(0))


def _row(curve, size, coordinates, distance):
    return {"curve": curve, "size": size, "coordinates": coordinates, "distance": distance}


def _subspace(population, table, points, rng):
    """Algorithm 2 on the points that its basis uses, and its projection of mu_X."""
    kernel = _kernel(table.reals.shape[1])
    parents = points[orthonormal_basis(kernel, points).parents]
    found = subspace_release(kernel, parents, [table], len(table), SeededGaussian(rng, "opendp"), BUDGET)
    squared_norm = population.squared_norm(kernel)
    alpha = orthonormal_basis(kernel, parents).coordinates(population.embedding(kernel, parents))
    missed = max(0.0, squared_norm - float(alpha @ alpha)) ** 0.5
    sizes = len(points), len(parents)
    return [
        _row(RELEASED["public"], *sizes, population.distance(kernel, parents, found.weights)),
        _row(PROJECTION, *sizes, missed),
    ]


def _public(population, table, rng):
    kernel, points = _kernel(2), table[: round(PUBLIC * len(table))]
    rows = _subspace(population, table, points, rng)
    squared_norm = population.squared_norm(kernel)
    for curve, of in ((TABLE, table), (BASELINE, points)):
        cross = float(population.embedding(kernel, of).mean())
        squared = mean_of_matrix(kernel, of) - 2 * cross + squared_norm
        rows.append(_row(curve, len(of), 0, max(0.0, squared) ** 0.5))
    return rows


def _rough(part, dimension, rows, rng):
    """Algorithm 2 with random points and a rough kernel; "delta" has delta(N) = exp(-sqrt N)."""
    if part == "rough":
        count, budget = round(rows ** (2 - 4 / (2 * dimension + 2 + 2 * C)) / THIN), BUDGET
    else:
        count, budget = round(rows / THICK), Budget(BUDGET.epsilon, math.exp(-math.sqrt(rows)))
    values, points = rng.random((VALUES, dimension)), rng.random((count, dimension))
    found = rough_release(points, values, np.full(VALUES, 1 / VALUES), rows, budget, rng)
    return [_row(RELEASED[part], count, count, found.total), _row(MISSED, count, 0, found.projection)]


def _features(population, table, rng):
    """Algorithm 3 with weights on the simplex: on a grid, eq. 4.7 is convex and is solved exactly.

    The proof needs a set of embeddings that contains the table's own; the simplex contains it up to
    the grid.
    """
    kernel, grid = _kernel(1), Rows.of_reals(GRID)
    features = draw_features(kernel, (), 2 * round(len(table) ** (4 / 3) / 2), rng)
    noise = SeededGaussian(rng, "opendp")
    target = noise.add(features.mean([table]), features.l2_sensitivity(len(table)), BUDGET).values
    embedded = features.embed(grid)
    weights = simplex_weights(embedded @ embedded.T, embedded @ target)
    return [_row(RELEASED["features"], features.count, features.count, population.distance(kernel, grid, weights))]


def _logs(frame, part, dimension, curve, by="rows"):
    """Means of ln distance over repetitions and their standard errors, by N or by `by`."""
    rows = frame[(frame.part == part) & (frame.dimension == dimension) & (frame.curve == curve)]
    return rows.assign(log=np.log(rows.distance)).groupby(by).log.agg(["mean", "sem", "min", "max"])


@measure
def _slope(frame, part, dimension, curve, by="rows"):
    """Least-squares slope of mean ln distance in ln N, or in ln `by`."""
    logs = _logs(frame, part, dimension, curve, by)
    if len(logs) < 2:
        return None
    x = np.log(logs.index.to_numpy())
    x = x - x.mean()
    shares = x / (x**2).sum()
    return shares @ logs["mean"], ((shares * logs["sem"]) ** 2).sum() ** 0.5


@measure
def _flatter(frame, low, high):
    """Slope at D = `high` less that at D = `low`, without public rows."""
    found = [_slope("rough", d, RELEASED["rough"])(frame) for d in (low, high)]
    if None in found:
        return None
    return found[1].value - found[0].value, math.hypot(*(m.standard_error for m in found))


def _share(frame):
    """Least ratio of the projection error to the distance at the largest N, without public rows."""
    found = []
    for d in (1, 2, 3):
        logs = [_logs(frame, "rough", d, curve) for curve in (MISSED, RELEASED["rough"])]
        if logs[0].empty:
            return None
        a, b = (each.iloc[-1] for each in logs)
        ratio = math.exp(a["mean"] - b["mean"])
        found.append(Measurement(ratio, ratio * math.hypot(a["sem"], b["sem"])))
    return min(found, key=lambda m: m.value)


def _falls(frame):
    """ln ratio of the distances at the largest N and at the smallest, a factor of 100 apart, where delta falls."""
    logs = _logs(frame, "delta", 1, RELEASED["delta"])
    if logs.empty or logs.index[-1] < 99 * logs.index[0]:
        return None
    return Measurement(logs["mean"].iloc[-1] - logs["mean"].iloc[0], math.hypot(*logs["sem"].iloc[[0, -1]]))


def plot(frame):
    figure, axes = panels(2, 2, height=3.2)
    for ax, (title, curves) in zip(axes.flat, CURVES.items(), strict=True):
        for part, dimension, curve, by, name, colour in curves:
            _draw(ax, frame, (part, dimension, curve, by), name, COLOURS[colour])
        ax.set(xscale="log", yscale="log")
        if "Lemma" in title:
            label(ax, "number $M$ of synthetic points", "projection error", title)
        else:
            label(ax, "rows $N$ of the table", r"distance to $\mu_X$", title)
        ax.plot([], [], "--", color="gray", linewidth=0.9, label="slope of the statement")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    return figure


def _draw(ax, frame, of, name, colour):
    """Geometric mean and range of the repetitions, the slope with two standard errors, and the
    slope of the statement from the first mark on."""
    logs = _logs(frame, *of)
    if logs.empty:
        return
    part, dimension, curve, by = of
    middle, n = np.exp(logs["mean"]), logs.index.to_numpy()
    slope = _slope(*of)(frame)
    slope_text = f": {slope.value:.2f} $\\pm$ {2 * slope.standard_error:.2f}" if slope else ""
    ax.fill_between(n, np.exp(logs["min"]), np.exp(logs["max"]), color=colour, alpha=0.15, linewidth=0)
    ax.plot(n, middle, "o-", color=colour, label=name + slope_text)
    stated = {(True, "rows"): RATES.get((part, dimension)), (False, "size"): 1 / (2 * dimension + 2 * C)}
    rate = stated.get((curve == RELEASED[part], by))
    if rate:
        ax.plot(n, middle.iloc[0] * (n / n[0]) ** -rate, "--", color=colour, linewidth=0.9)


CURVES = {
    "Public rows (Proposition 12)": [
        ("public", 2, BASELINE, "rows", "equal weights", 1),
        ("public", 2, RELEASED["public"], "rows", "Algorithm 2", 0),
        ("public", 2, TABLE, "rows", "the table itself", 6),
    ],
    "No public rows, rough kernel (Proposition 11)": [
        ("rough", d, RELEASED["rough"], "rows", f"Algorithm 2, $D$ = {d}", c) for d, c in ((3, 1), (2, 2), (1, 0))
    ],
    "Its projection error (Lemma 5)": [
        ("rough", d, MISSED, "size", f"$D$ = {d}", c) for d, c in ((3, 1), (2, 2), (1, 0))
    ],
    "Features (Proposition 13); small $\\delta(N)$ (remark)": [
        ("delta", 1, RELEASED["delta"], "rows", r"Algorithm 2, $\delta = e^{-\sqrt{N}}$", 3),
        ("features", 1, RELEASED["features"], "rows", "Algorithm 3, $J = N^{4/3}$", 0),
    ],
}
"""Panels by title: part, dimension, curve, horizontal axis, name, and number of the colour."""
CAPTION = (
    "Distance of releases to the embedding of the population itself, by the number N of rows, at epsilon = 1 and "
    "delta = 1e-6. Upper left: a tenth of the rows is public, D = 2; noise, which falls like 1/N, "
    "makes Algorithm 2 steeper than it must be. Upper right: no row is public, X takes five values, the kernel is "
    "exp(-|x - y|), and M = N^k / 256 random points balance noise and projection error; lower left, that "
    "projection error by M. Lower right: Algorithm 3 with J = N^(4/3) features and the best "
    "weights on a grid, D = 1; and Algorithm 2 with M = N/8 points where delta falls with N as in the remark of "
    "Thesis 4.4. Marks are geometric means of 10 to 30 repetitions, bands their range; legends give least-squares "
    "slopes in logarithms with two standard errors. Dashed lines have the slope that the proposition or lemma "
    "allows at most, with c = 1/4. The thesis proves these rates and has no figure of them."
)

NONE_HIGHER = "the slope of ln distance in ln N is at most"
# fmt: off
CLAIMS = [
    Claim("Proposition 12", "Thesis Proposition 12", "bound", "<", -0.5, _slope("public", 2, RELEASED["public"]),
        f"for Algorithm 2 with a tenth of the rows public, {NONE_HIGHER} -1/2"),
    Claim("baseline", "Thesis 4.4: 'is already a consistent estimator'",
        "bound", "<", -0.5, _slope("public", 2, BASELINE),
        f"uniform weights of public rows reach the rate N^(-1/2): {NONE_HIGHER} -1/2"),
    *(
        Claim(f"Proposition 11, D = {d}", "Thesis Proposition 11", "bound", "<", -RATES["rough", d],
            _slope("rough", d, RELEASED["rough"]),
            f"for Algorithm 2 without public rows, D = {d}, c = 1/4 and a kernel no smoother than Lipschitz, "
            f"{NONE_HIGHER} -1/(D + 1 + c)", scale=1 / (d + 1 + C) - 1 / (d + 2 + C))
        for d in (1, 2, 3)
    ),
    *(
        Claim(f"Lemma 5, D = {d}", "Thesis Lemma 5", "bound", "<", -1 / (2 * d + 2 * C),
            _slope("rough", d, MISSED, "size"),
            "with a Lipschitz kernel the projection error vanishes at least as fast as M^(-1/(2D + a)), here a = "
            f"1/2 and D = {d} (slope of ln error in ln M)")
        for d in (1, 2, 3)
    ),
    Claim("projection error", "beside Thesis Proposition 11", "comparison", ">", 0.25, _share,
        "without public rows, the projection error matters beside the noise: it is more than a quarter of the "
        "distance at the largest N (least ratio of D = 1, 2, 3)"),
    *(
        Claim(f"worse in high dimensions, {high}",
            "Thesis 4.4: 'the convergence rate deteriorates with input dimension'",
            "comparison", ">", 0.0, _flatter(low, high),
            f"the convergence rate deteriorates with the dimension: the slope of ln distance in ln N at D = {high} "
            f"is flatter than at D = {low} (difference of the slopes)")
        for low, high in ((1, 2), (2, 3))
    ),
    Claim("delta falls with N", "Thesis 4.4, remark", "comparison", "<", -math.log(2), _falls,
        "Theorem 10 remains valid for delta(N) = exp(-sqrt N) and M in o(N^(3/2)), here N/8: the distance tends to "
        "0 (ln of the distance with 100 times as many rows as the smallest table over that of the smallest)",
        reading=Reading("tends to 0: at most half of the distance is left", 0.0)),
    Claim("Proposition 13", "Thesis Proposition 13", "bound", "<", -1 / 3,
        _slope("features", 1, RELEASED["features"]),
        f"for Algorithm 3 with J = N^(4/3) features and the best weights, {NONE_HIGHER} -1/3"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="rates",
    title="Rates of convergence of Algorithms 2 and 3 to the embedding of the population",
    source="Thesis Propositions 11, 12, 13 and Lemma 5",
    version=1,
    presets={
        "quick": {
            "parts": [
                ["public", 2, [300, 1000], 4],
                ["rough", 1, [3162, 10000], 4],
                ["delta", 1, [316, 1000], 4],
                ["features", 1, [30, 100], 4],
            ],
        },
        "paper": {
            "parts": [
                ["public", 2, [1000, 3162, 10000, 31623, 100000], 10],
                ["rough", 1, [3162, 10000, 31623, 100000, 251189], 30],
                ["rough", 2, [631, 1585, 3981, 10000, 19953], 30],
                ["rough", 3, [316, 794, 1995, 5012, 7943], 30],
                ["delta", 1, [316, 1000, 3162, 10000, 31623], 20],
                ["features", 1, [100, 316, 1000, 1778, 3162], 10],
            ],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Six digits are written; distances are differences of terms near 1.
    tolerances={"distance": Tolerance(relative=1e-5, absolute=1e-9)},
    caption=CAPTION,
    claims=CLAIMS,
)
