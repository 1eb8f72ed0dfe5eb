"""Figure 2.1: analytic MSE and variance of the Gumbel and Exponential tricks, checked by
simulation."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.perturbation.tricks.tricks import (
    exponential_log_z_error,
    exponential_z_error,
    gumbel,
    gumbel_log_z_error,
    gumbel_z_error,
    power,
)
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading
from thesis_cli.reproduction.measuring import measure, select

ANALYTIC = {
    ("Z", "gumbel"): gumbel_z_error,
    ("Z", "exponential"): exponential_z_error,
    ("lnZ", "gumbel"): gumbel_log_z_error,
    ("lnZ", "exponential"): exponential_log_z_error,
}
TRICKS = {"gumbel": gumbel(), "exponential": power(1.0)}
SIMULATED_SAMPLES = (5, 10, 30, 100)  # from M = 5 on, a measured variance of Z^ has an error bar
BLOCK = 2**20
# name: (target, quantity of the Exponential trick that divides the Gumbel trick's MSE, first M)
LEAST_RATIOS = {
    "least MSE ratio": ("Z", "mse", 3),
    "least MSE ratio on ln Z": ("lnZ", "mse", 2),
    "least MSE ratio on ln Z, debiased": ("lnZ", "variance", 2),
}


def tasks(settings):
    simulated = [
        {"method": "simulated", "trick": trick, "samples": m, "estimators": settings["estimators"]}
        for trick in TRICKS
        for m in SIMULATED_SAMPLES
    ]
    return [{"method": "analytic", "most": settings["most"]}, *simulated]


def run(seed, method, **parameters):
    if method == "analytic":
        return _analytic(**parameters)
    return _simulated(np.random.default_rng(seed), **parameters)


def _analytic(most):
    m = np.unique(np.r_[1:101, np.geomspace(100, most, 101).round()]).astype(float)
    frames = []
    for target, trick in ANALYTIC:
        columns = _errors(target, trick, m)
        frames += [_rows("analytic", target, trick, m, name, values) for name, values in columns.items()]
    every = np.arange(1.0, most + 1)
    for name, (target, quantity, least) in LEAST_RATIOS.items():
        top, bottom = _errors(target, "gumbel", every)["mse"], _errors(target, "exponential", every)[quantity]
        ratio = (top[least - 1 :] / bottom[least - 1 :]).min()
        frames.append(_rows("every M", target, "gumbel over exponential", least, name, ratio))
    first = m > 1
    # The squared biases as printed; correct are their square (Gumbel) and 1/(M-1)^2 (Exponential).
    gumbel_bias, _ = gumbel_z_error(m[first])
    printed = {"gumbel": gumbel_bias, "exponential": 1 / (m[first] - 1)}
    frames += [_rows("as printed", "Z", t, m[first], "bias", np.sqrt(b)) for t, b in printed.items()]
    return pd.concat(frames)


def _errors(target, trick, m):
    bias, variance = ANALYTIC[target, trick](m)
    return {"bias": bias, "variance": variance, "mse": bias**2 + variance}


def _simulated(rng, trick, samples, estimators):
    """Bias and variance of `estimators` estimates, each from a set of ringing times T ~ Exp(1), so
    that Z = 1."""
    rows = max(1, BLOCK // samples)
    log_z = np.concatenate(
        [
            TRICKS[trick].estimate_log_z(np.log(rng.standard_exponential((min(rows, estimators - start), samples))))
            for start in range(0, estimators, rows)
        ]
    )
    frames = []
    for target, error in (("Z", np.expm1(log_z)), ("lnZ", log_z)):
        squares = (error - error.mean()) ** 2
        for name, values in (("bias", error), ("variance", squares), ("mse", error**2)):
            frames.append(
                _rows("simulated", target, trick, samples, name, values.mean(), values.std() / math.sqrt(estimators))
            )
    return pd.concat(frames)


def _rows(method, target, trick, m, quantity, values, error=0.0):
    return pd.DataFrame(
        {
            "method": method,
            "target": target,
            "trick": trick,
            "samples": np.atleast_1d(m).astype(int),
            "quantity": quantity,
            "value": np.atleast_1d(values),
            "standard_error": error,
        }
    )


def _curve(frame, method, target, trick, quantity):
    return select(method=method, target=target, trick=trick, quantity=quantity)(frame).set_index("samples")


def plot(frame):
    figure, axes = panels(1, 2, height=2.8)
    for ax, target in zip(axes, ("Z", "lnZ"), strict=True):
        for colour, trick in zip(COLOURS, TRICKS, strict=False):
            for quantity, style in (("mse", "-"), ("variance", "--")):
                curve = _curve(frame, "analytic", target, trick, quantity).value
                curve = curve[np.isfinite(curve)]
                name = f"{trick.capitalize()}, {quantity.replace('mse', 'MSE')}"
                ax.loglog(curve.index, curve, style, color=colour, label=name)
            points = _curve(frame, "simulated", target, trick, "mse")
            ax.plot(points.index, points.value, "o", color=colour, label=f"{trick.capitalize()}, MSE simulated")
        unit = "in units of $Z^2$" if target == "Z" else "in nats$^2$"
        name = "$Z$" if target == "Z" else r"$\ln Z$"
        label(ax, "number of samples $M$", f"MSE and variance, {unit}", f"estimators of {name}")
    axes[0].legend()
    return figure


def _mse_ratio(frame, target, quantity="mse"):
    """Error of the Gumbel trick over that of the Exponential trick, by M."""
    top = _curve(frame, "analytic", target, "gumbel", "mse").value
    return top / _curve(frame, "analytic", target, "exponential", quantity).value


def _least(name):
    return select(method="every M", quantity=name).read(error=ROUNDING)


def _limit_of_ratio(frame):
    """The MSE ratio on Z as M grows: a + b / M from two M, and what b / M^2 adds, as a bound."""
    ratio = _mse_ratio(frame, "Z")
    m2 = ratio.index[-1]
    m1 = ratio.index[np.abs(ratio.index - m2 / 4).argmin()]
    limit = (m2 * ratio[m2] - m1 * ratio[m1]) / (m2 - m1)
    return Measurement(limit, error=abs(limit - ratio[m2]))


def _at_one(quantity):
    """MSE ratio on ln Z at M = 1, without its last digits: they decide where the two are equal."""
    return lambda frame: Measurement(round(_mse_ratio(frame, "lnZ", quantity).loc[1], 12))


def _samples_needed(frame, goal, trick):
    """M at which a trick's MSE of Z is the goal; a power law from one M to the next."""
    curve = _curve(frame, "analytic", "Z", trick, "mse").value.loc[3:]
    return float(np.exp(np.interp(-np.log(goal), -np.log(curve), np.log(curve.index))))


