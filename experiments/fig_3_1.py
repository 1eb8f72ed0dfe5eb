"""Figure 3.1: paths of estimates of Renyi entropies as alpha varies, with and without the control
variate."""

import math

import numpy as np
import pandas as pd
from scipy.stats import kstest, kstwobign, norm

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.maxima import entropy_maxima
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

SUCCESS, SIZE = 0.3, 500
NEAR = 1e-6
"""Distance from alpha = 1 of the points that stand for the limits there."""
ROUNDING = 4 * (32 * np.finfo(float).eps / 2) / NEAR
"""Rounding error of an estimate at 1 + NEAR: four roundings of numbers below 32 nats, over NEAR."""
PLOTTED = np.unique(
    np.concatenate(
        [
            [0, 0.002, 0.005, 0.01, 1 - NEAR, 0.997, 1.003, 1 + NEAR],
            np.arange(1, 43) / 50,
            np.arange(85, 116) / 100,
            np.arange(30, 76) / 25,
        ]
    )
)
SUMMARISED = np.array([0, 0.25, 0.5, 0.9, 0.99, 1 - NEAR, 1, 1 + NEAR, 1.01, 1.1, 1.5, 2, 3, math.inf])
SCALED_DISTANCE = float(kstwobign.isf(2 * norm.sf(5)))
"""Limit of the root of the sample size times the Kolmogorov distance.

It is exceeded as rarely as a normal variable exceeds five deviations.
"""


def tasks(settings):
    return [{"part": part, "perturbations": settings[part]} for part in ("paths", "moments")]


def run(seed, part, perturbations):
    """Estimates from one perturbation each: the paths themselves, or the moments of many.

    The estimator `plain` knows ln Z (eq. 3.8), `shared` does not (eq. 3.12). Part `moments` has
    means in those columns. `scaled_distance` is the root of the sample size times the Kolmogorov
    distance of `shared` to the Gumbel distribution of its mean and variance.
    """
    log_p = np.log1p(-SUCCESS) * np.arange(SIZE)
    log_p -= np.logaddexp.reduce(log_p)
    model = LogPotentials(log_p)
    alphas = PLOTTED if part == "paths" else SUMMARISED
    plain, shared = _estimates(entropy_maxima(model, alphas, perturbations, seed), alphas)
    columns = {
        "part": part,
        "perturbations": perturbations,
        "alpha": alphas,
        "exact": exact_entropies(model, alphas).entropies,
    }
    if part == "moments":
        summary = _summary(plain, shared, alphas, columns["exact"])
        log_p_variance = np.exp(log_p) @ log_p**2 - (np.exp(log_p) @ log_p) ** 2
        return pd.DataFrame({"path": -1, **columns, **summary, "log_p_variance": log_p_variance})
    frames = [pd.DataFrame({"path": m, **columns, "plain": plain[m], "shared": shared[m]}) for m in range(len(plain))]
    return pd.concat(frames).reindex(columns=["path", *columns, *SUMMARY, "log_p_variance"])


SUMMARY = (
    *("plain", "plain_error", "plain_variance", "plain_variance_error"),
    *("shared", "shared_error", "shared_variance", "shared_variance_error", "scaled_distance"),
)


def _estimates(maxima, alphas):
    """Estimates by eqs. 3.8 and 3.12, each of shape (M, A); at 1 and inf the limits of the
    latter."""
    plain, shared = np.full((2, maxima.samples, alphas.size), np.nan)
    inner = np.isfinite(alphas) & (alphas != 1)
    a = alphas[inner]
    values = maxima.values[:, np.isin(maxima.orders, a)]
    plain[:, inner] = values / (1 - a)
    shared[:, inner] = (values - a * maxima.at_one[:, np.newaxis]) / (1 - a)
    shared[:, alphas == 1] = (maxima.at_one - maxima.potential)[:, np.newaxis]
    shared[:, alphas == math.inf] = (maxima.at_one - maxima.highest)[:, np.newaxis]
    return plain, shared


def _summary(plain, shared, alphas, exact):
    root = math.sqrt(len(plain))
    plain_variance, plain_variance_error = sample_variance(plain)
    variance, variance_error = sample_variance(shared)
    scale = np.where((alphas == 0) | (alphas == math.inf), 1.0, np.sqrt(6 * variance) / math.pi)
    gumbels = zip(exact - np.euler_gamma * scale, scale, strict=True)
    distances = [
        kstest(x, "gumbel_r", args=g, method="asymp").statistic for x, g in zip(shared.T, gumbels, strict=True)
    ]
    columns = (
        *(plain.mean(axis=0), np.sqrt(plain_variance) / root, plain_variance, plain_variance_error),
        *(shared.mean(axis=0), np.sqrt(variance) / root, variance, variance_error, root * np.array(distances)),
    )
    return dict(zip(SUMMARY, columns, strict=True))


