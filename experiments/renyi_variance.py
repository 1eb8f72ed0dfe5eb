"""Variance of the estimators of Renyi entropies: formulas of Thesis chapter 3, and exact ones,
against samples."""

import math
from dataclasses import replace

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.studies.entropy.variance import (
    LOG_Z,
    QUADRATURE,
    UNIT,
    apart_rows,
    independent,
    variance_rows,
    with_log_z,
)

ALPHAS = np.array([0, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.1, 1.5, 2, 3, 5, 10])
CURVE = np.geomspace(0.004, 20, 60)

LOG_WEIGHTS = {
    "geometric": lambda: np.log(0.7) * np.arange(500),
    "uniform": lambda: np.zeros(1_000),
    "Zipf": lambda: -1.1 * np.log(np.arange(1, 100_001)),
    "nearly certain": lambda: np.log(np.append(np.full(99_999, 0.01 / 99_999), 0.99)),
    "two levels": lambda: np.log(np.append(np.full(10_000, 0.6 / 10_000), np.full(10, 0.04))),
}
UNIFORM = {
    "uniform on 1 of 2": lambda: np.array([0.0, -math.inf]),
    "uniform on 500 of 1,000": lambda: np.where(np.arange(1_000) % 2, -math.inf, 0.0),
}
"""Distributions of Proposition 19, with impossible configurations."""
AROUND_TWO = np.array([0.5, 1.5, 1.9, 1.95, 2, 2.05, 2.1, 3])
TITLES = {
    "geometric": "geometric, $q$ = 0.3, $N$ = 500",
    "uniform": "uniform, $N$ = 1,000",
    "Zipf": "Zipf, $s$ = 1.1, $N$ = 100,000",
    "nearly certain": "1 of 100,000 has $p$ = 0.99",
    "two levels": "10 share 0.4, 10,000 share 0.6",
}
RATIO_STYLES = (COLOURS[3], "o"), (COLOURS[5], "s"), ("#777777", "^"), ("#000000", "v"), ("#8C510A", "D")
"""Colour and marker of each distribution, none a colour of an estimator."""


def tasks(settings):
    return [{"distribution": name, **settings} for name in (*LOG_WEIGHTS, *UNIFORM)]


def run(seed, distribution, perturbations):
    """Variances of estimates from one perturbation each; `variance_rows` describes the columns, and
    `apart_rows` those of the distributions with impossible configurations."""
    if distribution in UNIFORM:
        frame = apart_rows(UNIFORM[distribution](), AROUND_TWO, (1 - AROUND_TWO) ** 2, perturbations, seed)
    else:
        frame = variance_rows(LOG_WEIGHTS[distribution](), ALPHAS, CURVE, perturbations, seed)
    return labelled(frame, distribution=distribution)


def plot(frame):
    figure, axes = panels(2, 3, height=2.7)
    for ax, name in zip(axes.flat, TITLES, strict=False):
        _variances(ax, frame[frame.distribution == name])
        label(ax, r"order $\alpha$", "variance, nats$^2$", TITLES[name])
    axes[0, 1].text(0.1, 0.004, "best coefficient:\nvariance 0", color=COLOURS[2], fontsize=7)
    ax = axes[1, 2]
    ratios = select("alpha > 0", quantity="ratio")(frame).sort_values("alpha")
    for (colour, marker), name in zip(RATIO_STYLES, TITLES, strict=True):
        part = ratios[ratios.distribution == name]
        # the ratio is (1 - alpha)^2 and alpha times a factor that hardly bends from one order to the next
        fine, factor = np.linspace(0.004, 3, 600), (part.expected - (1 - part.alpha) ** 2) / part.alpha
        ax.plot(fine, (1 - fine) ** 2 + fine * np.interp(fine, part.alpha, factor), color=colour)
        ax.plot(part.alpha, part.value, marker, color=colour)
        ax.plot([], [], color=colour, marker=marker, label=name)
    ax.axhline(1, color="black", linewidth=0.6)
    ax.axvline(2, color="black", linewidth=0.6, linestyle="--")
    ax.set(xlim=(0, 3), ylim=(0, 4))
    ax.legend(loc="upper left", handlelength=1.5, borderaxespad=0, labelspacing=0.3)
    label(ax, r"order $\alpha$", "ratio of variances", "estimator (3.12) over (3.8)")
    for ax in axes.flat[:-1]:
        ax.set(xscale="log", yscale="log", xlim=(0.08, 12), xticks=[0.1, 1, 10], xticklabels=["0.1", "1", "10"])
        ax.set(ylim=(1e-4, 1e3), yticks=[1e-4, 1e-2, 1, 1e2])
    return legend_below(figure, axes[0, 0], 3)


