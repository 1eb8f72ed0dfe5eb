"""Weibull and Frechet noise drawn as such: the least of p~(x)^(-alpha) W(x) is a Weibull variable
(eq. 2.1''), the largest of p~(x)^(-alpha) F(x) a Frechet one, and their means give Z (Lemma 3)."""

import math
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import invweibull, kstwobign, norm, weibull_min

from thesis_cli.base.figures import COLOURS, label, marks, panels
from thesis_cli.inference.enumeration import Enumeration
from thesis_cli.models.files import load_model
from thesis_cli.reproduction.experiment import Claim, Experiment
from thesis_cli.reproduction.measuring import labelled, select

MODELS = Path(__file__).parents[1] / "data" / "models"
NAMES = ("asia.uai", "zipf-1000.csv", "sixty normals")
LEVELS = np.linspace(0.02, 0.98, 49)
DISTANCE = float(kstwobign.isf(2 * norm.sf(5))) / 5
"""A fifth of what the root of the sample size times the Kolmogorov distance exceeds as rarely as a
normal variable exceeds five deviations: it stands for a standard error."""
TENTH = 1.1**-10 - 1.1**-11
"""Kolmogorov distance of two of these laws if Z of one is a tenth larger: that of Exp(1) and Exp(1.1)."""
BLOCK = 2**20
DARK = "#000000", "#777777", "#8C510A"
"""Colours of the models, none a colour of an alpha."""


def tasks(settings):
    return [
        {"model": name, "alpha": alpha, "samples": settings["samples"]}
        for name in NAMES
        for alpha in settings["alphas"]
    ]


