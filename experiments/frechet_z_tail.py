"""The tail of the Frechet tricks' estimators of Z, whose MSE is infinite (Figure 2.2, left, shows
samples of it)."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.perturbation.tricks.tricks import power
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.reproduction.measuring import measure, select

THRESHOLDS = np.geomspace(1, 1000, 31)
BLOCK = 2**18


def tasks(settings):
    return [
        {"alpha": alpha, "samples": m, "estimators": settings["estimators"]}
        for alpha in settings["alpha"]
        for m in settings["samples"]
    ]


def run(seed, alpha, samples, estimators):
    """P(Z^ > z) at Z = 1, and a lower bound that makes the mean infinite.

    Z^ = (mean of T^alpha / Gamma(1 + alpha))^(-1/alpha) >= C / (M min T), C = M (M Gamma(1 +
    alpha))^(1/alpha), and M min T ~ Exp(1), so that P(Z^ > z) >= 1 - exp(-C / z). Above alpha = 0
    there is no such bound.
    """
    rng = np.random.default_rng(seed)
    trick = power(alpha)
    above = np.zeros(THRESHOLDS.size)
    for start in range(0, estimators, BLOCK):
        t = rng.standard_exponential((min(BLOCK, estimators - start), samples))
        z_hat = np.sort(np.exp(trick.estimate_log_z(np.log(t))))
        above += z_hat.size - np.searchsorted(z_hat, THRESHOLDS, side="right")
    p = above / estimators
    c = samples * (samples * math.gamma(1 + alpha)) ** (1 / alpha) if alpha < 0 else 0.0
    return pd.DataFrame(
        {
            "alpha": alpha,
            "samples": samples,
            "z": THRESHOLDS,
            "probability": p,
            "standard_error": np.sqrt(p * (1 - p) / estimators),
            "bound": -np.expm1(-c / THRESHOLDS),
        }
    )


def plot(frame):
    figure, ax = panels(1, 1, height=3.3)
    for colour, (alpha, rows) in zip(COLOURS, frame.groupby("alpha"), strict=False):
        m = rows.samples.iloc[0]
        seen = rows[rows.probability > 0]
        y, error = seen.z * seen.probability, seen.z * seen.standard_error
        ax.loglog(seen.z, y, "o-", color=colour, label=rf"$\alpha$ = {alpha:g}, $M$ = {m}")
        ax.fill_between(seen.z, np.maximum(y - 2 * error, y / 10), y + 2 * error, color=colour, alpha=0.25, linewidth=0)
        if alpha < 0:
            ax.loglog(rows.z, rows.z * rows.bound, "--", color=colour, linewidth=0.8)
    ax.plot([], [], "--", color="#555555", label=r"bound below, which makes $\hat Z$'s mean infinite")
    label(ax, "$z$, in units of $Z$", r"$z\,P(\hat Z > z)$", r"tail of the estimators of $Z$")
    return legend_below(figure, ax, 2)


@measure
def _tail_index(frame, alpha):
    """The tail index -d ln P / d ln z between z = 32 and z = 316."""
    ends = [select(f"{z - 1} < z < {z + 1}", alpha=alpha) for z in (32, 316)]
    low, high = (end(frame).iloc[0] for end in ends)
    if high.probability == 0:
        return None
    width = math.log(high.z / low.z)
    error = math.hypot(high.standard_error / high.probability, low.standard_error / low.probability)
    return Measurement(math.log(low.probability / high.probability) / width, error / width)


CAPTION = (
    "z P(Z^ > z) against z, for estimators of Z = 1 from M = 4 samples by two Frechet tricks and a Weibull trick, "
    "with bands of two standard errors; the Weibull trick's curve ends where none of the estimates is larger. A level "
    "curve means that Z^ has no mean; dashed lines are lower bounds, which stay level. The left panel of the source's "
    "Figure 2.2 shows the MSE of such estimators as if it were finite."
)

# fmt: off
CLAIMS = [
    Claim("finite MSE", "Thesis 2.2.3, Figure 2.2", "comparison", ">", 2.0, _tail_index(-0.4),
        "a Frechet trick with -1/2 < alpha < 0 estimates Z with a finite MSE, which takes a tail index above 2 "
        "(index -d ln P(Z^ > z) / d ln z for z from 32 to 316; alpha = -0.4, M = 4)",
        finding="2.2.3, Frechet tricks on Z", tag="substantive", weight=6),
    Claim("infinite mean", "this project", "bound", ">", 1.0,
        select("315 < z < 317", alpha=-0.4).number("probability", "standard_error").per("bound").read(),
        "P(Z^ > z) >= 1 - exp(-C/z), C = M (M Gamma(1 + alpha))^(1/alpha), so Z^ has no mean (left side over right "
        "side at z = 316, alpha = -0.4)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="frechet-z-tail",
    title="The Frechet tricks' estimators of Z have no mean",
    source="beside Thesis Figure 2.2",
    version=1,
    presets={
        "quick": {"alpha": [-0.4, -0.3, 0.3], "samples": [4], "estimators": 1_000_000},
        "paper": {"alpha": [-0.4, -0.3, 0.3], "samples": [4], "estimators": 30_000_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=CLAIMS,
    caption=CAPTION,
)
