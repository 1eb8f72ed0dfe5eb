"""Figure 2.2: MSE of the Frechet, Gumbel and Weibull tricks as alpha varies, by simulation."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import digamma, polygamma

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.perturbation.tricks.tricks import gumbel_log_z_error, gumbel_z_error, power
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import furthest, measure, select
from thesis_cli.studies.perturbation.power_kernels import log_z_on_grid

FIRST, LAST, COUNT = -0.15, 2.0, 100
STEP = (LAST - FIRST) / (COUNT - 1)
ALPHAS = FIRST + STEP * np.arange(COUNT)
LIMIT_ALPHAS = np.setdiff1d(np.arange(-49, 501), [0]) / 100
PARTS = 20
KINDS = [("plain", "Z"), ("plain", "lnZ"), ("conditioned", "Z"), ("conditioned", "lnZ")]
COLUMNS = ["method", "target", "samples", "alpha", "alpha_error", "bias", "mse", "standard_error"]
NAMES = {"Z": "Z", "lnZ": "ln Z"}


def tasks(settings):
    limit = {"samples": 0, "estimators": 0}
    return [limit, *({"samples": m, "estimators": settings["estimators"]} for m in settings["samples"])]


def run(seed, samples, estimators):
    """MSE of K estimators of each trick, with Z = 1 and the same ringing times for all alphas; for
    no samples, lim M MSE as M grows, which Table 2.1 has.

    The method `plain` averages squared errors, as the source does. `conditioned` averages their
    expectation given the shares D = T / sum T, which are independent of S = sum T ~ Gamma(M): with
    h(D) = S Z^, E[(Z^ - 1)^2 | D] = h^2 / ((M-1)(M-2)) - 2 h / (M-1) + 1 and E[(ln Z^)^2 | D] = (ln
    h - digamma(M))^2 + trigamma(M). `best` is the alpha of least conditioned MSE, its standard
    error that of the jackknife over parts of the estimators.
    """
    if samples == 0:
        constants = [float(power(alpha).relative_variance(0.0)) for alpha in LIMIT_ALPHAS]
        return _frame("limit", "both", 0, alpha=LIMIT_ALPHAS, mse=constants)
    rng = np.random.default_rng(seed)
    parts = np.diff(np.linspace(0, estimators, PARTS + 1).astype(int))
    found = [_part(rng.standard_exponential((count, samples))) for count in parts]
    frames = []
    for k, (method, target) in enumerate(KINDS):
        bias, mse, square = (np.stack([sums[j][k] for sums in found]) for j in range(3))
        mean = mse.sum(axis=0) / estimators
        error = np.sqrt(np.maximum(square.sum(axis=0) / estimators - mean**2, 0) / estimators)
        numbers = {"alpha": ALPHAS, "bias": bias.sum(axis=0) / estimators, "mse": mean, "standard_error": error}
        frames.append(_frame(method, target, samples, **numbers))
        if method == "conditioned":
            best = _best_alpha(mean)
            left_out = [
                _best_alpha((mse.sum(axis=0) - part) / (estimators - n)) for part, n in zip(mse, parts, strict=True)
            ]
            error = math.sqrt(PARTS - 1) * np.std(left_out)
            frames.append(_frame("best", target, samples, alpha=[best], mse=[mean.min()], alpha_error=[error]))
    return pd.concat(frames)


def _frame(method, target, samples, **columns):
    frame = pd.DataFrame({"method": method, "target": target, "samples": samples, **columns})
    return frame.reindex(columns=COLUMNS)


def _part(t):
    """Sums over estimators of their errors, of the squares and of the squares of those, each of
    shape (4, COUNT), from ringing times of shape (K, M)."""
    m = t.shape[1]
    log_z = log_z_on_grid(np.log(t), FIRST, STEP, COUNT)
    log_h = log_z + np.log(t.sum(axis=1, keepdims=True))
    h = np.exp(log_h)
    errors = np.expm1(log_z), log_z, h / (m - 1) - 1, log_h - digamma(m)
    squares = (
        errors[0] ** 2,
        errors[1] ** 2,
        h**2 / ((m - 1) * (m - 2)) - 2 * h / (m - 1) + 1,
        errors[3] ** 2 + polygamma(1, m),
    )
    return [[x.sum(axis=0) for x in kind] for kind in (errors, squares, [s**2 for s in squares])]


def _best_alpha(curve):
    """The alpha of least MSE above 0: the vertex of a parabola through seven points of the grid."""
    curve, alphas = curve[ALPHAS > 0], ALPHAS[ALPHAS > 0]
    at = int(np.clip(curve.argmin(), 3, curve.size - 4))
    near = slice(at - 3, at + 4)
    return float(np.polynomial.Polynomial.fit(alphas[near], curve[near], 2).deriv().roots()[0].real)


def _gumbel(target, m):
    bias, variance = (gumbel_z_error if target == "Z" else gumbel_log_z_error)(np.float64(m))
    return float(bias**2 + variance)


def _sizes(frame):
    return [m for m in sorted(frame.samples.unique()) if m]


def plot(frame):
    figure, axes = panels(1, 2, height=3.4)
    for ax, target in zip(axes, ("Z", "lnZ"), strict=True):
        for colour, m in zip(COLOURS, _sizes(frame), strict=False):
            rows = frame[(frame.target == target) & (frame.samples == m)]
            exact, plain, best = (rows[rows.method == method] for method in ("conditioned", "plain", "best"))
            finite = exact[(exact.alpha > 0) | (target == "lnZ")]
            ax.semilogy(finite.alpha, finite.mse, color=colour, label=f"$M$ = {m}")
            dots = plain[(plain.alpha > 0) | (target == "lnZ")].iloc[3::8]
            ax.semilogy(dots.alpha, dots.mse, "o", color=colour, markersize=2.2)
            if target == "Z":
                seen = plain[plain.alpha < 0]
                ax.semilogy(seen.alpha, seen.mse, ":", color=colour)
            ax.semilogy([0], [_gumbel(target, m)], "k+", markersize=6)
            ax.semilogy(best.alpha, best.mse, "v", color=colour, markersize=5)
        for alpha, trick in ((0, "Gumbel"), (1, "Exponential")):
            ax.axvline(alpha, color="#555555", linewidth=0.6, linestyle="--")
            ax.annotate(trick, (alpha, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=7)
        name = "$Z$" if target == "Z" else r"$\ln Z$"
        unit = "in units of $Z^2$" if target == "Z" else "in nats$^2$"
        label(ax, r"$\alpha$", f"MSE, {unit}")
        ax.set_title(f"estimators of {name}", pad=14)
    axes[0].plot([], [], "o", color="#555555", markersize=2.2, label="sampled as in the source")
    axes[0].plot([], [], ":", color="#555555", label="sampled; its mean is infinite")
    axes[0].plot([], [], "k+", markersize=6, label="Gumbel trick, analytic")
    axes[0].plot([], [], "v", color="#555555", markersize=5, label="least MSE")
    return legend_below(figure, axes[0], 4)


@measure
def _at_zero(frame, target):
    """MSE extrapolated to alpha = 0 by a parabola, over the Gumbel trick's analytic MSE, at the M
    where it is furthest from 1.

    Points of a curve come from the same ringing times, so that it errs as one of them. On Z, M = 4
    is left out: the squares of its conditioned errors vary too much near 0.
    """
    low, least = (0, 4) if target == "Z" else (-0.1, 0)
    chosen = select(f"{low} < alpha < 0.1 and samples > {least}", method="conditioned", target=target)
    found = []
    for m, near in chosen(frame).groupby("samples"):
        gumbel = _gumbel(target, m)
        fits = [np.polynomial.Polynomial.fit(near.alpha, near.mse, degree)(0.0) for degree in (2, 3)]
        found.append((fits[0] / gumbel, near.standard_error.max() / gumbel, abs(fits[0] - fits[1]) / gumbel))
    values, errors, extrapolation = np.transpose(found)
    return replace(furthest(values, errors, 1.0), error=extrapolation.max())


@measure
def _best_alpha_in_the_limit(frame, target):
    """The best alpha, which is 1 - O(1/M), extrapolated to 1/M = 0 from the two largest M; how far
    the extrapolation from the next two is bounds what it leaves out."""
    best = BEST.where(target=target)(frame).set_index("samples")
    limits = []
    for m1, m2 in (_sizes(frame)[-2:], _sizes(frame)[-3:-1]):
        (a1, e1), (a2, e2) = (best.loc[m, ["value", "standard_error"]] for m in (m1, m2))
        limits.append(((m2 * a2 - m1 * a1) / (m2 - m1), math.hypot(m2 * e2, m1 * e1) / (m2 - m1)))
    (value, error), (other, _) = limits
    return Measurement(value, error, error=abs(value - other))


def _constant_at_zero(frame):
    """Limit of the constants at alpha = 0: polynomials through those on both sides of it."""
    near = LIMIT.where("-0.055 < alpha < 0.055")(frame)
    low, high = (np.polynomial.Polynomial.fit(near.alpha, near.mse, degree)(0.0) for degree in (4, 6))
    return Measurement(high, error=abs(high - low))


@measure
def _agreement(frame, target):
    """Plain over conditioned MSE where both have an error bar, furthest from 1."""
    seen = select("samples > 4" + " and alpha > 0" * (target == "Z"), target=target)
    plain, exact = (seen.where(method=method) for method in ("plain", "conditioned"))
    by = ["samples", "alpha"]
    sampled, true = (found(frame).set_index(by) for found in (plain, exact))
    errors = np.hypot(sampled.standard_error, true.standard_error) / true.mse
    return furthest(sampled.mse / true.mse, errors, 1.0)


BEST = select(method="best").number("alpha", "alpha_error")
LIMIT = select(method="limit").number("mse")

CAPTION = (
    "MSE of the estimators of Z (left) and ln Z (right) by the tricks that average the ringing times to the power "
    "alpha: Frechet below 0, Weibull above, the Exponential trick at 1; the Gumbel trick is their limit at 0 "
    "(crosses, analytic); dashed lines are at 0 and 1. Curves average the squared errors conditionally on the shares "
    "of the ringing times, which removes most of the noise; dots average the squared errors of 100,000 estimators as "
    "the source does, and their two standard errors are smaller than the dots, but for M = 4 on Z, where they are "
    "infinite. Triangles mark the least MSE. The source's figure has the same curves without the marks. On Z it goes "
    "on below 0 as if the MSE were finite there; that part is dotted here, because a larger sample gives larger "
    "numbers."
)

# fmt: off
CLAIMS = [
    *(
        Claim(f"alpha to 0, {target}", "Thesis 2.2.3: 'the Weibull trick interpolates between'",
            "identity", "=", 1.0, _at_zero(target),
            f"on {NAMES[target]}, the MSE of the Weibull tricks tends to the Gumbel trick's as alpha falls to 0 "
            f"(ratio, at the M{above_4} where it is furthest from 1)")
        for target, above_4 in (("Z", " above 4"), ("lnZ", ""))
    ),
    *(
        Claim(f"best alpha in the limit, {target}", "Thesis 2.2.3: 'This agrees with the finding'",
            "identity", "=", 1.0, _best_alpha_in_the_limit(target),
            f"on {NAMES[target]}, alpha = 1 has the least MSE as M grows (best alpha, extrapolated to infinite M)")
        for target in ("Z", "lnZ")
    ),
    Claim("best alpha at every M", "Thesis 2.2.3: 'the minimum MSE estimator is obtained by choosing'",
        "comparison", "=", 1.0,
        BEST.most_off(1.0, weakest=False),
        "the alpha of least MSE is close to 1 in the figure (best alpha, at the M and target where it is furthest "
        "from 1)", finding="2.2.3, best alpha at small M", tag="reading", weight=3, scale=0.2,
        reading=Reading("close: within 0.1", 0.1)),
    Claim("constant at least 1", "Thesis 2.2.3: 'this constant is at least 1'",
        "bound", ">", 1.0, LIMIT.least(error=1e-9),
        "the constant of the asymptotic variance is at least 1, its value for the Exponential trick, for all "
        "Weibull and Frechet tricks (least of the printed formula, alpha from -0.49 to 5)", scale=1e-3),
    Claim("constant at alpha = 0", "Thesis 2.2.3: 'can be shown to be the limit'",
        "identity", "=", math.pi**2 / 6, _constant_at_zero,
        "the Gumbel trick's constant pi^2/6 is the limit of the Weibull and Frechet tricks' as alpha tends to 0 "
        "(constant, by polynomials through those on both sides of 0)", scale=1e-3),
    *(
        Claim(f"two ways, {target}", "this project", "identity", "=", 1.0, _agreement(target),
            f"on {NAMES[target]}, MSEs averaged conditionally, as the curves show them, are those of estimators "
            "sampled as in the source (sampled over conditional, the ratio furthest from 1 of any alpha and M "
            "above 4)")
        for target in ("Z", "lnZ")
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-2-2",
    title="MSE of the Frechet, Gumbel and Weibull tricks as alpha varies",
    source="Thesis Figure 2.2",
    version=2,
    presets={
        "quick": {"samples": [4, 16, 128], "estimators": 5_000},
        "paper": {"samples": [4, 8, 16, 32, 64, 128], "estimators": 100_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # The smallest are 1e-8, differences of numbers near 1.
    tolerances={"standard_error": Tolerance(absolute=1e-14), "alpha_error": Tolerance(relative=1e-6)},
    claims=CLAIMS,
    caption=CAPTION,
)
