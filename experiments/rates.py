"""Rates of convergence to the embedding of the population (Thesis Propositions 11, 12, 13),
measured.

The population is a mixture of Gaussians, whose embedding in a Gaussian kernel is known in closed
form: distances are to mu_X itself, not to the table's embedding. (The propositions need a bounded
X; the mixture leaves the unit box with probability 1e-9.) Sizes are those of the proofs: M = N/10
public rows (Proposition 12), M = N^k points, uniform on the box, with k = 2 - 4/(2D + 2 + 2c) as
corrected (11), and J = N^(4/3) features (13). A rate O_p(N^-r) is an upper bound: a steeper slope
agrees with it, and at these N slopes are not at their limits. Noise is seeded: NOT PRIVATE.
"""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.privacy.embedding import mean_of_matrix
from thesis_cli.privacy.features import draw_features
from thesis_cli.privacy.frank_wolfe import simplex_weights
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.mechanism import Budget
from thesis_cli.privacy.subspace import orthonormal_basis
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.studies.privacy.evaluation import GaussianMixture
from thesis_cli.studies.privacy.seeded import SeededGaussian
from thesis_cli.studies.privacy.subspace_release import subspace_release

BUDGET = Budget(1.0, 1e-6)
GAMMA = 8.0
PUBLIC = 0.1
"""Share eta of rows that are public (Proposition 12)."""
C = 0.25
"""The constant c of Proposition 11."""
GRID = np.linspace(0, 1, 129)[:, np.newaxis]
"""Points that Algorithm 3 may weight, at D = 1; the kernel is 32 steps wide."""

TABLE, BASELINE = "the table itself", "public rows, equal weights"
PROJECTION = "projection of the population"
RELEASED = {"public": "Algorithm 2, public rows", "random": "Algorithm 2, random points", "features": "Algorithm 3"}
RATES = {("public", 2): 1 / 2, **{("random", d): 1 / (d + 1 + C) for d in (1, 2, 3)}, ("features", 1): 1 / 3}
"""Exponents r of N^-r by part and dimension."""
PROPOSITIONS = {"public": 12, "random": 11, "features": 13}


def tasks(settings):
    return [
        {"part": part, "dimension": dimension, "rows": rows, "repetitions": settings["repetitions"]}
        for part, dimension, sizes in settings["parts"]
        for rows in sizes
    ]


def run(seed, part, dimension, rows, repetitions):
    """A row for each curve and repetition; each repetition has its own population, table, points
    and noise.

    `size` is the number M of points or J of features, `coordinates` the number of coordinates with
    noise, `distance` the distance to mu_X.
    """
    measure = {"public": _public, "random": _random, "features": _features}[part]
    frames = []
    for repetition, child in enumerate(seed.spawn(repetitions)):
        rng = np.random.default_rng(child)
        population = _population(dimension)
        found = measure(population, population.draw(rows, rng), rng)
        frames += [{"repetition": repetition, **row} for row in found]
    frame = pd.DataFrame(frames)
    frame["distance"] = [float(f"{x:.6g}") for x in frame.distance]
    for column, value in reversed({"part": part, "dimension": dimension, "rows": rows}.items()):
        frame.insert(0, column, value)
    return frame


def _population(dimension):
    """Five components in [0.25, 0.75]^D."""
    rng = np.random.default_rng(dimension)
    weights = 1 / np.arange(1.0, 6.0)
    return GaussianMixture(weights / weights.sum(), rng.uniform(0.25, 0.75, (5, dimension)), 0.04)


def _kernel(dimension):
    return Kernel(np.full(dimension, GAMMA), np.zeros(0))


def _row(curve, size, coordinates, distance):
    return {"curve": curve, "size": size, "coordinates": coordinates, "distance": distance}


def _subspace(part, population, table, points, rng):
    """Algorithm 2 on the points that its basis uses, and its projection of mu_X."""
    kernel = _kernel(table.reals.shape[1])
    parents = points[orthonormal_basis(kernel, points).parents]
    found = subspace_release(kernel, parents, [table], len(table), SeededGaussian(rng, "opendp"), BUDGET)
    squared_norm = population.squared_norm(kernel)
    alpha = orthonormal_basis(kernel, parents).coordinates(population.embedding(kernel, parents))
    missed = max(0.0, squared_norm - float(alpha @ alpha)) ** 0.5
    sizes = len(points), len(parents)
    return [
        _row(RELEASED[part], *sizes, population.distance(kernel, parents, found.weights)),
        _row(PROJECTION, *sizes, missed),
    ]


