"""Low-rank bounds on all of their alphas, and what appendix A.4 proves about the lower bound."""

from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from thesis_cli.base.figures import COLOURS, diagonal, label, legend_below, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.studies.models.landscape import small_potentials
from thesis_cli.studies.perturbation.statements import (
    STEP,
    continuity_rows,
    convexity_rows,
    derivative_rows,
    lemma_rows,
    limit_rows,
    lower_rows,
    subset_rows,
)

MODEL = ["kind", "strength", "model"]


def tasks(settings):
    return [
        {"kind": kind, "strength": strength, "model": model, "samples": settings["samples"]}
        for kind, strength in settings["families"]
        for model in range(settings["models"])
    ]


def run(seed, kind, strength, model, samples):
    """A row for each number measured on one model; bounds are given less ln Z, in nats."""
    streams = (np.random.default_rng(child) for child in seed.spawn(8))
    tables = next(streams)
    phi, other = (small_potentials(kind, strength, tables) for _ in range(2))
    found = [
        *limit_rows(phi, samples, next(streams)),
        *lower_rows(phi, samples, next(streams)),
        *lemma_rows(phi, samples // 4, next(streams)),
        *subset_rows(phi, samples // 4, 5, next(streams)),
        *convexity_rows(phi, other, samples, next(streams)),
        *derivative_rows(phi, samples, next(streams)),
        *continuity_rows(phi, samples, next(streams)),
    ]
    columns = ["quantity", "alpha", "size", "value", "standard_error"]
    return labelled(found, columns, kind=kind, strength=strength, model=model)


def plot(frame):
    figure, axes = panels(1, 3, height=3.2)
    first = frame[frame.model == 0]
    for colour, ((kind, strength), part) in zip(COLOURS, first.groupby(["kind", "strength"], sort=False), strict=False):
        name = f"tables, deviation {strength:g}" if kind == "table" else f"{kind}, $C$ = {strength:g}"
        bound, slack, slope, q, change = (
            part[part.quantity == quantity]
            for quantity in ("L", "Proposition 15", "derivative", "probability", "change")
        )
        marks(axes[0], bound, "alpha", color=colour, label=name, elinewidth=0.6)
        alpha = np.linspace(-0.97, -0.02, 100)
        zero = (bound.value - slack.value.to_numpy() - gammaln(1 + bound.alpha) / bound.alpha - np.euler_gamma).mean()
        axes[0].plot(alpha, zero + gammaln(1 + alpha) / alpha + np.euler_gamma, ":", color=colour)
        axes[1].plot(q.value, slope.value, "o", color=colour, alpha=0.6)
        marks(axes[2], change, "alpha", color=colour)
    axes[0].set_ylim(-4.5, 0.2)
    axes[0].axhline(0, color="#999999", linewidth=0.8, zorder=0)
    diagonal(axes[1], axes[1].get_xlim()[1])
    axes[2].set(xscale="log", yscale="log")
    label(axes[0], r"$\alpha$", r"bound $-\ \ln Z$, nats", r"$L(\alpha)$ solid, Proposition 15 dotted")
    label(axes[1], r"probability of $x$ as maximiser", r"$\partial L(0)\,/\,\partial\phi(x)$", "Proposition 17")
    label(axes[2], "change of the potentials, nats", "probability of another maximiser", "Proposition 18")
    return legend_below(figure, axes[0], 3)


def _lowest(quantity, query="", sign=1):
    """The number that is lowest in its errors, or highest with `sign` -1."""
    return select(query, quantity=quantity).lowest(sign=sign)


def _derivatives(frame):
    """Derivative less probability, the furthest from 0 in its errors; a central difference is off by
    STEP^2 / 6 third derivatives."""
    difference = select(quantity="derivative").less(select(quantity="probability"), *MODEL, "size")
    return replace(difference.furthest()(frame), error=STEP**2)


def _jump(frame):
    """Largest ratio of the changes of maximisers by moves of 0.001 and of 0.1 nats."""
    found = select(quantity="change")(frame).set_index(MODEL)
    small, large = (found[np.isclose(found.alpha, move)] for move in (0.001, 0.1))
    ratio = small.value / large.value
    error = np.hypot(small.standard_error, ratio * large.standard_error) / large.value
    at = ratio.argmax()
    return Measurement(ratio.iloc[at], error.iloc[at], weakest=error.max())


NATS = 0.1  # a tenth of Z
CAPTION = """\
One model of each family: 2 x 3 spin glasses of coupling C, and tables of 3 x 2 x 4 normal \
potentials. Left: L(alpha) less ln Z on (-1, 0), with two standard errors, and dotted the bound of \
Proposition 15, which leaves the panel at the bottom. Middle: a dot for each configuration, the \
derivative of L(0) by its potential against the probability that it maximises with averaged noise; \
Proposition 17 says that they are equal (line). Right: how often the maximiser changes, with two \
standard errors, when all potentials move by up to so much; it falls to 0 with the change, as \
Proposition 18 needs (a point is missing where it was never seen to change). The source has no \
figure; it proves these statements."""


FEWEST = "(where it is fewest standard errors above 0)"
MOST = "(where it is most standard errors above 0)"
OFF = "(where it is most standard errors off 0)"

# fmt: off
CLAIMS = [
    Claim("Proposition 3", "Thesis Proposition 3", "identity", "=", 0.0, select(quantity="U limit at 0").furthest(),
        "U(alpha) tends to E[U] as alpha tends to 0: extrapolation from alpha = +-0.05 and +-0.1 less the mean of "
        f"other samples, nats {OFF}", scale=NATS),
    Claim("limit of L", "Thesis 2.3.4: 'can be defined by continuity'",
        "identity", "=", 0.0, select(quantity="L limit at 0").furthest(),
        "L(alpha) tends to L(0) = E[L] as alpha tends to 0: extrapolation from alpha = +-0.05 and +-0.1 less the "
        f"mean of other samples, nats {OFF}", scale=NATS),
    Claim("Lemma 1", "Thesis Lemma 1", "bound", ">", 0.0, _lowest("lemma", "alpha < 2 and size > 0"),
        "the inequality of the Clamping Lemma holds for alpha from -0.9 to 1, one or more variables held: ln of "
        f"the ratio of its sides {FEWEST}", scale=NATS),
    Claim("Lemma 1, alpha = 2", "Thesis Lemma 1", "bound", ">", 0.0, _lowest("lemma", "alpha == 2"),
        "the inequality of the Clamping Lemma holds for alpha = 2, where averages of e^{-2U} are least certain, "
        f"any number of variables held: ln of the ratio of its sides {FEWEST}", scale=NATS),
    Claim("Corollary 7", "Thesis Corollary 7", "bound", ">", 0.0, _lowest("lemma", "alpha < 2 and size == 0"),
        "clamping the first variable never loosens the bound U(alpha), alpha from -0.9 to 1: gain in nats "
        f"{FEWEST}", scale=NATS),
    Claim("Proposition 5", "Thesis Proposition 5", "bound", "<", 0.0, _lowest("subset", sign=-1),
        "noise on any subset of the variables bounds ln Z from below, alpha from -0.9 to 2: bound less ln Z, nats "
        f"{MOST}", scale=NATS),
    Claim("Corollary 8", "Thesis Corollary 8", "bound", "<", 0.0, _lowest("L", sign=-1),
        f"L(alpha) <= ln Z for alpha in (-1, 0): bound less ln Z, nats {MOST}", scale=NATS),
    Claim("Proposition 15", "Thesis Proposition 15", "bound", ">", 0.0, _lowest("Proposition 15"),
        "L(alpha) >= L(0) + ln Gamma(1 + alpha) / alpha + c for alpha in (-1, 0), c Euler's constant and L(0) "
        f"from other samples: slack, nats {FEWEST}", scale=NATS),
    Claim("Proposition 16", "Thesis Proposition 16", "bound", ">", 0.0, _lowest("L convexity"),
        "L(0) is convex in the potentials: halfway between two models of a family, mean of the two L(0) less L(0) "
        f"there, nats {FEWEST}", scale=NATS),
    Claim("Proposition 16, U", "Thesis A.4, Remark", "bound", ">", 0.0, _lowest("U convexity"),
        "U(0) is convex in the potentials: halfway between two models of a family, mean of the two U(0) less U(0) "
        f"there, nats {FEWEST}", scale=NATS),
    Claim("Proposition 17", "Thesis Proposition 17", "identity", "=", 0.0, _derivatives,
        "the derivative of L(0) by the potential of a configuration is the probability that it maximises: "
        f"difference for every configuration, the probability from other samples {OFF}", scale=0.01),
    Claim("Proposition 18", "Thesis Proposition 18", "comparison", "<", 0.1, _jump,
        "the distribution of the maximiser is continuous in the potentials: a change by 0.001 nats moves the "
        "maximiser less than a tenth as often as one by 0.1 nats (largest ratio)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="low-rank-statements",
    title="Low-rank bounds on all of their alphas, and convexity and derivatives of the lower bound",
    source="Thesis 2.3, A.2, A.3, A.4",
    version=1,
    presets={
        "quick": {"families": [["mixed", 3], ["table", 1]], "models": 1, "samples": 4_000},
        "paper": {
            "families": [[k, c] for k in ("attractive", "mixed", "table") for c in (1, 3)],
            "models": 2,
            "samples": 150_000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
