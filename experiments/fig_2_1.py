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
from thesis_cli.reproduction.measuring import furthest

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
                _rows(
                    "simulated",
                    target,
                    trick,
                    samples,
                    name,
                    values.mean(),
                    values.std() / math.sqrt(estimators),
                )
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


def _select(frame, method, target, trick, quantity):
    rows = frame[
        (frame.method == method) & (frame.target == target) & (frame.trick == trick) & (frame.quantity == quantity)
    ]
    return rows.set_index("samples")


def plot(frame):
    figure, axes = panels(1, 2, height=2.8)
    for ax, target in zip(axes, ("Z", "lnZ"), strict=True):
        for colour, trick in zip(COLOURS, TRICKS, strict=False):
            for quantity, style in (("mse", "-"), ("variance", "--")):
                curve = _select(frame, "analytic", target, trick, quantity).value
                curve = curve[np.isfinite(curve)]
                ax.loglog(
                    curve.index,
                    curve,
                    style,
                    color=colour,
                    label=f"{trick.capitalize()}, {quantity.replace('mse', 'MSE')}",
                )
            points = _select(frame, "simulated", target, trick, "mse")
            ax.plot(points.index, points.value, "o", color=colour, label=f"{trick.capitalize()}, MSE simulated")
        unit = "in units of $Z^2$" if target == "Z" else "in nats$^2$"
        name = "$Z$" if target == "Z" else r"$\ln Z$"
        label(ax, "number of samples $M$", f"MSE and variance, {unit}", f"estimators of {name}")
    axes[0].legend()
    return figure


def _mse_ratio(frame, target, quantity="mse"):
    """Error of the Gumbel trick over that of the Exponential trick, by M."""
    top = _select(frame, "analytic", target, "gumbel", "mse").value
    return top / _select(frame, "analytic", target, "exponential", quantity).value


def _least(name):
    def measure(frame):
        return Measurement(frame[(frame.method == "every M") & (frame.quantity == name)].value.iloc[0], error=ROUNDING)

    return measure


def _limit_of_ratio(frame):
    """The MSE ratio on Z as M grows: a + b / M from two M, and what b / M^2 adds, as a bound."""
    ratio = _mse_ratio(frame, "Z")
    m2 = ratio.index[-1]
    m1 = ratio.index[np.abs(ratio.index - m2 / 4).argmin()]
    limit = (m2 * ratio[m2] - m1 * ratio[m1]) / (m2 - m1)
    return Measurement(limit, error=abs(limit - ratio[m2]))


def _at_one(quantity):
    """MSE ratio on ln Z at M = 1, without its last digits: they decide where the two are equal."""

    def measure(frame):
        return Measurement(round(_mse_ratio(frame, "lnZ", quantity).loc[1], 12))

    return measure


def _samples_needed(frame, goal, trick):
    """M at which a trick's MSE of Z is the goal; a power law from one M to the next."""
    curve = _select(frame, "analytic", "Z", trick, "mse").value.loc[3:]
    return float(np.exp(np.interp(-np.log(goal), -np.log(curve), np.log(curve.index))))


def _fewer_samples(frame):
    """Share of the samples that the Exponential trick saves, at the Gumbel trick's MSE at the
    largest M."""
    curve = _select(frame, "analytic", "Z", "gumbel", "mse").value
    return Measurement(1 - _samples_needed(frame, curve.iloc[-1], "exponential") / curve.index[-1], error=1e-4)


def _more_samples(m):
    """Relative growth of M that takes the Gumbel trick's MSE of Z down to the Exponential trick's
    at m."""

    def measure(frame):
        goal = _select(frame, "analytic", "Z", "exponential", "mse").value[m]
        if _select(frame, "analytic", "Z", "gumbel", "mse").value.iloc[-1] > goal:
            return None
        return Measurement(_samples_needed(frame, goal, "gumbel") / m - 1, error=1e-4)

    return measure


def _least_share(frame):
    """Least share of the variance in a finite MSE, over both tricks, both targets and all M."""
    shares = []
    for target, trick in ANALYTIC:
        variance, whole = (_select(frame, "analytic", target, trick, q).value for q in ("variance", "mse"))
        shares.append((variance / whole)[np.isfinite(whole)].min())
    return Measurement(min(shares), error=ROUNDING)


def _simulated_bias(trick):
    def measure(frame):
        row = _select(frame, "simulated", "Z", trick, "bias").loc[5]
        return Measurement(row.value, row.standard_error)

    return measure


def _agreement(quantity):
    """Simulated over analytic, or simulated minus analytic for the bias, furthest from the
    expected."""

    def measure(frame):
        frame = frame[frame.quantity == quantity]
        drawn = frame[frame.method == "simulated"].set_index(["target", "trick", "samples"])
        true = frame[frame.method == "analytic"].set_index(["target", "trick", "samples"]).value[drawn.index]
        if quantity == "bias":
            return furthest(drawn.value - true, drawn.standard_error)
        return furthest(drawn.value / true, drawn.standard_error / true, 1.0)

    return measure


ROUNDING = 1e-9
"""Bound of the rounding error of a ratio of MSEs."""
M5_GUMBEL = math.sqrt(math.gamma(0.8) ** 5 * math.exp(-np.euler_gamma) - 1)

