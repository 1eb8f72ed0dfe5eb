"""Cooling schedules for partition functions of structures: ratios, samples, and how often they suffice."""

import math

import numpy as np

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import labelled, select
from thesis_cli.structured import schedules
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.ranges import map_range
from thesis_cli.studies.structured.exact_ratios import exact_ratios, needed_numbers, schedule_numbers, uniform_variance
from thesis_cli.studies.structured.families import DIRECTIONS, NEEDLE, family, weights_of_length
from thesis_cli.studies.structured.products import CONTAMINATED, PLANS, PUBLISHED, TRUNCATED, repeated

BOUNDS = 0.5, 1.01, 1.96, 4.04, 7.96, 8.04, 31.96, 32.04
POWERS = 3, 10, 20
FORMULA, WRITTEN, CORRECTED = PUBLISHED
DRAWN = "needle 1", "aligned"
DRAWN_BOUNDS = {FORMULA: 8.04, WRITTEN: 7.96, CORRECTED: 8.04}
GRID = 0.5, 1, 2, 4, 8, 16, 32
ERROR = 0.5
SMALL_ERROR = 0.1
LEVELS = np.arange(0, 101, 2) / 100
SIZES = 5, 10, 20, 40, 80
COLUMNS = ["family", "direction", "method", "bound", "p", "quantity", "at", "value", "standard_error"]


def tasks(settings):
    found = [
        {"part": "ratios", "family": name, "method": direction, "bound": 0.0, "runs": 0}
        for name in settings["ratios"]
        for direction in (DIRECTIONS[1:] if name.startswith(NEEDLE) else settings["directions"])
    ]
    found += [
        {"part": "products", "family": name, "method": method, "bound": length, "runs": settings["runs"]}
        for name in settings["products"]
        for method, length in settings["methods"]
    ]
    needed = {"part": "needed", "family": "rankings", "method": "random", "bound": 0.0, "runs": 0}
    return [*found, needed, {"part": "sizes", "family": "labels", "method": "random", "bound": 4.0, "runs": 20}]


def run(seed, part, family, method, bound, runs):
    """A row for each quantity; `bound` is R |theta|.

    `ratios` are exact: of each schedule, the largest beta, the largest |ln f_i| in units of 1/p, the
    slack of Lemma 2.4, and the largest relative variance of f_i over what Proposition 2.3 and the
    sharper bound sinh(1/p)^2 allow. `products` has errors of `runs` estimates; `covered` is the share
    within a factor of 1 +- 0.5. `needed` counts samples for a factor of 1 +- 0.1, `sizes` those of
    uniform averages.
    """
    rows = PARTS[part](family, method, bound, runs, np.random.default_rng(seed))
    return labelled(rows, COLUMNS, part=part)


def _ratios(name, direction, bound, runs, rng):
    found = family(name)
    start = rng.bit_generator.state
    for length in BOUNDS:
        rng.bit_generator.state = start  # the same direction at each length
        weights = weights_of_length(found, length, direction, rng)
        limits = map_range(found, weights)
        for p in POWERS:
            for method, make in PUBLISHED.items():
                schedule = make(p, length)
                ratios = exact_ratios(found, weights, schedule, limits)
                for quantity, value in schedule_numbers(schedule, ratios, p, limits).items():
                    yield name, direction, method, length, p, quantity, None, value, 0.0
                if (name, direction) == DRAWN and p == 3 and length == DRAWN_BOUNDS[method]:
                    for beta, value in zip(schedule.betas[1:], np.exp(ratios.logs), strict=True):
                        yield name, direction, method, length, p, "ratio", beta, value, 0.0


def _products(name, method, length, runs, rng):
    found = family(name)
    weights = weights_of_length(found, length, "random", rng)
    got = repeated(found, weights, method, runs, ERROR, rng)
    for quantity, (value, error) in got.numbers(ERROR).items():
        yield name, "random", method, length, 3, quantity, None, value, error
    for level, value in zip(LEVELS, np.quantile(np.abs(got.errors), LEVELS), strict=True):
        yield name, "random", method, length, 3, "quantile", level, value, 0.0


