"""Statements of Thesis chapter 4 and appendix C on tables of known populations: bounds and identities,
consistency, and the table's embedding as a proxy of mu_X. Noise is seeded: NOT PRIVATE."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Reading, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.studies.privacy.bounds import PRINTED, every_bound, sample_sides
from thesis_cli.studies.privacy.consistency import errors, proxies
from thesis_cli.studies.privacy.published import EPSILONS

DIMENSIONS = 1, 2, 5
STRICT, LOOSE = [0.01, 0.1, 1.0], 10.0
"""Values of epsilon: those of the figures, and one at which the classical formula is not proven."""
NAN = float("nan")
HALVED = Reading("tends to 0: at most half of the error is left for each factor of 100 in the number of rows", 0.0)
"""An error that has a floor falls, too."""


def tasks(settings):
    found = [{"part": "bounds", "dimension": d, "size": 0} for d in settings["dimensions"]]
    found += [
        {"part": "sample", "dimension": d, "size": n} for d in settings["dimensions"] for n in settings["sampled"]
    ]
    found += [{"part": "proxy", "dimension": d, "size": settings["public"]} for d in settings["published"]]
    found += [{"part": "consistency", "dimension": 2, "size": n} for n in settings["rows"]]
    return [{**task, "repetitions": settings["repetitions"][task["part"]]} for task in found]


def run(seed, part, dimension, size, repetitions):
    """A row for each statement and repetition: the two numbers that it relates.

    `size` is the number of rows, public rows or features. Of consistency, `left` is the error of what
    `statement` names; of a proxy, the distance to mu_X, and `right` that to the table's embedding.
    """
    part_of = {"bounds": _bounds, "sample": _sample, "proxy": _proxy, "consistency": _consistency}[part]
    found = [
        {"part": part, "dimension": dimension, "repetition": i, **row}
        for i, child in enumerate(seed.spawn(repetitions))
        for row in part_of(dimension, size, np.random.default_rng(child))
    ]
    frame = pd.DataFrame(found)[["part", "statement", "dimension", "size", "epsilon", "repetition", "left", "right"]]
    return frame.assign(**{side: [float(f"{x:.8g}") for x in frame[side]] for side in ("left", "right")})


def _bounds(dimension, size, rng):
    return [side._asdict() for side in every_bound(dimension, rng)]


def _sample(dimension, size, rng):
    return [side._asdict() for side in sample_sides(dimension, size, rng)]


def _proxy(dimension, size, rng):
    found, of_table = proxies(dimension, size, 1, rng)
    rows = [("proxy", x.epsilon, x.to_population, x.to_table) for x in found] + [
        ("the table itself", NAN, of_table, 0.0)
    ]
    return [dict(zip(("statement", "epsilon", "left", "right"), row, strict=True)) | {"size": size} for row in rows]


def _consistency(dimension, size, rng):
    found = errors(size, rng)
    return [{"statement": s, "size": size, "epsilon": NAN, "left": x, "right": NAN} for s, x in found.items()]


def _ratio(statement, **where):
    """Left side over the right one."""
    return select(statement=statement, **where).number("left").per("right")


def _most(statement, **where):
    """Largest ratio of the two sides; they are written with eight digits."""
    return _ratio(statement, **where).largest(error=1e-6, weakest=False)


def _logs(*statements):
    """Means of ln error by N."""
    return select(statement=list(statements)).number(lambda f: np.log(f.left)).means("statement", "size")


def _falls(statements, steps):
    """Largest ln ratio of the errors at one N and at the N that many steps before, of all
    statements."""
    logs = _logs(*statements)
    before = logs.then(lambda f: f.assign(size=f.groupby("statement")["size"].shift(-steps)))
    return logs.less(before, "statement", "size").largest()


def plot(frame):
    figure, axes = panels(2, 2, height=3.6)
    _plot_bounds(axes[0, 0], frame)
    for ax, (title, curves) in zip(axes[1], CURVES.items(), strict=True):
        for (statement, name), colour, style in zip(curves.items(), COLOURS, STYLES, strict=False):
            logs = _logs(statement)(frame)
            low, middle, high = (np.exp(logs.value + s * logs.standard_error) for s in (-2, 0, 2))
            bars = [middle - low, high - middle]
            ax.errorbar(logs["size"], middle, bars, color=colour, label=name, mfc="white", **style)
        ax.set(xscale="log", yscale="log")
        label(ax, "rows $N$ of the table", "error", title)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), handlelength=1.5)
    _plot_proxies(axes[0, 1], frame)
    return figure


def _plot_bounds(ax, frame):
    for at, statement in enumerate(BARS):
        ratios = _ratio(statement).where(f"epsilon != {LOOSE}")(frame).value
        ax.plot(ratios, np.full(len(ratios), at), "|", color=COLOURS[0], alpha=0.25, markersize=7)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set_yticks(range(len(BARS)), BARS.values())
    ax.set(ylim=(len(BARS) - 0.5, -0.5), xlim=(-0.02, 1.1))
    label(ax, "left side / right side", "", "Bounds of the proofs")


def _plot_proxies(ax, frame):
    ratios = _ratio("proxy")(frame).groupby(["dimension", "epsilon"]).value.mean()
    for (dimension, found), colour, mark in zip(ratios.groupby(level=0), COLOURS, "os", strict=False):
        ax.plot(found.index.get_level_values(1), found, f"{mark}-", color=colour, label=f"$D$ = {dimension}")
    ax.axhline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", ylim=(0.8, None))
    ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    ax.minorticks_off()
    label(ax, r"$\varepsilon$", "distance to $\\mu_X$ over\ndistance to the table's embedding", "Proxy (C.2.1)")
    if len(ratios):
        ax.legend()


FUNCTIONS, SIDES = ("product", "maximum"), "largest ratio of the two sides"
STYLES = [
    {"fmt": f"{mark}{line}", "markersize": size}
    for mark, line, size in zip("osD^vx", ("-", "-", "-", "--", ":", ":"), (8, 5.5, 3, 5, 6, 4), strict=True)
]
BARS = {
    "Lemma 6": "Lemma 6",
    "eq. C.20": "Prop. 10, eq. C.20",
    "eq. C.28": "Prop. 14, eq. C.28",
    "eq. C.2": "Lemma 4, eq. C.2",
    "eq. C.5": "Theorem 10, eq. C.5",
    "eq. C.17": "Prop. 12, eq. C.17",
    "Lemma 7": "Lemma 7",
    "eq. C.26": "Theorem 11, eq. C.26",
    "eq. 4.5": "eq. 4.5",
    "exponential mechanism": "4.3.4, mechanism",
}
CURVES = {
    "Estimates of $\\mu_X$ and of means": {
        "Algorithm 2: X": "Algorithm 2 (Theorem 10)",
        "Algorithm 3: X": "Algorithm 3 (Theorem 11)",
        "C = 1: X": "weights with $C$ = 1 (Theorem 13)",
        "Algorithm 2: projection": "projection error (Lemma 4)",
        "Algorithm 2: MMD": "MMD (eq. 4.6)",
        "Algorithm 2: mean of h": "mean of $h$ (eq. 4.5)",
    },
    "Estimates of $\\mu_{f(X)}$": {
        f"{name}: {f}": f"{shown}, {f}"
        for name, shown in (("C = 1", "$C$ = 1"), ("C = 2", "$C$ = 2"), ("Algorithm 3", "Algorithm 3"))
        for f in FUNCTIONS
    },
}
CAPTION = (
    "Upper left: the two sides of inequalities in the proofs of Thesis chapter 4, on small random tables in one, two "
    "and five dimensions; each stroke is the ratio for one table, and none may be to the right of the line at 1. "
    "Upper right: for releases of the table of Figure 4.1 by Algorithm 2 with 319 public rows, the distance to the "
    "embedding of the population over that to the embedding of the table, which the thesis reports instead. Lower "
    "panels: errors of releases of N rows of X on a grid in the plane, at epsilon = 1 and delta = 1e-6, as N grows: "
    "of the embedding of X, of the projection, of the maximum mean discrepancy (MMD), of means of functions, and of "
    "the embeddings of two functions of X, the product and the maximum of its coordinates. Marks of the lower panels "
    "are geometric means of 20 tables, bars two standard errors. The thesis proves or assumes these statements and "
    "has no figure of them."
)


ANY = "for any two tables that differ in one row, "
OF_F = "applying f, the product or the maximum, to the points of"
PRIVATE = "(epsilon, delta)-private"

# fmt: off
CLAIMS = [
    *(
        Claim(name, f"Thesis {source}", "bound", "<", 1.0, _most(side, **where), f"{statement} ({SIDES})")
        for name, source, side, where, statement in (
            ("eq. C.20", "Proposition 10, eq. C.20", "eq. C.20", {}, f"{ANY}projections are at most 2/N apart"),
            ("Proposition 10", "Proposition 10", "Proposition 10", {"epsilon": STRICT},
                f"Algorithm 2 is {PRIVATE}: at epsilon = 0.01, 0.1 and 1 the exact delta of its noise is at most 1e-6"),
            ("Proposition 14", "Proposition 14", "Proposition 14", {"epsilon": STRICT},
                f"Algorithm 3 is {PRIVATE}: at epsilon = 0.01, 0.1 and 1 the exact delta of its noise is at most 1e-6, "
                "for two rows with opposite features"),
        )
    ),
    Claim("Proposition 14, epsilon = 10", "Thesis Proposition 14 and 4.2.1", "bound", "<", 1.0,
        _most("Proposition 14", epsilon=LOOSE),
        f"Algorithm 3 is {PRIVATE} for every epsilon > 0, such as 10 ({SIDES})",
        finding="4.2.1, Gaussian mechanism at epsilon of 1 and above", tag="substantive", weight=9,
        headline="Algorithm 3 adds too little noise for its privacy at epsilon = 10, since the formula of section "
        "4.2.1 is proven for epsilon below 1 only; at the epsilons of the thesis's own runs it is private."),
    Claim("norm of printed features", "beside Thesis 4.5: the published code", "comparison", ">", 1.0,
        _most("printed features"),
        f"the {PRINTED:,} Fourier features sqrt(2/J) cos(w . x + b) of the published code do not have the norm of at "
        "most 1 that Proposition 14 asks for (largest squared norm)"),
    *(
        Claim(name, f"Thesis {source}", "bound", "<", 1.0, _most(name.removesuffix(", bound")), f"{words} ({SIDES})")
        for name, source, words in (
            ("eq. C.2", "Lemma 4, eq. C.2",
                "the projection error is at most the mean distance of k(x, .) to that of the nearest point"),
            ("eq. C.5", "Theorem 10, eq. C.5",
                "the distance of a release to the table's embedding is at most privacy error + projection error"),
            ("eq. C.17", "Proposition 12, eq. C.17",
                "with public rows the projection error is at most the error of their uniform weights"),
            ("eq. C.26", "Theorem 11, eq. C.26",
                "the reduced set error is at most the privacy error, for the best weights of points that include the "
                "table's rows"),
            ("Lemma 7", "Lemma 7",
                "the random features error is at most 2 sqrt(delta), delta the largest error of an inner product"),
            ("eq. 4.5, bound", "eq. 4.5",
                "the error of the mean of a function h of the RKHS is at most |h| times the RKHS distance"),
            ("exponential mechanism", "4.3.4, paragraph 2: 'differential privacy is achieved by releasing R'",
                "the exponential mechanism is epsilon-private: over all tables that it may release, the ln ratio of "
                "their probabilities is at most epsilon"),
        )
    ),
    Claim("privacy error", "Thesis eq. C.6", "identity", "=", 1.0,
        _ratio("eq. C.6").means("dimension", "size", least=10).furthest(1.0),
        "the mean squared privacy error of released weights is F times the variance of the noise, F the number of "
        "coordinates (ratio, the furthest from 1)", scale=0.2),
    Claim("finite sample", "Thesis 4.2.2: 'independently of the dimension of'", "identity", "=", 1.0,
        _ratio("finite sample").means("dimension", "size", least=10).furthest(1.0),
        "the table's embedding converges to mu_X at the rate N^(-1/2) in every dimension: its mean squared "
        "distance is (1 - |mu_X|^2)/N (ratio, the furthest from 1 of all dimensions and sizes)", scale=0.3),
    *(
        Claim(name, f"Thesis {source}", "comparison", "<", -steps / 2 * np.log(2), _falls(curves, steps),
            f"{statement}: the error tends to 0 (largest ln of its ratio, at {10**steps:,} times as many rows)",
            reading=HALVED)
        for name, source, statement, curves, steps in (
            ("Lemma 4", "Lemma 4", "the projection error vanishes, M = sqrt(N)", ["Algorithm 2: projection"], 2),
            ("Theorem 10", "Theorem 10", "Algorithm 2 is consistent, M = sqrt(N)", ["Algorithm 2: X"], 2),
            ("Theorem 11", "Theorem 11", "Algorithm 3 is consistent, J = 2 N^(2/3)", ["Algorithm 3: X"], 2),
            ("Theorem 13", "Theorem 13", "Algorithm 2 with sum |w| <= 1 or 2 stays consistent",
                ["C = 1: X", "C = 2: X"], 2),
            ("eq. C.8", "Theorem 13, eq. C.8",
                f"{OF_F} Algorithm 2 with sum |w| <= 1 or 2 is consistent for f(X)",
                [f"C = {c}: {f}" for c in (1, 2) for f in FUNCTIONS], 2),
            ("Corollary 14", "Corollary 14", f"{OF_F} Algorithm 3 is consistent for f(X)",
                [f"Algorithm 3: {f}" for f in FUNCTIONS], 2),
            ("eq. 4.5", "eq. 4.5", "a release estimates means of functions", ["Algorithm 2: mean of h"], 2),
            ("eq. 4.6", "eq. 4.6", "a release and a sample estimate the MMD", ["Algorithm 2: MMD"], 4),
        )
    ),
    *(
        Claim(f"proxy, D = {d}, epsilon = {e:g}", "Thesis C.2.1: 'is also a good proxy for the RKHS distance'",
            "comparison", "=", 1.0,
            _ratio("proxy", dimension=d, epsilon=e).mean(least=3),
            "the distance to the table's embedding can be expected to be a good proxy for that to the population's, "
            f"mu_X: Algorithm 2 with 319 public rows, D = {d}, epsilon = {e:g} (distance to mu_X over distance to the "
            "table's embedding)",
            finding="C.2.1, the table's embedding as a proxy", tag="reading", weight=2, scale=1.3,
            reading=Reading("good: within a factor of two", 1.0))
        for d in (2, 5)
        for e in EPSILONS
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="embeddings",
    title="Bounds, identities and consistency of kernel mean embeddings (seeded noise: NOT PRIVATE)",
    source="Thesis chapter 4 and appendix C",
    version=1,
    presets={
        "quick": {
            **{"dimensions": [2], "sampled": [30], "published": [], "public": 20, "rows": [100, 1000]},
            "repetitions": {"bounds": 4, "sample": 10, "proxy": 3, "consistency": 3},
        },
        "paper": {
            **{"dimensions": list(DIMENSIONS), "sampled": [30, 300, 3000], "published": [2, 5], "public": 319},
            "rows": [100, 1000, 10_000, 100_000, 1_000_000],
            "repetitions": {"bounds": 400, "sample": 400, "proxy": 10, "consistency": 240},
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Eight digits are written; sides near 0 are differences of numbers near 1, and weights under a
    # constraint stop within 1e-3 of the least squared distance.
    tolerances=dict.fromkeys(("left", "right"), Tolerance(relative=1e-3, absolute=1e-7)),
    caption=CAPTION,
    claims=CLAIMS,
)
