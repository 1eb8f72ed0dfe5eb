"""Kernel semantics: Theorems 1 and 2 as rates, reductions beside Monte Carlo, bounds, conditioning."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from thesis_cli.embeddings.kernels import KERNELS, median_distance
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.semantics.cases import CONDITIONED, EXAMPLES, PAIRS
from thesis_cli.studies.semantics.evaluations import EvaluationJudge, Way, released
from thesis_cli.studies.semantics.figures import (
    CHOSEN,
    CONDITIONS,
    EQUAL,
    RANDOM,
    REDUCTIONS,
    SAMPLES,
    SUM,
    plot,
    reduced,
)
from thesis_cli.studies.semantics.operators import (
    distance_from_zero,
    growth,
    largest_ratio,
    positive,
    scaling,
    vanishing_steps,
)
from thesis_cli.studies.semantics.rates import dense, log_slope, mean_errors

RELEASE, INFINITE = "release", "infinite expansions"
RELEASES = Path(__file__).parents[1] / "data" / "releases"
QUANTILES, DEEP, SUMS = "quantiles", "deep sum", ("sum", "deep sum")
SMOOTH = {"tanh(x)": np.tanh, "x / 2": lambda x: x / 2}
STEPS, ORDERS, DIVISORS = [1, 10, 100, 10_000], [2, 4, 6, 8, 10], [1, 2, 4, 10]
ACCURACY = ["error", "standard_error", "bound", "distance", "distance_bound"]
COSTS = ["values", "reductions", "monte_carlo", "seconds", "monte_carlo_seconds"]
COLUMNS = ["part", "subject", "kernel", "method", "size", "rate", *ACCURACY, *COSTS]


def tasks(settings):
    sizes, repeats = settings["samples"], settings["repeats"]
    found = [
        {"part": SAMPLES, "subject": pair, "kernel": kernel, "method": weights, "sizes": sizes, "repeats": repeats}
        for pair, kernel, weights in settings["theorems"]
    ]
    common = {"kernel": "gaussian", "sizes": settings["sizes"]}
    found += [
        {"part": REDUCTIONS, "subject": name, "method": method, "repeats": 1, **common}
        for name in settings["examples"]
        for method in settings["methods"]
    ]
    found.append({"part": RANDOM, "subject": DEEP, "method": "random", "repeats": settings["runs"], **common})
    found += [
        {"part": CONDITIONS, "subject": name, "method": QUANTILES, "repeats": settings["conditionings"], **common}
        for name in settings["conditioned"]
    ]
    found += [
        {"part": RELEASE, "subject": "people", "method": method, "repeats": 1, **common}
        for method in settings["methods"]
    ]
    infinite = {"part": INFINITE, "kernel": "gaussian", "repeats": 1}
    found += [
        {**infinite, "kernel": k, "subject": "multiples", "method": "x / size", "sizes": DIVISORS} for k in KERNELS
    ]
    found += [{**infinite, "subject": "steps", "method": name, "sizes": STEPS} for name in ("x", "x > 0")]
    return found + [{**infinite, "subject": "oscillation", "method": name, "sizes": ORDERS} for name in SMOOTH]


def run(seed, part, subject, kernel, method, sizes, repeats):
    """A row for each size.

    error: RKHS distance from the exact law, with its mean and standard error over `repeats`; rate:
    sqrt(sum alpha^2) + sqrt(sum beta^2); the other columns as in `Accuracy`.
    """
    rng = np.random.default_rng(seed)
    if part == SAMPLES:
        pair = PAIRS[subject]
        scale = median_distance(dense(pair.law))
        found = mean_errors(pair, KERNELS[kernel](scale), method, sizes, repeats, rng)
        rows = [dict(zip(("rate", "error", "standard_error"), row, strict=True)) for row in found]
    elif part == INFINITE:
        unit = KERNELS[kernel](1.0)
        rows = [{"error": _infinite(unit, subject, method, size)} for size in sizes]
        if subject == "multiples":
            rows = [{**row, "bound": scaling(unit, 1 / size)} for row, size in zip(rows, sizes, strict=True)]
    elif part == RELEASE:
        rows = [asdict(released(RELEASES / f"{subject}.csv", Way(size, method), rng)) for size in sizes]
    else:
        judge = EvaluationJudge(CONDITIONED[subject] if part == CONDITIONS else EXAMPLES[subject])
        draws = "random" if part == RANDOM else "cells"
        rows = [asdict(judge.accuracy(Way(size, method, draws, repeats), rng)) for size in sizes]
    frame = pd.DataFrame(rows).assign(part=part, subject=subject, kernel=kernel, method=method, size=sizes)
    return frame.reindex(columns=COLUMNS)


def _infinite(kernel, subject, method, size):
    """Distance of the image of `size` terms from that of their sum, growth of an oscillation of an order, or norm of
    a multiple."""
    if subject == "multiples":
        return largest_ratio(kernel, 1 / size)
    if subject == "oscillation":
        return growth(kernel, SMOOTH[method], size)
    steps = vanishing_steps(size)
    return distance_from_zero(kernel, steps if method == "x" else steps.map(positive))


def _slopes(x, *by):
    """Change of rows to the exponent of the mean error in `x` for each group."""

    def slopes(found):
        groups = [group for _, group in found.groupby(list(by))]
        laws = [log_slope(*(g[c].to_numpy(float) for c in (x, "error", "standard_error"))) for g in groups]
        return pd.DataFrame([(s.value, s.standard_error) for s in laws], columns=["value", "standard_error"])

    return slopes


def _errors(**equal):
    return select(**equal).number("error", "standard_error")


def _last_over_first(found, by="part"):
    return found.last(by).over(found.first(by), by)


@measure
def _least(frame, of, over, reference):
    """Least ratio of a bound to the distance from the exact law, which is known to within `reference`."""
    part = select(part=REDUCTIONS)(frame).dropna(subset=[of, over]).reset_index(drop=True)
    ratio = part[of] / part[over]
    at = ratio.idxmin()
    return Measurement(ratio[at], error=ratio[at] * reference / part[over][at])


@measure
def _looseness(frame, sums):
    """Median ratio of RKHS bound and distance, by quantiles, of sums or of the other expressions."""
    part = select(part=REDUCTIONS, method=QUANTILES)(frame)
    part = part[part.subject.isin(SUMS) == sums]
    return Measurement((part.bound / part.error).median())


def _against_monte_carlo(frame):
    """Geometric mean over expressions, by quantiles of the largest size, of the error over that of Monte Carlo."""
    part = reduced(frame)
    part = part[(part.method == QUANTILES) & (part["size"] == part["size"].max())]
    return None if part.empty else Measurement(np.exp(np.log(part.error / part.monte_carlo).mean()))


def _last_infinite(subject, method):
    return select(part=INFINITE, subject=subject, method=method).number("error").read(1e-6, -1)


def _release_bound(frame):
    return _bound_over_error(RELEASED).most_off(1.0, error=3e-7 / RELEASED(frame).error.min())(frame)


def _bound_over_error(found):
    return found.number(lambda f: f.bound / f.error)


RELEASED = select(part=RELEASE, method=QUANTILES)


OWN = "this project"
WORK = "Scibior and Schoelkopf"
THEOREMS = [
    *((pair, kernel, EQUAL) for pair in PAIRS for kernel in KERNELS),
    *((pair, "gaussian", weights) for pair in (SUM, "X / Y") for weights in ("signed", "decaying", "uneven")),
    (SUM, "gaussian", CHOSEN),
]
METHODS = ["random", QUANTILES, "herding", "frank-wolfe", "nystrom", "atoms"]

CAPTION = """\
(a) Mean RKHS distance of the embedding of f(X, Y) from m samples of each variable to the exact one, for four \
functions (solid: Gaussian kernel, dashed: Laplace). (b) The same for weighted samples, against the rate of Theorem \
2; the weights 1/m on the samples above the median depend on the samples, and their error stays. (c) Error of ten \
expressions, evaluated with a reduction after every operation, by method and size of the expansions; black, a sum of \
eight with random draws and random reductions. (d) The same over the error of Monte Carlo with as many evaluations of \
functions, and (dotted) in as much time. (e) The program's bounds and the distances themselves. (f) Conditioned \
expressions whose laws are known. The source has no figure and no measurements."""