def _variances(ax, rows):
    """Exact lines, measured points; diamonds for the limits at alpha = 1."""
    alphas = np.concatenate([CURVE[CURVE < 0.9], np.linspace(0.9, 1.1, 100), CURVE[CURVE > 1.1]])
    drawn = (
        ("independent noise (3.14)", COLOURS[4], "shared", 0, independent),
        (r"$\ln Z$ known, no control variate (3.8)", COLOURS[0], "plain", None, with_log_z),
        ("shared noise (3.12)", COLOURS[1], "shared", 1, None),
        (r"$\ln Z$ known, best coefficient", COLOURS[2], "best", None, None),
    )
    for name, colour, quantity, mass, formula in drawn:
        part = rows[(rows.quantity == quantity) & (rows.alpha > 0) & (rows.alpha < math.inf)].sort_values("alpha")
        if mass is not None:
            part = part[(part.mass - mass).abs() < 1e-9]
        line = (alphas, formula(alphas)) if formula else (part.alpha, part.expected)
        ax.plot(*line, color=colour, label=name)
        limit = part.alpha == 1
        points = part[~limit]
        marks(ax, points, "alpha", "o", color=colour)
        ax.plot(part.alpha[limit], part.value[limit], "D", color=colour, markersize=4.5, markeredgecolor="black")
    limits = r"at $\alpha$ = 1: $\gamma(x^*)$ (3.17), $-\ln p(x^*)$"
    ax.plot([], [], "kD", markersize=4.5, markerfacecolor="none", label=limits)


def _measured(quantity, query="", mass=None, tempered=False):
    """The measured rows of a quantity; `mass` keeps one set A, and `tempered` leaves out alpha = 0, 1 and inf."""
    found = select("value == value", quantity=quantity).where(query)
    found = found if mass is None else found.where(f"abs(mass - {mass}) < 1e-9")
    return found.where("alpha not in [0, 1, inf]") if tempered else found


def _best_over_either(frame):
    """The largest variance with the best coefficient over the smaller exact one of eqs. 3.8 and
    3.12."""
    best, ratio = (
        _measured(name, tempered=True)(frame).set_index(["distribution", "alpha"]) for name in ("best", "ratio")
    )
    other = with_log_z(best.index.get_level_values("alpha")) * np.minimum(1, ratio.expected)
    worst = (best.value / other).idxmax()
    errors = best.standard_error / other
    return Measurement(best.value[worst] / other[worst], errors[worst], weakest=errors.max())


def _furthest(found, absolute=False):
    """Measured over expected, or less expected if `absolute`, of the row furthest off in its
    standard errors."""
    misses = found.minus("expected") if absolute else found.where(f"expected > {QUADRATURE}").per("expected")
    furthest = misses.furthest(0.0 if absolute else 1.0, floor=QUADRATURE)
    return lambda frame: replace(furthest(frame), error=QUADRATURE)


APART = _measured("ratio apart")
RATIO = _measured("ratio", tempered=True)
OTHERS = "distribution != 'uniform'"