def run(seed, model, alpha, samples):
    """The optimum and where it is, for each sample of noise on every configuration."""
    phi = _log_potentials(model)
    log_z = float(logsumexp(phi))
    powers = np.exp(-alpha * phi)
    rng = np.random.default_rng(seed)
    optima, states = np.empty(samples), np.empty(samples, np.int64)
    rows = max(1, BLOCK // phi.size)
    for start in range(0, samples, rows):
        shape = min(rows, samples - start), phi.size
        perturbed = powers * _law(alpha).rvs(size=shape, random_state=rng)
        found = perturbed.argmin(axis=1) if alpha > 0 else perturbed.argmax(axis=1)
        states[start : start + rows] = found
        optima[start : start + rows] = perturbed[np.arange(shape[0]), found]
    scaled = optima * math.exp(alpha * log_z)
    reached = _law(alpha).cdf(np.sort(scaled))
    count = np.arange(samples)
    ratio = scaled / math.gamma(1 + alpha)
    shares = np.bincount(states, minlength=phi.size) / samples
    error = DISTANCE / math.sqrt(samples)
    statistics = [
        ("mean", math.nan, ratio.mean(), ratio.std() / math.sqrt(samples) if alpha > -0.5 else math.inf),
        ("distance", math.nan, max((reached - count / samples).max(), ((count + 1) / samples - reached).max()), error),
        ("place", math.nan, np.abs(np.cumsum(shares - np.exp(phi - log_z))).max(), error),
        *(("level", level, np.searchsorted(reached, level) / samples - level, error) for level in LEVELS),
    ]
    columns = ["statistic", "level", "value", "standard_error"]
    return labelled(statistics, columns, model=model, alpha=alpha, samples=samples)


def _law(alpha):
    """Weibull of scale 1 and shape 1/alpha, or Frechet of shape -1/alpha."""
    return weibull_min(1 / alpha) if alpha > 0 else invweibull(-1 / alpha)


def _log_potentials(model):
    if model == "sixty normals":
        return np.random.default_rng(60).normal(1.0, 2.0, 60)
    return np.concatenate([block.copy() for block in Enumeration(load_model(MODELS / model)).blocks()])


def plot(frame):
    figure, axes = panels(1, 2, height=3.3)
    alphas = sorted(frame.alpha.unique())
    levels = frame[(frame.statistic == "level") & (frame.model == NAMES[-1])]
    for colour, alpha in zip(COLOURS, alphas, strict=False):
        rows = levels[levels.alpha == alpha]
        axes[0].plot(rows.level, rows.value, color=colour, label=rf"$\alpha$ = {alpha:g}")
    spread = 2 * np.sqrt(LEVELS * (1 - LEVELS) / frame.samples.iloc[0])
    axes[0].fill_between(LEVELS, -spread, spread, color="#999999", alpha=0.3, linewidth=0, label="2 std. errors")
    axes[0].axhline(0, color="black", linewidth=0.6)
    label(axes[0], "distribution function of the law", "empirical one minus it", f"optima, {NAMES[-1]}")
    means = frame[(frame.statistic == "mean") & np.isfinite(frame.standard_error)]
    for k, (marker, name) in enumerate(zip("os^", NAMES, strict=True)):
        rows = means[means.model == name]
        at = [alphas.index(alpha) + (k - 1) * 0.15 for alpha in rows.alpha]
        marks(axes[1], rows, at, marker, color=DARK[k], label=name)
    shown = sorted(means.alpha.unique())
    axes[1].set_xticks([alphas.index(alpha) for alpha in shown], [f"{alpha:g}" for alpha in shown])
    axes[1].axhline(1, color="black", linewidth=0.6)
    label(axes[1], r"$\alpha$", r"mean over $Z^{-\alpha}\,\Gamma(1+\alpha)$", "mean of the optima, three models")
    figure.legend(loc="outside lower center", ncol=5)
    return figure


def _worst(statistic, sign, expected=0.0):
    """The furthest of all models and of the alphas of one sign."""
    return select(f"standard_error < inf and {sign} * alpha >= 0", statistic=statistic).furthest(expected)


KINDS = (
    ("Weibull", 1, "least of p~(x)^(-alpha) W(x), W ~ Weibull(1, 1/alpha), is Weibull(Z^(-alpha), 1/alpha)"),
    ("Frechet", -1, "largest of p~(x)^(-alpha) F(x), F ~ Frechet(1, -1/alpha), is Frechet(Z^(-alpha), -1/alpha)"),
)

CAPTION = (
    "Weibull (alpha above 0) and Frechet noise (below 0), drawn as such, multiplies p~(x)^(-alpha) at every "
    "configuration x. Left: empirical distribution function of the optima of one model minus that of the law in eq. "
    "2.1'', by level of the law, with a band of two standard errors. Right: mean of the optima over the value of Lemma "
    "3 for three models, with two standard errors; below alpha = -1/2 the optima have no variance and no point is "
    "shown. The source states both without a figure."
)

# fmt: off
CLAIMS = [
    *(
        Claim(f"law, {name}", "Thesis eq. 2.1, Example 6, eq. 2.1''" if sign > 0 else "Thesis A.2, proof of Lemma 3",
            "identity", "=", 0.0, _worst("distance", sign),
            f"the {law} (Kolmogorov distance, the largest of three models and all alphas)", scale=TENTH)
        for name, sign, law in KINDS
    ),
    *(
        Claim(f"mean, {name}", "Thesis Lemma 3" + (", Example 6" if sign > 0 else ""), "identity", "=", 1.0,
            _worst("mean", sign, 1.0),
            f"under {name} noise the mean of the optima is Z^(-alpha) Gamma(1 + alpha) (ratio, furthest from 1, of "
            "three models and all alphas above -1/2)")
        for name, sign, _ in KINDS
    ),
    Claim("place", "Thesis eq. 2.2", "identity", "=", 0.0, _worst("place", 0),
        "the configuration at the optimum is distributed as p (largest difference of the distribution functions "
        "over the configurations in their order, of three models and all alphas)", scale=TENTH),
]
# fmt: on

EXPERIMENT = Experiment(
    id="weibull-frechet-noise",
    title="Optima under Weibull and Frechet noise, drawn as such",
    source="Thesis eq. 2.1'', Lemma 3",
    version=1,
    presets={
        "quick": {"alphas": [-0.4, 0.5], "samples": 500},
        "paper": {"alphas": [-0.8, -0.4, -0.2, 0.5, 1, 2], "samples": 20_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=CLAIMS,
    caption=CAPTION,
)
