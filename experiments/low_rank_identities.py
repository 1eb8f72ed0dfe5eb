"""Bounds, clamping and entropy by low-rank perturbations of small, enumerated models.

`studies/perturbation/identities.py` measures the statements of the sources and two further facts:
U(alpha) never falls as alpha rises, and U(alpha) can be measured down to alpha = -1."""

import math
from types import MappingProxyType

import numpy as np

from thesis_cli.base.figures import COLOURS, diagonal, label, legend_below, marks, panels
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import labelled, pooled_by, select
from thesis_cli.studies.perturbation.identities import (
    clamping_rows,
    curve_rows,
    derivative_rows,
    entropy_rows,
    noise_rows,
    pair_rows,
    subset_rows,
    tilted_rows,
    variance_rows,
)

SIDE = 3
TABLE = 3, 2, 4
PLATEAU = 10_000
LIMITS = [["uniform", 0], ["one configuration", 1], ["plateau", 0]]
FIXED = [kind for kind, _ in LIMITS]
PRODUCTS = ["independent", "uniform", "one configuration"]
DEPENDENT = ["attractive", "mixed", "table"]

NATS, SLOPE, SHARE = 0.1, 0.25, 0.05
"""Deviations to be told from none: a tenth of Z; a fifth of the steepest slope, and a tenth of what
Proposition 6 misses on most graphs as printed; 5 % of a variance."""


def tasks(settings):
    sizes = {name: settings[name] for name in ("samples", "clamped_samples")}
    return [
        {"kind": kind, "strength": strength, "model": model, **sizes}
        for kind, strength in settings["families"]
        for model in range(1 if kind in FIXED else settings["models"])
    ]


def _graph(kind, strength, rng):
    """A 3 x 3 spin glass with fields from [-1, 1], a table of normals, a quarter -inf, or a limit.

    `plateau` has one variable, with 10,000 states of equal probability that together are as likely
    as one more state.
    """
    if kind in ("attractive", "mixed", "independent"):
        return random_spin_glass(SIDE, SIDE, strength, 1.0, "mixed" if kind == "mixed" else "attractive", rng).graph()
    if kind == "plateau":
        return FactorGraph([PLATEAU + 1], [Factor((0,), np.append(np.zeros(PLATEAU), math.log(PLATEAU)))])
    table = strength * rng.standard_normal(TABLE)
    if kind == "table":
        table[rng.random(TABLE) < 0.25] = -np.inf
        table[0, 0, 0] = 0
    if kind == "one configuration":
        table[...] = -np.inf
        table[1, 1, 1] = strength
    return FactorGraph(TABLE, [Factor((0, 1, 2), table)])


