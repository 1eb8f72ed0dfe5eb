"""Figures 4 and 5 of Hazan et al.: errors of bounds on ln Z of 10x10 spin glasses."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.reproduction.error_measurements import (
    extreme,
    least_mean,
    least_of,
    nearer,
    nearest_model,
    pooled_mean,
    relative_scatter,
    share,
    spread,
    time_ratio,
)
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Reading, Tolerance
from thesis_cli.studies.perturbation.error_summary import COLUMNS, NUMBERS, ROUNDING, paired, summary
from thesis_cli.studies.perturbation.grid_bounds import (
    better_bounds,
    cover_bound,
    expanded_bounds,
    message_bounds,
    perturbation_bounds,
)

KINDS, FIELDS = ("attractive", "mixed"), (0.1, 1.0)
MEDIUM, HIGH, STRONG = (1.4, 2.9), (2.9, 5.0), (1.4, 5.0)
"""Medium, high, and both: ranges of the largest coupling in nats, from a third and two thirds of 4."""

PAIRS = [
    ("perturb-max, 10", "perturb-max"),
    ("trw, uniform", "perturb-max"),
    ("trw, optimised", "perturb-max"),
    ("trw-s", "perturb-max, 10"),
    ("expanded", "bethe"),
    ("expanded", "bethe, best start"),
    ("expanded", "mean field"),
    ("expanded", "max-marginals"),
    ("cover", "expanded"),
    ("bethe, best start", "bethe"),
    ("bethe, best start", "max-marginals"),
    ("alpha 0", "alpha -0.05"),
    *((f"{few} clamped", f"{more} clamped") for few, more in ((0, 1), (1, 2), (2, 4), (4, 8), (0, 8))),
    *((name, "blocks 2x2") for name in ("alpha 0", "blocks 1x2", "trw, uniform", "trw, optimised")),
]
"""Methods whose errors are compared model by model: the first less the second."""


def tasks(settings):
    names = "side", "models", "few", "perturbations", "more", "copies", "cover_copies"
    sizes = {name: settings[name] for name in names}
    return [
        {"kind": kind, "field": field, "coupling": coupling, "expanded": settings["expanded"][kind], **sizes}
        for kind in KINDS
        for field in FIELDS
        for coupling in settings["couplings"]
    ]


def run(seed, kind, field, coupling, **sizes):
    """A row for each method, and for each of `PAIRS` with `less` the second method, over `models`
    random models; errors are a bound less the exact ln Z, in nats.

    The columns are those of `summary`; `seconds` is the median processor time of a model, and
    `settled` the share of the models where messages converged, or the solver was exact. The bounds
    of the expanded model are computed on the first `expanded` models, covers and better upper
    bounds on the first `few`.
    """
    models = sizes["models"]
    values, errors, seconds, settled = ({} for _ in range(4))
    for model, child in enumerate(seed.spawn(models)):
        log_z, found = _bounds(child, model, kind, field, coupling, sizes)
        for bound in found:
            contents = bound.value - log_z, bound.error, bound.seconds, bound.settled
            for kept, content in zip((values, errors, seconds, settled), contents, strict=True):
                kept.setdefault(bound.method, np.full(models, np.nan))[model] = content
    rows = []
    for method, found in values.items():
        there = np.isfinite(found)
        row = {"method": method, **summary(found[there], errors[method][there])}
        rows.append(row | {"settled": settled[method][there].mean(), "seconds": np.median(seconds[method][there])})
    frame = pd.DataFrame([*rows, *paired(values, errors, PAIRS)], columns=COLUMNS)
    for at, (name, content) in enumerate({"kind": kind, "field": field, "coupling": coupling}.items()):
        frame.insert(at, name, content)
    return frame


def _bounds(seed, model, kind, field, coupling, sizes):
    """The exact ln Z of one model, and its bounds."""
    numbers, noise, messages, copies, better = seed.spawn(5)
    side, attractive = sizes["side"], kind == "attractive"
    glass = random_spin_glass(side, side, coupling, field, kind, np.random.default_rng(numbers))
    graph = glass.graph()
    grid = GridTransfer(graph)
    found = [
        *perturbation_bounds(graph, grid, attractive, sizes["perturbations"], noise),
        *message_bounds(graph, grid, attractive, int(messages.generate_state(1)[0])),
    ]
    if model < sizes["expanded"]:
        found += expanded_bounds(graph, sizes["copies"], copies)
    if model < sizes["few"]:
        found += better_bounds(glass, grid, sizes["perturbations"], sizes["more"], better)
        found += [cover_bound(graph, sizes["cover_copies"], copies)] if attractive else []
    return grid.log_partition_function(), found


SOURCE_LINES = {
    "perturb-max": (0, "-o"),
    "trw, uniform": (1, "-s"),
    "trw, optimised": (1, "--"),
    "expanded": (2, "-^"),
    "cover": (5, "--"),
    "bethe": (3, "-v"),
    "bethe, best start": (3, "--"),
    "max-marginals": (4, ":"),
}
BETTER_LINES = {
    "perturb-max": (0, "-o"),
    "alpha -0.05": (0, "--"),
    "1 clamped": (2, ":"),
    "4 clamped": (2, "--"),
    "8 clamped": (2, "-"),
    "blocks 1x2": (4, "--"),
    "blocks 2x2": (4, "-"),
    "trw, optimised": (1, "--"),
}
TIME_LINES = {
    "perturb-max": (0, "-o"),
    "graph cut": (0, "--"),
    "trw, uniform": (1, "-s"),
    "trw, optimised": (1, "--"),
    "expanded": (2, "-^"),
    "bethe": (3, "-v"),
    "8 clamped": (5, "-"),
    "blocks 2x2": (4, "-"),
    "max-marginals": (4, ":"),
}


def plot(frame):
    figure, axes = panels(4, 2, height=2.4)
    rows = frame[frame.less.isna()]
    for column, kind in enumerate(KINDS):
        ours = rows[rows.kind == kind]
        for ax, field in zip(axes[column], FIELDS, strict=True):
            _curves(ax, ours[ours.field == field], SOURCE_LINES, "mean", bars=True)
            label(ax, "", "error, nats", f"{kind}, fields to {field:g}")
            ax.set_ylim(*((-12, 14) if kind == "attractive" else (-15, 66)))
        strong = ours[ours.field == FIELDS[-1]]
        for ax, lines, values, unit in (
            (axes[2, column], BETTER_LINES, "mean", 1.0),
            (axes[3, column], TIME_LINES, "seconds", 1000.0),
        ):
            _curves(ax, strong, lines, values, unit)
            ax.set_title(f"{kind}, fields to {FIELDS[-1]:g}")
        label(axes[2, column], "", "error of upper bounds, nats")
        label(axes[3, column], "largest coupling $C$, nats", "time of a model, ms")
        axes[2, column].set_ylim(-2, 14)
        axes[3, column].set_yscale("log")
    for ax in axes[:3].ravel():
        ax.axhline(0, color="black", linewidth=0.8, zorder=0)
    for row in (0, 2, 3):
        axes[row, 1].legend(*_every_line(axes[row]), loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=6)
    return figure


def _every_line(axes):
    """Handles and labels of the lines of some panels, each once."""
    found = {name: line for ax in axes for line, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    return list(found.values()), list(found)


def _curves(ax, rows, lines, column, unit=1.0, bars=False):
    """A line for each method; bars are standard deviations over models, moved sideways so that none
    hides another."""
    for place, (method, (colour, style)) in enumerate(lines.items()):
        found = rows[rows.method == method].sort_values("coupling")
        shift = 0.03 * (place - len(lines) / 2) if bars else 0.0
        ax.plot(found.coupling + shift, unit * found[column], style, color=COLOURS[colour], label=method)
        if bars:
            low, high = found["mean"] - found.deviation, found["mean"] + found.deviation
            ax.vlines(found.coupling + shift, low, high, color=COLOURS[colour], linewidth=0.6, alpha=0.6)


def _missed_maxima(frame):
    """Shortfall of TRW-S from the maxima; None if it finds them all, as on small grids."""
    found = pooled_mean("trw-s", "perturb-max, 10", kind="mixed", couplings=HIGH)(frame)
    return found if found and found.value else None


DOMAINS = {"medium": MEDIUM, "high": HIGH}
PLACES = [
    (f"{name} coupling, {words} field", name, words, {"kind": "attractive", "field": field, "couplings": domain})
    for name, domain in DOMAINS.items()
    for words, field in zip(("weak", "strong"), FIELDS, strict=True)
]
"""Each part of Figure 4 that the text names, and its cells."""
COUPLING = Reading("medium coupling: C from 1.5 to 2.5; high: from 3 to 4", 0.0)
ATTRACTIVE, MIXED = ({"kind": kind, "couplings": STRONG} for kind in KINDS)

LEAST = "nats, mean over models where it is fewest standard errors above 0"
MEAN = "nats, mean over models and couplings"

OWN, FOUR, FIVE = "this project", "Hazan et al. V, Figure 4", "Hazan et al. V, Figure 5"
TIGHTEST = "Hazan et al. V, the tightest lower bound"
AGAINST_TRW = "Hazan et al. V, perturb-max and TRW"
FASTER = "It compares the times of programs on a machine of the source; other code runs here."
"""Headings of docs/errata.md."""

CAPTION = """\
First two rows: errors of bounds on the exact ln Z of 10x10 spin glasses whose couplings are drawn from \
[0, C] (attractive) or [-C, C] (mixed), mean over 100 models with bars of one standard deviation. \
perturb-max is the upper bound (35) from 100 exact maxima; trw the tree re-weighted bound with uniform \
and with optimised edge weights; expanded the lower bound of Corollary 4 with 10^4 copies and epsilon = 0 \
(20 of the mixed models); cover the maximum over 1,000 copies with one link to each neighbour \
(5 models), which is no bound; bethe belief propagation from small random messages, or the highest of \
four starts, which is no bound on mixed models. Third row: upper bounds better than (35), on 5 of the \
models, with variables clamped, noise on blocks of sites, or alpha below 0. Last row: median processor \
time of a model, with the preparation of solvers. The figures of the source have (35), TRW with uniform \
weights, Corollary 4 and belief propagation on attractive models, and the first two on mixed ones; (35) \
is there from approximate maxima by MPLP where couplings are mixed."""

# fmt: off
CLAIMS = [
    Claim("Lemma 1", "Hazan et al. Lemma 1", "bound", ">", 0.0, least_mean("perturb-max"),
        f"ln Z <= E[max {{theta + noise}}] (35) (100 perturbations; error in {LEAST}, C > 0)"),
    Claim("Lemma 1 on each model", "Hazan et al. Lemma 1", "bound", ">", 0.0, nearest_model("perturb-max"),
        "the bound (35) holds on every model (100 perturbations; the error in nats that is furthest below 0, or "
        "least above it, in its own standard errors)"),
    Claim("TRW", FOUR, "bound", ">", 0.0, extreme(["trw, uniform", "trw, optimised"], "lowest"),
        "the tree re-weighted bound is an upper bound (least error of all models, uniform and optimised weights)",
        scale=1e-6),
    Claim("belief propagation is a lower bound", FOUR, "bound", "<", 0.0,
        extreme(["bethe", "bethe, best start"], "highest", kind="attractive"),
        "stationary points of belief propagation are lower bounds on ln Z for attractive models (largest error of "
        "all models, from any start)", scale=1e-6),
    Claim("belief propagation of mixed models", FIVE, "comparison", ">", 0.0,
        extreme(["bethe"], "highest", kind="mixed"),
        "belief propagation is no longer a lower bound if couplings are mixed (largest error of all models)"),
    Claim("bounds without noise", OWN, "bound", "<", 0.0, extreme(["max-marginals", "mean field"], "highest"),
        "max-marginals and the mean-field bound of the expanded model are lower bounds (largest error of all models)",
        scale=1e-6),
    Claim("clamping", "Hazan et al. Corollary 3", "bound", ">", 0.0,
        least_of([pooled_mean(f"{k} clamped", f"{2 * k or 1} clamped") for k in (0, 1, 2, 4)]),
        "clamping more variables does not raise the bound U(0) (0, 1, 2, 4 and 8 of the variables, the same noise; "
        "least decrease in its standard errors, mean over couplings and fields)"),
    *(
        Claim(f"on average a lower bound, {kind}", "Hazan et al. V, footnote 4", "comparison", "<", 0.0,
            least_mean("expanded", kind=kind, sign=-1.0),
            f"with epsilon = 0 the probable bound of Corollary 4 is still a lower bound on average ({kind}; mean "
            "error over models where it is fewest standard errors below 0, C > 0)",
            finding="Hazan et al. Corollary 4, epsilon = 0")
        for kind in KINDS
    ),
    Claim("not on every model", FOUR, "comparison", ">", 0.0, share("expanded", "positive"),
        "because the bound holds only with high probability, it may be no proper lower bound (share of all models "
        "where it exceeds ln Z, C > 0)"),
    Claim("no lower bound on average, cover", OWN, "comparison", ">", 0.0,
        pooled_mean("cover", kind="attractive", couplings=(0.0, 1.4)),
        "a cover of 1,000 copies, each with one link to each neighbour, is no lower bound on average (attractive, "
        "C = 0.5 and 1; mean error in nats)"),
    *(
        Claim(f"tightest, {place}", f"{FOUR}: 'the probabilistic lower bound is the tightest'",
            "comparison", ">", 0.0, pooled_mean("expanded", "bethe", **where),
            f"the probabilistic lower bound is the tightest at {name} coupling (attractive, {words} field; its "
            f"error less that of belief propagation from small messages, {MEAN})", finding=TIGHTEST, reading=COUPLING)
        for place, name, words, where in PLACES
    ),
    Claim("good starts", OWN, "comparison", "<", 0.0,
        least_mean("expanded", "bethe, best start", **ATTRACTIVE, sign=-1.0),
        "belief propagation, from the best of four starts, is tighter than the probabilistic lower bound "
        "(attractive, medium and high coupling; difference in nats, mean over models where it is fewest standard "
        "errors below 0)"),
    *(
        Claim(f"belief propagation is the tightest, {name} coupling", OWN, "comparison", relation, 0.0,
            least_mean("bethe, best start", "max-marginals", kind="attractive", couplings=DOMAINS[name]),
            f"belief propagation is {words} than max-marginals on attractive models ({name} coupling, from the best of "
            f"four starts; its error less that of max-marginals, {LEAST})", finding=TIGHTEST)
        for name, relation, words in (("medium", ">", "always tighter"), ("high", "<", "sometimes less tight"))
    ),
    Claim("belief propagation on average", FOUR, "comparison", ">", 0.0, nearer("bethe", "perturb-max", **ATTRACTIVE),
        "the lower bound of belief propagation performs well on average (attractive, medium and high coupling; how "
        f"much nearer to ln Z it is than the upper bound (35), {MEAN})"),
    Claim("variance of belief propagation", FOUR, "comparison", ">", 0.0,
        spread("bethe", "expanded", kind="attractive", couplings=HIGH),
        "the variance of belief propagation is high (attractive, high coupling; standard deviation of its error "
        "over models less that of the probabilistic lower bound, nats, mean over couplings)"),
    Claim("bad stationary points", FOUR, "comparison", ">", 0.0,
        pooled_mean("bethe, best start", "bethe", kind="attractive", couplings=HIGH),
        "belief propagation does not converge or attains bad local minima on some instances (attractive, high "
        "coupling; gain by the best of four starts, nats, mean)"),
    *(
        Claim(f"convergence, {kind}", OWN, "comparison", relation, 0.0,
            share("bethe", "settled", kind=kind, couplings=HIGH, one_less=True),
            f"belief propagation {words} (share of the models where it does not converge, {kind}, high coupling)",
            scale=0.01)
        for kind, relation, words in (
            ("attractive", "=", "converges on attractive models"),
            ("mixed", ">", "often does not converge on mixed ones"),
        )
    ),
    Claim("ten perturbations", "Hazan et al. V: 'although very similar results were attained after only'",
        "comparison", "=", 0.0, pooled_mean("perturb-max, 10", "perturb-max"),
        "very similar results were attained after only 10 perturbations (bound (35) from 10 less that from 100, "
        "nats, mean over all models)", scale=1.0),
    Claim("ten perturbations of one model", OWN, "comparison", ">", 0.2,
        relative_scatter("perturb-max, 10", "perturb-max", "perturb-max", couplings=STRONG),
        "on a single model, where the source averages 100, 10 perturbations change (35) by more than a fifth of the "
        "gap (root mean square of the difference from 100, as a share of the mean gap; medium and high coupling)"),
    *(
        Claim(f"better than TRW, attractive, {place}", f"{FOUR}: 'our perturb-max upper bound is better'",
            "comparison", ">", 0.0, pooled_mean("trw, uniform", "perturb-max", **where),
            f"the perturb-max upper bound is better than the tree re-weighted one at {name} coupling (attractive, "
            f"{words} field; TRW with uniform weights less bound (35), {MEAN})", finding=AGAINST_TRW,
            tag="reading", weight=3, reading=COUPLING)
        for place, name, words, where in PLACES
    ),
    *(
        Claim(f"better than TRW, mixed, {weights}", source, "comparison", ">", 0.0,
            least_mean(f"trw, {weights}", "perturb-max", **MIXED),
            "the perturb-max upper bound is significantly better than the tree re-weighted one (mixed, medium and "
            f"high coupling; TRW with {weights} weights less bound (35), {LEAST})", finding=AGAINST_TRW)
        for weights, source in (("uniform", FIVE), ("optimised", OWN))
    ),
    Claim("optimised weights", OWN, "comparison", "<", 0.0,
        least_mean("trw, optimised", "perturb-max", **ATTRACTIVE, sign=-1.0),
        "with optimised edge weights TRW is tighter than the perturb-max bound on attractive models (TRW less "
        "bound (35), nats, mean over models where it is fewest standard errors below 0; medium and high coupling)"),
    Claim("approximate maxima", OWN, "comparison", "<", 0.0, _missed_maxima,
        "approximate maxima make (35) no upper bound (bound from 10 maxima by TRW-S less that from exact ones; "
        "mixed, high coupling, nats, mean)"),
    Claim("Frechet bound", OWN, "comparison", ">", 0.0, pooled_mean("alpha 0", "alpha -0.05"),
        f"U(-0.05) is tighter than U(0) (difference, {MEAN})"),
    Claim("alpha near -1/2", OWN, "comparison", "<", 0.0, pooled_mean("alpha -0.4"),
        f"near alpha = -1/2, 1,000 samples are too few for an upper bound (estimate of U(-0.4) less ln Z, {MEAN})"),
    Claim("blocks", OWN, "comparison", ">", 0.0, pooled_mean("alpha 0", "blocks 2x2"),
        f"noise on the states of 2x2 blocks gives a tighter bound than noise on variables (decrease, {MEAN})"),
    Claim("blocks against TRW, attractive", OWN, "comparison", ">", 0.0,
        pooled_mean("trw, uniform", "blocks 2x2", **ATTRACTIVE),
        "with 2x2 blocks perturb-max is tighter than TRW with uniform weights on attractive models (TRW less the "
        f"bound, {MEAN}; medium and high coupling)"),
    *(
        Claim(f"faster, {ours} against {theirs}", FOUR, "comparison", "<", 1.0,
            time_ratio((ours, "attractive"), (theirs, "attractive")),
            f"both bounds were considerably faster than belief propagation variants: time of the {words} over that "
            f"of {theirs} (attractive; geometric mean)", not_comparable=FASTER)
        for ours, words in (("graph cut", "upper bound with 100 graph cuts"), ("expanded", "lower bound"))
        for theirs in ("bethe", "trw, uniform")
    ),
    Claim("slower than TRW, mixed", FIVE, "comparison", ">", 1.0,
        time_ratio(("trw-s", "mixed"), ("trw, uniform", "mixed"), scale=10.0),
        "of mixed models the perturb-max bound is significantly slower than TRW, as it needs the MAP (time of 100 "
        "perturbations by TRW-S, in the place of MPLP, over that of TRW with uniform weights; geometric mean)",
        not_comparable=FASTER),
    Claim("grid transfer", OWN, "comparison", "<", 1.0, time_ratio(("perturb-max", "mixed"), ("trw, uniform", "mixed")),
        "at this size exact maxima by grid transfer make the perturb-max bound of mixed models faster than TRW, "
        "too (time of 100 perturbations over that of TRW with uniform weights; geometric mean)"),
    *(
        Claim(f"harder than attractive, {other}", FIVE, "comparison", ">", 1.0,
            time_ratio(("trw-s", "mixed"), (other, "attractive"), scale=scale, couplings=STRONG),
            f"recovering the MAP is harder if couplings are mixed (time of a MAP by TRW-S over that by {other} on "
            "attractive models; medium and high coupling, geometric mean)", not_comparable=FASTER)
        for other, scale in (("trw-s", 1.0), ("graph cut", 10.0))
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-bounds",
    title="Errors of bounds on ln Z of 10x10 spin glasses",
    source="Hazan et al. Figures 4 and 5",
    version=1,
    presets={
        "quick": {
            **{"couplings": [0.5, 2.0, 4.0], "side": 5, "models": 4, "expanded": {"attractive": 4, "mixed": 2}},
            **{"few": 2, "perturbations": 20, "more": 100, "copies": 200, "cover_copies": 50},
        },
        "paper": {
            "couplings": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
            **{"side": 10, "models": 100, "expanded": {"attractive": 100, "mixed": 20}, "few": 5},
            **{"perturbations": 100, "more": 1000, "copies": 10_000, "cover_copies": 1000},
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    # Errors are differences of numbers near 100: at C = 0 all of some is rounding.
    tolerances={
        **dict.fromkeys(NUMBERS, Tolerance(absolute=ROUNDING)),
        "deviation_error": Tolerance(absolute=2e-8),  # the square root of rounding, if all deviations are the same
        "seconds": NOT_REPEATABLE,
    },
    claims=CLAIMS,
)
