"""Figure 7 of Hazan et al.: two upper bounds on the entropy of the perturb-max distribution of spin glasses."""

import math
from dataclasses import replace

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.models.spin_glass import SpinGlass, random_spin_glass
from thesis_cli.reproduction.experiment import Claim, Experiment
from thesis_cli.reproduction.measuring import furthest, labelled, lowest, measure, select
from thesis_cli.studies.perturbation.maximiser_entropy import maximiser_entropy, product_entropy

KINDS = "attractive", "mixed"
FIELDS = 0.1, 1.0
SMALL, MIDDLE = 4, 6
MEDIUM, HIGH = 1.0, 3.0
SURE = 20.0
"""Field of a model whose maximiser is certain: a spin turns with probability e^-40."""


def tasks(settings):
    families = [
        {
            "origin": "random",
            "kind": kind,
            "field": f,
            "coupling": c,
            "size": size,
            "models": models,
            "samples": samples,
        }
        for size, models, samples, couplings in settings["sizes"]
        for kind in KINDS
        for f in FIELDS
        for c in couplings
    ]
    extremes = [("uniform", 0.0), ("certain", SURE)]
    rest = {"kind": "attractive", "coupling": 0.0, "size": SMALL, "models": 1, "samples": settings["extremes"]}
    return families + [{"origin": origin, "field": field, **rest} for origin, field in extremes]


def run(seed, origin, kind, field, coupling, size, models, samples):
    """A row for each model: the entropy of its perturb-max distribution and both bounds, in nats.

    `origin` is `random`, or one of the two extremes of Corollary 7: `uniform` has no potential, and
    `certain` one configuration. `product` is the exact entropy where there are no couplings.
    """
    found = []
    for child in seed.spawn(models):
        tables, noise = child.spawn(2)
        glass = random_spin_glass(size, size, coupling, field, kind, np.random.default_rng(tables))
        if origin == "certain":
            glass = SpinGlass(np.full((size, size), field), glass.right, glass.down)
        product = product_entropy(glass.fields) if coupling == 0 else math.nan
        found.append({**maximiser_entropy(glass, kind, samples, noise)._asdict(), "product": product})
    task = {"origin": origin, "kind": kind, "field": field, "coupling": coupling, "size": size}
    return labelled(found, **task, model=range(models), samples=samples)


def plot(frame):
    figure, axes = panels(2, 3, height=2.5)
    random = frame[frame.origin == "random"]
    small = random[random["size"] == SMALL]
    series = ("entropy", "exact entropy", "-o"), ("noise", "perturb-max bound", "-s"), ("marginal", "marginals", "-^")
    for row, kind in enumerate(KINDS):
        for column, field in enumerate(FIELDS):
            ax = axes[row, column]
            here = small[(small.kind == kind) & (small.field == field)].groupby("coupling")
            for (name, text, style), colour in zip(series, ("#000000", *COLOURS), strict=False):
                means, spread = here[name].mean(), here[name].std().fillna(0)
                ax.errorbar(means.index, means, yerr=spread, fmt=style, color=colour, capsize=2, label=text)
            ax.set_ylim(0, 17.5)
            label(ax, "coupling $c$, nats", "entropy, nats", f"4x4, {kind}, $f$ = {field:g}")
        ax = axes[row, 2]
        by = {(f, c): part for (f, c), part in _advantages(random[random.kind == kind]).groupby(["field", "coupling"])}
        couplings = sorted({c for f, c in by if (by[f, c]["size"] > SMALL).any() and c > 0})
        for (f, c), part in by.items():
            if c in couplings:
                style = {"color": COLOURS[couplings.index(c)], "linestyle": "-" if f == 1 else "--"}
                text = f"$f$ = {f:g}, $c$ = {c:g}"
                ax.errorbar(part["size"], part["mean"], yerr=2 * part.error, marker="o", capsize=2, label=text, **style)
        ax.set(xscale="log", ylim=(0, None))
        ax.set_xticks(ticks := sorted(random["size"].unique()), [str(size) for size in ticks], rotation=45)
        ax.minorticks_off()
        label(ax, "side of the grid", "marginals less perturb-max,\nnats a variable", kind)
    axes[0, 0].legend(loc="upper right")
    return legend_below(figure, axes[0, 2], 3)


def _advantages(found):
    """Marginal bound less perturb-max bound, nats a variable: mean over models by family, and its error."""
    found = found.assign(advantage=(found.marginal - found.noise) / found["size"] ** 2)
    found = found.groupby(["kind", "field", "coupling", "size"]).advantage.agg(["mean", "std", "size"])
    found["error"] = found.pop("std") / found.pop("size") ** 0.5
    return found.reset_index()


def _small(least, most=math.inf, kind=None):
    """4x4 models with couplings in a range."""
    return select(f"coupling >= {least} and coupling < {most}", origin="random", size=SMALL, kind=kind or list(KINDS))


def _counted(frame):
    """The entropy from counts of the model that misses its exact entropy most; the correction is its possible bias."""
    found = UNCOUPLED(frame)
    return replace(furthest(found.entropy - found["product"], found.entropy_error), error=found.correction.abs().max())


def _tighter(kind, least, most):
    scaled = [lambda found, name=name: found[name] * SMALL**2 for name in ("mean", "error")]
    return _small(least, most, kind).then(_advantages).number(*scaled).lowest()


@measure
def _larger(frame, kinds):
    """Advantage of the largest models less that of 6x6, lowest over fields and couplings: for each variable, or of
    several kinds in all."""
    found = _advantages(select("coupling > 0", origin="random", kind=kinds)(frame))
    scale = 1.0 if kinds in KINDS else found["size"] ** 2
    found = found.assign(mean=found["mean"] * scale, error=found.error * scale).set_index(["kind", "field", "coupling"])
    low, high = found[found["size"] == MIDDLE].align(found[found["size"] == found["size"].max()], join="inner")
    return lowest(high["mean"] - low["mean"], np.hypot(high.error, low.error))


