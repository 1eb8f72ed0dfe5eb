"""Thesis 1.4.1 and 2.1: other methods that ask a MAP solver for ln Z, Monte Carlo, and perturb-and-MAP."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import published_spin_glass, random_spin_glass
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.models.network import regular
from thesis_cli.studies.perturbation.baselines import answers, summary

MODELS = Path(__file__).parents[1] / "data" / "models"
FAILURES = 0.05
"""Share of runs in which an interval or a sampled bound may fail."""

WARM = random_spin_glass(3, 3, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()

NORMAL = 0.1
"""Largest standard error of a mean over Z of weights that is taken to be normal."""

CAPTION = """\
Distance from the exact ln Z against processor time, for one size after the other of each method, root mean \
square over runs with other random numbers: methods that ask a MAP solver (left), and others on the same axes \
(right). Upper bounds point down, lower bounds point up; circles are estimates. The models: 10x10 spin glasses \
of Figure 2.4 with the largest couplings, a random network of 24 variables with 4 states each, and the 4x4 \
example. The noise of U(0) and L(0) is on each variable, full-rank noise on each configuration, so that only \
the smallest model can be shown. The table has eight models more. The source lists the methods and has no \
figure."""


def tasks(settings):
    methods, few = settings["methods"], settings["few"]
    names = [(name, method) for name in settings["models"] for method in methods if name in few.get(method, [name])]
    return [
        {"model": name, "method": method, "sizes": methods[method], "runs": settings["runs"]} for name, method in names
    ]


def of_name(name):
    """A model by its name: a file, `protein`, or the kind and coupling of a spin glass."""
    if name.endswith(".uai"):
        return load_model(MODELS / name)
    if name == "protein":
        return regular(24, 3, 4, 1.5, np.random.default_rng(0)).graph
    kind, coupling, *weak = name.split()
    if weak:
        return random_spin_glass(10, 10, float(coupling), 0.1, kind, np.random.default_rng(0)).graph()
    return published_spin_glass(coupling, kind).graph()


COLUMNS = ["model", "log_z", "method", "side", "size", "runs", "error", "error_deviation", "rms", "rms_deviation"]
COLUMNS += ["ratio", "ratio_deviation", "outside", "map_calls", "seconds"]


def run(seed, model, method, sizes, runs):
    """A row for each number that a method gives, at each size, over `runs` runs.

    `error` is the mean of the number less ln Z, `rms` the root of its mean square, `ratio` the mean
    of their exponential, which is 1 for unbiased estimates of Z; each has the standard error of its
    mean beside it. `outside` is the share of the runs in which ln Z is outside the interval, or on
    the wrong side of a bound; `seconds` is the median processor time of a run. Runs of methods without
    random numbers are alike, and one is done. A method that does not take the model has no row.
    """
    graph = of_name(model)
    answers(method, WARM, sizes[0], seed)  # loads what is compiled
    log_z = exact_log_partition_function(graph)[0]
    rows = []
    for size, child in zip(sizes, seed.spawn(len(sizes)), strict=True):
        found = [answers(method, graph, size, one) for one in child.spawn(runs if method in RANDOM else 1)]
        for each in zip(*(numbers for numbers, _ in found), strict=True):
            rows.append(
                {"model": model, "log_z": log_z, "method": each[0].method, "side": each[0].side}
                | {"size": " x ".join(map(str, size)), "runs": len(each)}
                | summary(each, log_z)
                | {"map_calls": each[0].map_calls, "seconds": float(np.median([s for _, s in found]))}
            )
    return pd.DataFrame(rows, columns=COLUMNS)


RANDOM = "unary", "average", "full rank", "expanded", "wish", "wish, banded", "annealing", "thermodynamic"


SHOWN = {
    "attractive 3": "attractive, $C = 3$",
    "mixed 3": "mixed, $C = 3$",
    "protein": "24 variables of 4 states",
    "ising-4x4.uai": "4x4 example",
}
LINES = {
    "unary noise": (0, "-v", "noise, $U(0)$"),
    "averaged noise": (0, "--^", "noise, $L(0)$"),
    "full rank": (0, ":o", "full-rank noise"),
    "mean field": (5, "-^", "expanded, mean field"),
    "Frank-Wolfe": (1, "-v", "Frank-Wolfe, TRW"),
    "Frank-Wolfe, Bethe": (1, ":o", "Frank-Wolfe, Bethe"),
    "WISH": (3, "-o", "WISH"),
    "WISH, below": (3, "--^", "WISH, bound"),
    "mesh Bethe": (4, "^", "mesh Bethe"),
    "max-marginals": (6, "^", "max-marginals"),
}
OTHERS = {
    "annealing": (2, "-o", "annealing"),
    "annealing, below": (2, "--^", "annealing, bound"),
    "thermodynamic": (4, "-o", "thermodynamic"),
    "TRW": (6, "v", "TRW, messages"),
    "belief propagation": (6, "o", "belief propagation"),
}
FLOOR = 1e-3


def plot(frame):
    there = [name for name in SHOWN if name in set(frame.model)]
    figure, axes = panels(len(there), 2, height=2.0, sharex=True, sharey="row")
    axes = np.reshape(axes, (len(there), 2))
    for column, (shown, asked) in enumerate(((LINES, "MAP solver"), (OTHERS, "no MAP solver"))):
        for ax, name in zip(axes[:, column], there, strict=True):
            for method, (colour, line, text) in shown.items():
                part = frame[(frame.model == name) & (frame.method == method)]
                if not part.empty:
                    ax.plot(part.seconds, part.rms.clip(lower=FLOOR), line, color=COLOURS[colour], label=text)
            ax.set(xscale="log", yscale="log")
            ax.tick_params(axis="y", which="minor", labelleft=False)
            unit = "processor time, seconds" if name == there[-1] else ""
            label(ax, unit, "" if column else "distance from $\\ln Z$, nats", f"{SHOWN[name]}: {asked}")
        handles = {text: h for ax in axes[:, column] for h, text in zip(*ax.get_legend_handles_labels(), strict=True)}
        place = f"outside lower {'right' if column else 'left'}"
        figure.legend(handles.values(), handles.keys(), loc=place, ncols=2, fontsize=7)
    return figure


@measure
def _least_bound(frame, method="Frank-Wolfe", sign=1.0):
    """Least distance of a bound from ln Z, on its side."""
    found = frame[frame.method == method]
    if found.empty:
        return None
    worst = found.loc[(sign * found.error).idxmin()]
    return Measurement(sign * worst.error, error=1e-9 * max(1.0, abs(worst.log_z)))


@measure
def _failing(frame, method):
    """Share of runs in which the interval or bound of a method fails."""
    found = frame[frame.method == method]
    if found.empty:
        return None
    runs, failed = found.runs.sum(), (found.runs * found.outside).sum()
    likely = (failed + 1) / (runs + 2)
    return failed / runs, math.sqrt(likely * (1 - likely) / runs)


def _falls(found):
    """Falls of a bound from one number of MAP calls to the next."""
    errors = found.sort_values("map_calls").groupby("model").error
    return found.assign(value=-errors.diff()).dropna(subset="value")


def _difference(first, second, model, at_once=False):
    """Distance from ln Z by one method less that by another on a model, each at its best size, or
    the second `at_once`, at its smallest."""
    ours, theirs = (select(method=method, model=model).number("rms", "rms_deviation") for method in (first, second))
    return ours.best("model").less(theirs.first("model") if at_once else theirs.best("model")).read()


def _annealed(coupling):
    """Error of annealing at its smallest size, by the kind of the couplings."""
    found = select(method="annealing", model=[f"attractive {coupling}", f"mixed {coupling}"]).first("model")
    return found.then(lambda f: f.assign(kind=f.model.str.split().str[0])).number("rms", "rms_deviation")


def _errors(method, **equal):
    return select(method=method, **equal).number("error")


LISTED, RAGGED = "Thesis 1.4.1, list of methods", "Hazan et al. I: 'The resulting posterior'"
KRISHNAN, WISH = (f"beside Thesis 1.4.1: {paper}" for paper in ("Krishnan et al. 2015", "Ermon et al. 2013"))
GRIDS = [f"{kind} {c}" for kind in ("attractive", "mixed") for c in ("0.333333", "1.66667", "3")]
MANY = [*GRIDS, "attractive 3 weak", "mixed 5 weak", "protein", "ising-4x4.uai", "asia.uai", "sat-16-60.uai"]
STRONG = ["mixed 1.66667", "mixed 3", "mixed 5 weak"]
SIZES = {
    "unary": [[10], [100], [1000]],
    "average": [[10], [100], [1000]],
    "full rank": [[100], [1000], [3000]],
    "expanded": [[100], [10_000]],
    "max-marginal": [[]],
    "frank-wolfe": [[10], [30], [100], [300], [1000]],
    "frank-wolfe, bethe": [[100]],
    "wish": [[5], [25], [125]],
    "wish, banded": [[1], [3]],
    "mesh-bethe": [[]],
    "annealing": [[10, 20], [30, 100], [100, 300], [200, 1000]],
    "thermodynamic": [[10, 20], [30, 50], [100, 100]],
    "trw": [[]],
    "bethe": [[]],
}
FEW = {"wish, banded": list(SHOWN)}
QUICK = {
    **{name: SIZES[name][:1] for name in ("average", "max-marginal", "mesh-bethe", "trw", "bethe", "thermodynamic")},
    **{name: SIZES[name][:2] for name in ("unary", "wish")},
    "full rank": [[100]],
    "frank-wolfe": [[10], [40]],
    "annealing": [[30, 100]],
}

BURDEN = "Hazan et al. I: 'avoiding the computational burden of MCMC methods'"
OF_SAMPLERS = (
    "The sentence is about samplers of other papers and their code; these rows compare estimates of ln Z by "
    "the code here."
)

# fmt: off
CLAIMS = [
    Claim("Frank-Wolfe is a bound", KRISHNAN, "bound", ">", 0.0, _least_bound(),
        "Frank-Wolfe estimates ln Z by updating marginals with a MAP solver; its value plus gap is an upper bound "
        "(least distance from ln Z over models and numbers of MAP calls, nats)"),
    Claim("iteratively", KRISHNAN, "comparison", ">", 0.0,
        select(method="Frank-Wolfe").then(_falls).number("value").least(1e-9),
        "Frank-Wolfe updates marginals iteratively, and each round of MAP calls improves on the one before (fall "
        "of the bound to the next number of MAP calls, the least, nats)"),
    Claim("marginals, not messages", KRISHNAN, "comparison", ">", 0.0,
        _errors("TRW", model=STRONG)
        .less(_errors("Frank-Wolfe").then(lambda f: f.sort_values("error").groupby("model").head(1)), "model")
        .least(1e-6),
        "a MAP solver optimises over the marginal polytope, which gives tighter bounds than local consistency "
        "(bound by messages less that by Frank-Wolfe, mixed couplings of 5/3 and more, the least, nats)"),
    Claim("mesh Bethe is below", "beside Thesis 1.4.1: Weller and Jebara 2014", "bound", ">", 0.0,
        _least_bound("mesh Bethe", sign=-1.0),
        "a MAP problem over a mesh of marginals approximates the Bethe partition function, which is at most Z for "
        "attractive models (least distance below ln Z, nats)"),
    Claim("mesh Bethe is Bethe's maximum", LISTED, "comparison", ">", -0.05,
        _errors("mesh Bethe").less(_errors("belief propagation"), "model").least(1e-6),
        "a MAP problem over a mesh approximates the Bethe partition function, its largest value (value less that "
        "of belief propagation, the least over models, nats; the mesh has an error of 0.05)"),
    *(
        Claim(id, source, "bound", "<", FAILURES, _failing(method), f"{statement} (share of runs)")
        for id, source, statement, method in (
            ("WISH covers", WISH, "WISH, MAP under random parity constraints: its 95% interval fails", "WISH"),
            ("WISH from below", WISH, "WISH with constraints on neighbouring bits: its 95% lower bound fails",
                "WISH, below"),
            ("annealing from below", "beside Hazan et al. I: Neal 2001",
                "by Markov's inequality the 95% lower bound of annealing fails in at most one run in 20",
                "annealing, below"),
        )
    ),
    Claim("WISH, factor", WISH, "bound", "<", math.log(16),
        select(method="WISH").last("model").number("rms", "rms_deviation").largest(weakest=False),
        "WISH is within a constant factor of Z, 16, for enough hashes (largest root mean square error of ln Z with "
        "the most hashes, nats)"),
    Claim("annealing is unbiased", "beside Hazan et al. I: Neal 2001", "identity", "=", 1.0,
        select(method="annealing")
        .last("model")
        .where(f"0 < ratio_deviation < {NORMAL}")
        .number("ratio", "ratio_deviation")
        .pooled(),
        "the mean weight of annealed importance sampling is Z in expectation (mean of estimates over Z, over "
        "models where its standard error is below a tenth)"),
    Claim("ragged landscapes", RAGGED, "comparison", ">", 0.0,
        _annealed("3").less(_annealed("0.333333"), "kind").least(weakest=False),
        "in ragged landscapes MCMC may become prohibitively expensive (error of annealed Gibbs chains at C = 3 "
        "less that at C = 1/3 for the same work, the smaller of both kinds of couplings, nats)"),
    *(
        Claim(f"perturbations avoid the burden, {what}", BURDEN, "comparison", "<", 0.0,
            _difference("averaged noise", "annealing", f"{kind} 3", at_once),
            "perturb-and-MAP avoids the computational burden of MCMC in ragged landscapes (distance of L(0) from "
            f"ln Z less that of annealing, {kind} couplings up to 3, {size}, nats)",
            not_comparable=OF_SAMPLERS)
        for what, kind, size, at_once in (
            ("attractive, same time", "attractive", "in the time of 1,000 perturbations", True),
            ("attractive", "attractive", "each at its best size", False),
            ("mixed", "mixed", "each at its best size", False),
        )
    ),
]
# fmt: on


def _tolerance(cells):
    """Corrections of Frank-Wolfe by L-BFGS-B end by small gains: rounding, which depends on the processor, decides
    where, and MAP calls follow."""
    return NOT_REPEATABLE if cells["method"].startswith("Frank-Wolfe") else None


EXPERIMENT = Experiment(
    id="lnz-rivals",
    title="Other methods that ask a MAP solver for ln Z, Monte Carlo, and perturb-and-MAP",
    source="Thesis 1.4.1",
    version=1,
    presets={
        "quick": {"models": ["mixed 3", "ising-4x4.uai"], "methods": QUICK, "few": {}, "runs": 5},
        "paper": {"models": MANY, "methods": SIZES, "few": FEW, "runs": 10},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"seconds": NOT_REPEATABLE},
    rows=_tolerance,
    claims=CLAIMS,
)
