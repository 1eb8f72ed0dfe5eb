"""Figure 2: the two bounds on moments and deviations, beside what they bound."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.studies.perturbation import concentration as bounds
from thesis_cli.studies.perturbation.concentration import proof_steps

TAIL = 0.1
SIDE = 10
NINE, ELEVEN, TEN, TWELVE = "Corollary 9", "Corollary 11", "Corollary 10", "Corollary 12"
GUMBEL, NEGATIVE, SUM = "a Gumbel variable", "its negative", "sum of n"
MAXIMUM, PRODUCT = "perturbed maximum", "product of Lemma 4"
CHERNOFF = "Chernoff, "
LARGE = 10_000

RATES = np.arange(1, 100) / 100
EXPONENTS = np.arange(81) / 40
MODEL_RATES = np.arange(1, 10) / 10

MOMENTS = {
    NINE: bounds.poincare_moment,
    ELEVEN: bounds.log_sobolev_moment,
    PRODUCT: bounds.product_moment,
    GUMBEL: bounds.gumbel_moment,
    NEGATIVE: lambda rates: bounds.gumbel_moment(-rates),
    SUM: lambda rates: bounds.gumbel_moment(rates, SIDE**2),
}
STEPS = (
    *("Corollary 9, ratio", "Corollary 11, ratio", "moments cross", "Corollary 10, a million samples", "junction"),
    *("deviations, ratio", "deviations, ratio beyond"),
)
COLUMNS = ["panel", "curve", "coupling", "at", "value", "standard_error"]


def tasks(settings):
    models = [{"part": "maxima", "coupling": c, "size": settings["samples"]} for c in settings["couplings"]]
    return [{"part": "curves", "coupling": 0.0, "size": settings["counts"]}, *models]


def run(seed, part, coupling, size):
    """A row for each point of a curve; a = 1.

    `panel` a: ln of a bound on E[e^{lambda (f - E f)}], or of the moment itself, at lambda; b:
    deviation exceeded with probability 0.1 at M; c: deviation at ln(1/delta) / M, for which M
    tends to infinity. `maxima` estimates moments of the perturbed maximum of a 10 x 10 attractive
    spin glass, over sqrt(n), from `size` samples. `step` rows are numbers of the proofs.
    """
    if part == "maxima":
        tables, noise = seed.spawn(2)
        glass = random_spin_glass(SIDE, SIDE, coupling, 1.0, "attractive", np.random.default_rng(tables))
        values = low_rank_maxima(GridTransfer(glass.graph()), size, noise).values / SIDE
        found = zip(MODEL_RATES, *bounds.log_moment(values, MODEL_RATES), strict=True)
        table = [("a", MAXIMUM, coupling, *row) for row in found]
    else:
        table = [
            *(
                ("a", name, None, x, y, 0.0)
                for name, f in MOMENTS.items()
                for x, y in zip(RATES, f(RATES), strict=True)
            ),
            *(("b", name, None, m, y, 0.0) for m in _counts(size) for name, y in _at(m)),
            *(("c", name, None, x, y, 0.0) for name, ys in _limits() for x, y in zip(EXPONENTS, ys, strict=True)),
            *(("step", name, None, None, number, 0.0) for name, number in proof_steps().items() if name in STEPS),
        ]
    return pd.DataFrame(table, columns=COLUMNS)


def _counts(most):
    return [m for m in range(1, 101) if m <= most or m in (20, 50, 100)]


def _at(count):
    """Deviations that the mean of M values exceeds with probability at most 0.1."""
    yield TEN, bounds.poincare_deviation(1.0, count, TAIL)
    yield TWELVE, bounds.log_sobolev_deviation(1.0, count, TAIL)
    yield GUMBEL, bounds.exact_deviation(count, TAIL)
    yield NEGATIVE, bounds.exact_deviation(count, TAIL, -1)


def _limits():
    yield TEN, [bounds.poincare_deviation(1.0, 1, math.exp(-x)) for x in EXPONENTS]
    yield TWELVE, [bounds.log_sobolev_deviation(1.0, 1, math.exp(-x)) for x in EXPONENTS]
    for name in (NINE, ELEVEN, GUMBEL):
        yield CHERNOFF + name, bounds.chernoff_deviation(MOMENTS[name], EXPONENTS)
    sharp = bounds.chernoff_deviation(lambda u: bounds.gumbel_moment(u, LARGE), EXPONENTS, math.sqrt(LARGE))
    yield f"{CHERNOFF}{SUM}", sharp


STYLES = {
    NINE: (COLOURS[0], "-"),
    TEN: (COLOURS[0], "-"),
    ELEVEN: (COLOURS[1], "-"),
    TWELVE: (COLOURS[1], "-"),
    PRODUCT: (COLOURS[0], ":"),
    GUMBEL: (COLOURS[2], "-"),
    NEGATIVE: (COLOURS[2], "--"),
    SUM: (COLOURS[3], "-"),
    CHERNOFF + NINE: (COLOURS[0], "--"),
    CHERNOFF + ELEVEN: (COLOURS[1], "--"),
    CHERNOFF + GUMBEL: (COLOURS[2], "-"),
    CHERNOFF + SUM: (COLOURS[3], "-"),
}


def plot(frame):
    figure, axes = panels(1, 3, height=3.4)
    for ax, panel in zip(axes, "abc", strict=True):
        drawn = frame[(frame.panel == panel) & (frame.curve != MAXIMUM)]
        for curve, part in drawn.groupby("curve", sort=False):
            colour, style = STYLES[curve]
            with np.errstate(over="ignore"):
                values = np.exp(part.value) if panel == "a" else part.value
            ax.plot(part["at"], values, style, color=colour, label=curve)
    for coupling, marker in zip(sorted(frame.coupling.dropna().unique()), "o^s", strict=False):
        part = frame[(frame.curve == MAXIMUM) & (frame.coupling == coupling)]
        name = f"maximum / 10, $c$ = {coupling:g}"
        axes[0].plot(part["at"], np.exp(part.value), marker, color=COLOURS[6], fillstyle="none", label=name)
    axes[0].set(yscale="log", ylim=(0.8, 1e5))
    axes[1].set(xscale="log", yscale="log", ylim=(0.1, 30))
    axes[2].set_ylim(0, 12.5)
    label(axes[0], r"$\lambda$", r"bound on E$[\exp(\lambda (f - $E$f))]$", "(a) moments, $a$ = 1")
    label(axes[1], "samples $M$", r"deviation of the mean, nats", r"(b) deviations, $\delta$ = 0.1")
    label(axes[2], r"$\ln(1/\delta)\,/\,M$", "deviation of the mean, nats", "(c) deviations")
    for ax, place in zip(axes, ("upper left", "upper right", "upper left"), strict=True):
        ax.legend(loc=place, frameon=True, framealpha=0.9, edgecolor="none")
    return figure


def _step(name, error=1e-9):
    return select(panel="step", curve=name).read(error)


def _curves(panel, *names):
    return select("at > 0", panel=panel, curve=list(names))


def _least_ratio(panel, bound, *names):
    """Least of a bound over each of some curves of a panel, at all points."""
    return _curves(panel, bound).over(_curves(panel, *names), "at").least(1e-9)


def _at_most(moment):
    """Bound less moment of the perturbed maxima, where it is fewest standard errors above 0."""
    slack = select(curve=MAXIMUM).number(lambda found: moment(found["at"].to_numpy()) - found.value, "standard_error")
    return slack.lowest()


def _first_better(frame):
    """Least M at which Corollary 12 is below Corollary 10 in panel b."""
    twelve, ten = (_curves("b", name)(frame).set_index("at").value for name in (TWELVE, TEN))
    return Measurement((twelve < ten).idxmax())


def _gap(at):
    """ln of Corollary 11 less ln of Corollary 9 at a rate."""
    eleven, nine = (_curves("a", name).where(f"abs(at - {at}) < 1e-9") for name in (ELEVEN, NINE))
    return eleven.less(nine).read(1e-9)


OWN = "this project"

CAPTION = """\
Bounds for functions f of Gumbel noise with |grad f| <= 1. (a) On the moment generating function, by \
Corollaries 9 and 11, with the moments of a Gumbel variable and of its negative, the largest \
possible in one dimension, of the sum of n = 100 over 10, and of perturbed maxima of 10 x 10 spin \
glasses over 10 (marks); dotted, the product that Lemma 4 bounds. (b) Deviation of the mean of M \
values that Corollaries 10 and 12 allow with probability 0.1, and that the mean of M Gumbel variables \
has. (c) The same against ln(1/delta) / M; dashed, what Markov's inequality gives with the bounds of (a) \
themselves, which the corollaries loosen, and the limit for Gumbel variables and for the sum of n = \
10,000. The source's figure has the curves of Corollaries 9 to 12."""

# fmt: off
CLAIMS = [
    Claim("Corollary 9", "Hazan et al. Corollary 9", "bound", ">", 1.0, _step("Corollary 9, ratio"),
        "the bound of Corollary 9 is above the moment of a Gumbel variable and of its negative (least ratio of the "
        "logarithms, 0 < lambda < 1)"),
    Claim("Corollary 11", "Hazan et al. Corollary 11", "bound", ">", 1.0, _step("Corollary 11, ratio"),
        "the bound of Corollary 11 is above the moment of a Gumbel variable and of its negative (least ratio of "
        "the logarithms, 0 < lambda < 1)"),
    Claim("Corollary 9, maxima", "Hazan et al. Corollary 9", "bound", ">", 0.0, _at_most(bounds.poincare_moment),
        "the bound of Corollary 9 is above the moment of perturbed maxima over sqrt(n) (difference of the "
        "logarithms, fewest standard errors above 0)"),
    Claim("Corollary 11, maxima", "Hazan et al. Corollary 11", "bound", ">", 0.0, _at_most(bounds.log_sobolev_moment),
        "the bound of Corollary 11 is above the moment of perturbed maxima over sqrt(n) (difference of the "
        "logarithms, fewest standard errors above 0)"),
    Claim("sharp moment of maxima", OWN, "bound", ">", 0.0, _at_most(lambda u: bounds.gumbel_moment(u, SIDE**2)),
        "the moment of a perturbed maximum is at most that of the sum of n Gumbel variables (difference of the "
        "logarithms, fewest standard errors above 0)", scale=0.2),
    Claim("Figure 2a, right", "Hazan et al. IV-D: 'On the other hand'", "comparison", ">", 0.0, _gap(0.99),
        "alpha(lambda) < beta(lambda) as lambda tends to 1 (ln beta - ln alpha at 0.99)"),
    Claim("Figure 2a, left", "Hazan et al. IV-D: 'they behave differently at'", "comparison", "<", 0.0, _gap(0.1),
        "the two bounds behave differently at the ends of their range: near 0 alpha(lambda) is the larger one (ln beta "
        "- ln alpha at 0.1)"),
    Claim("Figure 2a, where they cross", OWN, "comparison", "<", 0.5, _step("moments cross"),
        "beta is below alpha only in the first half of the range (lambda at which the two cross)"),
    Claim("floor of Corollary 10", OWN, "comparison", ">", 2.0, _step("Corollary 10, a million samples"),
        "Corollary 10 bounds no deviation below 2a, however many samples there are (its deviation with a million "
        "samples, delta = 0.1, a = 1)"),
    Claim("footnote 3, junction", "Hazan et al. IV-D, footnote 3", "identity", "=", 0.0, _step("junction"),
        "the junction of the two pieces of Corollary 12 lies approximately on the Poincare curve (Corollary 12 "
        "over Corollary 10 at ln(1/delta) / M = 2, less 1; it is exact)", scale=1e-3),
    Claim("Figure 2c, below the junction", OWN, "bound", ">", 1.0, _step("deviations, ratio", 0.0),
        "Corollary 12 is below Corollary 10 wherever ln(1/delta) / M < 2, the range of Figure 2c (least ratio)"),
    Claim("Figure 2c, beyond the junction", OWN, "bound", ">", 1.0, _step("deviations, ratio beyond"),
        "beyond it Corollary 10 is the better one (Corollary 12 over Corollary 10 at ln(1/delta) / M = 3)"),
    Claim("Figure 2b", OWN, "comparison", "=", 2.0, _first_better,
        "with delta = 0.1 Corollary 12 is the better one from M = 2 on (least such M)"),
    Claim("Corollary 10", "Hazan et al. Corollary 10", "bound", ">", 1.0, _least_ratio("b", TEN, GUMBEL, NEGATIVE),
        "the deviation of Corollary 10 is above that of means of Gumbel variables and of their negatives (least "
        "ratio, delta = 0.1, M to 100)"),
    Claim("Corollary 12", "Hazan et al. Corollary 12", "bound", ">", 1.0, _least_ratio("b", TWELVE, GUMBEL, NEGATIVE),
        "the deviation of Corollary 12 is above that of means of Gumbel variables and of their negatives (least "
        "ratio, delta = 0.1, M to 100)"),
    Claim("how loose Corollary 12 is", OWN, "comparison", ">", 5.0,
        _curves("b", TWELVE).over(_curves("b", GUMBEL), "at").read(1e-9, -1),
        "with 100 samples Corollary 12 is more than five times the deviation of a Gumbel variable's mean"),
    Claim("supremum norm", OWN, "comparison", ">", 3.0, _least_ratio("c", TWELVE, CHERNOFF + SUM),
        "a bound without the supremum norm is not tighter for maxima: Corollary 12 allows more than three times "
        "the deviation of the sharp bound for n = 10,000 (least ratio, ln(1/delta) / M up to 2)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-moments",
    title="Moment and tail bounds by the Poincare and the modified log-Sobolev inequality",
    source="Hazan et al. Figure 2",
    version=1,
    presets={
        "quick": {"counts": 3, "couplings": [0, 1], "samples": 3_000},
        "paper": {"counts": 100, "couplings": [0, 1, 3], "samples": 100_000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(absolute=1e-10)},
    claims=CLAIMS,
)
