"""Variance of the estimators of Renyi entropies: formulas of Thesis chapter 3, and exact ones,
against samples."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import furthest
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
    frame.insert(0, "distribution", distribution)
    return frame


def plot(frame):
    figure, axes = panels(2, 3, height=2.7)
    for ax, name in zip(axes.flat, TITLES, strict=False):
        _variances(ax, frame[frame.distribution == name])
        label(ax, r"order $\alpha$", "variance, nats$^2$", TITLES[name])
    axes[0, 1].text(0.1, 0.004, "best coefficient:\nvariance 0", color=COLOURS[2], fontsize=7)
    ax = axes[1, 2]
    ratios = frame[(frame.quantity == "ratio") & (frame.alpha > 0)].sort_values("alpha")
    for style, name in zip(RATIO_STYLES, TITLES, strict=True):
        rows = ratios[ratios.distribution == name]
        # the ratio is (1 - alpha)^2 and alpha times a factor that hardly bends from one order to the next
        fine, factor = np.linspace(0.004, 3, 600), (rows.expected - (1 - rows.alpha) ** 2) / rows.alpha
        ax.plot(fine, (1 - fine) ** 2 + fine * np.interp(fine, rows.alpha, factor), color=style[0])
        ax.plot(rows.alpha, rows.value, color=style[0], marker=style[1], linestyle="")
        ax.plot([], [], color=style[0], marker=style[1], label=name)
    ax.axhline(1, color="black", linewidth=0.6)
    ax.axvline(2, color="black", linewidth=0.6, linestyle="--")
    ax.set(xlim=(0, 3), ylim=(0, 4))
    ax.legend(loc="upper left", handlelength=1.5, borderaxespad=0, labelspacing=0.3)
    label(ax, r"order $\alpha$", "ratio of variances", "estimator (3.12) over (3.8)")
    for ax in axes.flat[:-1]:
        ax.set(xscale="log", yscale="log", xlim=(0.08, 12), xticks=[0.1, 1, 10], xticklabels=["0.1", "1", "10"])
        ax.set(ylim=(1e-4, 1e3), yticks=[1e-4, 1e-2, 1, 1e2])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    return figure


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
        ax.errorbar(points.alpha, points.value, yerr=2 * points.standard_error, fmt="o", color=colour)
        ax.plot(part.alpha[limit], part.value[limit], "D", color=colour, markersize=4.5, markeredgecolor="black")
    limits = r"at $\alpha$ = 1: $\gamma(x^*)$ (3.17), $-\ln p(x^*)$"
    ax.plot([], [], "kD", markersize=4.5, markerfacecolor="none", label=limits)


def _measured(quantity, *, mass=None, tempered=False):
    """Selector of the measured rows of a quantity.

    `mass` keeps one set A; `tempered` leaves out alpha = 0, 1 and inf.
    """

    def select(frame):
        rows = frame[(frame.quantity == quantity) & frame.value.notna()]
        if mass is not None:
            rows = rows[(rows.mass - mass).abs() < 1e-9]
        return rows[~rows.alpha.isin([0, 1, math.inf])] if tempered else rows

    return select


def _only(select, condition):
    return lambda frame: select(frame).query(condition)


def _over(select, unit):
    """The selected rows in units of a function of them."""

    def scaled(frame):
        rows = select(frame)
        scale = unit(rows)
        return rows.assign(value=rows.value / scale, standard_error=rows.standard_error / scale)

    return scaled


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


def _furthest(select, absolute=False):
    """Measured over expected, or less expected if `absolute`, of the row furthest off in its
    standard errors."""

    def measure(frame):
        rows = select(frame)
        rows = rows if absolute else rows[rows.expected > QUADRATURE]
        unit = 1.0 if absolute else rows.expected
        misses = rows.value - rows.expected if absolute else rows.value / unit
        errors = (rows.standard_error / unit).clip(lower=QUADRATURE)
        return replace(furthest(misses, errors, 0.0 if absolute else 1.0), error=QUADRATURE)

    return measure


def _extreme(select, largest):
    """The largest or the least value."""

    def measure(frame):
        rows = select(frame)
        row = rows.loc[rows.value.idxmax() if largest else rows.value.idxmin()]
        return Measurement(row.value, row.standard_error)

    return measure


def _crossing(frame):
    """The alpha at which the ratio is 1, by its value at 2 and its slope there, 2 (alpha - 1)."""
    rows = _apart("alpha == 2")(frame)
    return furthest(2 - (rows.value - 1) / 2, rows.standard_error / 2, 2.0)


def _price_of_log_z(frame):
    """Variance at alpha = 1 less that with ln Z known, in units of pi^2/6."""
    unknown, known = (
        _only(_measured(*name), "alpha == 1")(frame).set_index("distribution")[["value", "standard_error"]]
        for name in (["shared"], ["best"])
    )
    price = (unknown.value - known.value) / UNIT
    return furthest(price, np.hypot(unknown.standard_error, known.standard_error) / UNIT, 1.0)


def _apart(condition):
    return _only(_measured("ratio apart"), condition)


ALL = _measured("shared", mass=1.0)
RATIO = _measured("ratio", tempered=True)
OTHERS = "distribution != 'uniform'"


def _equal(id, source, statement, measure, published=1.0, **options):
    return Claim(id, source, statement, published, "=", measure, kind="identity", **options)


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
    claims=[
        _equal(
            id="independent noise",
            source="Thesis Proposition 8, eq. 3.14",
            statement="M times the variance with independent noise is (1 + alpha^2) / (1 - alpha)^2 pi^2/6 (ratio, "
            "furthest of all distributions and alphas)",
            measure=_furthest(_measured("shared", mass=0.0)),
        ),
        Claim(
            id="shared noise",
            source="Thesis Proposition 8, eq. 3.14",
            statement="shared noise does not raise the variance (largest ratio to that with independent noise; as "
            "alpha tends to 0 or inf the two are the same)",
            published=1.0,
            relation="<",
            measure=_extreme(
                _over(_measured("shared", mass=1.0, tempered=True), lambda rows: independent(rows.alpha)), True
            ),
            scale=0.1,
            kind="bound",
        ),
        _equal(
            id="exact variance",
            source=OURS,
            statement="the variance of eq. 3.13 is pi^2/6 + 2 alpha D / (1 - alpha)^2, D an integral over the line "
            "(measured over formula, the furthest from 1 of all sets A, distributions and alphas)",
            measure=_furthest(_measured("shared", tempered=True)),
        ),
        _equal(
            id="ln Z known",
            source="Thesis eq. 3.8, 2.2.3",
            statement="with ln Z known and no control variate M times the variance is pi^2/6 / (1 - alpha)^2 (ratio, "
            "furthest of all distributions and alphas)",
            measure=_furthest(_measured("plain")),
        ),
        _equal(
            id="limit at 0",
            source="Thesis 3.3.1",
            statement="at alpha = 0 M times the variance is pi^2/6, ln Z known or not (ratio, the furthest from 1)",
            measure=_furthest(
                lambda frame: pd.concat([_only(q, "alpha == 0")(frame) for q in (ALL, _measured("plain"))])
            ),
        ),
        _equal(
            id="limit at inf, ln Z known",
            source="Thesis 3.3.1",
            statement="at alpha = inf the estimate has variance 0 if ln Z is known: it is exact (largest error, nats)",
            published=0.0,
            measure=lambda frame: Measurement(_measured("error at inf")(frame).value.max(), error=1e-12),
            scale=1e-6,
        ),
        _equal(
            id="limit at inf, ln Z unknown",
            source="Thesis 3.3.1",
            statement="at alpha = inf only ln Z is left to estimate: M times the variance is pi^2/6 (the furthest "
            "ratio from 1)",
            measure=_furthest(_only(ALL, "alpha == inf")),
        ),
        Claim(
            id="uniform, alpha below 2",
            source="Thesis Proposition 19",
            statement="for a distribution uniform on its support and ln Z known, shared noise gives a smaller "
            "variance than no control variate if alpha < 2 (largest ratio of the two, each from noise of its own)",
            published=1.0,
            relation="<",
            measure=_extreme(_apart("alpha < 2"), True),
            kind="bound",
        ),
        Claim(
            id="uniform, alpha above 2",
            source="Thesis Proposition 19",
            statement="for a distribution uniform on its support and ln Z known, shared noise gives a larger variance "
            "than no control variate if alpha > 2 (least ratio of the two, each from noise of its own)",
            published=1.0,
            relation=">",
            measure=_extreme(_apart("alpha > 2"), False),
            kind="bound",
        ),
        _equal(
            id="uniform, crossing",
            source="Thesis Proposition 19",
            statement="for a distribution uniform on its support and ln Z known, shared noise and no control variate "
            "give the same variance at alpha = 2 (alpha at which the ratio of the two is 1, the furthest from 2)",
            published=2.0,
            measure=_crossing,
            scale=0.05,
        ),
        Claim(
            id="others, alpha above 2",
            source=OURS,
            statement="for distributions that are not uniform and ln Z known, shared noise never lowers the variance "
            "from alpha = 2 on, as |Cov| <= pi^2/6 (least ratio to the variance without a control variate)",
            published=1.0,
            relation=">",
            measure=_extreme(_only(RATIO, f"alpha >= 2 and {OTHERS}"), False),
            kind="bound",
        ),
        Claim(
            id="others, alpha below 2",
            source=OURS,
            statement="for distributions that are not uniform and ln Z known, shared noise can raise the variance "
            "even if alpha < 1 (largest ratio to the variance without a control variate)",
            published=1.0,
            relation=">",
            measure=_extreme(_only(RATIO, "alpha < 1"), True),
            kind="comparison",
        ),
        Claim(
            id="best coefficient",
            source=OURS,
            statement="with ln Z known the best multiple of the control variate is no worse than either eq. 3.8 or eq. "
            "3.12 (largest ratio to the better one)",
            published=1.0,
            relation="<",
            measure=_best_over_either,
            scale=0.1,
            kind="bound",
        ),
        _equal(
            id="best coefficient, exact variance",
            source=OURS,
            statement="with ln Z known the best multiple of the control variate leaves the variance (1 - rho^2) "
            "pi^2/6 / (1 - alpha)^2, rho the correlation of the two maxima (ratio, the furthest from 1)",
            measure=_furthest(_measured("best", tempered=True)),
        ),
        _equal(
            id="saved",
            source=OURS,
            statement="the share of the variance that the command `renyi` reports as saved by the control variate is "
            "rho^2 (difference, the furthest from 0 of all distributions and alphas)",
            published=0.0,
            measure=_furthest(_measured("saved"), absolute=True),
            scale=0.05,
        ),
        _equal(
            id="Maji's estimate",
            source="Thesis Theorem 9, eq. 3.22",
            statement="the variance of gamma(x*) is pi^2/6 + var ln p (ratio, furthest of all distributions)",
            measure=_furthest(_only(ALL, "alpha == 1")),
        ),
        _equal(
            id="price of ln Z",
            source="Thesis 3.4.2, remark 1",
            statement="not knowing ln Z costs pi^2/6, the variance of its Gumbel estimate: the variance "
            "at alpha = 1 less that of -ln p(x*) (in units of pi^2/6, furthest of all distributions)",
            measure=_price_of_log_z,
        ),
        _equal(
            id="samples of p",
            source="Thesis 3.4.2, remark 2",
            statement="with ln Z known -ln p(x*) estimates H_1 with variance var ln p (ratio, furthest from 1)",
            measure=_furthest(_only(_measured("best"), "alpha == 1")),
        ),
        _equal(
            id="mean of the maximum, as printed",
            source="Thesis 3.4.2, proof of Theorem 9",
            statement="the maximum of phi + gamma is Gumbel(-c - ln Z): its mean is -ln Z = -2 (mean in nats, the "
            "nearest to -2 of all distributions)",
            published=-LOG_Z,
            measure=_extreme(_measured("mean maximum"), False),
            finding="3.4.2, proof of Theorem 9",
        ),
        _equal(
            id="mean of the maximum",
            source="Thesis eq. 2.1'",
            statement="the mean of the maximum of phi + gamma is ln Z (ratio, the furthest from 1)",
            measure=_furthest(_measured("mean maximum")),
        ),
    ],
)
