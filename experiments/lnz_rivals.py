"""Thesis 1.4.1 and 2.1: other methods that ask a MAP solver for ln Z, Monte Carlo, and perturb-and-MAP."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.models.spin_glass import published_spin_glass, random_spin_glass
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.kinds import bound, identity, observed
from thesis_cli.reproduction.measuring import furthest
from thesis_cli.studies.models.pairwise_networks import regular
from thesis_cli.studies.perturbation.rivals import answers

MODELS = Path(__file__).parents[1] / "data" / "models"
FAILURES = 0.05
"""Share of runs in which an interval or a sampled bound may fail."""

CAPTION = """\
Distance from the exact ln Z against seconds on one core and against MAP calls, for one size after the \
other of each method: root mean square over runs with other random numbers. Upper bounds point down, \
lower bounds point up; circles are estimates. The models: 10x10 spin glasses of Figure 2.4 with the \
largest couplings, a random network of 24 variables with 4 states each, and the 4x4 example. Methods \
without MAP calls have no place on the right. The noise of U(0) and L(0) is on each variable, full-rank \
noise on each configuration, so that only the smallest model can be shown. The table has five models more. \
The source lists the methods and has no figure."""


def tasks(settings):
    methods = settings["methods"]
    names = [(name, method) for name in settings["models"] for method in methods]
    return [
        {"model": name, "method": method, "sizes": methods[method], "runs": settings["runs"]} for name, method in names
    ]


def model(name):
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
    the wrong side of a bound; `seconds` is the median wall time of a run. Runs of methods without
    random numbers are alike, and one is done. A method that does not take the model has no row.
    """
    graph = globals()["model"](model)
    log_z = exact_log_partition_function(graph)[0]
    rows = []
    for size, child in zip(sizes, seed.spawn(len(sizes)), strict=True):
        found = [answers(method, graph, size, one) for one in child.spawn(runs if method in RANDOM else 1)]
        for each in zip(*(numbers for numbers, _ in found), strict=True):
            rows.append(
                {"model": model, "log_z": log_z, "method": each[0].method, "side": each[0].side}
                | {"size": " x ".join(map(str, size)), "runs": len(each)}
                | _summary(each, log_z)
                | {"map_calls": each[0].map_calls, "seconds": float(np.median([s for _, s in found]))}
            )
    return pd.DataFrame(rows, columns=COLUMNS)


RANDOM = "unary", "average", "pairs", "full rank", "expanded", "wish", "annealing", "thermodynamic"


def _summary(each, log_z):
    errors = np.array([answer.value for answer in each]) - log_z
    ends = np.array([[answer.low, answer.high] for answer in each])
    rounding = 1e-9 * max(1.0, abs(log_z))
    root = np.sqrt(np.mean(errors**2))
    ratios = np.exp(errors)
    return {
        "error": errors.mean(),
        "error_deviation": _deviation(errors),
        "rms": root,
        "rms_deviation": _deviation(errors**2) / (2 * root) if root else 0.0,
        "ratio": ratios.mean(),
        "ratio_deviation": _deviation(ratios),
        "outside": np.mean((ends[:, 0] > log_z + rounding) | (ends[:, 1] < log_z - rounding)),
    }


def _deviation(values):
    return values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else 0.0


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
    "max-marginals": (6, "^", "max-marginals"),
    "Frank-Wolfe": (1, "-v", "Frank-Wolfe, TRW"),
    "Frank-Wolfe, Bethe": (1, ":o", "Frank-Wolfe, Bethe"),
    "WISH": (3, "-o", "WISH"),
    "mesh Bethe": (3, "s", "mesh Bethe"),
    "annealing": (2, "-o", "annealing"),
    "annealing, below": (2, "--^", "annealing, bound"),
    "thermodynamic": (4, "-o", "thermodynamic"),
    "TRW": (6, "v", "TRW, messages"),
    "belief propagation": (6, "o", "belief propagation"),
}
FLOOR = 1e-3


def plot(frame):
    there = [name for name in SHOWN if name in set(frame.model)]
    figure, axes = panels(len(there), 2, height=2.0, sharey=False)
    axes = np.reshape(axes, (len(there), 2))
    for row, name in zip(axes, there, strict=True):
        for method, (colour, line, text) in LINES.items():
            rows = frame[(frame.model == name) & (frame.method == method)]
            if rows.empty:
                continue
            how = {"color": COLOURS[colour], "label": text}
            row[0].plot(rows.seconds, rows.rms.clip(lower=FLOOR), line, **how)
            if (rows.map_calls > 0).all():
                row[1].plot(rows.map_calls, rows.rms.clip(lower=FLOOR), line, **how)
        for ax, unit in zip(row, ("seconds", "MAP calls"), strict=True):
            ax.set_xscale("log")
            ax.set_yscale("log")
            label(ax, unit if name == there[-1] else "", "distance from $\\ln Z$, nats", SHOWN[name])
    handles, texts = zip(*{t: h for ax in axes[:, 0] for h, t in zip(*ax.get_legend_handles_labels(), strict=True)}.items(), strict=True)
    figure.legend(texts, handles, loc="outside lower center", ncols=4)
    return figure