def _needed(name, direction, bound, runs, rng):
    found = family(name)
    start = rng.bit_generator.state
    for length in GRID:
        rng.bit_generator.state = start
        weights = weights_of_length(found, length, direction, rng)
        for method, count in needed_numbers(found, weights, length, 3, SMALL_ERROR).items():
            yield name, direction, method, length, 3, "needed", None, count, 0.0


def _sizes(name, direction, length, runs, rng):
    least = 1 / schedules.relative_variance(SMALL_ERROR)
    for size in SIZES:
        found = space("hypercube", size)
        weights = [weights_of_length(found, length, direction, rng) for _ in range(runs)]
        counts = [least * uniform_variance(found, vector) for vector in weights]
        error = np.std(counts, ddof=1) / math.sqrt(runs)
        yield name, direction, "uniform average", length, None, "needed", size, np.mean(counts), error


PARTS = {"ratios": _ratios, "products": _products, "needed": _needed, "sizes": _sizes}


def plot(frame):
    figure, axes = panels(2, 2, height=2.6)
    _plot_ratios(axes[0, 0], frame[frame.quantity == "ratio"])
    _plot_needed(axes[0, 1], frame[frame.part == "needed"])
    _plot_errors(axes[1, 0], frame[frame.quantity == "quantile"])
    _plot_runs(axes[1, 1], frame[frame.part == "products"])
    return figure


NAMES = {FORMULA: "formula, 8.04", WRITTEN: "written out, 7.96", CORRECTED: "corrected, 8.04"}
SHOWN = {CORRECTED: "Theorem 2.5", CONTAMINATED: "Theorem A.1, worst", "sharper": "sharper", "adaptive": "adaptive"}


def _plot_ratios(ax, rows):
    for colour, (method, name), marker in zip(COLOURS, NAMES.items(), "s^o", strict=False):
        part = rows[rows.method == method]
        ax.plot(part["at"], part.value, marker, color=colour, label=name, fillstyle="none", markersize=4)
    for value in (math.expm1(1 / 3), 1 + math.exp(-1 / 3)):
        ax.axhline(value, color="black", linestyle="--", linewidth=0.8)
    ax.set_ylim(0.2, 2.6)
    ax.legend(loc="upper left", title=r"schedule, $R\|\theta\|$", title_fontsize=7)
    label(ax, r"$\beta_i$", r"ratio $\rho_i$", "(a) ratios, needle, $p$ = 3")


def _plot_errors(ax, rows):
    for colour, (method, name) in zip(COLOURS, SHOWN.items(), strict=False):
        part = rows[rows.method == method]
        for at, (_, line) in enumerate(part.groupby("family")):
            ax.plot(line.value / ERROR, line["at"], color=colour, linewidth=0.8, label=None if at else name)
    ax.plot([1], [0.75], "kx", markersize=6, label="promised")
    ax.set(xscale="log", xlim=(1e-7, 3))
    ax.legend(loc="upper left")
    label(ax, r"error of $Z$ over $\varepsilon$", "share of runs", r"(c) errors, $\varepsilon$ = 0.5")


def _plot_runs(ax, rows):
    table = rows.pivot_table(index=["method", "family"], columns="quantity", values="value")
    for colour, (method, name), marker in zip(COLOURS, SHOWN.items(), "os^D", strict=False):
        if method in table.index:
            part = table.loc[method]
            ax.plot(part.samples, part["root mean square"] / ERROR, marker, color=colour, label=name)
    ax.set(xscale="log", yscale="log")
    ax.legend(loc="lower left")
    label(ax, "samples of a run", r"root mean square error over $\varepsilon$", "(d) the same runs")


def _plot_needed(ax, rows):
    for colour, (method, part) in zip(COLOURS, rows.groupby("method", sort=False), strict=False):
        ax.plot(part.bound, part.value, "o-", color=colour, label=method)
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", ylim=(None, 1e12))
    ax.legend(loc="upper left", ncols=2)
    label(ax, r"$R\|\theta\|$, nats", "samples", r"(b) samples for $\varepsilon$ = 0.1, rankings")


