"""Figure 9: how the histogram of errors of sample means decays. The samples are those of `hazan-concentration`."""

import math

import numpy as np
from scipy.special import erfc

from thesis_cli.base.figures import COLOURS, label, legend_below, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import measure
from thesis_cli.studies.perturbation.sample_means import (
    COUNTS,
    EXPONENTIAL,
    MAXIMUM,
    NOISE,
    NORMAL,
    PRESETS,
    decay,
    rows_of,
    run,
    tail_bound,
    tasks,
)

NEAR, MIDDLE, FAR = 0.5, 1.5, 2.5
"""Limits between which rates of decay are measured, in standard deviations of a sample mean."""

SHOWN = 1.0, 2.0, 4.0
"""Couplings of the three panels."""


def plot(frame):
    figure, axes = panels(1, 3, height=3.3)
    couplings = sorted(frame.coupling.unique())
    for ax, wanted in zip(axes, SHOWN, strict=True):
        _histogram(ax, frame, min(couplings, key=lambda c: abs(c - wanted)))
    return legend_below(figure, axes[0], 3)


def _histogram(ax, frame, coupling):
    rows = rows_of(frame, NOISE, "exceeded")
    rows = rows[rows.coupling == coupling]
    for colour, count in zip(COLOURS, COUNTS, strict=False):
        part = rows[(rows["count"] == count) & (rows.value > 0)]
        marks(ax, part, "at", "o", color=colour, label=f"$M$ = {count}")
        sigma = (part["at"] / part.units).iloc[-1]
        r = np.linspace(0, 4 * sigma, 100)
        laws = {
            "normal, same variance": erfc(r / sigma / math.sqrt(2)),
            "exponential, same mean": np.exp(-r / (sigma * math.sqrt(2 / math.pi))),
            "bound of IV-E": tail_bound(math.sqrt(rows.terms.iloc[0]), count, r),
        }
        for style, (name, share) in zip(("-", "--", ":"), laws.items(), strict=True):
            ax.plot(r, share, style, color=colour, linewidth=0.8, label=name if count == COUNTS[0] else None)
    ax.set(yscale="log", ylim=(0.5 / rows.sets.max(), 1.5))
    label(ax, "$r$, nats", "share of |error| above $r$", f"$c$ = {coupling:g}")


def _pooled(frame, function, quantity, count, units=None):
    """Weighted mean over all couplings, its standard error, and the draws behind it."""
    rows = rows_of(frame, function, quantity, count)
    rows = rows if units is None else rows[rows.units == units]
    weights = rows.sets / rows.sets.sum()
    error = float(((weights * rows.standard_error) ** 2).sum()) ** 0.5
    return float((weights * rows.value).sum()), error, int(rows.sets.sum())


@measure
def _shape(frame, function, count):
    return _pooled(frame, function, "shape", count)[:2]


def _rate(frame, count, near, far):
    """Rate of decay of the noise's histogram between two distances, in units of one value's deviation."""
    shares = [_pooled(frame, NOISE, "exceeded", count, k) for k in (near, far)]
    limits = near / math.sqrt(count), far / math.sqrt(count)
    return decay((shares[0][0], shares[1][0]), limits, shares[0][2])


def _quotient(top, top_error, bottom, bottom_error):
    """Ratio of independent numbers, and its standard error."""
    ratio = top / bottom
    return ratio, ratio * math.hypot(top_error / top, bottom_error / bottom)


def _rise(frame):
    """Rate far out over the rate near the expectation, the least of M = 1, 5 and 10."""
    found = [Measurement(*_quotient(*_rate(frame, c, MIDDLE, FAR), *_rate(frame, c, NEAR, MIDDLE))) for c in COUNTS]
    return min(found, key=lambda m: (m.value - 1) / m.standard_error)


@measure
def _faster(frame):
    """Rate with M = 10 over that with M = 1."""
    return _quotient(*_rate(frame, 10, NEAR, FAR), *_rate(frame, 1, NEAR, FAR))


