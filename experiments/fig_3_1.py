"""Figure 3.1: paths of estimates of Renyi entropies as alpha varies, with and without the control
variate."""

import math

import numpy as np
import pandas as pd
from scipy.stats import kstest, kstwobign, norm

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.entropy.estimators import entropy_maxima
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading
from thesis_cli.reproduction.measuring import measure, select
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
            for curve in _between_orders(path):
                ax.plot(curve.alpha, curve.plain, color=COLOURS[0], linewidth=0.6, alpha=0.6)
                ax.plot(curve.alpha, curve.shared, color=COLOURS[1], linewidth=0.6, alpha=0.8)
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
    label(axes[0], r"order $\alpha$", r"$\hat H_\alpha$, nats", title)
    label(axes[1], r"order $\alpha$", r"$\hat H_\alpha$, nats", r"near $\alpha$ = 1")
    return legend_below(figure, axes[0], 4)


def _between_orders(path):
    """Smooth curves of one path, below 1 and above.

    The maximum of alpha phi + gamma is piecewise linear in alpha, so it is interpolated, and not
    the estimates.
    """
    known = path[path.alpha != 1]
    maximum = known.plain * (1 - known.alpha)
    at_one = np.interp(1, known.alpha, maximum)
    for side, end in ((-1, 1), (1, 2)):
        alpha = 1 + side * np.geomspace(1e-4, end, 250)
        top = np.interp(alpha, known.alpha, maximum)
        yield pd.DataFrame(
            {"alpha": alpha, "plain": top / (1 - alpha), "shared": (top - alpha * at_one) / (1 - alpha)}
        ).sort_values("alpha")


def _paths(frame):
    """The estimates with shared noise, shape (paths, alphas), and their alphas."""
    table = frame[frame.part == "paths"].pivot(index="path", columns="alpha", values="shared")
    return table.to_numpy(), table.columns.to_numpy()


@measure
def _distance_from_maji(frame, side):
    """Largest distance of a path from gamma(x*) at alpha = 1 + side NEAR."""
    paths, alphas = _paths(frame)
    at = np.abs(alphas - (1 + side * NEAR)).argmin()
    return Measurement(float(np.abs(paths[:, at] - paths[:, alphas == 1].ravel()).max()), error=ROUNDING)


def _largest_rise(frame):
    paths, _ = _paths(frame)
    return Measurement(float(np.diff(paths, axis=1).max()), error=ROUNDING)


def _largest_rise_of_entropy(frame):
    """Largest rise of the exact entropy from one alpha of the grid, or inf, to the next."""
    return Measurement(float(frame.groupby("alpha").exact.first().diff().max()), error=1e-12)


@measure
def _growth(frame, estimator):
    """Slope of ln variance over ln |1 - alpha|, from 0.9 to 1 - NEAR."""
    far, near = (MOMENTS.where(f"{alpha} < alpha < 1")(frame).iloc[0] for alpha in (0.89, 1 - 2 * NEAR))
    run = math.log(NEAR / 0.1)
    variance, error = f"{estimator}_variance", f"{estimator}_variance_error"
    slope = math.log(near[variance] / far[variance]) / run
    return Measurement(slope, math.hypot(near[error] / near[variance], far[error] / far[variance]) / abs(run))


MOMENTS = select(part="moments")
EXACT = MOMENTS.number("exact")
PLAIN = MOMENTS.where("plain.notna()").number("plain", "plain_error").minus("exact")
SHARED = MOMENTS.number("shared", "shared_error").minus("exact")
LIMIT = MOMENTS.where(f"1 < alpha < {1 + 2 * NEAR}").number("shared_variance", "shared_variance_error")
DISTANCE = MOMENTS.number("scaled_distance", SCALED_DISTANCE / 5).per(lambda found: found.perturbations**0.5)
"""Kolmogorov distance from a Gumbel distribution; a fifth of the one that a true sample exceeds as
rarely as a normal variable five deviations stands for its standard error."""

CAPTION = """\
Estimates of the Renyi entropy of a truncated geometric distribution by one perturbation each, over \
the order alpha; each of the 30 perturbations is drawn in both panels, and the right one enlarges the \
surroundings of alpha = 1. Blue: ln Z is known and there is no control variate (eq. 3.8); these paths \
diverge at 1 and leave the axes. Orange: the same noise estimates ln Z (eq. 3.12); these paths are \
flat around 1, where they pass through the estimates of Maji et al. (green dots), and they never \
rise. The black line is the exact entropy. The source's Figure 3.1 shows the same, with other random \
numbers and without the enlargement; orange is its red."""