CAPTION = (
    "MSE (solid) and variance (dashed) of the Gumbel and Exponential tricks' estimators of Z (left) and ln Z (right), "
    "by the formulas of A.1, against the number of samples M; Z has no finite MSE below M = 3. Dots are MSEs of "
    "simulated estimators; their error bars, two standard errors, are smaller than the dots. The source's figure has "
    "the same curves without the dots; biases are small, so that dashed and solid lines nearly coincide."
)

EXPERIMENT = Experiment(
    id="fig-2-1",
    title="Analytic MSE and variance of the Gumbel and Exponential tricks",
    source="Thesis Figure 2.1, A.1",
    version=2,
    presets={
        "quick": {"most": 10_000, "estimators": 100_000},
        "paper": {"most": 10_000, "estimators": 2_000_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[
        Claim(
            id="limit of the ratio",
            source="Thesis 2.2.3",
            statement="on Z, the ratio of the Gumbel trick's MSE to the Exponential trick's approaches pi^2/6 (ratio, "
            "extrapolated to infinite M)",
            published=math.pi**2 / 6,
            relation="=",
            scale=0.01,
            measure=_limit_of_ratio,
            kind="identity",
        ),
        Claim(
            id="better from M = 3",
            source="Thesis 2.2.3",
            statement="on Z, the Exponential trick has the lower MSE for every M from 3 to 10,000 (Gumbel trick's MSE "
            "over it, the least)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio"),
            kind="comparison",
        ),
        Claim(
            id="39% fewer samples",
            source="Thesis 2.2.3",
            statement="on Z, where the ratio is close to its limit, the Exponential trick needs 39% fewer samples for "
            "the Gumbel trick's MSE at M = 10,000 (share saved)",
            published=0.39,
            relation="=",
            rounding=0.005,
            scale=0.01,
            measure=_fewer_samples,
            kind="published",
        ),
        Claim(
            id="45% more samples",
            source="Thesis A.1.1",
            statement="on Z, the Gumbel trick needs roughly 45% more samples for the Exponential trick's MSE at M = "
            "1,000 (share added)",
            published=0.45,
            relation="=",
            reading=Reading("roughly: within five percentage points", 0.05),
            scale=0.1,
            measure=_more_samples(1000),
            finding="A.1.1, 45% more samples",
            kind="published",
        ),
        Claim(
            id="ln Z from M = 2",
            source="Thesis 2.2.3, A.1.2",
            statement="on ln Z, the Exponential trick has the lower MSE for every M from 2 to 10,000 (Gumbel trick's "
            "MSE over it, the least)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio on ln Z"),
            kind="comparison",
        ),
        Claim(
            id="ln Z at M = 1",
            source="Thesis 2.2.3, A.1.2",
            statement="on ln Z, the Gumbel trick has the lower MSE at M = 1 (its MSE over the Exponential trick's)",
            published=1.0,
            relation="<",
            measure=_at_one("mse"),
            kind="comparison",
        ),
        Claim(
            id="ln Z debiased, M = 1",
            source="Thesis 2.2.3, A.1.2",
            statement="on ln Z, the debiased Exponential trick outperforms the Gumbel trick even at M = 1 (Gumbel "
            "trick's MSE over its MSE)",
            published=1.0,
            relation=">",
            measure=_at_one("variance"),
            finding="2.2.3, debiased Exponential trick at M = 1",
            kind="comparison",
        ),
        Claim(
            id="ln Z debiased, M >= 2",
            source="Thesis 2.2.3",
            statement="on ln Z, the debiased Exponential trick has the lower MSE for all M from 2 to 10,000 (Gumbel "
            "trick's MSE over it, the least)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio on ln Z, debiased"),
            kind="comparison",
        ),
        Claim(
            id="dominated by the variance",
            source="Thesis Figure 2.1",
            statement="the MSEs are dominated by the variance: it is more than half of them (least share, at any M)",
            published=0.5,
            relation=">",
            measure=_least_share,
            kind="comparison",
        ),
        Claim(
            id="Gumbel bias of Z",
            source="Thesis A.1.1",
            statement="the root of the Gumbel trick's squared bias on Z, as printed, is the simulated bias (at M = 5)",
            published=M5_GUMBEL,
            relation="=",
            measure=_simulated_bias("gumbel"),
            finding="A.1.1, bias of the Gumbel trick",
            kind="identity",
        ),
        Claim(
            id="Exponential bias of Z",
            source="Thesis A.1.1",
            statement="the root of the Exponential trick's squared bias on Z, as printed, is the simulated bias "
            "(at M = 5)",
            published=0.5,
            relation="=",
            measure=_simulated_bias("exponential"),
            finding="A.1.1, bias of the Exponential trick",
            kind="identity",
        ),
        *(
            Claim(
                id=f"{name}, simulated",
                source="Thesis A.1.1, A.1.2",
                statement=f"the formulas for the {name} of both tricks, on Z and on ln Z, agree with simulation at M = "
                "5, 10, 30 and 100 (simulated over formula, the ratio furthest from 1)",
                published=1.0,
                relation="=",
                measure=_agreement(quantity),
                kind="identity",
            )
            for name, quantity in (("MSE", "mse"), ("variance", "variance"))
        ),
        Claim(
            id="bias, simulated",
            source="Thesis A.1.1 as corrected, A.1.2",
            statement="the formulas for the bias, with the brackets of Z squared, agree with simulation at M = 5, 10, "
            "30 and 100 (simulated less formula, the difference furthest from 0, in units of Z or in nats)",
            published=0.0,
            relation="=",
            scale=0.01,
            measure=_agreement("bias"),
            kind="identity",
        ),
    ],
    caption=CAPTION,
)