def _numbers(quantity, method):
    return select(quantity=quantity, method=method)


def _coverage(*methods):
    """Share of estimates within the factor, where it is fewest standard errors above 3/4."""
    return select(quantity="covered", method=list(methods)).lowest(0.75)


def _fold(first, second):
    """Samples of one method over those of another, R |theta| = 8."""
    counts = select(part="needed", bound=8)
    return counts.where(method=first).over(counts.where(method=second)).number("value").read(1e-9)


OWN = "this project"
SCHEDULE = "Vembu et al. 2.2, cooling schedule"
HOEFFDING = "Vembu et al. 2.2, uniform averages"

CAPTION = """\
(a) Ratios along the two schedules that the source prints and the corrected one, exact, for log-potentials of \
R |theta| and -R |theta|, one structure each; dashed, the bounds of Lemma 2.4. (b) Samples that epsilon = 0.1 takes \
with p = 3 on rankings of 5 items: S of Theorem 2.5; with the sharper bound on the variance; with deviations \
up to epsilon / (1 + epsilon) instead of epsilon / 4, too; with half of the span of log-potentials for R |theta|, \
too; with exact variances on steps of equal variance; and of uniform averages. (c) Errors of 1,000 estimates of \
Z, a line for each space, R |theta| = 2.1; the cross is what is promised, three quarters within epsilon = 0.5. \
Samples are exact, by the algorithm of each space; for Theorem A.1 they are as far from exact as it allows. \
(d) Errors of the same runs beside their samples. The source has no figures."""


REACH = "exp(-1/p) <= f_i <= exp(1/p) (largest |ln f_i|, in units of 1/p, p = 3 to 20"
LEMMA = "exp(1/p) - 1 <= rho_i <= exp(-1/p) + 1 (least distance of rho_i from these bounds"
SHARPER, ADAPTIVE = ([name for name in PLANS if name.startswith(start)] for start in ("sharper", "adaptive"))
METHODS = [
    *([method, 2.1] for method in (CORRECTED, CONTAMINATED, *PLANS)),
    [TRUNCATED, 1.0],
    *([method, 2.1] for method in (FORMULA, WRITTEN)),
]

FAILING = {"tag": "slip", "weight": 6}