# fmt: off
CLAIMS = [
    *(
        Claim(f"Maji's estimate from {side}", "Thesis Proposition 9, Figure 3.1", "identity", "=", 0.0,
            _distance_from_maji(sign),
            f"estimates with shared noise tend to gamma(x*) as alpha tends to 1 from {side} (largest distance of a "
            "path, a millionth off 1, nats)", scale=NEAR)
        for side, sign in (("below", -1), ("above", 1))
    ),
    Claim("unbiased, plain", "Thesis eqs. 3.6 to 3.8", "identity", "=", 0.0,
        PLAIN.per(lambda found: 1 / abs(1 - found.alpha)).furthest(),
        "with ln Z known the mean estimate is H_alpha (difference times 1 - alpha, nats, at the alpha where it is "
        "most standard errors off 0; the biased Exponential trick's would be 0.577)", scale=0.0577),
    Claim("unbiased, shared", "Thesis eqs. 3.12, 3.17", "identity", "=", 0.0, SHARED.furthest(),
        "with shared noise the mean estimate is H_alpha, at alpha = 1 Maji's H_1 (difference in nats, at the alpha "
        "where it is most standard errors off 0; the biased Exponential trick's would be 0.577)", scale=0.0577),
    Claim("divergence", "Thesis 3.4: 'the estimator variance diverges'", "identity", "=", -2.0, _growth("plain"),
        "with ln Z known the variance diverges as alpha tends to 1 (d ln var / d ln |1 - alpha|, from alpha = 0.9 "
        "to a millionth below 1)"),
    Claim("stabilised", "Thesis 3.4: 'can be used to stabilize the estimator'",
        "comparison", "=", 0.0, _growth("shared"),
        "the control variate stabilises the estimator as alpha tends to 1 (d ln var / d ln |1 - alpha|, from alpha "
        "= 0.9 to a millionth below 1)", scale=1.0,
        reading=Reading("stabilises: an exponent within 0.1 of 0, where -2 is that without it", 0.1)),
    Claim("variance in the limit", "Thesis Proposition 9, Theorem 9", "identity", "=", 1.0,
        LIMIT.per(lambda found: math.pi**2 / 6 + found.log_p_variance).read(),
        "with shared noise the variance tends to pi^2/6 + var ln p as alpha tends to 1 (ratio of the two)"),
    *(
        Claim(f"Gumbel at {name}", "Thesis 3.4.1: 'boundary values are marginally distributed as'",
            "identity", "=", 0.0, DISTANCE.where(alpha=alpha).read(),
            f"the estimate at alpha = {name} is Gumbel(-c + H_{name}) (Kolmogorov distance; a shift by 0.01 nats "
            "gives 0.004)", scale=0.004)
        for name, alpha in (("0", 0.0), ("inf", math.inf))
    ),
    Claim("not Gumbel in between", "Thesis 3.4.1: 'not necessarily marginally Gumbel'", "comparison", ">", 0.0,
        DISTANCE.where("0 < alpha < 1e9").largest(),
        "between 0 and inf estimates with shared noise need not be Gumbel (Kolmogorov distance from the Gumbel "
        "distribution of the same mean and variance, largest of any alpha)"),
    Claim("non-decreasing", "Thesis 3.2.1, 3.4: 'is nondecreasing throughout'", "bound", ">", 0.0,
        EXACT.where(alpha=math.inf).less(EXACT.where(alpha=0.0)).read(),
        "H_alpha does not decrease from alpha = 0 to inf (H_inf - H_0, nats; the source has it non-increasing, too)",
        finding="3.2.1, Renyi entropies do not increase", tag="slip", weight=2),
    Claim("non-increasing", "Thesis 3.2.1: 'due to Renyi entropies being non-increasing'",
        "bound", "<", 0.0, _largest_rise_of_entropy,
        "H_alpha does not increase with alpha (largest rise from one alpha to the next, nats)"),
    Claim("every path falls", "beyond the source", "bound", "<", 0.0, _largest_rise,
        "no path with shared noise ever rises: where x attains the maximum at alpha, its slope there is (phi(x) + "
        "gamma(x) - max {phi + gamma}) / (1 - alpha)^2 (largest rise, nats; flat paths attain 0)", scale=NEAR),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-3-1",
    title="Estimates of Renyi entropies as alpha varies",
    source="Thesis Figure 3.1",
    version=1,
    presets={"quick": {"paths": 30, "moments": 20_000}, "paper": {"paths": 30, "moments": 1_000_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
