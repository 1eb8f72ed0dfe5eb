"""Sampled gradients of log partition functions: how far they deviate, and Hoeffding's bound."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.structured.meta import Coupled
from thesis_cli.structured.online import hoeffding_probability, sampled_gradients
from thesis_cli.studies.structured.families import FAMILIES, family, weights_of_length
from thesis_cli.studies.structured.gradient_tails import deviations, width

SAMPLES = 10, 100
UNITS = np.arange(1, 41) / 10
TIGHT = "needle 6"
LENGTH = 2.1
COLUMNS = ["family", "samples", "quantity", "at", "value", "standard_error"]


def tasks(settings):
    return [{"name": name, "runs": settings["runs"]} for name in settings["families"]]


def run(seed, name, runs):
    """A row for each quantity, for theta and z of random directions with R |theta| = 2.1, |z| = 1.

    On the needle half of the mass has <phi, z> = R and half -R, nearly, which is as wide as it can be.
    `exceeded`: share of means of S exact samples that miss <gradient, z> by `at` R / sqrt(S) or more.
    `width`: largest difference of <phi(y), z> over 2 R. `gradient`: each number of a gradient by 20,000
    samples of coupling from the past, less the exact one.
    """
    rng = np.random.default_rng(seed)
    found, rows = family(name), []
    weights = weights_of_length(found, LENGTH, "opposite" if name == TIGHT else "random", rng)
    z = rng.normal(size=found.dimension)
    z /= np.linalg.norm(z)
    for samples in SAMPLES:
        missed = np.abs(deviations(found, weights, z, samples, runs, rng))
        for unit in UNITS:
            share = (missed >= unit * found.radius / math.sqrt(samples)).mean()
            error = math.sqrt((share * (1 - share) + 1 / runs) / runs)
            rows.append((name, samples, "exceeded", unit, share, error))
    rows.append((name, None, "width", None, width(found, z) / (2 * found.radius), 0.0))
    sampled = sampled_gradients(found, weights[None], 20 * min(runs, 1000), Coupled(), rng)
    exact = found.mean_features(weights[None])[0]
    for at, (value, error, mean) in enumerate(zip(sampled.mean[0], sampled.standard_errors[0], exact, strict=True)):
        if error > 0:
            rows.append((name, sampled.samples, "gradient", at, value - mean, error))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["samples"] = frame["samples"].astype("Int64")
    return frame


def plot(frame):
    figure, ax = panels(1, 1, height=3.0)
    rows = frame[(frame.quantity == "exceeded") & (frame.value > 0)]
    for colour, (name, part) in zip([*COLOURS, "grey"], rows.groupby("family", sort=False), strict=False):
        for samples, style in zip(SAMPLES, (":", "-"), strict=True):
            line = part[part.samples == samples]
            ax.plot(line["at"], line.value, style, color=colour, label=name if style == "-" else None)
    grid = np.linspace(1.2, 4, 50)
    ax.plot(grid, 2 * np.exp(-(grid**2) / 2), "k--", label="Hoeffding's bound")
    ax.set(yscale="log", xlim=(0, 5.2), ylim=(1e-5, 2))
    ax.legend(loc="upper right")
    label(ax, r"deviation $\epsilon$, in units of $R G / \sqrt{S}$", "probability of that or more")
    return figure


def _hoeffding(found):
    return [hoeffding_probability(2.0, unit, 1) for unit in found["at"]]


CAPTION = """\
How often the mean of 100 (solid) and 10 (dotted) exact samples misses the gradient of ln Z along a \
random direction z, |z| = G = 1, by so much or more, R |theta| = 2.1; dashed, Hoeffding's bound as the \
source applies it. The needle has the potentials R |theta| and -R |theta| with nearly equal masses. Shares \
of 0 are not drawn. The source has no figure."""

# fmt: off
CLAIMS = [
    Claim("Hoeffding", "Vembu et al. 2.3: 'the following exponential tail bound'", "bound", "<", 0.0,
        select("2 * exp(-at * at / 2) < 1", quantity="exceeded").minus(_hoeffding).lowest(sign=-1.0),
        "P(|<gradient - d, z>| >= e) <= 2 exp(-e^2 S / (2 R^2 G^2)) (probability less bound, fewest standard "
        "errors below 0)"),
    Claim("gradient", "Vembu et al. 1: 'the first order moment'; 2.3: 'a finite sample of size S'",
        "identity", "=", 0.0, select(quantity="gradient").furthest(),
        "the gradient of ln Z is the mean of the features, which samples estimate (estimate by coupling from the "
        "past less the exact gradient, most standard errors off)", scale=0.05),
    Claim("Hoeffding by the width", "this project", "bound", ">", 1.0,
        select(quantity="width").number(lambda found: 1 / found.value**2).least(1e-9),
        "the largest difference of <phi(y), z>, by two MAP problems, in the place of 2 R G takes fewer samples "
        "(least ratio)", scale=1e-3),
]
# fmt: on

EXPERIMENT = Experiment(
    id="structured-gradients",
    title="Sampled gradients of log partition functions",
    source="Vembu et al. section 2.3",
    version=1,
    presets={
        "quick": {"families": ["labels", TIGHT], "runs": 1000},
        "paper": {"families": [*FAMILIES, TIGHT], "runs": 100_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(absolute=1e-9)},
    claims=CLAIMS,
)