# fmt: off
CLAIMS = [
    *(
        claim
        for method, schedule in ((FORMULA, "l = p ceil(R |theta|)"), (WRITTEN, "as it is written out"))
        for claim in (
            Claim(f"f_i, {method}", "Vembu et al. 2.2: 'Given this cooling schedule, observe that'",
                "bound", "<", 1.0, _numbers("reach", method).largest(1e-9),
                f"{REACH}; schedule: {schedule})", finding=SCHEDULE, **FAILING),
            Claim(f"Lemma 2.4, {method}", "Vembu et al. Lemma 2.4", "bound", ">", 0.0,
                _numbers("Lemma 2.4", method).least(1e-9), f"{LEMMA}; schedule: {schedule})", finding=SCHEDULE,
                **FAILING),
            Claim(f"Proposition 2.3, {method}", "Vembu et al. Proposition 2.3", "bound", "<", 1.0,
                _numbers("Proposition 2.3", method).largest(1e-9),
                f"the relative variance of f_i is at most exp(2/p) (largest share of the bound; schedule: {schedule})",
                finding=SCHEDULE, **FAILING),
        )
    ),
    Claim("schedule ends at 1", "Vembu et al. 2.2: 'We use the following cooling schedule'",
        "bound", "<", 1.0, _numbers("largest beta", FORMULA).largest(1e-9),
        "the schedule beta_j = j / q, j < l = p ceil(R |theta|), rises to 1 (its largest beta)", finding=SCHEDULE,
        **FAILING),
    Claim("f_i, corrected", OWN, "bound", "<", 1.0, _numbers("reach", CORRECTED).largest(1e-9),
        f"{REACH}; schedule with l = ceil(q), beta_j = min(1, j / q))", scale=1e-3),
    Claim("Lemma 2.4, corrected", OWN, "bound", ">", 0.0,
        _numbers("Lemma 2.4", CORRECTED).least(1e-9), f"{LEMMA}; corrected schedule)"),
    Claim("Proposition 2.3", OWN, "bound", "<", 1.0,
        _numbers("Proposition 2.3", CORRECTED).largest(1e-9),
        "the relative variance of f_i is at most exp(2/p) (largest share of the bound; corrected schedule)"),
    Claim("sharper variance", OWN, "bound", "<", 1.0, _numbers("sinh", CORRECTED).largest(1e-9),
        "the relative variance of f_i is at most sinh(1/p)^2 (largest share of the bound; corrected schedule)",
        scale=0.01),
    Claim("sharper variance is tight", OWN, "comparison", ">", 0.99, _numbers("sinh", CORRECTED).largest(1e-9),
        "no constant better than sinh(1/p)^2 holds for all spaces (largest share of it)"),
    Claim("samples by sinh", OWN, "comparison", ">", 16.0, _fold("Theorem 2.5", "sharper variance"),
        "with the same use of Chebyshev's inequality sinh(1/3)^2 takes more than 16 times fewer samples than "
        "exp(2/3) (R |theta| = 8, epsilon = 0.1)"),
    Claim("samples of Theorem 2.5", OWN, "comparison", ">", 1000.0, _fold("Theorem 2.5", "span"),
        "Theorem 2.5 asks for more than 1,000 times the samples that its guarantee needs by the span of "
        "log-potentials, all of epsilon and the sharper variance (R |theta| = 8, epsilon = 0.1)"),
    Claim("uniform averages and |Y|",
        "beside Vembu et al. 2.2: 'is not useful due to its dependence on the size of the output space'",
        "comparison", "<", 1.0,
        select(part="sizes", at=max(SIZES)).over(select(part="sizes", at=min(SIZES))).read(),
        "Hoeffding's bound on the error of Z depends on |Y|, but the number of uniform samples that a relative error "
        "takes does not grow with |Y| (samples that 2^80 structures need over those that 2^5 need, R |theta| = 4)",
        finding=HOEFFDING),
    *(
        Claim(id, f"Vembu et al. {id.split(',')[0]}", "bound", ">", 0.75, _coverage(*methods),
            f"an estimate is within a factor of 1 +- epsilon with probability 3/4 (share of runs; {words})")
        for id, methods, words in (
            ("Theorem 2.5", [CORRECTED], "65 l exp(2/p) / epsilon^2 samples, corrected schedule"),
            ("Theorem 2.5, printed schedules", [FORMULA, WRITTEN], "the same on the printed schedules"),
            ("Theorem A.1", [TRUNCATED], "truncated chains of the length of Theorem B.2"),
            ("Theorem A.1, worst samples", [CONTAMINATED], "samples at exactly the distance that is allowed"),
        )
    ),
    Claim("sharper plans", OWN, "bound", ">", 0.75, _coverage(*SHARPER),
        "with the samples of the sharper bounds it still is (share of runs; exact, META and truncated samples)"),
    Claim("adaptive plans", OWN, "comparison", ">", 0.75, _coverage(*ADAPTIVE),
        "with samples by variances of pilot samples it is as well, although nothing proves it (share of runs)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="structured-schedule",
    title="Telescoping products over cooling schedules",
    source="Vembu et al. section 2.2, appendix A",
    version=1,
    presets={
        "quick": {
            "ratios": ["labels", "needle 1", "needle 3", "needle 6"],
            "directions": ["aligned"],
            "products": ["labels"],
            "methods": [[m, b] for m, b in METHODS if m not in (TRUNCATED, "sharper, truncated")],
            "runs": 25,
        },
        "paper": {
            "ratios": [
                *("labels", "label pairs", "rankings", "item scores", "cycles", "subtrees", "partitions"),
                *("needle 1", "needle 3", "needle 6", "needle 8"),
            ],
            "directions": list(DIRECTIONS[:2]),
            "products": ["labels", "rankings", "subtrees", "partitions", "needle 4"],
            "methods": METHODS,
            "runs": 1000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"value": Tolerance(absolute=1e-9)},
    claims=CLAIMS,
)