def plot(frame):
    figure, axes = panels(1, 2, height=3.6, width_ratios=(2, 1))
    frame = frame[frame.part == "paths"]
    exact, maji = frame[frame.path == 0], frame[frame.alpha == 1]
    for ax in axes:
        for _, path in frame.groupby("path"):
            for side in (path[path.alpha < 1], path[path.alpha > 1]):
                ax.plot(side.alpha, side.plain, color=COLOURS[0], linewidth=0.6, alpha=0.6)
            ax.plot(path.alpha, path.shared, color=COLOURS[1], linewidth=0.6, alpha=0.8)
        ax.plot(exact.alpha, exact.exact, color="black", linewidth=2.4)
        ax.plot(maji.alpha, maji.shared, "o", color=COLOURS[2], zorder=3)
    for style, name in (
        ({"color": COLOURS[0]}, r"$\ln Z$ known, no control variate (3.8)"),
        ({"color": COLOURS[1]}, "shared noise (3.12)"),
        ({"color": COLOURS[2], "marker": "o", "linestyle": ""}, "Maji et al. (3.17)"),
        ({"color": "black", "linewidth": 2.4}, "exact"),
    ):
        axes[0].plot([], [], label=name, **style)
    axes[0].set(xlim=(0, 3), ylim=(-3, 12))
    axes[1].set(xlim=(0.85, 1.15), ylim=(-1, 7))
    title = f"{len(maji)} paths, geometric on {{1, ..., {SIZE}}}, $q$ = {SUCCESS}"
    label(axes[0], r"$\alpha$", r"$\hat H_\alpha$, nats", title)
    label(axes[1], r"$\alpha$", r"$\hat H_\alpha$, nats", r"near $\alpha$ = 1")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=4)
    return figure


def _paths(frame):
    """The estimates with shared noise, shape (paths, alphas), and their alphas."""
    table = frame[frame.part == "paths"].pivot(index="path", columns="alpha", values="shared")
    return table.to_numpy(), table.columns.to_numpy()


def _moments(frame):
    return frame[frame.part == "moments"].set_index("alpha")


def _distance_from_maji(side):
    """Largest distance of a path from gamma(x*) at alpha = 1 + side NEAR."""

    def measure(frame):
        paths, alphas = _paths(frame)
        at = np.abs(alphas - (1 + side * NEAR)).argmin()
        return Measurement(float(np.abs(paths[:, at] - paths[:, alphas == 1].ravel()).max()))

    return measure


def _largest_rise(frame):
    paths, _ = _paths(frame)
    return Measurement(float(np.diff(paths, axis=1).max()))


def _rise_of_entropy(frame):
    """H_inf - H_0."""
    exact = _moments(frame).exact
    return Measurement(exact[math.inf] - exact[0])


def _largest_rise_of_entropy(frame):
    """Largest rise of the exact entropy from one alpha of the grid, or inf, to the next."""
    return Measurement(float(frame.groupby("alpha").exact.first().diff().max()))


def _bias(estimator):
    """Largest distance of a mean from the exact entropy, in standard errors."""

    def measure(frame):
        rows = _moments(frame)
        deviation = (rows[estimator] - rows.exact).abs() / rows[f"{estimator}_error"]
        return Measurement(float(deviation.max()))

    return measure


def _plain_variance_scaled(frame):
    """The value of (1 - alpha)^2 var that is furthest from pi^2/6 in its standard errors."""
    rows = _moments(frame).dropna(subset="plain")
    scaled = (1 - rows.index) ** 2 * rows.plain_variance
    error = (1 - rows.index) ** 2 * rows.plain_variance_error
    worst = ((scaled - math.pi**2 / 6).abs() / error).idxmax()
    return Measurement(scaled[worst], error[worst])


def _variance_in_the_limit(frame):
    """Variance with shared noise at 1 + NEAR, in units of pi^2/6 + var ln p."""
    rows = _moments(frame)
    row = rows.iloc[np.abs(rows.index - (1 + NEAR)).argmin()]
    unit = math.pi**2 / 6 + row.log_p_variance
    return Measurement(row.shared_variance / unit, row.shared_variance_error / unit)


def _spread(frame):
    """Standard deviation with shared noise at 0.99 over that with ln Z known, pi / (sqrt(6) (1 -
    0.99))."""
    row = _moments(frame).loc[0.99]
    deviation, unit = math.sqrt(row.shared_variance), math.pi / (math.sqrt(6) * 0.01)
    return Measurement(deviation / unit, row.shared_variance_error / (2 * deviation * unit))