@measure
def _growth(frame):
    """d ln rate / d ln M between M = 1 and 10."""
    ratio = _faster()(frame)
    return math.log10(ratio.value), ratio.standard_error / ratio.value / math.log(10)


@measure
def _per_sample(frame):
    """Fall of ln P(|error| > r) per sample between M = 5 and 10, over that between 1 and 5."""
    shares, errors, _ = zip(*(_pooled(frame, NOISE, "fixed", c) for c in COUNTS), strict=True)
    relative = np.array(errors) / np.array(shares)
    falls = -np.diff(np.log(shares)) / np.diff(COUNTS)
    slips = np.hypot(relative[:-1], relative[1:]) / np.diff(COUNTS)
    return _quotient(falls[1], slips[1], falls[0], slips[0])


def rounded(row):
    """Difference quotients lose digits."""
    return Tolerance(relative=1e-5) if row["quantity"] == "squared gradient" else None


H, OWN = "Hazan et al. V, Figure 9", "this project"
HALFWAY = (EXPONENTIAL - NORMAL) / 2

CAPTION = """\
The share of sample means of M values of the noise at the maximiser that are further than r from \
the expectation, with two standard errors; 10 attractive spin glasses of 100 x 100 variables for each \
coupling strength c, fields from [-1, 1], 1,000 samples each. Solid: the normal law of the same \
variance. Dashed: the exponential law of the same mean |error|. Dotted: the better of the double-sided \
bounds of section IV-E, 1 where they say nothing. The source's figure shows such histograms at three \
couplings, which it does not name, and calls the decay exponential; the normal law describes it."""

# fmt: off
CLAIMS = [
    *(
        Claim(f"Figure 9, exponential, M = {count}", OWN, "comparison", "<", EXPONENTIAL, _shape(NOISE, count),
            f"the decay of the histogram is faster than that of an exponential law for M = {count}: E[D^2] / E[|D|]^2 "
            "is below the 2 of such a law of |D| (noise at the maximiser, all couplings)")
        for count in COUNTS
    ),
    *(
        Claim(f"normal, {function}, M = {count}", OWN, "comparison", "=", NORMAL, _shape(function, count),
            f"the deviations of the {function} are normal for M = {count}: E[D^2] / E[|D|]^2 is pi / 2 (all "
            "couplings)", scale=HALFWAY,
            reading=Reading("normal: nearer to pi / 2 than a tenth of the way to 2", 0.2 * HALFWAY))
        for function in (NOISE, MAXIMUM)
        for count in (1, 10)
    ),
    Claim("Figure 9, at least exponential", H, "comparison", ">", 1.0, _rise,
        "the decay is indeed exponential, at least, for every M: its rate does not fall with r (rate of decay at 1.5 "
        "to 2.5 standard deviations over that at 0.5 to 1.5; 1 for an exponential law; least of M = 1, 5, 10)"),
    Claim("Figure 9, larger M", H, "comparison", ">", 2.0, _faster(),
        "for larger M the decay is much faster (rate of decay with M = 10 over that with M = 1)",
        reading=Reading("much faster: at more than twice the rate", 0.0)),
    Claim("rate and M", OWN, "comparison", "=", 0.5, _growth(),
        "the rate of decay grows like sqrt(M), as for means of a normal law, and not like the M of the bound "
        "exp(-M r / 4a) (d ln rate / d ln M between M = 1 and 10)", scale=0.25),
    Claim("exponential in M", "Hazan et al. IV-B: 'decays exponentially in the number of samples'",
        "comparison", ">", math.log(2) / 5 / (math.log(5) / 4), _per_sample(),
        "the probability of a given deviation decays exponentially in the number of samples (fall of its logarithm "
        "per sample between M = 5 and 10 over that between 1 and 5; 0.34 if it fell like 1/M)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-histogram",
    title="Decay of the errors of sample means of perturb-max values on 100 x 100 spin glasses",
    source="Hazan et al. Figure 9",
    version=1,
    presets=PRESETS,
    tasks=tasks,
    run=run,
    plot=plot,
    rows=rounded,
    shares="hazan-concentration",
    caption=CAPTION,
    claims=CLAIMS,
)