def run(seed, kind, strength, model, samples, clamped_samples):
    """A row for each number measured on one model; bounds are given less ln Z, in nats."""
    children = iter(seed.spawn(16))
    graph = _graph(kind, strength, np.random.default_rng(next(children)))
    if kind == "plateau":
        found = noise_rows(low_rank_maxima(Elimination(graph), samples // 50, next(children)))
    else:
        solver = map_solver(graph, exact=True)[0]
        states = np.indices(graph.cardinalities).reshape(len(graph.cardinalities), -1).T
        phi = graph.log_potential(states)
        upper = low_rank_maxima(solver, samples, next(children))
        lower = low_rank_maxima(solver, samples, next(children), scale="average")
        found = [
            *curve_rows(upper, lower, phi),
            *tilted_rows(solver, states, phi, samples, next(children)),
            *variance_rows(upper),
            *noise_rows(upper),
            *clamping_rows(graph, phi, clamped_samples, np.random.default_rng(next(children))),
            *subset_rows(graph, phi, samples // 10, next(children)),
            *pair_rows(graph, upper, phi, samples // 2, next(children)),
            *entropy_rows(upper, lower, phi),
            *derivative_rows(graph, upper, samples // 2, next(children)),
        ]
    columns = ["quantity", "alpha", "size", "value", "standard_error"]
    return labelled(found, columns, kind=kind, strength=strength, model=model)


def _models(kind, strength):
    """A family of models in words."""
    if kind == "table":
        return f"tables, deviation {strength:g}"
    return kind if kind == "independent" else f"{kind}, $C$ = {strength:g}"


def plot(frame):
    figure, axes = panels(1, 3, height=3.4)
    families = frame[~frame.kind.isin(FIXED)]
    for colour, (family, part) in zip(COLOURS, families.groupby(["kind", "strength"], sort=False), strict=False):
        for quantity, style in (("U", "-"), ("L", "--")):
            curve = select(quantity=quantity).then(pooled_by("alpha"))(part)
            axes[0].plot(curve.alpha, curve.value, style, color=colour, label=_models(*family) if style == "-" else "")
        curve = select(quantity="U tilted").then(pooled_by("alpha"))(part)
        marks(axes[0], curve, "alpha", "o", color=colour, markersize=2, elinewidth=0.6)
        for quantity, style in (("clamped", "-o"), ("subset", "--s")) if "table" not in family else ():
            curve = select(quantity=quantity, alpha=0)(part).groupby("size").value.mean()
            axes[1].plot(curve.index, curve, style, color=colour)
        for star, bound, marker, fill in (("H(x*)", "B", "o", "full"), ("H(x**)", "A", "s", "none")):
            entropies, bounds = (select(quantity=name)(part).value for name in (star, bound))
            axes[2].plot(entropies, bounds, marker, color=colour, fillstyle=fill)
    for ax in axes[:2]:
        ax.axhline(0, color="#999999", linewidth=0.8, zorder=0)
    diagonal(axes[2], select(quantity="B")(families).value.max())
    axes[0].set_xlim(-1, 1)
    label(axes[0], r"$\alpha$", r"bound $-\ \ln Z$, nats", r"$U(\alpha)$ solid, dots; $L(\alpha)$ dashed")
    label(axes[1], "variables clamped, or with noise", r"bound $-\ \ln Z$, nats", "clamped solid, subset dashed")
    label(axes[2], "entropy of maximiser, nats", "its bound, nats", r"$x^*$ filled, $x^{**}$ open")
    return legend_below(figure, axes[0], 4)


def _least(quantity, id, source, statement, scale=NATS, **equal):
    """A claim that a quantity is never negative, tested where it is lowest in its errors."""
    words = f"{statement} (slack in nats, where it is fewest standard errors above 0)"
    return Claim(id, source, "bound", ">", 0.0, select(quantity=quantity, **equal).lowest(), words, scale=scale)


def _most(quantity, id, source, statement, limit, scale, more=MappingProxyType({}), **equal):
    """A claim that a quantity is at most a limit, tested where it exceeds it most in its errors."""
    measure = select(quantity=quantity, **equal).lowest(limit, sign=-1)
    words = f"{statement} (where it is most standard errors above {limit:g})"
    return Claim(id, source, "bound", "<", limit, measure, words, scale=scale, **more)


def _equal(quantity, id, source, statement, scale, published=0.0, more=MappingProxyType({}), **equal):
    """A claim that a quantity has one value, tested at the row furthest from it in its errors."""
    words = f"{statement} (where it is most standard errors off {published:g})"
    measure = select(quantity=quantity, **equal).furthest(published, floor=1e-12)
    return Claim(id, source, "identity", "=", published, measure, words, scale=scale, **more)


KEYS = ["kind", "strength", "model"]
OWN = "this project"
CAPTION = """\
Means over three models of a family. Left: U(alpha) (solid) and L(alpha) (dashed) less ln Z; \
lines are from sample means (alpha >= -1/4), dots from tilted noise (alpha <= -1/4, two standard \
errors), which measures U(alpha) where sample means have no variance; the lines of the tables go \
on beyond 1. Middle: U(0) with the first variables of a 3 x 3 grid clamped (solid), and the \
lower bound with noise on the joint states of the first variables (dashed), both less ln Z. \
Right, for each model: the entropy of the maximiser x* and its upper bound B (filled), and that \
of the maximiser x** under averaged noise and its lower bound, the mean of the noise (open); the \
line is equality. The source has no figure; it proves these statements."""

# fmt: off
CLAIMS = [
    _least("U", "Proposition 2", "Thesis Proposition 2",
        "U(alpha) >= ln Z for alpha from -1/4 on"),
    _least("U tilted", "Proposition 2, tilted", "Thesis Proposition 2",
        "U(alpha) >= ln Z for -1 < alpha <= -1/4, by tilted noise"),
    Claim("two ways to U(alpha)", OWN, "identity", "=", 0.0,
        select(quantity="U", alpha=-0.25).less(select(quantity="U tilted", alpha=-0.25), *KEYS).furthest(),
        "tilted noise and sample means give the same U(-1/4) (difference in nats, at the model where it is most "
        "standard errors off 0)", scale=NATS),
    Claim("Proposition 4", "Thesis Proposition 4", "identity", "=", 0.0,
        select(quantity="slope").then(pooled_by("kind", "strength")).furthest(),
        "the derivative of U(alpha) at 0 is (n pi^2/6 - var U) / 2 (finite difference less this formula on other "
        "samples, mean over the models of a family, where it is most standard errors off 0; the derivative is 0 to "
        "1.3)", scale=SLOPE),
    _most("variance", "variance of U", "Thesis 2.3.1: 'in our empirical investigations always'",
        "var(U) <= n pi^2/6 on every model (Efron and Stein prove it for any): ratio, for dependent variables",
        1.0, SHARE, kind=DEPENDENT),
    _equal("variance", "variance of U, extremes", "Thesis 2.3.1: 'for both the uniform distribution and'",
        "var(U) = n pi^2/6 for the uniform distribution and for that of one configuration: ratio of the two",
        SHARE, published=1.0, kind=PRODUCTS[1:]),
    _equal("variance", "variance of U, independent", OWN,
        "var(U) = n pi^2/6 for any independent variables: ratio of the two",
        SHARE, published=1.0, kind=PRODUCTS[:1]),
    _least("U step", "U rises with alpha", OWN,
        "U(alpha) never falls as alpha rises: Frechet tricks always tighten the bound, Weibull tricks never do"),
    _most("second moment", "finite variance", OWN,
        "var(e^{-alpha U}) is finite down to alpha = -1/2, not just to -1/(2 sqrt n): at -0.45 the ratio of the second "
        "moment to the squared mean is at most that of independent variables: ln of the quotient of the two ratios",
        0.0, SLOPE),
    _least("lemma", "Lemma 1", "Thesis Lemma 1",
        "the inequality of the Clamping Lemma holds at every prefix of the variables for alpha = -0.2 and 0.5: ln of "
        "the ratio of its sides", alpha=[-0.2, 0.5]),
    _least("lemma", "Hazan Corollary 3", "Hazan et al. Corollary 3",
        "at alpha = 0 the inequality of the Clamping Lemma holds at every prefix of the variables", alpha=0),
    _least("clamping step", "Corollary 7", "Thesis Corollary 7",
        "clamping one more variable tightens the upper bound on ln Z"),
    _most("subset", "Proposition 5", "Thesis Proposition 5",
        "noise on the first k variables bounds ln Z from below: bound less ln Z, nats", 0.0, NATS),
    _equal("subset, closed form", "Proposition 5, closed form", OWN,
        "the lower bound by noise on the first k variables S is ln sum_{x_S} max exp(phi), whatever alpha: difference "
        "in nats", NATS),
    _most("L", "Corollary 8", "Thesis Corollary 8",
        "L(alpha) <= ln Z for alpha from -1/4 on: L(alpha) less ln Z, nats", 0.0, NATS),
    _least("L step", "L rises with alpha", OWN,
        "L(alpha) never falls as alpha rises: Frechet lower bounds are never tighter than the Gumbel one"),
    Claim("max-marginals", OWN, "bound", ">", 0.0,
        select(quantity="max-marginals").number("value").less(select(quantity="L"), *KEYS).lowest(),
        "L(alpha) is at most the mean over i of ln sum_{x_i} max exp(phi) (slack in nats, where it is fewest "
        "standard errors above 0)", scale=NATS),
    _least("pairs", "Hazan Corollary 5", "Hazan et al. Corollary 5",
        "noise on edges bounds ln Z from above"),
    _least("pairs less unary", "noise on edges", OWN,
        "on spin glasses noise on edges bounds ln Z more loosely than noise on variables"),
    _equal("Proposition 6", "Proposition 6", "Thesis Proposition 6",
        "U(0) - ln Z + KL(x* || p) = B - H(x*), B = sum_i E gamma_i(x_i*): difference of the sides in nats, each from "
        "half of the samples", SLOPE),
    _equal("Proposition 6 as printed", "Proposition 6 as printed", "Thesis Proposition 6",
        "U(0) - ln Z + KL(x* || p) = B - H(x*), with B = E gamma_i(x_i*), the mean over i, as the proposition prints "
        "it (the paragraph before has the sum): difference of the sides in nats", SLOPE,
        more={"finding": "2.4, Proposition 6", "tag": "slip", "weight": 3}),
    _least("B less H(x*)", "entropy bound", "Thesis 2.4, Hazan et al. Theorem 4",
        "the entropy of the maximiser is H(x*) <= B = sum_i E gamma_i(x_i*)"),
    _equal("B less H(p)", "entropy bound, independent", "Hazan et al. Corollary 6",
        "B = sum_i E gamma_i(x_i*) is the entropy H(p) of independent variables: difference in nats",
        NATS, kind=PRODUCTS),
    _least("B less H(p)", "entropy of the model", OWN,
        "B = sum_i E gamma_i(x_i*) is at least the entropy H(p) of dependent variables", kind=DEPENDENT),
    _least("B", "uncertainty", "Hazan et al. Corollary 7",
        "B = sum_i E gamma_i(x_i*) is at least 0"),
    _least("B of independence", "uncertainty, uniform", "Hazan et al. Corollary 7",
        "B = sum_i E gamma_i(x_i*) is at most that of the uniform distribution, ln |X|"),
    _least("A less H(x**)", "Theorem 12", "Thesis Theorem 12",
        "the entropy of the maximiser x** under averaged noise is at least the mean over i of E gamma_i(x_i**)"),
    _least("Proposition 7", "Proposition 7", "Thesis Proposition 7",
        "ln Z - L(0) >= KL(x** || p), x** the maximiser under averaged noise"),
    _most("variance of the noise", "variance of the noise", "Hazan et al. IV-E: 'Thus the gradient satisfies'",
        "the noise at the maximiser has a gradient of squared norm n, so that Corollary 8 bounds its variance by 4 n: "
        "ratio of the two", 1.0, SHARE, more={
            "finding": "Hazan et al. IV-E, concentration of the entropy bound", "tag": "substantive", "weight": 8,
            "headline": "The concentration bounds of Hazan et al. IV-E do not cover the entropy bound: the noise at "
            "the maximiser jumps, and its variance can exceed what Corollary 8 allows; for the bound on ln Z they "
            "stand."}),
]
# fmt: on

EXPERIMENT = Experiment(
    id="low-rank-identities",
    title="Low-rank bounds, clamping and entropy on models small enough to enumerate",
    source="Thesis 2.3, 2.4",
    version=1,
    presets={
        "quick": {
            "families": [["independent", 0], ["mixed", 3], ["table", 2], *LIMITS],
            "models": 1,
            "samples": 6_000,
            "clamped_samples": 2_000,
        },
        "paper": {
            "families": [
                ["independent", 0],
                *([k, c] for k in ("attractive", "mixed", "table") for c in (1, 3)),
                *LIMITS,
            ],
            "models": 3,
            "samples": 100_000,
            "clamped_samples": 20_000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    # Identities that hold for each sample leave 1e-18 to 1e-15.
    tolerances=dict.fromkeys(["value", "standard_error"], Tolerance(absolute=1e-12)),
    claims=CLAIMS,
)