# fmt: off
CLAIMS = [
    Claim("Theorem 1, rate", f"{WORK} Theorem 1", "bound", "<", -0.5,
        select(part=SAMPLES, method=EQUAL).then(_slopes("size", "subject", "kernel")).lowest(-0.5, sign=-1.0),
        "the RKHS error of f(X, Y) from m samples of each variable is at most of order 1 / sqrt(m), for every "
        "measurable f (exponent of the mean error in m, that of four functions and two kernels which comes closest)",
        scale=0.15, reading=Reading("as m tends to infinity: below -0.46 for m from 16 to 256", 0.04)),
    Claim("Theorem 2, rate", f"{WORK} Theorem 2", "bound", ">", 1.0,
        select(f"method not in {[EQUAL, CHOSEN]}", part=SAMPLES)
        .then(_slopes("rate", "subject", "kernel", "method"))
        .lowest(1.0),
        "the RKHS error from weighted samples is at most of order sqrt(sum alpha^2) + sqrt(sum beta^2) (exponent "
        "of the mean error in that rate, least of signed, decaying and uneven weights)", scale=0.4,
        reading=Reading("as m tends to infinity: above 0.95 for m from 16 to 256", 0.05)),
    Claim("Theorem 2, constants", OWN, "comparison", ">", 0.75,
        _last_over_first(_errors(part=SAMPLES, method=CHOSEN)).read(),
        "the weights of Theorem 2 must not depend on the samples: equal weights on the samples above the median "
        "satisfy its conditions on sums, and the error does not vanish (error at the largest m over that at the "
        "smallest)"),
    Claim("after reductions", OWN, "comparison", "=", -0.5,
        select(part=RANDOM).then(_slopes("size", "part")).furthest(-0.5),
        "the rate of Theorem 1 holds for points that are not independent, those of seven random reductions one "
        "after another (exponent of the mean error in the size, sum of eight)", scale=0.2,
        reading=Reading("within 0.05 for sizes from 20 to 200", 0.05)),
    Claim("section 3, equivalence", f"beside {WORK} section 3: 'this semantics is equivalent'", "comparison", "<", 0.6,
        _last_over_first(_errors(part=REDUCTIONS, method=QUANTILES), "subject").number("value").largest(),
        "expressions evaluated with the finite expansions of this project, by quantiles, tend to their laws in measure "
        "theory (largest ratio of the error at the largest size to that at the smallest, ten expressions)"),
    Claim("section 3, any expansion", f"{WORK} section 3: 'Using those expansions'",
        "identity", "=", 0.0, _last_infinite("steps", "x > 0"),
        "[[f(e)]] is sum_i a_i Phi(f(x_i)) for an infinite expansion sum_i a_i Phi(x_i) of [[e]] (distance of the "
        "two for an expansion of the constant 0, 10,000 terms, and f = 1 where x > 0)",
        finding="Scibior and Schoelkopf 3, infinite expansions", tag="substantive", weight=6, scale=0.01),
    Claim("that expansion", OWN, "identity", "=", 0.0, _last_infinite("steps", "x"),
        "the same expansion is one of the constant 0 (distance after 10,000 terms)", scale=0.01,
        reading=Reading("tends to 0: within 0.001", 0.001)),
    Claim("section 3, smooth functions", OWN, "comparison", ">", 10.0, _last_infinite("oscillation", "tanh(x)"),
        "small elements of the RKHS of the Gaussian kernel may have large images under a smooth f that is not "
        "affine (norm of the image under tanh of a difference of order 10, over its norm)"),
    Claim("multiples", OWN, "identity", "=", 1.0,
        _bound_over_error(select(part=INFINITE, subject="multiples")).most_off(1.0, error=0.01),
        "the map from the embedding of X to that of c X has the norm |c|^(-1/2) for |c| <= 1, with both kernels "
        "(that over the largest ratio found, furthest from 1)"),
    Claim("RKHS bound", OWN, "bound", ">", 1.0, _least("bound", "error", 1e-5),
        "composed bounds are above the RKHS distance from the exact law (least ratio)"),
    Claim("W1 bound", OWN, "bound", ">", 1.0, _least("distance_bound", "distance", 2e-4),
        "composed bounds are above the W1 distance from the exact law (least ratio)"),
    Claim("RKHS bounds of sums", OWN, "comparison", "<", 4.0, _looseness(True),
        "bounds of sums and multiples compose in the RKHS and stay near the distance (median ratio of the two, "
        "sums of two and of eight)"),
    Claim("RKHS bounds by W1", OWN, "comparison", ">", 5.0, _looseness(False),
        "bounds of other functions go through W1, which makes them more than five times too large (median ratio)"),
    Claim("random and Monte Carlo", OWN, "comparison", ">", 1.0,
        _errors(part=RANDOM).per("monte_carlo").read(place=-1),
        "random reductions lose what they compute: their error is above that of Monte Carlo with as many "
        "evaluations (ratio at the largest size, sum of eight)"),
    Claim("quantiles and Monte Carlo", OWN, "comparison", "<", 1.0, _against_monte_carlo,
        "reductions to quantiles have a smaller error than Monte Carlo with as many evaluations (geometric mean of "
        "the ratio)"),
    Claim("a release, bound", OWN, "identity", "=", 1.0, _release_bound,
        "the rows and weights of a private release are an exact expansion of its columns, so that the bound of a "
        "function of them is the RKHS distance itself (bound over distance, furthest from 1)", scale=0.01),
    Claim("a release, quantiles", OWN, "comparison", "<", 0.01,
        RELEASED.number("error").read(),
        "the 1,000 rows of a release are replaced by 20 quantiles at an RKHS error below 0.01"),
    Claim("conditioning, two observations", OWN, "comparison", ">", 1.0,
        _errors(part=CONDITIONS, subject="two normal")
        .over(_errors(part=CONDITIONS, subject="normal"), "size")
        .read(place=-1),
        "each observed value costs accuracy, since combinations are sampled beyond 2^18: the error of a normal "
        "mean given two observations is above that given one (ratio at the largest size)"),
    *(
        Claim(f"conditioning, {name}", f"beside {WORK} section 5: a hope", "comparison", "<", 0.6,
            _last_over_first(_errors(part=CONDITIONS, subject=name)).read(),
            f"conditional mean embeddings condition expressions: the error vanishes as the size grows ({text}; "
            "error at the largest size over that at the smallest)")
        for name, text in (
            ("normal", "a normal mean given one observation"),
            ("gamma", "a gamma rate given one"),
            ("beta", "a coin's bias given a head"),
            ("event", "a normal variable given an event"),
        )
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="kernel-semantics",
    title="Kernel semantics of probabilistic expressions: rates, reductions, bounds and conditioning",
    source="Scibior and Schoelkopf sections 3 to 5",
    version=1,
    presets={
        "quick": {
            "theorems": [(SUM, "gaussian", EQUAL), (SUM, "gaussian", "decaying"), (SUM, "gaussian", CHOSEN)],
            "samples": [16, 64],
            "repeats": 30,
            "sizes": [20, 40],
            "examples": ["sum", "quotient", "maximum"],
            "methods": METHODS[:3],
            "runs": 10,
            "conditioned": ["beta"],
            "conditionings": 1,
        },
        "paper": {
            "theorems": THEOREMS,
            "samples": [16, 32, 64, 128, 256],
            "repeats": 300,
            "sizes": [20, 50, 100, 200],
            "examples": list(EXAMPLES),
            "methods": METHODS,
            "runs": 100,
            "conditioned": list(CONDITIONED),
            "conditionings": 20,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={
        **dict.fromkeys(("seconds", "monte_carlo_seconds"), NOT_REPEATABLE),
        # A square of 1e-16 is a distance of 1e-8; descent and greedy choices amplify rounding.
        "error": Tolerance(relative=1e-3, absolute=1e-7),
        "standard_error": Tolerance(relative=1e-3, absolute=1e-10),
        **dict.fromkeys(("bound", "distance", "distance_bound"), Tolerance(relative=1e-3)),
    },
    claims=CLAIMS,
)
