"""Figure 2.1: analytic MSE and variance of the Gumbel and Exponential tricks, checked by
simulation."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.perturbation import mse
from thesis_cli.perturbation.tricks import gumbel, power
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement

ANALYTIC = {
    ("Z", "gumbel"): mse.gumbel_z,
    ("Z", "exponential"): mse.exponential_z,
    ("lnZ", "gumbel"): mse.gumbel_log_z,
    ("lnZ", "exponential"): mse.exponential_log_z,
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
    gumbel_bias, _ = mse.gumbel_z(m[first])
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
                    label=f"{trick}, {quantity.replace('mse', 'MSE')}",
                )
            points = _select(frame, "simulated", target, trick, "mse")
            ax.plot(points.index, points.value, "o", color=colour, label=f"{trick}, MSE simulated")
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
        return Measurement(frame[(frame.method == "every M") & (frame.quantity == name)].value.iloc[0])

    return measure


def _ratio_at_end(frame):
    return Measurement(_mse_ratio(frame, "Z").iloc[-1])


def _saved_at_end(frame):
    return Measurement(1 - 1 / _mse_ratio(frame, "Z").iloc[-1])


def _more_samples(m):
    """Relative growth of M that takes the Gumbel trick's MSE of Z down to the Exponential trick's
    at m."""

    def measure(frame):
        goal = _select(frame, "analytic", "Z", "exponential", "mse").value[m]
        curve = _select(frame, "analytic", "Z", "gumbel", "mse").value.loc[3:]
        if curve.iloc[-1] > goal:
            return None
        needed = np.exp(np.interp(-np.log(goal), -np.log(curve), np.log(curve.index)))
        return Measurement(needed / m - 1)

    return measure


def _simulated_bias(trick):
    def measure(frame):
        row = _select(frame, "simulated", "Z", trick, "bias").loc[5]
        return Measurement(row.value, row.standard_error)

    return measure


def _agreement(frame):
    """Largest |simulated - analytic| / standard error over all points."""
    drawn = frame[frame.method == "simulated"].set_index(["target", "trick", "samples", "quantity"])
    true = frame[frame.method == "analytic"].set_index(["target", "trick", "samples", "quantity"]).value
    return Measurement(float(((drawn.value - true[drawn.index]) / drawn.standard_error).abs().max()))


M5_GUMBEL = math.sqrt(math.gamma(0.8) ** 5 * math.exp(-np.euler_gamma) - 1)

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
            statement="on Z, the ratio of the Gumbel trick's MSE to the Exponential trick's tends to pi^2/6 (M = 1e4)",
            published=math.pi**2 / 6,
            relation="=",
            rounding=0.005,
            measure=_ratio_at_end,
        ),
        Claim(
            id="better from M = 3",
            source="Thesis 2.2.3",
            statement="on Z, the Exponential trick has the lower MSE for every M from 3 to 10,000 (least ratio)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio"),
        ),
        Claim(
            id="39% fewer samples",
            source="Thesis 2.2.3",
            statement="on Z, the Exponential trick reaches an MSE with 39% fewer samples (M = 10,000)",
            published=0.39,
            relation="=",
            rounding=0.005,
            measure=_saved_at_end,
        ),
        Claim(
            id="45% more samples",
            source="Thesis A.1.1",
            statement="on Z, the Gumbel trick needs roughly 45% more samples for the same MSE (M = 1,000)",
            published=0.45,
            relation="=",
            rounding=0.05,
            measure=_more_samples(1000),
            finding="A.1.1, 45% more samples",
        ),
        Claim(
            id="ln Z from M = 2",
            source="Thesis 2.2.3",
            statement="on ln Z, the Exponential trick has the lower MSE for every M from 2 to 10,000 (least ratio)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio on ln Z"),
        ),
        Claim(
            id="ln Z at M = 1",
            source="Thesis 2.2.3",
            statement="on ln Z, the Gumbel trick has the lower MSE at M = 1 (ratio)",
            published=1.0,
            relation="<",
            measure=lambda frame: Measurement(_mse_ratio(frame, "lnZ").loc[1]),
        ),
        Claim(
            id="ln Z debiased, M = 1",
            source="Thesis 2.2.3, A.1.2",
            statement="on ln Z, the debiased Exponential trick outperforms the Gumbel trick even at M = 1 (ratio)",
            published=1.0,
            relation=">",
            measure=lambda frame: Measurement(_mse_ratio(frame, "lnZ", "variance").loc[1]),
            finding="2.2.3, debiased Exponential trick at M = 1",
        ),
        Claim(
            id="ln Z debiased, M >= 2",
            source="Thesis 2.2.3",
            statement="on ln Z, the debiased Exponential trick has the lower MSE for all M from 2 to 1e4 (least ratio)",
            published=1.0,
            relation=">",
            measure=_least("least MSE ratio on ln Z, debiased"),
        ),
        Claim(
            id="Gumbel bias of Z",
            source="Thesis A.1.1",
            statement="the Gumbel trick's printed squared bias on Z is the simulated one (bias at M = 5)",
            published=M5_GUMBEL,
            relation="=",
            measure=_simulated_bias("gumbel"),
            finding="A.1.1, bias of the Gumbel trick",
        ),
        Claim(
            id="Exponential bias of Z",
            source="Thesis A.1.1",
            statement="the Exponential trick's printed squared bias on Z is the simulated one (bias at M = 5)",
            published=0.5,
            relation="=",
            measure=_simulated_bias("exponential"),
            finding="A.1.1, bias of the Exponential trick",
        ),
        Claim(
            id="formulas",
            source="Thesis A.1",
            statement="MSE, variance and corrected bias are the simulated ones (largest deviation, standard errors)",
            published=5.0,
            relation="<",
            measure=_agreement,
        ),
    ],
)