def _distance_from_gumbel(alpha):
    """Root of the sample size times the Kolmogorov distance from a Gumbel distribution, at one
    alpha."""

    def measure(frame):
        return Measurement(_moments(frame).scaled_distance[alpha])

    return measure


def _furthest_from_gumbel(frame):
    """The largest scaled distance over alphas between 0 and inf, if there are enough samples to
    detect it."""
    rows = _moments(frame)
    if rows.perturbations.iloc[0] < 500_000:
        return None
    return Measurement(rows.scaled_distance.iloc[1:-1].max())


EXPERIMENT = Experiment(
    id="fig-3-1",
    title="Estimates of Renyi entropies as alpha varies",
    source="Thesis Figure 3.1",
    version=1,
    presets={"quick": {"paths": 30, "moments": 20_000}, "paper": {"paths": 30, "moments": 1_000_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        *(
            Claim(
                id=f"Maji's estimate from {side}",
                source="Thesis Proposition 9, Figure 3.1",
                statement=f"estimates with shared noise tend to gamma(x*) as alpha tends to 1 from {side} (largest "
                "distance of a path, a millionth off 1, nats)",
                published=0.0,
                relation="=",
                rounding=ROUNDING,
                measure=_distance_from_maji(sign),
            )
            for side, sign in (("below", -1), ("above", 1))
        ),
        *(
            Claim(
                id=f"unbiased, {estimator}",
                source=f"Thesis eq. {equation}",
                statement=f"the mean of {name} is H_alpha (largest deviation of any alpha, standard errors)",
                published=5.0,
                relation="<",
                measure=_bias(estimator),
            )
            for estimator, equation, name in (
                ("plain", "3.8", "estimates with ln Z known"),
                ("shared", "3.12, 3.17", "estimates with shared noise, Maji's at 1 among them,"),
            )
        ),
        Claim(
            id="divergence",
            source="Thesis 3.4",
            statement="with ln Z known and no control variate the variance grows like 1 / (1 - alpha)^2: (1 - alpha)^2 "
            "times it is pi^2/6 (furthest off, nats^2)",
            published=math.pi**2 / 6,
            relation="=",
            measure=_plain_variance_scaled,
        ),
        Claim(
            id="stabilised",
            source="Thesis 3.4",
            statement="shared noise removes the divergence at 1 (standard deviation at 0.99 over that with ln Z known "
            "and no control variate)",
            published=1.0,
            relation="<",
            measure=_spread,
        ),
        Claim(
            id="variance in the limit",
            source="Thesis Proposition 9, Theorem 9",
            statement="with shared noise the variance tends to pi^2/6 + var ln p as alpha tends to 1 (ratio)",
            published=1.0,
            relation="=",
            measure=_variance_in_the_limit,
        ),
        *(
            Claim(
                id=f"Gumbel at {name}",
                source="Thesis 3.4.1",
                statement=f"the estimate at alpha = {name} is Gumbel(-c + H_{name}) (root of the sample size times the "
                "Kolmogorov distance; a true one exceeds the number as often as a normal variable five deviations)",
                published=SCALED_DISTANCE,
                relation="<",
                measure=_distance_from_gumbel(alpha),
            )
            for name, alpha in (("0", 0.0), ("inf", math.inf))
        ),
        Claim(
            id="not Gumbel in between",
            source="Thesis 3.4.1",
            statement="between 0 and inf estimates with shared noise need not be Gumbel (as before, to the Gumbel "
            "distribution of the same mean and variance; largest of any alpha)",
            published=SCALED_DISTANCE,
            relation=">",
            measure=_furthest_from_gumbel,
        ),
        Claim(
            id="non-decreasing",
            source="Thesis 3.2.1, 3.4",
            statement="H_alpha does not decrease from alpha = 0 to inf (H_inf - H_0, nats)",
            published=0.0,
            relation=">",
            measure=_rise_of_entropy,
            finding="3.2.1, Renyi entropies do not increase",
        ),
        Claim(
            id="non-increasing",
            source="Thesis 3.2.1",
            statement="H_alpha does not increase with alpha (largest rise from one alpha to the next, nats)",
            published=0.0,
            relation="<",
            measure=_largest_rise_of_entropy,
        ),
        Claim(
            id="every path falls",
            source="beyond the source",
            statement="no path with shared noise ever rises: where x attains the maximum at alpha, its slope there is "
            "(phi(x) + gamma(x) - max {phi + gamma}) / (1 - alpha)^2 (largest rise, nats)",
            published=0.0,
            relation="<",
            rounding=ROUNDING,
            measure=_largest_rise,
        ),
    ],
)