def _fewer_samples(frame):
    """Share of the samples that the Exponential trick saves, at the Gumbel trick's MSE at the
    largest M."""
    curve = _curve(frame, "analytic", "Z", "gumbel", "mse").value
    return Measurement(1 - _samples_needed(frame, curve.iloc[-1], "exponential") / curve.index[-1], error=1e-4)


@measure
def _more_samples(frame, m):
    """Relative growth of M that takes the Gumbel trick's MSE of Z down to the Exponential trick's
    at m."""
    goal = _curve(frame, "analytic", "Z", "exponential", "mse").value[m]
    if _curve(frame, "analytic", "Z", "gumbel", "mse").value.iloc[-1] > goal:
        return None
    return Measurement(_samples_needed(frame, goal, "gumbel") / m - 1, error=1e-4)


def _agreement(quantity):
    """Simulated over analytic, or simulated minus analytic for the bias, furthest from the expected."""
    by = "target", "trick", "samples"
    drawn, true = (select(method=method, quantity=quantity) for method in ("simulated", "analytic"))
    return drawn.less(true, *by).furthest() if quantity == "bias" else drawn.over(true, *by).furthest(1.0)


ROUNDING = 1e-9
"""Bound of the rounding error of a ratio of MSEs."""
BIAS_AT_5 = select(method="simulated", target="Z", quantity="bias", samples=5)
VARIANCE, MSE = (select(method="analytic", quantity=quantity) for quantity in ("variance", "mse"))
FINITE_SHARES = VARIANCE.over(MSE, "target", "trick", "samples").where("value > 0")
M5_GUMBEL = math.sqrt(math.gamma(0.8) ** 5 * math.exp(-np.euler_gamma) - 1)

CAPTION = (
    "MSE (solid) and variance (dashed) of the Gumbel and Exponential tricks' estimators of Z (left) and ln Z (right), "
    "by the formulas of A.1, against the number of samples M; Z has no finite MSE below M = 3. Dots are MSEs of "
    "simulated estimators; their error bars, two standard errors, are smaller than the dots. The source's figure has "
    "the same curves without the dots; biases are small, so that dashed and solid lines nearly coincide."
)