UNCOUPLED = _small(0, 1e-9)


SOURCE = "Hazan et al. Figure 7"
OWN = "this project"

CAPTION = """\
Left and middle: the entropy of the maximiser of phi + sum_i gamma_i on 4x4 spin glasses with fields of strength f, \
counted from perturbations, and its two upper bounds: E sum_i gamma_i(x_i*), and the sum of the entropies of the \
marginals; means over random models, bars are their standard deviations. Right: by how much the bound by marginals \
exceeds the other one, for each variable, on grids up to 100x100; bars are two standard errors of the mean over \
models. Maxima of attractive models are exact. Those of mixed ones above 10x10 are the best that a search found. The \
source's figure shows the same for one strength of fields, which it does not name, and one choice of signs; in it, \
too, the perturb-max bound is the tighter one."""


# fmt: off
CLAIMS = [
    Claim("entropy bound", "Hazan et al. Theorem 4", "bound", ">", 0.0,
        _small(1e-9)
        .number(lambda found: found.noise - found.entropy, lambda f: np.hypot(f.noise_error, f.entropy_error))
        .lowest(),
        "H(x*) <= E sum_i gamma_i(x_i*) (bound less entropy, nats; 4x4 models with couplings, where it is fewest "
        "standard errors above 0)", scale=0.2),
    Claim("product", "Hazan et al. Corollary 6", "identity", "=", 0.0,
        UNCOUPLED.number(lambda found: found.noise - found["product"], "noise_error").furthest(),
        "for independent variables the bound is the entropy (difference in nats, 4x4 models without couplings, the "
        "furthest from 0)", scale=0.2),
    Claim("counts", OWN, "identity", "=", 0.0, _counted,
        "the entropy from counts of maximisers is the exact one (difference in nats, 4x4 models without couplings, "
        "the furthest from 0; its error includes the correction of the estimator's bias)", scale=0.2),
    *(
        Claim(f"tighter, {words}, {kind}", SOURCE, "comparison", ">", 0.0, _tighter(kind, least, most + 0.01),
            f"the MAP perturbation upper bound is tighter than the marginalization upper bound in the {words} "
            f"coupling strengths (difference in nats on {kind} 4x4 models, mean over models, where it is fewest "
            f"standard errors above 0; {words} is c from {least:g} to {most:g})")
        for kind in KINDS
        for words, least, most in (("medium", MEDIUM, 2.0), ("high", HIGH, 4.0))
    ),
    Claim("tighter, low", OWN, "comparison", ">", 0.0, _tighter(None, 0.1, 0.51),
        "it is tighter at low coupling, too (the same at c from 0.1 to 0.5, both kinds)"),
    *(
        Claim(f"larger, {kind}", SOURCE, "comparison", ">", 0.0, _larger(kind),
            "the larger the model the better the perturb-max bound (bound by marginals less perturb-max bound, a "
            f"variable, in nats, on the largest {kind} models less the same on 6x6, mean over models, at the f and "
            "c where it is fewest standard errors above 0)")
        for kind in KINDS
    ),
    Claim("larger, in all", SOURCE, "comparison", ">", 0.0, _larger(list(KINDS)),
        "the larger the model the better the perturb-max bound (bound by marginals less perturb-max bound, in nats in "
        "all, on the largest models less the same on 6x6, mean over models, at the kind, f and c where it is fewest "
        "standard errors above 0)"),
    Claim("non-negative", "Hazan et al. Corollary 7", "bound", ">", 0.0,
        select(origin="random").number("noise", "noise_error").lowest(),
        "U(p) = E sum_i gamma_i(x_i*) is non-negative (nats, the random model that is fewest standard errors above "
        "0)"),
    Claim("least", "Hazan et al. Corollary 7", "identity", "=", 0.0,
        select(origin="certain").number("noise", "noise_error").read(),
        "U(p) attains its minimal value, 0, for deterministic distributions (U(p) in nats, 4x4, a sure state)",
        scale=0.2),
    Claim("largest", "Hazan et al. Corollary 7", "identity", "=", 0.0,
        select(origin="uniform").number("noise", "noise_error").minus(SMALL**2 * math.log(2)).read(),
        "U(p) is n ln 2 for the uniform distribution (difference in nats, 4x4)", scale=0.2),
    Claim("below uniform", "Hazan et al. Corollary 7", "bound", ">", 0.0,
        select(origin="random")
        .number(lambda found: math.log(2) * found["size"] ** 2 - found.noise, "noise_error")
        .per(lambda found: found["size"] ** 2)
        .lowest(),
        "U(p) attains its maximal value for the uniform distribution (ln 2 less U(p) / n, the random model that is "
        "fewest standard errors above 0)", scale=0.02),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-entropy",
    title="Entropy of perturb-max models of spin glasses, and two upper bounds",
    source=SOURCE,
    version=1,
    presets={
        "quick": {
            "sizes": [[4, 4, 20_000, [0, 1, 4]], [6, 10, 1_000, [1, 4]], [20, 4, 100, [1, 4]]],
            "extremes": 20_000,
        },
        "paper": {
            "sizes": [
                [4, 8, 200_000, [0, 0.1, 0.25, 0.5, 1, 2, 3, 4]],
                [6, 150, 4_000, [1, 2, 4]],
                [10, 40, 2_000, [1, 2, 4]],
                [20, 14, 500, [1, 2, 4]],
                [40, 8, 300, [1, 2, 4]],
                [100, 6, 120, [1, 2, 4]],
            ],
            "extremes": 200_000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
