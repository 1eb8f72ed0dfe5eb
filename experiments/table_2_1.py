"""Table 2.1: mean, variance and asymptotic variance of every trick, measured by Monte Carlo."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, panels
from thesis_cli.perturbation.tricks import gumbel, pareto, power, tail
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement

# At these parameters the fourth moment of g(T) is finite: measured variances have error bars.
TRICKS = {
    "gumbel": gumbel(),
    "exponential": power(1.0),
    "weibull(0.5)": power(0.5),
    "weibull(2)": power(2.0),
    "frechet(-0.2)": power(-0.2),
    "pareto": pareto(),
    "tail(0.2)": tail(math.log(0.2)),
}
QUANTITIES = ("mean", "variance", "asymptotic variance")
BLOCK = 2**20


def tasks(settings):
    return [
        {"trick": name, "z": z, "estimators": settings["estimators"], "samples": settings["samples"]}
        for name in TRICKS
        for z in settings["z"]
    ]


def run(seed, trick, z, estimators, samples):
    """Mean and variance of g(T) over all estimators x samples clocks, and M var(Z^), the last
    column of the table."""
    row = TRICKS[trick]
    at = np.float64(z)
    printed = [row.mean(at), row.printed_variance(at), row.printed_asymptotic_variance(at)]
    corrected = [row.mean(at), row.variance(at), row.asymptotic_variance(at)]
    measured, errors = [math.nan] * 3, [math.nan] * 3
    if np.isfinite(corrected[1]):
        measured, errors = _measure(np.random.default_rng(seed), row, at, estimators, samples)
    if trick == "pareto" and z <= 4:
        errors[1] = math.inf  # E g(T)^4 is infinite
    return pd.DataFrame(
        {
            "trick": trick,
            "z": z,
            "quantity": QUANTITIES,
            "printed": printed,
            "corrected": corrected,
            "measured": measured,
            "standard_error": errors,
        }
    )


def _measure(rng, row, z, estimators, samples):
    """Mean and variance of g(T), and M var(Z^), with their standard errors."""
    centre = row.mean(z)
    moments = np.zeros(4)
    estimates = []
    rows = max(1, BLOCK // samples)
    for start in range(0, estimators, rows):
        t = rng.standard_exponential((min(rows, estimators - start), samples)) / z
        deviation = row.g(t) - centre
        moments += [(deviation**k).sum() for k in (1, 2, 3, 4)]
        estimates.append(np.exp(row.estimate_log_z(np.log(t))))
    count = estimators * samples
    m1, m2, m3, m4 = moments / count
    variance = m2 - m1**2
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    z_hat = np.concatenate(estimates)
    spread = (z_hat - z_hat.mean()) ** 2
    return (
        [centre + m1, variance, samples * spread.mean()],
        [
            math.sqrt(variance / count),
            math.sqrt((fourth - variance**2) / count),
            samples * spread.std() / math.sqrt(estimators),
        ],
    )


def plot(frame):
    """Ratios; a mean of 0 (Gumbel at Z = 1) and infinite moments (Pareto at small Z) have none."""
    figure, axes = panels(1, 3, height=3.4)
    names = list(TRICKS)
    zs = sorted(frame.z.unique())
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        ax.axhline(1, color="black", linewidth=0.6)
        for k, z in enumerate(zs):
            part = frame[(frame.quantity == quantity) & (frame.z == z)].set_index("trick").reindex(names)
            x = np.arange(len(names)) + (k - (len(zs) - 1) / 2) * 0.14
            ax.plot(x, part.printed / part.corrected, "_", color=COLOURS[k], markersize=8, markeredgewidth=1.5)
            seen = np.isfinite(part.measured)
            ratio, error = part.measured / part.corrected, (part.standard_error / part.corrected).abs()
            ax.errorbar(
                x[seen],
                ratio[seen],
                yerr=2 * error[seen].where(np.isfinite(error), 0),
                fmt="o",
                color=COLOURS[k],
                label=f"$Z$ = {z:g}",
            )
        ax.set_xticks(range(len(names)), names, rotation=60, ha="right")
        ax.set_title(quantity)
    axes[2].set_yscale("log")
    axes[0].set_ylabel("measured over corrected, two standard errors")
    axes[0].plot([], [], "_", color="#555555", markersize=8, markeredgewidth=1.5, label="printed over corrected")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=6)
    return figure


def _ratio(trick, quantity, z=5.0):
    """measured / printed."""

    def measure(frame):
        row = frame[(frame.trick == trick) & (frame.quantity == quantity) & (frame.z == z)]
        if row.empty:
            return None
        row = row.iloc[0]
        return Measurement(row.measured / row.printed, abs(row.standard_error / row.printed))

    return measure


def _least_constant(frame):
    """Least M var(Z^) / Z^2 over the Weibull and Frechet tricks and all Z."""
    rows = frame[frame.trick.str.contains("weibull|frechet") & (frame.quantity == "asymptotic variance")]
    if rows.empty:
        return None
    constants = rows.measured / rows.z**2
    return Measurement(constants.min(), (rows.standard_error / rows.z**2)[constants.idxmin()])


FINDINGS = {
    ("pareto", "asymptotic variance"): "Table 2.1, Pareto",
    ("tail(0.2)", "asymptotic variance"): "Table 2.1, Tail",
}

EXPERIMENT = Experiment(
    id="table-2-1",
    title="New tricks: mean, variance and asymptotic variance, as printed, as corrected, as measured",
    source="Thesis Table 2.1",
    version=1,
    presets={
        "quick": {"z": [1, 5], "estimators": 2000, "samples": 500},
        "paper": {"z": [0.1, 1, 3, 5, 10], "estimators": 20_000, "samples": 2000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        *(
            Claim(
                id=f"{trick} {quantity}",
                source="Thesis Table 2.1",
                statement=f"{trick}: the printed {quantity} is what is measured at Z = 5 (ratio)",
                published=1.0,
                relation="=",
                measure=_ratio(trick, quantity),
                finding=FINDINGS.get((trick, quantity), ""),
            )
            for trick in TRICKS
            for quantity in QUANTITIES
        ),
        Claim(
            id="constant at least 1",
            source="Thesis 2.2.3",
            statement="no Weibull or Frechet trick has an asymptotic variance below the Exponential trick's Z^2",
            published=1.0,
            relation=">",
            measure=_least_constant,
        ),
    ],
)