# fmt: off
CLAIMS = [
    Claim("limit of the ratio", "Thesis 2.2.3: 'The ratio of MSEs quickly approaches'",
        "identity", "=", math.pi**2 / 6, _limit_of_ratio,
        "on Z, the ratio of the Gumbel trick's MSE to the Exponential trick's approaches pi^2/6 (ratio, "
        "extrapolated to infinite M)", scale=0.01),
    Claim("better from M = 3", "Thesis 2.2.3: 'in terms of MSE for all sample sizes'",
        "comparison", ">", 1.0, _least("least MSE ratio"),
        "on Z, the Exponential trick has the lower MSE for every M from 3 to 10,000 (Gumbel trick's MSE over it, "
        "the least)"),
    Claim("39% fewer samples", "Thesis 2.2.3: 'fewer samples than the Gumbel trick to reach the same MSE'",
        "published", "=", 0.39, _fewer_samples,
        "on Z, where the ratio is close to its limit, the Exponential trick needs 39% fewer samples for the Gumbel "
        "trick's MSE at M = 10,000 (share saved)", rounding=0.005, scale=0.01, printed="39%"),
    Claim("45% more samples", "Thesis A.1.1: 'requires roughly 45% more samples'",
        "published", "=", 0.45, _more_samples(1000),
        "on Z, the Gumbel trick needs roughly 45% more samples for the Exponential trick's MSE, read off the curves "
        "(share added, at M = 1,000)", finding="A.1.1, 45% more samples", tag="reading", weight=4, scale=0.1,
        printed="45%", reading=Reading("roughly: within five percentage points", 0.05)),
    Claim("ln Z from M = 2", "Thesis 2.2.3, A.1.2: 'provides a lower MSE estimator for sample sizes'",
        "comparison", ">", 1.0, _least("least MSE ratio on ln Z"),
        "on ln Z, the Exponential trick has the lower MSE for every M from 2 to 10,000 (Gumbel trick's MSE over "
        "it, the least)"),
    Claim("ln Z at M = 1", "Thesis 2.2.3, A.1.2: 'only for M = 1 the Gumbel trick provides a better estimator'",
        "comparison", "<", 1.0, _at_one("mse"),
        "on ln Z, the Gumbel trick has the lower MSE at M = 1 (its MSE over the Exponential trick's)"),
    Claim("ln Z debiased, M = 1", "Thesis 2.2.3, A.1.2: 'would then always outperform'",
        "comparison", ">", 1.0, _at_one("variance"),
        "on ln Z, the debiased Exponential trick outperforms the Gumbel trick even at M = 1 (Gumbel trick's MSE "
        "over its MSE)", finding="2.2.3, debiased Exponential trick at M = 1", tag="slip", weight=3),
    Claim("ln Z debiased, M >= 2", "Thesis 2.2.3: 'would then always outperform'", "comparison", ">", 1.0,
        _least("least MSE ratio on ln Z, debiased"),
        "on ln Z, the debiased Exponential trick has the lower MSE for all M from 2 to 10,000 (Gumbel trick's MSE "
        "over it, the least)"),
    Claim("dominated by the variance", "Thesis Figure 2.1, caption", "comparison", ">", 0.5,
        FINITE_SHARES.least(error=ROUNDING),
        "the MSEs are dominated by the variance: it is more than half of them (least share, at any M)"),
    Claim("Gumbel bias of Z", "Thesis A.1.1, Gumbel trick, formula for the squared bias",
        "identity", "=", M5_GUMBEL, BIAS_AT_5.where(trick="gumbel").read(),
        "the root of the Gumbel trick's squared bias on Z, as printed, is the simulated bias (at M = 5)",
        finding="A.1.1, bias of the Gumbel trick", tag="slip", weight=4),
    Claim("Exponential bias of Z", "Thesis A.1.1, Exponential trick, formula for the squared bias",
        "identity", "=", 0.5, BIAS_AT_5.where(trick="exponential").read(),
        "the root of the Exponential trick's squared bias on Z, as printed, is the simulated bias (at M = 5)",
        finding="A.1.1, bias of the Exponential trick", tag="slip", weight=4),
    *(
        Claim(f"{name}, simulated", f"Thesis A.1.1 and A.1.2, formulas for the {name}",
            "identity", "=", 1.0, _agreement(quantity),
            f"the formulas for the {name} of both tricks, on Z and on ln Z, agree with simulation at M = 5, 10, 30 "
            "and 100 (simulated over formula, the ratio furthest from 1)")
        for name, quantity in (("MSE", "mse"), ("variance", "variance"))
    ),
    Claim("bias, simulated", "Thesis A.1.1 as corrected, A.1.2, formulas for the squared bias",
        "identity", "=", 0.0, _agreement("bias"),
        "the formulas for the bias, with the brackets of Z squared, agree with simulation at M = 5, 10, 30 and 100 "
        "(simulated less formula, the difference furthest from 0, in units of Z or in nats)", scale=0.01),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-2-1",
    title="Analytic MSE and variance of the Gumbel and Exponential tricks",
    source="Thesis Figure 2.1, A.1",
    version=2,
    presets={"quick": {"most": 10_000, "estimators": 100_000}, "paper": {"most": 10_000, "estimators": 2_000_000}},
    tasks=tasks,
    run=run,
    plot=plot,
    claims=CLAIMS,
    caption=CAPTION,
)
