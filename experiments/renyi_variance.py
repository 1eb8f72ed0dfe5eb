"""Variance of the estimators of Renyi entropies: formulas of Thesis chapter 3, and exact ones, against samples."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import logsumexp

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.entropy.estimators import renyi_entropy
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.maxima import Noise, entropy_maxima
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.studies.entropy.variance import QUADRATURE, UNIT, Steps, independent, with_log_z
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

LOG_Z = 2.0
"""Of every distribution: estimators with ln Z known are to use it."""
ALPHAS = np.array([0, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.1, 1.5, 2, 3, 5, 10])
CURVE = np.geomspace(0.004, 20, 60)
MASSES = 0.25, 0.5, 0.75, 0.9
BATCHES = 20

LOG_WEIGHTS = {
    "geometric": lambda: np.log(0.7) * np.arange(500),
    "uniform": lambda: np.zeros(1_000),
    "Zipf": lambda: -1.1 * np.log(np.arange(1, 100_001)),
    "nearly certain": lambda: np.log(np.append(np.full(99_999, 0.01 / 99_999), 0.99)),
    "two levels": lambda: np.log(np.append(np.full(10_000, 0.6 / 10_000), np.full(10, 0.04))),
}
TITLES = {
    "geometric": "geometric, $q$ = 0.3, $N$ = 500",
    "uniform": "uniform, $N$ = 1,000",
    "Zipf": "Zipf, $s$ = 1.1, $N$ = 100,000",
    "nearly certain": "one of 100,000 has 0.99",
    "two levels": "10 have 0.4, 10,000 have 0.6",
}


def ratio_of(p, alpha):
    """Variance of eq. 3.12 over that of eq. 3.8."""
    return p.shared(alpha) / with_log_z(alpha)


def crossings_of(p):
    """Where that is 1, alpha = 0 apart."""

    def excess(alpha):
        return alpha - 2 + 2 * p.deficit(alpha) / UNIT

    signs = np.sign([excess(alpha) for alpha in CURVE])
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    return [round(brentq(excess, CURVE[i], CURVE[i + 1]), 9) for i in changes]


def tops_of(p):
    """First level of sets A of growing probability: none, sets of about `MASSES`, all."""
    above = np.cumsum(p.masses[::-1])[::-1]
    return sorted({0, p.levels.size, *((above > mass).sum() - 1 for mass in MASSES)}, reverse=True)


def tasks(settings):
    return [{"distribution": name, **settings} for name in LOG_WEIGHTS]


def run(seed, distribution, perturbations):
    """Variances of estimates from one perturbation each, and of what they are made of.

    `value` was measured, or is missing, where there is only `expected`; `mass` is the probability of A, whose noise
    is shared. At alpha = 1 and inf there are the limits.
    """
    log_weights = LOG_WEIGHTS[distribution]()
    log_p = log_weights - logsumexp(log_weights)
    p = Steps(log_weights)
    crossings = crossings_of(p)
    alphas = np.union1d(ALPHAS, crossings)
    frames = []

    def add(quantity, alpha, value, error, expected, mass=math.nan):
        row = {"quantity": quantity, "mass": mass, "alpha": alpha, "value": value, "standard_error": error}
        frames.append(pd.DataFrame({**row, "expected": expected}, index=np.arange(np.size(alpha))))

    tops = tops_of(p)
    for first, child in zip(tops, seed.spawn(len(tops)), strict=True):
        share_above = p.levels[first] + LOG_Z if first < p.levels.size else math.inf
        maxima = entropy_maxima(LogPotentials(log_p + LOG_Z), alphas, perturbations, child, Noise(share_above))
        mass = p.masses[first:].sum()
        estimates = (maxima.values - alphas * maxima.at_one[:, np.newaxis]) / (1 - alphas)
        add("shared", alphas, *sample_variance(estimates), [p.shared(alpha, first) for alpha in alphas], mass)
    add("shared", CURVE, math.nan, math.nan, [p.shared(alpha) for alpha in CURVE], mass)
    # what follows uses the last maxima, which share all their noise
    known = (maxima.values - alphas * LOG_Z) / (1 - alphas)
    add("plain", alphas, *sample_variance(known), with_log_z(alphas))
    ratio, ratio_error = _ratio_of_variances(estimates, known)
    for alpha in crossings:
        at, step = alphas == alpha, 1e-3
        slope = (ratio_of(p, alpha + step) - ratio_of(p, alpha - step)) / (2 * step)
        add("crossing", alpha, alpha - (ratio[at] - 1) / slope, ratio_error[at] / abs(slope), alpha)
    add("ratio", alphas, ratio, ratio_error, [ratio_of(p, alpha) for alpha in alphas])
    add("ratio", CURVE, math.nan, math.nan, [ratio_of(p, alpha) for alpha in CURVE])
    best, saved = _with_best_coefficient(maxima)
    add("best", alphas, *best, [p.controlled(alpha) for alpha in alphas])
    add("best", CURVE, math.nan, math.nan, [p.controlled(alpha) for alpha in CURVE])
    add("saved", alphas, *saved, [(1 - p.deficit(alpha) / UNIT) ** 2 for alpha in alphas])
    add("shared", 1.0, *sample_variance(maxima.at_one - maxima.potential), p.shared(1.0), mass)
    add("best", 1.0, *sample_variance(LOG_Z - maxima.potential), p.controlled(1.0))
    add("shared", math.inf, *sample_variance(maxima.at_one - maxima.highest), UNIT, mass)
    sure, _ = renyi_entropy(maxima, math.inf, log_z=LOG_Z)
    least = exact_entropies(LogPotentials(log_p), [math.inf]).entropies[0]
    add("error at inf", math.inf, abs(sure.value - least), sure.standard_error, 0.0)
    add("mean maximum", 1.0, maxima.at_one.mean(), maxima.at_one.std() / math.sqrt(perturbations), LOG_Z)
    frame = pd.concat(frames)
    frame.insert(0, "distribution", distribution)
    return frame


def _ratio_of_variances(above, below):
    """Of columns of paired samples, shapes (M, A), with its standard error to first order."""
    above, below = ((x - x.mean(axis=0)) ** 2 for x in (above, below))
    ratio = above.mean(axis=0) / below.mean(axis=0)
    influence = (above - ratio * below) / below.mean(axis=0)
    return ratio, influence.std(axis=0) / math.sqrt(len(influence))


def _with_best_coefficient(maxima):
    """Variance of a perturbation, and the share saved, at each alpha: means over batches, and their standard errors."""
    found = []
    for rows in np.array_split(np.arange(maxima.samples), BATCHES):
        part = {name: getattr(maxima, name)[rows] for name in ("values", "at_one", "potential")}
        batch = replace(maxima, **part, replicates=np.arange(rows.size))
        for alpha in maxima.orders:
            estimate, variate = renyi_entropy(batch, alpha, log_z=LOG_Z)
            found.append((estimate.standard_error**2 * rows.size, variate.saved))
    found = np.reshape(found, (BATCHES, -1, 2))
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    return (means[:, 0], errors[:, 0]), (means[:, 1], errors[:, 1])


def plot(frame):
    figure, axes = panels(2, 3, height=2.6)
    for ax, (name, rows) in zip(axes.flat, frame.groupby("distribution", sort=False), strict=False):
        _variances(ax, rows)
        label(ax, r"$\alpha$", "variance, nats$^2$", TITLES[name])
    axes[0, 1].text(0.1, 0.02, "best coefficient:\nvariance 0", color=COLOURS[2], fontsize=7)
    ax = axes[1, 2]
    ratios = frame[(frame.quantity == "ratio") & (frame.alpha > 0)].sort_values("alpha")
    for colour, name in zip(COLOURS, TITLES, strict=False):
        rows = ratios[ratios.distribution == name]
        ax.plot(rows.alpha, rows.expected, color=colour, label=name)
        ax.plot(rows.alpha, rows.value, "o", color=colour)
    ax.axhline(1, color="black", linewidth=0.6)
    ax.axvline(2, color="black", linewidth=0.6, linestyle="--")
    ax.set(xlim=(0, 3), ylim=(0, 2.8))
    ax.legend(loc="upper left", handlelength=1, borderaxespad=0, fontsize=6.5)
    label(ax, r"$\alpha$", "ratio of variances", "estimator (3.12) over (3.8)")
    for ax in axes.flat[:-1]:
        ax.set(xscale="log", yscale="log", xlim=(0.08, 12), xticks=[0.1, 1, 10], xticklabels=["0.1", "1", "10"])
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
    ax.set_ylim(3e-3, 1e3)


def _measured(quantity, *, mass=None, tempered=False):
    """Selects the rows of a quantity that was measured; those of one set A; those with alpha other than 0, 1, inf."""

    def select(frame):
        rows = frame[(frame.quantity == quantity) & frame.value.notna()]
        if mass is not None:
            rows = rows[(rows.mass - mass).abs() < 1e-9]
        return rows[~rows.alpha.isin([0, 1, math.inf])] if tempered else rows

    return select


def _only(select, condition):
    return lambda frame: select(frame).query(condition)


def _over(select, unit):
    """The rows, in units of a function of them."""

    def scaled(frame):
        rows = select(frame)
        scale = unit(rows)
        return rows.assign(value=rows.value / scale, standard_error=rows.standard_error / scale)

    return scaled


def _best_over_either(frame):
    """The largest variance with the best coefficient over the smaller exact one of eqs. 3.8 and 3.12."""
    best, ratio = (
        _measured(name, tempered=True)(frame).set_index(["distribution", "alpha"]) for name in ("best", "ratio")
    )
    other = with_log_z(best.index.get_level_values("alpha")) * np.minimum(1, ratio.expected)
    worst = (best.value / other).idxmax()
    return Measurement(best.value[worst] / other[worst], best.standard_error[worst] / other[worst])


def _furthest(select, absolute=False):
    """Measured over expected, or measured less expected, of the row furthest off by its standard error."""

    def measure(frame):
        rows = select(frame)
        rows = rows if absolute else rows[rows.expected > QUADRATURE]
        off = (rows.value - rows.expected).abs() / (rows.standard_error + QUADRATURE * rows.expected)
        row = rows.loc[off.idxmax()]
        if absolute:
            return Measurement(row.value - row.expected, row.standard_error)
        return Measurement(row.value / row.expected, row.standard_error / row.expected)

    return measure


def _extreme(select, largest):
    """The largest or the least value."""

    def measure(frame):
        rows = select(frame)
        row = rows.loc[rows.value.idxmax() if largest else rows.value.idxmin()]
        return Measurement(row.value, row.standard_error)

    return measure


def _largest_rise(frame):
    """Of the variance from a set A to the next larger one, by its standard error, in units of that of no sharing."""
    rows = _measured("shared", tempered=True)(frame).sort_values("mass", kind="stable")
    grouped = rows.groupby(["distribution", "alpha"])
    rise, error = grouped.value.diff(), np.hypot(rows.standard_error, grouped.standard_error.shift())
    worst = (rise / error).idxmax()
    unit = independent(rows.alpha[worst])
    return Measurement(rise[worst] / unit, error[worst] / unit)


ALL = _measured("shared", mass=1.0)
RATIO = _measured("ratio", tempered=True)
UNIFORM, OTHERS = "distribution == 'uniform'", "distribution != 'uniform'"

EXPERIMENT = Experiment(
    id="renyi-variance",
    title="Variance of the estimators of Renyi entropies",
    source="Thesis 3.3, 3.4.2, Propositions 8 and 19",
    version=1,
    presets={"quick": {"perturbations": 20_000}, "paper": {"perturbations": 300_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        Claim(
            id="independent noise",
            source="Thesis eq. 3.14",
            statement="M times the variance with independent noise is (1 + alpha^2) / (1 - alpha)^2 pi^2/6 (ratio, "
            "furthest of all distributions and alphas)",
            published=1.0,
            relation="=",
            measure=_furthest(_measured("shared", mass=0.0)),
        ),
        Claim(
            id="shared noise",
            source="Thesis Proposition 8",
            statement="shared noise does not raise the variance (largest ratio to that with independent noise)",
            published=1.0,
            relation="<",
            measure=_extreme(
                _over(_measured("shared", mass=1.0, tempered=True), lambda rows: independent(rows.alpha)), True
            ),
        ),
        Claim(
            id="more shared noise",
            source="beyond the source",
            statement="the variance never rises as the set A grows whose noise is shared (largest rise from one set to "
            "the next, by its standard error, in units of the variance with independent noise)",
            published=0.0,
            relation="<",
            measure=_largest_rise,
        ),
        Claim(
            id="exact variance",
            source="beyond the source",
            statement="the variance of eq. 3.13 is pi^2/6 + 2 alpha D / (1 - alpha)^2, D an integral over the line "
            "(ratio, furthest of all sets A, distributions and alphas)",
            published=1.0,
            relation="=",
            rounding=QUADRATURE,
            measure=_furthest(_measured("shared", tempered=True)),
        ),
        Claim(
            id="price of ln Z",
            source="beyond the source",
            statement="without ln Z the variance is nowhere below pi^2/6, the price that the remark in 3.4.2 sees at "
            "alpha = 1 (least, in units of pi^2/6)",
            published=1.0,
            relation=">",
            measure=_extreme(_over(ALL, lambda rows: UNIT), False),
        ),
        Claim(
            id="ln Z known",
            source="Thesis eq. 3.8, 2.2.3",
            statement="with ln Z known and no control variate M times the variance is pi^2/6 / (1 - alpha)^2 (ratio, "
            "furthest of all distributions and alphas)",
            published=1.0,
            relation="=",
            measure=_furthest(_measured("plain")),
        ),
        Claim(
            id="limit at 0",
            source="Thesis 3.3.1",
            statement="at alpha = 0 M times the variance is pi^2/6, whether ln Z is known or not (ratio, furthest)",
            published=1.0,
            relation="=",
            measure=_furthest(
                lambda frame: pd.concat([_only(q, "alpha == 0")(frame) for q in (ALL, _measured("plain"))])
            ),
        ),
        Claim(
            id="limit at inf, ln Z known",
            source="Thesis 3.3.1",
            statement="at alpha = inf the estimate is exact if ln Z is known (largest error, nats)",
            published=0.0,
            relation="=",
            rounding=1e-12,
            measure=_extreme(_measured("error at inf"), True),
        ),
        Claim(
            id="limit at inf, ln Z unknown",
            source="Thesis 3.3.1",
            statement="at alpha = inf only ln Z is left to estimate: M times the variance is pi^2/6 (ratio, furthest)",
            published=1.0,
            relation="=",
            measure=_furthest(_only(ALL, "alpha == inf")),
        ),
        Claim(
            id="uniform, alpha below 2",
            source="Thesis Proposition 19",
            statement="for a uniform distribution and ln Z known shared noise gives the smaller variance if alpha < 2 "
            "(largest ratio to that without a control variate)",
            published=1.0,
            relation="<",
            measure=_extreme(_only(RATIO, f"alpha < 2 and {UNIFORM}"), True),
        ),
        Claim(
            id="uniform, alpha above 2",
            source="Thesis Proposition 19",
            statement="and only if: above 2 the larger (least ratio)",
            published=1.0,
            relation=">",
            measure=_extreme(_only(RATIO, f"alpha > 2 and {UNIFORM}"), False),
        ),
        Claim(
            id="uniform, crossing",
            source="Thesis Proposition 19",
            statement="the two variances are the same at alpha = 2",
            published=2.0,
            relation="=",
            rounding=QUADRATURE,
            measure=_extreme(_only(_measured("crossing"), UNIFORM), True),
        ),
        Claim(
            id="others, alpha above 2",
            source="beyond the source",
            statement="shared noise pays for no distribution from alpha = 2 on, as |Cov| <= pi^2/6 (least ratio)",
            published=1.0,
            relation=">",
            rounding=QUADRATURE,
            measure=_extreme(_only(RATIO, "alpha >= 2"), False),
        ),
        Claim(
            id="others, alpha below 2",
            source="beyond the source",
            statement="for distributions that are not uniform alpha < 2 is not enough, nor is alpha < 1 (largest ratio "
            "with alpha < 1)",
            published=1.0,
            relation=">",
            measure=_extreme(_only(RATIO, "alpha < 1"), True),
        ),
        Claim(
            id="others, crossings",
            source="beyond the source",
            statement="the variances cross where the exact ones do (ratio of the alphas, furthest)",
            published=1.0,
            relation="=",
            rounding=QUADRATURE,
            measure=_furthest(_only(_measured("crossing"), OTHERS)),
        ),
        Claim(
            id="best coefficient",
            source="beyond the source",
            statement="with ln Z known the best multiple of the control variate is no worse than either eq. 3.8 or eq. "
            "3.12 (largest ratio to the better one)",
            published=1.0,
            relation="<",
            measure=_best_over_either,
        ),
        Claim(
            id="best coefficient, exact variance",
            source="beyond the source",
            statement="it leaves (1 - rho^2) pi^2/6 / (1 - alpha)^2, rho the correlation of the two maxima (ratio, "
            "furthest)",
            published=1.0,
            relation="=",
            rounding=QUADRATURE,
            measure=_furthest(_measured("best", tempered=True)),
        ),
        Claim(
            id="saved",
            source="beyond the source",
            statement="the share that it says it saves is rho^2 (difference, furthest)",
            published=0.0,
            relation="=",
            rounding=QUADRATURE,
            measure=_furthest(_measured("saved"), absolute=True),
        ),
        Claim(
            id="Maji's estimate",
            source="Thesis Theorem 9",
            statement="the variance of gamma(x*) is pi^2/6 + var ln p (ratio, furthest of all distributions)",
            published=1.0,
            relation="=",
            measure=_furthest(_only(ALL, "alpha == 1")),
        ),
        Claim(
            id="samples of p",
            source="Thesis 3.4.2, remark 2",
            statement="with ln Z known -ln p(x*) estimates H_1 with variance var ln p (ratio, furthest)",
            published=1.0,
            relation="=",
            measure=_furthest(_only(_measured("best"), "alpha == 1")),
        ),
        Claim(
            id="mean of the maximum, as printed",
            source="Thesis 3.4.2, proof of Theorem 9",
            statement="the maximum of phi + gamma is Gumbel(-c - ln Z): its mean is -ln Z = -2 (nearest of all "
            "distributions, nats)",
            published=-LOG_Z,
            relation="=",
            measure=_extreme(_measured("mean maximum"), False),
            finding="3.4.2, proof of Theorem 9",
        ),
        Claim(
            id="mean of the maximum",
            source="Thesis eq. 2.1'",
            statement="its mean is ln Z (ratio, furthest of all distributions)",
            published=1.0,
            relation="=",
            measure=_furthest(_measured("mean maximum")),
        ),
    ],
)
