"""Full-rank MAP values of real models: distributed as Gumbel(ln Z - c), whatever the model (eq.
2.1'), with exact samples of the model (eq. 2.2') and any trick's mean (Proposition 1)."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import polygamma
from scipy.stats import kstwobign, norm

from thesis_cli.base.figures import COLOURS, label, marks, panels
from thesis_cli.inference.enumeration import Enumeration, log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.perturbation.tricks.tricks import power, tail
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import select

MODELS = Path(__file__).parents[1] / "data" / "models"
NAMES = ("asia.uai", "ising-4x4.uai", "sat-16-60.uai", "zipf-1000.csv")
LEVELS = np.linspace(0.005, 0.995, 199)
FEW = 10
DISTANCE = float(kstwobign.isf(2 * norm.sf(5))) / 5
"""A fifth of what the root of the sample size times the Kolmogorov distance exceeds as rarely as a
normal variable exceeds five deviations: it stands for a standard error."""


def tasks(settings):
    return [{"model": name, "samples": settings["samples"]} for name in NAMES]


def run(seed, model, samples):
    """Moments and empirical quantiles of the MAP values, centred at the exact ln Z; how far the
    maximising configurations are from p; means of tricks; the mean of the posterior of Z."""
    graph = load_model(MODELS / model)
    log_z = log_partition_function(graph)
    found = perturbed_maxima(graph, samples, seed)
    x = found.values - log_z
    squares = (x - x.mean()) ** 2
    deviation = math.sqrt(squares.mean() / samples), squares.std() / math.sqrt(samples)
    distance = DISTANCE / math.sqrt(samples)
    numbers = [
        ("ln Z", log_z, 0.0),
        ("mean - ln Z", x.mean(), deviation[0]),
        ("variance", squares.mean(), deviation[1]),
        ("Kolmogorov distance", _kolmogorov(x), distance),
        ("distance of the configurations", _from_p(graph, log_z, found.states), distance),
        *(_mean_of_g(found.values, log_z, name, trick) for name, trick in _tricks(log_z).items()),
        ("posterior mean over estimate", _posterior_mean(found.values[:FEW], log_z), 0.0),
    ]
    statistics = pd.DataFrame(numbers, columns=["statistic", "value", "standard_error"])
    quantiles = pd.DataFrame({"statistic": "quantile", "level": LEVELS, "value": np.quantile(x, LEVELS)})
    frame = pd.concat([statistics, quantiles])[["statistic", "level", "value", "standard_error"]]
    frame.insert(0, "model", model)
    frame.insert(1, "samples", samples)
    return frame


def _from_p(graph, log_z, states):
    """Kolmogorov distance of configurations to p, in the order of enumeration."""
    phi = np.concatenate([block.copy() for block in Enumeration(graph).blocks()])
    shares = np.bincount(states, minlength=phi.size) / states.size
    return np.abs(np.cumsum(shares - np.exp(phi - log_z))).max()


def _tricks(log_z):
    tricks = {f"T^{alpha:g}": power(alpha) for alpha in (-0.2, 0.5, 1.0, 2.0)}
    return {**tricks, "T > 1/Z": tail(-log_z)}


def _mean_of_g(values, log_z, name, trick):
    """Mean over the MAP values of g(e^-c exp(-value)), over f(Z)."""
    ratio = trick.g(np.exp(-np.euler_gamma - values)) / trick.mean(np.exp(log_z))
    return f"mean of {name}", ratio.mean(), ratio.std() / math.sqrt(values.size)


def _posterior_mean(values, log_z):
    """Mean of Z under prior times likelihood, 1/Z times the product of Z exp(-Z T), by quadrature,
    over the Exponential trick's estimate."""
    times = np.exp(-np.euler_gamma - (values - log_z))  # in units of 1/Z
    grid = np.linspace(0, 6, 60_001)[1:] / times.mean()
    weights = np.exp(times.size * np.log(grid / grid[-1]) - (grid - grid[0]) * times.sum()) / grid
    estimate = np.exp(power(1.0).estimate_log_z(-np.euler_gamma - values) - log_z)
    return (weights * grid).sum() / weights.sum() / float(estimate)


def _kolmogorov(x):
    """Largest distance between the empirical distribution function and that of Gumbel(-c)."""
    f = np.exp(-np.exp(-np.sort(x) - np.euler_gamma))
    n = np.arange(x.size)
    return max((f - n / x.size).max(), ((n + 1) / x.size - f).max())