def _public(population, table, rng):
    kernel, points = _kernel(2), table[: round(PUBLIC * len(table))]
    rows = _subspace("public", population, table, points, rng)
    squared_norm = population.squared_norm(kernel)
    for curve, of in ((TABLE, table), (BASELINE, points)):
        cross = float(population.embedding(kernel, of).mean())
        squared = mean_of_matrix(kernel, of) - 2 * cross + squared_norm
        rows.append(_row(curve, len(of), 0, max(0.0, squared) ** 0.5))
    return rows


def _random(population, table, rng):
    dimension = table.reals.shape[1]
    count = round(len(table) ** (2 - 4 / (2 * dimension + 2 + 2 * C)))
    points = Rows.of_reals(rng.random((count, dimension)))
    return _subspace("random", population, table, points, rng)


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


def _logs(frame, part, dimension, curve):
    """ln distance, a row for each N and a column for each repetition."""
    rows = frame[(frame.part == part) & (frame.dimension == dimension) & (frame.curve == curve)]
    return np.log(rows.pivot_table(index="rows", columns="repetition", values="distance"))


def _slopes(frame, part, dimension, curve):
    """Least-squares slope of ln distance in ln N for each repetition; empty for fewer than two
    N."""
    logs = _logs(frame, part, dimension, curve)
    return np.polyfit(np.log(logs.index), logs.to_numpy(), 1)[0] if len(logs) > 1 else np.zeros(0)


def _mean(found):
    return Measurement(found.mean(), found.std(ddof=1) / len(found) ** 0.5) if len(found) > 1 else None


def _slope(part, dimension, curve):
    return lambda frame: _mean(_slopes(frame, part, dimension, curve))


def _projection(frame):
    """Largest ratio of the projection error to the distance, both geometric means, without public
    rows."""
    found = [
        (
            _logs(frame, "random", d, PROJECTION).mean(axis=1)
            - _logs(frame, "random", d, RELEASED["random"]).mean(axis=1)
        )
        for d in (1, 2, 3)
    ]
    return Measurement(float(np.exp(pd.concat(found).max())))


def _dimensions(low, high):
    """Mean of ln (distance at D = `high` / that at D = `low`) at the largest N that they share."""

    def measure(frame):
        logs = [_logs(frame, "random", d, RELEASED["random"]) for d in (low, high)]
        shared = logs[0].index.intersection(logs[1].index)
        return _mean((logs[1] - logs[0]).loc[shared.max()].to_numpy()) if len(shared) else None

    return measure


def _gain(curve):
    """Mean of ln (distance of Algorithm 2 with public rows / that of a curve) at the largest N."""

    def measure(frame):
        logs = [_logs(frame, "public", 2, name) for name in (RELEASED["public"], curve)]
        return None if logs[0].empty else _mean((logs[0] - logs[1]).iloc[-1].to_numpy())

    return measure


