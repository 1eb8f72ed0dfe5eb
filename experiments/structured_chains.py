"""META: time of coupling from the past, mixing time, and what partition functions cost with it."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, marks, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.meta import from_the_past
from thesis_cli.structured.ranges import map_range, norm_range
from thesis_cli.studies.structured import mixing
from thesis_cli.studies.structured.exact_ratios import least_work, uniform_variance
from thesis_cli.studies.structured.families import FAMILIES, NEEDLE, family, weights_of_length
from thesis_cli.studies.structured.products import measured_work

DISTANCES = 0.25, 0.01, 1e-4
FAILURE = 0.1
ERROR = 0.1
DRAWN = "rankings", 2.0
STEPS = range(81)
SIZES = 50, 100
COLUMNS = ["family", "bound", "quantity", "at", "value", "standard_error"]
MAP, RADIUS = "steps", "blind steps"


def tasks(settings):
    found = [
        {"name": name, "length": length, "runs": settings["runs"], "products": settings["products"]}
        for name in settings["families"]
        for length in settings["lengths"]
    ]
    return [*found, {"name": "growth", "length": 0.0, "runs": 0, "products": 0}]


def run(seed, name, length, runs, products):
    """A row for each quantity of one family, with R |theta| = `length` in a random direction.

    `steps`: mean T of `runs` runs of coupling from the past that know the MAP; `blind steps`: of runs
    that know R and |theta| alone. `potential` and `blind potential`: mean log-potential of their
    samples less the exact one. `terminated`: share with T <= ln(1/0.1) times the mean. `mixing time`
    is exact, at a distance of `at`, beside its bounds. `least work`: relative variance times uniform
    structures of a telescoping product with META, over that of a uniform average, exact, at the best
    of some schedules; `equal work` and `adaptive work`: measured.
    """
    if name == "growth":
        rows = [("labels", float(size), "growth", None, _log_steps(size), 0.0) for size in SIZES]
        return pd.DataFrame(rows, columns=COLUMNS)
    rng = np.random.default_rng(seed)
    found = family(name)
    weights = weights_of_length(found, length, "opposite" if name.startswith(NEEDLE) else "random", rng)
    rows = [
        *_coupled(found, weights, runs, rng),
        *_mixed(mixing.all_potentials(found, weights), length, STEPS if (name, length) == DRAWN else STEPS[:33:8]),
        *_work(found, weights, products, rng),
    ]
    return pd.DataFrame([(name, length, *row) for row in rows], columns=COLUMNS)


def _log_steps(size):
    """ln of the expected steps for that many labels of weight 1."""
    cube, weights = space("hypercube", size), np.ones(size)
    return size * math.log(2) + map_range(cube, weights).high - cube.log_partition(weights[None])[0]


def _coupled(found, weights, runs, rng):
    potentials = mixing.all_potentials(found, weights)
    exact = float(found.mean_features(weights[None])[0] @ weights)
    mean = 1 / mixing.acceptance(potentials)
    yield "expected steps", None, mean, 0.0
    for prefix, limits in (("", map_range(found, weights)), ("blind ", norm_range(found, weights))):
        results = [from_the_past(found, weights, rng, limits, blind=bool(prefix)) for _ in range(runs)]
        steps = np.array([result.steps for result in results])
        scores = found.scores(np.array([result.structure for result in results]), weights)
        yield f"{prefix}steps", None, steps.mean(), steps.std(ddof=1) / math.sqrt(runs)
        yield f"{prefix}potential", None, scores.mean() - exact, scores.std(ddof=1) / math.sqrt(runs)
        if not prefix:
            share = (steps <= mean * math.log(1 / FAILURE)).mean()
            yield "terminated", None, share, math.sqrt((share * (1 - share) + 1 / runs) / runs)


def _mixed(potentials, length, steps):
    accepted = mixing.acceptance(potentials)
    yield "gap", None, mixing.spectral_gap(potentials) - accepted, 0.0
    for distance in DISTANCES:
        for quantity, value in mixing.mixing_numbers(potentials, length, distance).items():
            yield quantity, distance, value, 0.0
    for step, value in zip(steps, mixing.distances(potentials, steps), strict=True):
        yield "distance", step, value, 0.0
        yield "not coupled", step, (1 - accepted) ** step, 0.0


def _work(found, weights, products, rng):
    variance = uniform_variance(found, weights)
    yield "least work", None, least_work(found, weights) / variance, 0.0
    for quantity, (value, error) in measured_work(found, weights, products, ERROR, rng).items():
        yield quantity, None, value / variance, error / variance


def plot(frame):
    figure, axes = panels(2, 2, height=2.5)
    _plot_steps(axes[0, 0], frame)
    _plot_distances(axes[0, 1], frame)
    _plot_times(axes[1, 0], frame[frame["at"] == DISTANCES[1]])
    _plot_work(axes[1, 1], frame[frame.quantity == "least work"])
    return figure


def _families(rows):
    return zip(COLOURS * 2, "osv^Dx+*" * 2, rows.groupby("family", sort=False), strict=False)


def _plot_steps(ax, frame):
    rows = frame[frame.quantity == MAP]
    for colour, marker, (name, part) in _families(rows):
        marks(ax, part, "bound", marker, color=colour, label=name)
    lengths = np.linspace(0, max(rows.bound), 50)
    ax.plot(lengths, np.exp(2 * lengths), "k--", linewidth=0.8, label="exp(2BR)")
    blind = frame[frame.quantity == RADIUS].groupby("bound").value.mean()
    ax.plot(blind.index, blind, "k_", markersize=7, label="mean without MAP")
    ax.set_yscale("log")
    ax.legend(loc="upper left", ncols=2, fontsize=5.5)
    label(ax, r"$B R = R\|\theta\|$, nats", r"mean $T$, steps", "(a) coupling from the past")


def _plot_distances(ax, frame):
    rows = frame[(frame.family == DRAWN[0]) & (frame.bound == DRAWN[1])]
    for quantity, name, style in (("distance", "exact", "-"), ("not coupled", "not coupled yet", "k:")):
        part = rows[rows.quantity == quantity]
        ax.plot(part["at"], part.value, style, label=name)
    steps = np.array(STEPS)
    ax.plot(steps, (1 - math.exp(-2 * DRAWN[1])) ** steps, "k--", label="Theorem B.2")
    ax.set(yscale="log", ylim=(1e-6, 1.5))
    ax.legend(loc="lower left")
    label(ax, "steps", "total variation distance", f"(b) {DRAWN[0]}, $BR$ = {DRAWN[1]:g}")


def _plot_times(ax, rows):
    exact = rows[rows.quantity == "mixing time"].set_index(["family", "bound"]).value
    for colour, marker, quantity in zip(COLOURS, "o^s", ("Theorem B.2", "span", "acceptance"), strict=False):
        limit = rows[rows.quantity == quantity].set_index(["family", "bound"]).value
        ax.plot(exact, limit.loc[exact.index], marker, color=colour, label=quantity, fillstyle="none")
    ends = [exact.min(), exact.max()]
    ax.plot(ends, ends, "k--", linewidth=0.8)
    ax.set(xscale="log", yscale="log", ylim=(None, 1e7))
    ax.legend(loc="upper left")
    label(ax, r"exact mixing time, $\epsilon$ = 0.01", "bound", "(c) mixing times, steps")


def _plot_work(ax, rows):
    for colour, marker, (name, part) in _families(rows):
        ax.plot(part.bound, part.value, marker + "-", color=colour, label=name, linewidth=0.6)
    ax.axhline(1, color="black", linestyle="--", linewidth=0.8)
    label(ax, r"$R\|\theta\|$, nats", "work over that of averages", "(d) telescoping product with META")


def _ratios(first, second):
    """Ratios of two quantities, for each family, length and place."""
    return select(quantity=first).over(select(quantity=second), "family", "bound", "at").number("value")


def _loose(found):
    """The longest weights of all families but the needles."""
    return found[(found.bound == found.bound.max()) & ~found.family.str.startswith(NEEDLE)]


def _growth(frame):
    values = frame[frame.quantity == "growth"].set_index("bound").value
    return Measurement((values[max(SIZES)] - values[min(SIZES)]) / (max(SIZES) - min(SIZES)), error=1e-9)


OWN, THEOREM, MIXING = "this project", "Vembu et al. Theorem 3.1", "Vembu et al. Theorem B.2"

CAPTION = """\
META on spaces of 64 to 676 structures, weights in random directions. (a) Mean time T of coupling from the \
past, which stops where u <= exp(E(z) - max E), and without a MAP, where u <= exp(-2BR); dashed, Theorem \
3.1. (b) Exact total variation distance from the worst start; probability that the chains have not met; \
Theorem B.2. (c) Steps to a distance of 0.01, with three bounds: 2BR; the span of the log-potentials; the \
probability that all states accept a step. (d) Relative variance times number of uniform structures \
of a telescoping product with META, on the best of seven schedules and at the best numbers of samples, over \
that of a mean over uniform structures; colours as in (a). The source has no figures."""

# fmt: off
CLAIMS = [
    Claim("Theorem 3.1", THEOREM, "bound", "<", 0.0,
        select(quantity=MAP)
        .number(lambda found: np.log(found.value) - 2 * found.bound, lambda f: f.standard_error / f.value)
        .lowest(sign=-1.0),
        "coupling from the past takes at most exp(2BR) steps on average (ln of the mean less 2BR, fewest standard "
        "errors below 0)", scale=0.1),
    Claim("exact samples", THEOREM, "identity", "=", 0.0,
        select(quantity=["potential", "blind potential"]).furthest(),
        "its samples have the distribution p(y|x, theta) (mean log-potential less the exact one in nats, most "
        "standard errors off)", scale=0.5),
    Claim("mean time", OWN, "identity", "=", 1.0,
        select(quantity=MAP).over(select(quantity="expected steps"), "family", "bound").furthest(1.0),
        "the mean time is |Y| exp(max E) / Z, that of rejection sampling (mean over it, most standard errors off)",
        scale=0.5),
    Claim("mean time without a MAP", OWN, "identity", "=", 1.0,
        select(quantity=RADIUS).per(lambda found: np.exp(2 * found.bound)).furthest(1.0),
        "with the bound 2BR alone the mean time is exp(2BR) (mean over it, most standard errors off)", scale=0.5),
    Claim("how loose Theorem 3.1 is", OWN, "comparison", "<", 0.1,
        select(quantity=MAP).then(_loose).per(lambda found: np.exp(2 * found.bound)).largest(weakest=False),
        "where the weights are longest, exp(2BR) is more than 10 times the mean time (mean over bound, the largest "
        "of all spaces but the needles)"),
    Claim("termination", "Vembu et al. 3: 'To ensure that the algorithm terminates with a probability at least'",
        "bound", ">", 1 - FAILURE,
        select(quantity="terminated").lowest(1 - FAILURE),
        "ln(1/delta) times the mean time suffice with probability 1 - delta (least share of runs, delta = 0.1)",
        scale=0.15),
    Claim("Theorem B.2", MIXING, "bound", "<", 1.0, _ratios("mixing time", "Theorem B.2").largest(1e-9),
        "the mixing time is at most ceil(ln(1/epsilon) / ln(1 / (1 - exp(-2BR)))) (largest ratio of exact time and "
        "bound)", scale=0.01),
    Claim("mixing time by the span", OWN, "bound", "<", 1.0, _ratios("mixing time", "span").largest(1e-9),
        "the span of the log-potentials does for 2BR (largest ratio of exact time and bound)", scale=0.01),
    Claim("coupling lemma", "Vembu et al. Lemma B.1", "bound", "<", 1.0,
        _ratios("distance", "not coupled").largest(1e-9),
        "the distance after t steps is at most the probability that the chains have not met (largest ratio)",
        scale=0.01),
    Claim("gap", OWN, "identity", "=", 0.0,
        select(quantity="gap").number(lambda found: found.value.abs()).largest(1e-9),
        "the spectral gap is the probability that all states accept a step, so no coupling is faster (largest "
        "difference)", scale=1e-3),
    Claim("how loose Theorem B.2 is", OWN, "comparison", "<", 0.1, _ratios("mixing time", "Theorem B.2").least(1e-9),
        "somewhere the exact mixing time is less than a tenth of the bound (least ratio)"),
    Claim("uniform averages", OWN, "bound", ">", 1.0,
        select(quantity="least work").least(1e-6),
        "a telescoping product with META never takes fewer uniform structures than their plain average does, "
        "whatever the schedule (least ratio of variance times structures, exact)", scale=0.01),
    Claim("uniform averages, measured", OWN, "bound", ">", 0.0,
        select(quantity="equal work")
        .number(lambda found: np.log(found.value), lambda found: found.standard_error / found.value)
        .lowest(),
        "as measured on equal steps: squared error times structures over the relative variance of a uniform "
        "structure (ln, fewest standard errors above 0)", scale=0.8),
    Claim("time of exact samples", OWN, "comparison", ">", 0.3, _growth,
        "with R |theta| not held constant the time is not polynomial: it grows exponentially in the number of "
        "labels (nats a label, weights 1)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="structured-chains",
    title="META, coupling from the past and mixing times",
    source="Vembu et al. section 3, appendix B",
    version=1,
    presets={
        "quick": {"families": ["labels", "needle 6"], "lengths": [1.0, 2.0], "runs": 150, "products": 10},
        "paper": {
            "families": [*FAMILIES, "needle 6", "needle 8"],
            "lengths": [0.5, 1.0, 2.0, 3.0, 4.0],
            "runs": 4000,
            "products": 200,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(relative=1e-6, absolute=1e-9)},
    claims=CLAIMS,
)