def plot(frame):
    figure, axes = panels(1, 2, height=2.8)
    for colour, (name, rows) in zip(COLOURS, frame.groupby("model", sort=False), strict=False):
        rows = rows.set_index("statistic")
        points = rows.loc["quantile"]
        theory = -np.log(-np.log(points.level)) - np.euler_gamma
        axes[0].plot(theory, points.value - theory, color=colour, label=name)
        variance = rows.loc[["variance"]].assign(name=name.split(".")[0])
        marks(axes[1], variance, "name", "o", color=colour, capsize=2)
    spread = np.sqrt(LEVELS * (1 - LEVELS) / frame.samples.iloc[0]) / (-LEVELS * np.log(LEVELS))
    theory = -np.log(-np.log(LEVELS)) - np.euler_gamma
    band = {"color": "#999999", "alpha": 0.3, "linewidth": 0, "label": "2 std. errors"}
    axes[0].fill_between(theory, -2 * spread, 2 * spread, **band)
    axes[0].axhline(0, color="black", linewidth=0.6)
    label(axes[0], "quantile of Gumbel$(-c)$, nats", "empirical quantile minus it, nats", r"MAP value minus $\ln Z$")
    axes[0].legend()
    axes[1].margins(x=0.12)
    axes[1].axhline(math.pi**2 / 6, color="black", linewidth=0.6, label=r"$\pi^2/6$")
    label(axes[1], "", "variance of a MAP value, nats$^2$", "variance, two standard errors")
    axes[1].legend()
    return figure


DEVIATION = math.sqrt(polygamma(3, 1) + 2 * (math.pi**2 / 6) ** 2)
"""Standard error of the variance of one Gumbel variable, by its cumulants: sqrt(kappa_4 + 2 kappa_2^2)."""
VARIANCE = select(statistic="variance").number("value", lambda found: DEVIATION / found.samples**0.5)
TOLD_APART = 0.035
"""Half of the Kolmogorov distance, 0.071, of the Gumbel law to the normal one with its mean and
variance; a Z that is a tenth too large gives as much."""

CAPTION = (
    "MAP values of four models under independent Gumbel noise on every configuration, less the exact ln Z. Left: "
    "empirical quantiles minus those of Gumbel(-c), against the latter, with a band of two standard errors. Right: "
    "variance of a MAP value, with two standard errors, and pi^2/6 (line). The source states both for any model and "
    "has no figure."
)

# fmt: off
CLAIMS = [
    Claim("distribution", "Thesis eq. 2.1'", "identity", "=", 0.0, select(statistic="Kolmogorov distance").furthest(),
        "MAP values under full-rank Gumbel noise are Gumbel(-c + ln Z) (Kolmogorov distance, largest of four "
        "models)", scale=TOLD_APART),
    Claim("mean", "Thesis 2.2.1, eq. 2.1'", "identity", "=", 0.0, select(statistic="mean - ln Z").furthest(),
        "the mean MAP value is ln Z (difference, nats, furthest from 0 of four models)", scale=0.1),
    Claim("variance", "Thesis 2.2.3: 'all estimator properties only depend on the true value'; 2.4: 'First'",
        "identity", "=", math.pi**2 / 6, VARIANCE.furthest(math.pi**2 / 6),
        "the variance of the Gumbel trick depends neither on Z nor on the structure of the model: it is pi^2/6 a "
        "sample (variance of a MAP value, nats^2, the furthest from pi^2/6 of four models)"),
    Claim("configurations", "Thesis eq. 2.2'", "identity", "=", 0.0,
        select(statistic="distance of the configurations").furthest(),
        "the maximising configuration is distributed as p (largest difference of the distribution functions over "
        "the configurations in their order, of four models)", scale=TOLD_APART),
    Claim("Proposition 1", "Thesis Proposition 1, eq. 2.3", "identity", "=", 1.0,
        select("statistic.str.startswith('mean of ')").furthest(1.0),
        "the mean of g(e^-c exp(-MAP value)) is f(Z), for g(T) = T^alpha, alpha = -0.2, 0.5, 1 and 2, and the "
        "indicator of T > 1/Z (ratio, furthest from 1 of four models)"),
    Claim("posterior mean", "Thesis eq. 2.5, eq. 2.6", "identity", "=", 1.0,
        select(statistic="posterior mean over estimate").most_off(1.0, error=1e-6, weakest=False),
        "under the prior 1/Z the mean of the posterior of Z, by quadrature, is the Exponential trick's estimate "
        f"(ratio, M = {FEW}, the furthest from 1 of four models)", scale=1e-3),
]
# fmt: on

EXPERIMENT = Experiment(
    id="full-rank-models",
    title="Full-rank MAP values of four models are Gumbel(ln Z - c)",
    source="Thesis 2.2.1, 2.2.2, 2.2.4, 2.4",
    version=2,
    presets={"quick": {"samples": 2_000}, "paper": {"samples": 50_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    # ln Z of a Bayesian network is 0.
    tolerances={"value": Tolerance(absolute=1e-12)},
    claims=CLAIMS,
    caption=CAPTION,
)