def plot(frame):
    from matplotlib.ticker import NullFormatter

    figure, axes = panels(1, 3, height=3.0, sharey=True)
    for curve, colour in ((BASELINE, 1), (RELEASED["public"], 0), (TABLE, 6)):
        _draw(axes[0], frame, "public", 2, curve, curve, COLOURS[colour])
    for dimension, colour in ((3, 1), (2, 2), (1, 0)):
        _draw(axes[1], frame, "random", dimension, RELEASED["random"], f"$D = {dimension}$", COLOURS[colour])
        _draw(axes[1], frame, "random", dimension, PROJECTION, None, COLOURS[colour])
    _draw(axes[2], frame, "features", 1, RELEASED["features"], RELEASED["features"], COLOURS[0])
    for ax, part in zip(axes, RELEASED, strict=True):
        name = RELEASED[part].replace(", ", ",\n", 1) if part != "features" else "Algorithm 3,\n$J = N^{4/3}$ features"
        ax.set(xscale="log", yscale="log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.plot([], [], "--", color="gray", linewidth=0.9, label="rate of the proposition")
        if part == "random":
            ax.plot([], [], ":", color="gray", linewidth=0.9, label="error of the projection alone")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
        label(ax, "rows $N$", "", f"{name} (Prop. {PROPOSITIONS[part]})")
    axes[0].set_ylabel(r"distance to $\mu_X$")
    return figure


def _draw(ax, frame, part, dimension, curve, name, colour):
    """Geometric mean and range of the repetitions, the slope with two standard errors, and the
    proposition's rate."""
    logs = _logs(frame, part, dimension, curve)
    if logs.empty:
        return
    middle, n = np.exp(logs.mean(axis=1)), logs.index.to_numpy()
    if curve == PROJECTION:
        ax.plot(n, middle, ":", color=colour, linewidth=0.9)
        return
    slope = _mean(_slopes(frame, part, dimension, curve))
    slope_text = f": {slope.value:.2f} $\\pm$ {2 * slope.standard_error:.2f}" if slope else ""
    ax.fill_between(n, *np.exp([logs.min(axis=1), logs.max(axis=1)]), color=colour, alpha=0.15, linewidth=0)
    ax.plot(n, middle, "o-", color=colour, label=name + slope_text)
    if curve in RELEASED.values():
        rate = RATES[part, dimension]
        ax.plot(n, middle.iloc[0] * (n / n[0]) ** -rate, "--", color=colour, linewidth=0.9)


NONE_HIGHER = "the slope of ln distance in ln N is at most"
EXPERIMENT = Experiment(
    id="rates",
    title="Rates of convergence of Algorithms 2 and 3 to the embedding of the population",
    source="Thesis Propositions 11, 12, 13",
    version=1,
    presets={
        "quick": {
            "repetitions": 4,
            "parts": [["public", 2, [300, 1000]], ["random", 1, [100, 300]], ["features", 1, [30, 100]]],
        },
        "paper": {
            "repetitions": 10,
            "parts": [
                ["public", 2, [1000, 3162, 10000, 31623, 100000]],
                ["random", 1, [1000, 3162, 10000]],
                ["random", 2, [316, 1000, 3162]],
                ["random", 3, [100, 178, 316]],
                ["features", 1, [100, 316, 1000, 1778]],
            ],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Six digits are written; distances are differences of terms near 1.
    tolerances={"distance": Tolerance(relative=1e-5, absolute=1e-9)},
    claims=[
        Claim(
            "finite sample",
            "Thesis 4.4",
            "the table's own embedding converges at the rate N^(-1/2) (slope)",
            -0.5,
            "=",
            _slope("public", 2, TABLE),
        ),
        Claim(
            "Proposition 12",
            "Thesis Proposition 12",
            f"with a tenth of the rows public, {NONE_HIGHER} -1/2",
            -0.5,
            "<",
            _slope("public", 2, RELEASED["public"]),
        ),
        Claim(
            "baseline",
            "Thesis 4.4",
            "so does that of equal weights of these rows reach -1/2 (slope)",
            -0.5,
            "=",
            _slope("public", 2, BASELINE),
        ),
        Claim(
            "better than the baseline",
            "Thesis 4.4",
            "and Algorithm 2 comes nearer than equal weights at the largest N (ln of the ratio of distances)",
            0.0,
            "<",
            _gain(BASELINE),
            scale=np.log(2),
        ),
        *(
            Claim(
                f"Proposition 11, D = {d}",
                "Thesis Proposition 11",
                f"without public rows, D = {d}, c = 1/4, {NONE_HIGHER} -1/(D + 1 + c)",
                -RATES["random", d],
                "<",
                _slope("random", d, RELEASED["random"]),
            )
            for d in (1, 2, 3)
        ),
        *(
            Claim(
                f"worse in high dimensions, {high}",
                "Thesis 4.4",
                f"without public rows accuracy deteriorates with the dimension (ln of the ratio of distances at "
                f"D = {high} and {low}, largest N of both)",
                0.0,
                ">",
                _dimensions(low, high),
            )
            for low, high in ((1, 2), (2, 3))
        ),
        Claim(
            "projection error",
            "Thesis C.1.2",
            "the projection error, which gives Proposition 11 its rate, is a small share of the distance: the kernel "
            "is smoother than Lipschitz (largest ratio)",
            0.05,
            "<",
            _projection,
        ),
        Claim(
            "Proposition 13",
            "Thesis Proposition 13",
            f"with J = N^(4/3) features and the best weights, {NONE_HIGHER} -1/3",
            -1 / 3,
            "<",
            _slope("features", 1, RELEASED["features"]),
        ),
    ],
)
