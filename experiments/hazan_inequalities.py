"""The inequalities behind the bounds of Hazan et al. IV: Poincare constants, Theorem 5, and the steps of the proofs."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.studies.perturbation import poincare
from thesis_cli.studies.perturbation.concentration import proof_steps

ETAS = np.arange(1, 50) / 50
HALF = 0.5
CUT, WAVES, CONSTANT, PROOF = "cut eigenproblem", "exp(beta t)", "constant", "constant, proof"
COLUMNS = ["part", "measure", "curve", "at", "value"]


def tasks(settings):
    return [{"lengths": settings["lengths"], "step": settings["step"]}]


def run(seed, lengths, step):
    """A row for each number; no random numbers enter.

    `Theorem 5`: the right side over the variance of a function, at eta. `constant`: the least
    Poincare constant by Theorem 5, at eta, from a grid and as the proof of Corollary 8 has it.
    `Poincare`: variance over E[f'^2], the largest on the Gumbel distribution cut at a length, and
    for f = exp(beta t). `step`: numbers of the proofs.
    """
    found = [
        *(("Theorem 5", *row) for row in poincare.variance_ratios(ETAS)),
        *(("step", *row) for row in poincare.misprints()),
        *(("constant", "Gumbel", CONSTANT, eta, poincare.constant(eta)) for eta in ETAS),
        *(("constant", "Gumbel", PROOF, eta, poincare.printed_constant(eta)) for eta in ETAS),
        *(("Poincare", "Gumbel", CUT, length, poincare.cut_constant(length, step)) for length in lengths),
        *(("Poincare", "Gumbel", WAVES, b, poincare.exponential_quotient(b)) for b in (0.4, 0.49, 0.499, 0.49999)),
        *(("step", "", name, None, number) for name, number in proof_steps().items()),
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def plot(frame):
    figure, axes = panels(1, 3, height=3.3)
    for colour, style, curve, name in ((0, "-", CONSTANT, "Theorem 5"), (1, ":", PROOF, "proof of Cor. 8")):
        part = frame[frame.curve == curve]
        axes[0].plot(part["at"], part.value, style, color=COLOURS[colour], label=name)
    axes[0].axhline(4, color="black", linewidth=0.8, linestyle="--")
    axes[0].set_ylim(3, 12)
    axes[0].legend(loc="upper center")
    label(axes[0], r"$\eta$", "bound on the Poincare constant", "Gumbel distribution")
    part = frame[frame.curve == CUT]
    axes[1].plot(part["at"], 4 - part.value, "-o", color=COLOURS[0], label="cut to [-4, L]")
    axes[1].plot(part["at"], 16 * math.pi**2 / part["at"] ** 2, ":", color="black", label=r"$16\pi^2 / L^2$")
    axes[1].set(xscale="log", yscale="log")
    axes[1].legend(loc="upper right")
    label(axes[1], "length $L$", "4 - Poincare constant", "Gumbel distribution, cut")
    functions = frame[frame.part == "Theorem 5"].groupby("measure", sort=False)
    for colour, (density, function) in zip(COLOURS, functions, strict=False):
        for curve, style in (("t", "-"), ("max(t - 1, 0)", "--")):
            part = function[(function.curve == curve) & (function["at"] > 0)]
            axes[2].plot(part["at"], part.value, style, color=colour, label=density if style == "-" else None)
    axes[2].set(yscale="log", ylim=(0.9, 20))
    axes[2].legend(loc="upper center")
    label(axes[2], r"$\eta$", "bound over variance", "Theorem 5")
    return figure


def _numbers(query="", **equal):
    return select(query, **equal).number("value")


def _step(name, error=1e-9):
    return _numbers(part="step", curve=name).read(error)


def _wider(frame):
    """Best bound from eta = 1/2 on over that below 1/2, the largest of all cases."""
    upper, lower = (
        select(f"at > 0 and at {side} {HALF}", part="Theorem 5")(frame).groupby(["measure", "curve"]).value.min()
        for side in (">=", "<")
    )
    return Measurement((upper / lower).max(), error=1e-4)


def _constants(frame):
    """Least constant over eta, where it is at 1/2."""
    found = frame[frame.curve == CONSTANT].set_index("at").value
    return Measurement(found.min() if found.idxmin() == HALF else math.nan, error=1e-6)


OWN = "this project"
LOGARITHM = "Hazan et al. IV-C, proof of Lemma 3"
LEMMA = "Hazan et al. Lemma 2 and Theorem 5"

CAPTION = """\
Left: the Poincare constant of the Gumbel distribution that Theorem 5 gives, against eta, and as the \
proof of Corollary 8 has it; it is least, 4, at 1/2. Middle: that constant is exact: 4 less the \
Poincare constant of the distribution cut to [-4, L], by a finite-difference eigenproblem, falls like \
16 pi^2 / L^2. Right: the right side of Theorem 5 over the variance of t (solid) and max(t - 1, 0) \
(dashed), for four log-concave distributions. The source has no such figure; it proves these statements."""

# fmt: off
CLAIMS = [
    Claim("Theorem 5", "Hazan et al. Theorem 5", "bound", ">", 1.0, _numbers(part="Theorem 5").least(1e-4),
        "the variance is at most the weighted mean of f'^2, for eta from 0 to 1 (least ratio of right side and "
        "variance, six functions, four distributions)", scale=0.01),
    Claim("Theorem 5, range", "Hazan et al. Lemma 2, Theorem 5", "bound", ">", 1.0, _step("eta = -1", 1e-4),
        "the variance is at most the weighted mean of f'^2 for eta from the minimum of -Q'' / Q'^2 on (right side "
        "over variance, Gumbel distribution, where that minimum is -infinity, eta = -1, f = max(t - 2, 0))",
        finding=LEMMA, tag="slip", weight=5),
    Claim("second moments", "Hazan et al. IV-A, proof of Lemma 2", "bound", ">", 0.0,
        _step("second moment of 1", 1e-6),
        "the second moment, and with it the variance, is at most C times the mean of f'^2 (right side less left, "
        "Laplace distribution, f = 1)", finding=LEMMA, tag="substantive", weight=3),
    Claim("Laplace", "Hazan et al. IV-A: 'follows from our result by setting'",
        "identity", "=", 4.0, _step("Laplace constant", 1e-6),
        "eta = 1/2 gives Ledoux's constant 4 of the Laplace distribution"),
    Claim("Brascamp and Lieb", "Hazan et al. IV-A: 'Their result may be obtained by our derivation'", "bound", ">", 1.0,
        _numbers("at == 0", part="Theorem 5").least(1e-4),
        "eta = 0 gives the inequality of Brascamp and Lieb (least ratio of right side and variance, normal "
        "distribution, attained by f = t)", scale=0.01),
    Claim("wider range", "Hazan et al. IV-A: 'In the one-dimensional setting, our bound is tighter'",
        "comparison", ">", 1.0, _wider,
        "the bound is tighter than those that are restricted to eta in [1/2, 1] (best bound there over the best "
        "below 1/2, the largest)"),
    Claim("constant of Corollary 8", "Hazan et al. Corollary 8", "identity", "=", 4.0, _constants,
        "the least constant of Theorem 5 for the Gumbel distribution is 4, at eta = 1/2"),
    Claim("proof of Corollary 8", "Hazan et al. Corollary 8", "identity", "=", 0.0,
        _numbers(curve=CONSTANT)
        .over(_numbers(curve=PROOF), "at")
        .number(lambda found: (found.value - 1).abs())
        .largest(1e-6),
        "the constant is min{4 eta / ((4 eta - 1)(1 - eta)), 1 / (eta (1 - eta))} on either side of 1/2 (largest "
        "relative difference)", scale=0.01),
    Claim("Poincare constant", "Hazan et al. Corollary 8", "bound", "<", 4.0, _numbers(curve=CUT).largest(2e-4),
        "the Poincare constant of the Gumbel distribution is at most 4 (the largest of the distribution cut at "
        "growing lengths, by an eigenproblem)"),
    Claim("Poincare constant, exact", OWN, "identity", "=", 4.0, _numbers(curve=WAVES).largest(1e-3),
        "it is 4 and no less (variance over E[f'^2], f = exp(beta t), beta = 0.49999)", scale=0.01),
    Claim("Corollary 9, negative rates", OWN, "comparison", "<", 0.0, _step("Corollary 9, lambda = -1/2"),
        "at negative rates, which IV-D leaves out (0 <= lambda < 1/a), the bound of Corollary 9 does not hold (right "
        "side less left, in logarithms, a Gumbel variable, lambda = -1/2)"),
    Claim("Corollary 11, negative rates", OWN, "comparison", "<", 0.0, _step("Corollary 11, lambda < 0"),
        "at negative rates, which IV-D leaves out, the bound of Corollary 11 does not hold (right side less left, in "
        "logarithms, a Gumbel variable, the least of -1 < lambda < 0)"),
    Claim("how loose Corollary 9 is", OWN, "bound", "<", 2 * math.exp(np.euler_gamma), _step("Corollary 9, factor"),
        "alpha is at most 2 e^c times the moment of a Gumbel variable, so that no bound for all f can be smaller "
        "by more"),
    Claim("optimum of Corollary 10", "Hazan et al. Corollary 10", "identity", "=", 0.0,
        _step("Corollary 10, optimum", 1e-6),
        "the best lambda of the proof of Corollary 10 gives (62) (largest difference from a minimum over a grid)",
        scale=1e-3),
    Claim("steps of Corollary 10", "Hazan et al. Corollary 10", "bound", ">", 0.0, _step("(62) to (64), slack"),
        "(62) is at most (63), and (63) at most (64) (least difference)"),
    Claim("z log z", "Hazan et al. Lemma 3", "bound", ">", 0.0, _step("z ln z - z - 1"),
        "z log z >= z + 1 (least difference, 0 < z <= 4)", finding=LOGARITHM, tag="slip", weight=2),
    Claim("z log z, corrected", OWN, "bound", ">", 0.0, _step("z ln z - z + 1"),
        "z log z >= z - 1, which the proof of Lemma 3 uses (least difference, 0 < z <= 4)", scale=1e-3),
    Claim("integral of Lemma 3", "Hazan et al. Lemma 3", "identity", "=", 0.0, _step("Lemma 3, integral"),
        "f^2 times the integral of s exp(s f) over [0, 1] is f exp(f) - exp(f) + 1 (largest difference, |f| <= 3)",
        scale=1e-3),
    *(
        Claim(f"{equation} of Lemma 3", "Hazan et al. Lemma 3", "bound", ">", 1.0, _step(f"{equation}, ratio"),
            f"{equation} holds (least ratio of the sides, multiples of a Gumbel variable, of either sign, C = 4)")
        for equation in ("(70)", "(72)")
    ),
    Claim("integral of Corollary 11", "Hazan et al. Corollary 11", "identity", "=", 0.0, _step("(75), integral"),
        "the integral (75) is beta(lambda) (largest relative difference, lambda to 0.8)", scale=1e-3),
    Claim("Lemma 3", "Hazan et al. Lemma 3", "bound", ">", 1.0, _step("Lemma 3, ratio"),
        "the entropy of exp(f) is at most its bound by a and the Poincare constant 4 (least ratio of the sides, f "
        "= u t and -u t, 0 < u < 1, t a Gumbel variable)"),
    Claim("Lemma 4", "Hazan et al. Lemma 4", "bound", ">", 0.0, _step("Lemma 4, slack"),
        "the product is at most (2 + lambda a sqrt(C)) / (2 - lambda a sqrt(C)) (least difference of logarithms)"),
    Claim("Lemma 4, end of the range", "Hazan et al. Lemma 4", "bound", "<", 4 * math.log(4 / 3),
        _step("ln V at the end"), "ln V <= 4 ln(4/3) at lambda = 2 / (a sqrt(C))"),
    Claim("elementary inequality", "Hazan et al. Corollary 12", "bound", ">", 0.0, _step("ln(1 - x), slack", 1e-15),
        "log(1 - x) <= -2x / (2 - x) (least difference, 0 < x < 1)"),
    Claim("first step of Corollary 12", "Hazan et al. Corollary 12", "bound", ">", 0.0,
        _step("Corollary 12, first step"),
        "the exponent of the proof of Corollary 12 is at least that of Corollary 11 (least difference)", scale=1e-6),
    Claim("footnote 3, constant", "Hazan et al. Corollary 12", "bound", "<", 8.0, _step("quotient at 13/25"),
        "2 (u^2 + u + 2) / ((1 - u)(2 - u)) <= 8 for u = lambda a up to 13/25 (its value there)"),
    Claim("optimum of Corollary 12", "Hazan et al. Corollary 12", "bound", ">", 0.0, _step("Corollary 12, optimum"),
        "the minimum over |lambda| <= 13/(25a) is at most -min(r/4a, r^2/32a^2) (least difference)", scale=1e-6),
    Claim("Corollary 12 from Corollary 11", OWN, "identity", "=", 2.0, _step("Corollary 12 over Chernoff", 0.005),
        "the steps of the proof double the deviation that Corollary 11 gives as ln(1/delta) / M tends to 0 (ratio "
        "at 1e-6)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-inequalities",
    title="Poincare constants, variance bounds, and the steps of the proofs of section IV",
    source="Hazan et al. IV",
    version=1,
    presets={
        "quick": {"lengths": [10, 20, 40, 80], "step": 0.04},
        "paper": {"lengths": [10, 20, 40, 80, 160, 320], "step": 0.02},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(relative=1e-7, absolute=1e-10)},
    claims=CLAIMS,
)
