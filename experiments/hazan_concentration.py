"""Figure 8: the error of sample means of perturb-max values on large spin glasses, and their variance."""

import math

import numpy as np

from thesis_cli.base.figures import COLOURS, label, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.studies.perturbation.concentration import deviation
from thesis_cli.studies.perturbation.sample_means import COUNTS, MAXIMUM, NOISE, PRESETS, rows_of, run, tasks

NORMAL_95 = 1.959964


def plot(frame):
    figure, axes = panels(1, 3, height=2.9)
    for ax, function in zip(axes, (NOISE, MAXIMUM), strict=False):
        for colour, count in zip(COLOURS, COUNTS, strict=False):
            marks(ax, rows_of(frame, function, "error", count), "coupling", color=colour, label=f"$M$ = {count}")
        ax.set_ylim(bottom=0)
        label(ax, "coupling $c$, nats", "mean |error| of the sample mean, nats", function)
    axes[1].legend(loc="lower left")
    for colour, function in zip(COLOURS[3:], (NOISE, MAXIMUM), strict=False):
        marks(axes[2], rows_of(frame, function, "variance"), "coupling", color=colour, label=function)
    axes[2].axhline(4, color="black", linestyle=":", label="Corollary 8")
    axes[2].axhline(math.pi**2 / 6, color="black", linestyle="--", linewidth=0.8, label=r"$\pi^2/6$")
    axes[2].set_ylim(0, 4.4)
    axes[2].legend(loc="lower left")
    label(axes[2], "coupling $c$, nats", "variance per variable, nats$^2$", "variance of one value")
    return figure


def _variance(function, unit):
    """The variance of a value over its unit that exceeds 1 by most standard errors."""
    return select(function=function, quantity="variance").per(unit).lowest(1.0, sign=-1)


def _width(frame):
    """Interval of IV-E over that of the normal law, 95 % and M = 10, the maximum, narrowest."""
    rows = rows_of(frame, MAXIMUM, "variance")
    n = rows.terms.to_numpy()
    stated = np.array([deviation(math.sqrt(k), 10, 0.95) for k in n])
    ratio = stated / (NORMAL_95 * np.sqrt(rows.value * n / 10))
    errors = ratio * rows.standard_error / rows.value / 2
    return Measurement(ratio.min(), errors[ratio.idxmin()], weakest=errors.max())


VARIANCES = [select(function=function, quantity="variance") for function in (NOISE, MAXIMUM)]


def rounded(row):
    """Difference quotients lose digits."""
    return Tolerance(relative=1e-5) if row["quantity"] == "squared gradient" else None


H, OWN = "Hazan et al. V, Figure 8", "this project"
GRADIENT = "Hazan et al. IV-E: 'Thus the gradient satisfies'"
INTERVALS = "Hazan et al. IV-E: 'the best concentration of these two bounds'"
NOT_SAME = "Hazan et al. IV-E, concentration of the entropy bound"
WELL = Reading("well: the mean error is below a quarter of the expectation", 0.0)

CAPTION = """\
Attractive spin glasses of 100 x 100 variables, fields from [-1, 1], 10 models for each coupling \
strength with 1,000 samples each. Left: the mean |error| of sample means of M values of the noise at \
the maximiser (the entropy bound), with two standard errors, which is the source's figure. Middle: \
the same for the perturbed maximum (the bound on ln Z), whose concentration the source calls the \
same. Right: the variance of one value of both, with the bound of Corollary 8 and the largest \
variance that a maximum can have. The source has one model and 100 samples for each coupling."""