OURS = "beyond the source"
CAPTION = """\
Variance of estimates of H_alpha from one perturbation, over the order alpha, for five distributions. \
Lines are exact, dots are measured (two standard errors are smaller than the dots), and diamonds are \
the limits at alpha = 1, gamma(x*) on the orange line and -ln p(x*) on the green one. The best \
coefficient makes the variance 0 for the uniform distribution. Bottom right: the variance with shared \
noise over that with ln Z known and no control variate, where the blue line is under the black one \
above 1. Below 1 (solid line) shared noise pays, for the uniform distribution up to alpha = 2 (dashed \
line, Proposition 19). The source states the formulas and has no such figure; the exact variance with \
shared noise is this project's."""


# fmt: off
CLAIMS = [
    Claim("independent noise", "Thesis Proposition 8, eq. 3.14", "identity", "=", 1.0,
        _furthest(_measured("shared", mass=0.0)),
        "M times the variance with independent noise is (1 + alpha^2) / (1 - alpha)^2 pi^2/6 (ratio, furthest of "
        "all distributions and alphas)"),
    Claim("shared noise", "Thesis Proposition 8, eq. 3.14", "bound", "<", 1.0,
        _measured("shared", mass=1.0, tempered=True)
        .per(lambda found: independent(found.alpha))
        .largest(weakest=False),
        "shared noise does not raise the variance (largest ratio to that with independent noise; as alpha tends to "
        "0 or inf the two are the same)", scale=0.1),
    Claim("exact variance", OURS, "identity", "=", 1.0, _furthest(_measured("shared", tempered=True)),
        "the variance of eq. 3.13 is pi^2/6 + 2 alpha D / (1 - alpha)^2, D an integral over the line (measured "
        "over formula, the furthest from 1 of all sets A, distributions and alphas)"),
    Claim("ln Z known", "Thesis eq. 3.8, 2.2.3", "identity", "=", 1.0, _furthest(_measured("plain")),
        "with ln Z known and no control variate M times the variance is pi^2/6 / (1 - alpha)^2 (ratio, furthest of "
        "all distributions and alphas)"),
    Claim("limit at 0", "Thesis 3.3.1: 'does not require the control variate term at all'", "identity", "=", 1.0,
        _furthest(select("alpha == 0 and value == value and (quantity == 'plain' or abs(mass - 1) < 1e-9)",
            quantity=["shared", "plain"])),
        "at alpha = 0 M times the variance is pi^2/6, ln Z known or not (ratio, the furthest from 1)"),
    Claim("limit at inf, ln Z known", "Thesis 3.3.1: 'is fully deterministic'", "identity", "=", 0.0,
        _measured("error at inf").number("value").largest(1e-12),
        "at alpha = inf the estimate has variance 0 if ln Z is known: it is exact (largest error, nats)", scale=1e-6),
    Claim("limit at inf, ln Z unknown", "Thesis 3.3.1: 'the Gumbel trick is only needed to estimate'",
        "identity", "=", 1.0,
        _furthest(_measured("shared", "alpha == inf", mass=1.0)),
        "at alpha = inf only ln Z is left to estimate: M times the variance is pi^2/6 (the furthest ratio from 1)"),
    Claim("uniform, alpha below 2", "Thesis Proposition 19", "bound", "<", 1.0,
        APART.where("alpha < 2").largest(weakest=False),
        "for a distribution uniform on its support and ln Z known, shared noise gives a smaller variance than no "
        "control variate if alpha < 2 (largest ratio of the two, each from noise of its own)"),
    Claim("uniform, alpha above 2", "Thesis Proposition 19", "bound", ">", 1.0,
        APART.where("alpha > 2").least(weakest=False),
        "for a distribution uniform on its support and ln Z known, shared noise gives a larger variance than no "
        "control variate if alpha > 2 (least ratio of the two, each from noise of its own)"),
    Claim("uniform, crossing", "Thesis Proposition 19", "identity", "=", 2.0,
        APART.where("alpha == 2")  # the ratio has the slope 2 (alpha - 1) there
        .number(lambda found: 2 - (found.value - 1) / 2, lambda found: found.standard_error / 2)
        .furthest(2.0),
        "for a distribution uniform on its support and ln Z known, shared noise and no control variate give the "
        "same variance at alpha = 2 (alpha at which the ratio of the two is 1, the furthest from 2)", scale=0.05),
    Claim("others, alpha above 2", OURS, "bound", ">", 1.0,
        RATIO.where(f"alpha >= 2 and {OTHERS}").least(weakest=False),
        "for distributions that are not uniform and ln Z known, shared noise never lowers the variance from alpha "
        "= 2 on, as |Cov| <= pi^2/6 (least ratio to the variance without a control variate)"),
    Claim("others, alpha below 2", OURS, "comparison", ">", 1.0, RATIO.where("alpha < 1").largest(weakest=False),
        "for distributions that are not uniform and ln Z known, shared noise can raise the variance even if alpha "
        "< 1 (largest ratio to the variance without a control variate)"),
    Claim("best coefficient", OURS, "bound", "<", 1.0, _best_over_either,
        "with ln Z known the best multiple of the control variate is no worse than either eq. 3.8 or eq. 3.12 "
        "(largest ratio to the better one)", scale=0.1),
    Claim("best coefficient, exact variance", OURS, "identity", "=", 1.0, _furthest(_measured("best", tempered=True)),
        "with ln Z known the best multiple of the control variate leaves the variance (1 - rho^2) pi^2/6 / (1 - "
        "alpha)^2, rho the correlation of the two maxima (ratio, the furthest from 1)"),
    Claim("saved", OURS, "identity", "=", 0.0, _furthest(_measured("saved"), absolute=True),
        "the share of the variance that the command `renyi` reports as saved by the control variate is rho^2 "
        "(difference, the furthest from 0 of all distributions and alphas)", scale=0.05),
    Claim("Maji's estimate", "Thesis Theorem 9, eq. 3.22", "identity", "=", 1.0,
        _furthest(_measured("shared", "alpha == 1", mass=1.0)),
        "the variance of gamma(x*) is pi^2/6 + var ln p (ratio, furthest of all distributions)"),
    Claim("price of ln Z", "Thesis 3.4.2, remark 1", "identity", "=", 1.0,
        _measured("shared", "alpha == 1").less(_measured("best", "alpha == 1"), "distribution").per(UNIT).furthest(1.0),
        "not knowing ln Z costs pi^2/6, the variance of its Gumbel estimate: the variance at alpha = 1 less that "
        "of -ln p(x*) (in units of pi^2/6, furthest of all distributions)"),
    Claim("samples of p", "Thesis 3.4.2, remark 2", "identity", "=", 1.0,
        _furthest(_measured("best", "alpha == 1")),
        "with ln Z known -ln p(x*) estimates H_1 with variance var ln p (ratio, furthest from 1)"),
    Claim("mean of the maximum, as printed", "Thesis 3.4.2, proof of Theorem 9", "identity", "=", -LOG_Z,
        _measured("mean maximum").least(weakest=False),
        "the maximum of phi + gamma is Gumbel(-c - ln Z): its mean is -ln Z = -2 (mean in nats, the nearest to -2 "
        "of all distributions)", finding="3.4.2, proof of Theorem 9", tag="slip", weight=2),
    Claim("mean of the maximum", "Thesis eq. 2.1'", "identity", "=", 1.0, _furthest(_measured("mean maximum")),
        "the mean of the maximum of phi + gamma is ln Z (ratio, the furthest from 1)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="renyi-variance",
    title="Variance of the estimators of Renyi entropies",
    source="Thesis 3.3, 3.4.2, Propositions 8 and 19",
    version=1,
    presets={"quick": {"perturbations": 20_000}, "paper": {"perturbations": 1_500_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    # Exact cancellation, as in the ratios of a uniform distribution, leaves 1e-32 to 1e-13 of numbers that are
    # 1e-5 or more elsewhere.
    tolerances=dict.fromkeys(["value", "standard_error", "expected"], Tolerance(absolute=1e-12)),
    caption=CAPTION,
    claims=CLAIMS,
)