# fmt: off
CLAIMS = [
    Claim("gradients", H, "identity", "=", 1.0,
        select(quantity="squared gradient").number("value").most_off(1.0, error=1e-5),
        "both bounds have the same gradient by the noise: its square is the number of variables almost everywhere "
        "(square over n by difference quotients, 10 x 10 variables, the furthest from 1 of both functions)"),
    Claim("steepness, maximum", GRADIENT, "bound", "<", 1.0,
        select(function=MAXIMUM, quantity="steepness").number("value").largest(),
        "the maximum changes by at most a = sqrt(n) times the length of a move of the noise (largest ratio)"),
    Claim("steepness, noise", "Hazan et al. IV-E: 'The (sub)gradient of these functions is structured'",
        "bound", "<", 1.0,
        select(function=NOISE, quantity="steepness").number("value").largest(),
        "the noise at the maximiser meets the condition of the corollaries that are applied to it: it changes by at "
        "most a = sqrt(n) times the length of a move of the noise (largest ratio)", finding=NOT_SAME,
        tag="substantive", weight=7),
    Claim("same concentration", H, "comparison", "=", 1.0,
        VARIANCES[0].over(VARIANCES[1], "coupling").furthest(1.0),
        "the concentration properties of the entropy bound and the log-partition bound are the same (variance of "
        "the noise at the maximiser over that of the maximum, the coupling where it is furthest from 1)",
        finding=NOT_SAME, tag="substantive", weight=7),
    Claim("Corollary 8", "Hazan et al. Corollary 8", "bound", "<", 1.0, _variance(MAXIMUM, 4.0),
        "the variance of the maximum is at most 4n (ratio, the largest in its errors)"),
    Claim("Corollary 8, noise", GRADIENT, "comparison", "<", 1.0, _variance(NOISE, 4.0),
        "the variance of the noise at the maximiser, which Corollary 8 does not cover, is at most 4n on these models "
        "(ratio, the largest in its errors)"),
    Claim("variance of the maximum", OWN, "bound", "<", 1.0, _variance(MAXIMUM, math.pi**2 / 6),
        "the variance of the maximum is at most n pi^2/6 (ratio, the largest in its errors)", scale=0.1),
    Claim("Figure 8, rapidly", f"beside {H}: 'The error reduces rapidly'", "comparison", "<", 0.5,
        select(quantity="error", count=10).over(select(quantity="error", count=1), "coupling", "function").largest(),
        "the error falls to less than half as M increases, as that of any mean of draws with a finite variance does "
        "(mean error with M = 10 over that with M = 1, the largest of all couplings and both functions)"),
    Claim("Figure 8, ten samples", H, "comparison", "<", 0.25,
        select(function=NOISE, quantity="relative error", count=10).largest(weakest=False),
        "10 samples are enough to estimate the expectation of the entropy bound well (mean error over expectation, "
        "at the coupling where it is largest)", reading=WELL),
    Claim("Figure 8, ten samples, c <= 2", H, "comparison", "<", 0.25,
        select(function=NOISE, quantity="relative error", count=10).where("coupling <= 2").largest(weakest=False),
        "10 samples are enough to estimate the expectation of the entropy bound well at c up to 2 (mean error over "
        "expectation, the largest)", reading=WELL),
    Claim("Figure 8, log-partition bound", H, "comparison", "<", 0.25,
        select(function=MAXIMUM, quantity="relative error", count=10).largest(weakest=False),
        "10 samples are enough to estimate the expectation of the log-partition bound well (mean error over "
        "expectation, at the coupling where it is largest)", reading=WELL),
    Claim("intervals", INTERVALS, "bound", "<", 0.5,
        select(function=MAXIMUM, quantity="outside", at=0.5).lowest(0.5, sign=-1),
        "the deviation of the maximum is within the better of the two double-sided bounds with the stated "
        "probability (share outside at delta = 0.5, the largest)"),
    Claim("intervals, noise", INTERVALS, "comparison", "<", 0.5,
        select(function=NOISE, quantity="outside", at=0.5).lowest(0.5, sign=-1),
        "the deviation of the noise at the maximiser is within the better of the two double-sided bounds with the "
        "stated probability on these models (share outside at delta = 0.5)"),
    Claim("width of intervals", OWN, "comparison", ">", 3.0, _width,
        "the better of the two bounds is more than three times as wide as the interval of the normal law (95 %, M "
        "= 10, the maximum, at the coupling where the ratio is least)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-concentration",
    title="Error of the sample mean of perturb-max values on 100 x 100 spin glasses",
    source="Hazan et al. Figure 8",
    version=1,
    presets=PRESETS,
    tasks=tasks,
    run=run,
    plot=plot,
    rows=rounded,
    caption=CAPTION,
    claims=CLAIMS,
)
