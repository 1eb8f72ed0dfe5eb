"""Figure 6 of Hazan et al.: the cost of Algorithm 1 on spin glasses from 10x10 to 100x100, and where it runs."""

import math

import numpy as np

from thesis_cli.base.figures import COLOURS, diagonal, label, legend_below, panels
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.expanded.expanded import expanded_maximum
from thesis_cli.perturbation.low_rank.sequential import SequentialSampler
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading
from thesis_cli.reproduction.measuring import furthest, labelled, lowest, measure, select
from thesis_cli.studies.perturbation.sequential_paths import acceptance, paths
from thesis_cli.studies.perturbation.spin_glass_gap import EXACT, bulk, by_size, gap, misfit, power_law

KINDS = "attractive", "mixed"
RUNS = "paths", "attempts"
COPIES = 100
"""Copies of each variable in the expanded model: at 100x100 as many variables as the source's 1000x1000."""

COLUMNS = [
    *("gap", "gap_error", "missed", "uncertified"),
    *("log_z", "log_z_lower", "log_z_upper", "expanded", "mean_field", "ratio", "ratio_error", "log_tries"),
    *("log_tries_error", "clipped_log_tries", "clipped_share", "steps", "map_calls"),
]


def tasks(settings):
    gaps = [("gap", *sizes, settings["couplings"]) for sizes in settings["gaps"]]
    runs = [(part, size, count, samples, 0, cs) for part in RUNS for size, count, samples, cs in settings[part]]
    return [
        {"part": part, "kind": kind, "coupling": c, "size": size, "count": count, "samples": samples, "copied": copied}
        for part, size, count, samples, copied, couplings in gaps + runs
        for kind in KINDS
        for c in couplings
    ]


def run(seed, part, kind, coupling, size, count, samples, copied):
    """A row for each model; fields are strong, f = 1, all numbers are in nats.

    Parts: `gap` has U(0) - ln Z of `count` models, with bounds on ln Z, and of the first `copied` ones `expanded` and
    `mean_field`, the lower bounds of Corollary 4 in probability and for certain. `paths` has the acceptance of
    Algorithm 1 by `count` paths that never reject, on one model, and `attempts` that of whole attempts, until `count`
    were accepted.

    In `paths` and `attempts` the `gap` is that of the sampler's own estimate of U(0), which makes the acceptance Z /
    exp(U(0)) unless steps are clipped. `ratio` is the acceptance of unclipped paths over that, `log_tries` minus its
    logarithm, `clipped_log_tries` that of the sampler as it runs, `steps` what one of its attempts takes.
    """
    sizes = kind, coupling, size
    if part == "gap":
        found = [_gap(child, *sizes, samples, model < copied) for model, child in enumerate(seed.spawn(count))]
    else:
        found = [(_paths if part == "paths" else _attempts)(seed, *sizes, count, samples)]
    return labelled(found, COLUMNS, part=part, kind=kind, coupling=coupling, size=size, samples=samples)


def _gap(seed, kind, coupling, size, samples, copied):
    own, copies = seed.spawn(2)
    glass, found = gap(kind, coupling, size, samples, own)
    lower = expanded_maximum(glass.graph(), COPIES, copies, tries=1) if copied else None
    return {
        "gap": found.upper - found.log_z.estimate,
        "gap_error": found.upper_error,
        "missed": found.missed,
        "uncertified": found.uncertified,
        "log_z": found.log_z.estimate,
        "log_z_lower": found.log_z.lower,
        "log_z_upper": found.log_z.upper,
        "expanded": lower.value if lower else math.nan,
        "mean_field": lower.mean_field if lower else math.nan,
    }


def _paths(seed, kind, coupling, size, count, samples):
    tables, rest = seed.spawn(2)
    glass = random_spin_glass(size, size, coupling, 1.0, kind, np.random.default_rng(tables))
    log_z = GridTransfer(glass.graph(), sums_only=True).log_partition_function()
    found = paths(glass, samples, count, rest)
    return {**acceptance(found, log_z)._asdict(), "log_z": log_z, "map_calls": found.map_calls}


def _attempts(seed, kind, coupling, size, count, samples):
    tables, rest = seed.spawn(2)
    glass = random_spin_glass(size, size, coupling, 1.0, kind, np.random.default_rng(tables))
    solver = map_solver(glass.graph(), exact=True)[0]
    sampler = SequentialSampler(solver, 0.0, samples, rest)
    log_z = GridTransfer(glass.graph(), sums_only=True).log_partition_function()
    drawn = sampler.draw(count)
    return {
        "gap": sampler.log_bound - log_z,
        "log_z": log_z,
        "clipped_log_tries": -math.log(drawn.acceptance),
        "log_tries_error": math.sqrt((1 - drawn.acceptance) / count),
        "clipped_share": drawn.clipped / (drawn.attempts * size * size),
        "map_calls": sampler.map_calls / count,
    }


def plot(frame):
    figure, axes = panels(1, 3, height=3.4)
    gaps = frame[frame.part == "gap"]
    couplings = sorted(gaps.coupling.unique())
    for (kind, c), part in gaps.groupby(["kind", "coupling"]):
        colour, solid = COLOURS[couplings.index(c)], kind == KINDS[0]
        style = {"color": colour, "linestyle": "-" if solid else "--", "marker": "o" if solid else "s", "capsize": 2}
        found = by_size(part, _best(part))
        b, error = power_law(found.n, found["mean"], found.error) if len(found) > 1 else (math.nan, math.nan)
        text = f"{kind}, $c$ = {c:g}: $b$ = {b:.3f} ({error:.3f})"
        axes[0].errorbar(found.n, found["mean"], yerr=2 * found.error, label=text, **style)
        axes[1].errorbar(found.index, found["mean"] / found.n, yerr=2 * found.error / found.n, **style)
        own = by_size(part, _published(part))
        axes[1].plot(own.index, own["mean"] / own.n, ":", color=colour, marker=style["marker"], fillstyle="none")
    axes[0].set_yscale("log")
    label(axes[0], "variables $n$", r"$U(0) - \ln Z$: ln of tries, nats")
    axes[1].set_ylim(bottom=0)
    label(axes[1], "side of the grid", r"$(U(0) - \ln Z)\,/\,n$, nats", "dotted: Corollary 4 for $\\ln Z$")
    sides = sorted(gaps["size"].unique())
    for ax, power in zip(axes, (2, 1), strict=False):
        ax.set_xscale("log")
        shown = [f"{side}" + "$^2$" * (power == 2) for side in sides]
        ax.set_xticks([side**power for side in sides], shown, rotation=45)
        ax.minorticks_off()
    runs = frame[frame.part != "gap"]
    most = max(1.0, runs.clipped_log_tries.max())
    diagonal(axes[2], most)
    for part, column, style, text in (
        ("paths", "log_tries", "o", "paths, nothing clipped"),
        ("paths", "clipped_log_tries", "x", "paths, clipped as it runs"),
        ("attempts", "clipped_log_tries", "^", "whole attempts"),
    ):
        part = runs[runs.part == part]
        axes[2].plot(part.gap, part[column], style, label=text)
    axes[2].set_ylim(top=1.45 * most)
    axes[2].legend(loc="upper left")
    label(axes[2], r"its $U(0) - \ln Z$, nats", "measured ln of tries, nats")
    return legend_below(figure, axes[0], 3)


def _best(rows):
    """The gap, with the lower bound on ln Z where glasses have large domains, of which the estimate knows little."""
    domains = (rows.kind == "attractive") & (rows.coupling >= 2)
    return rows.gap + (rows.log_z - rows.log_z_lower).where(domains, 0.0)


def _published(rows):
    """The gap with the lower bound of Corollary 4 in the place of ln Z, as in the source's figure."""
    return rows.gap + rows.log_z - rows.expanded


def _family(frame, kind, coupling):
    found = select(part="gap", kind=kind, coupling=coupling)(frame)
    return found if found["size"].nunique() > 2 else None


def _families(frame):
    """Gaps of the families without large domains, which the result has on more than two sizes."""
    return [found for family in EXTENSIVE if (found := _family(frame, *family)) is not None]


@measure
def _limit(frame, kind, coupling):
    """Limit of the gap per variable; the bounds on ln Z make it large where it is small, and else small."""
    found = _family(frame, kind, coupling)
    if found is None:
        return None
    bound = "log_z_upper" if (kind, coupling) in EXPONENTIAL else "log_z_lower"
    means = by_size(found, found.gap + found.log_z - found[bound])
    return bulk(means.index, means["mean"] / means.n, means.error / means.n)


def _exponents(frame):
    """Exponent b of gap = a n^b by family, the furthest from 1."""
    means = [by_size(found, found.gap) for found in _families(frame)]
    laws = [power_law(mean.n, mean["mean"], mean.error) for mean in means]
    return furthest(*np.transpose(laws), 1.0) if laws else None


def _same_growth(frame):
    """Exponent with the lower bound of Corollary 4 less that with ln Z, on the same models, the furthest from 0."""
    differences = []
    for found in _families(frame):
        copied = found[found.expanded.notna()]
        ratio = (_published(copied) / copied.gap).to_numpy()
        differences.append(power_law(copied["size"].to_numpy(float) ** 2, ratio, 1e-6 * ratio))
    return furthest(*np.transpose(differences)) if differences else None


def _linear(frame):
    """Share of the mean gaps that a sqrt(n) misses or a ln(n) misses less what a n does, the least over families."""
    found = []
    for means in (by_size(family, family.gap) for family in _families(frame)):
        laws = [misfit(shape, means["mean"].to_numpy()) for shape in (means.n, means.n**0.5, np.log(means.n))]
        found.append(min(laws[1:]) - laws[0])
    return Measurement(min(found)) if found else None


def _beyond_transfer(frame):
    """ln of tries on 20x20 less ln of the entries of grid transfer, 400 x 2^20, mean over models by family."""
    families = select(part="gap", size=20)(frame).groupby(["kind", "coupling"])
    found = [by_size(part, part.gap).iloc[0] for family, part in families if family in EXTENSIVE]
    return lowest([row["mean"] - math.log(400) - 20 * math.log(2) for row in found], [row.error for row in found])


SOURCE, OWN = "Hazan et al. Figure 6", "this project"
FINDING = "Hazan et al. V, running time of Algorithm 1"
COUPLINGS = 1, 2, 4
EXPONENTIAL = [(kind, c) for kind in KINDS for c in COUPLINGS if (kind, c) != ("attractive", 4)]
"""Families of which a glass does not turn as a whole."""

EXTENSIVE = [(kind, c) for kind, c in EXPONENTIAL if (kind, c) != ("attractive", 2)]
"""Families without large domains, whose ln Z strips estimate well."""

GAPS = [
    *([10, 40, 2_000, 6], [14, 20, 1_500, 4], [20, 12, 1_000, 3], [28, 10, 600, 3]),
    *([40, 8, 300, 2], [57, 5, 150, 2], [80, 4, 80, 2], [100, 4, 50, 2]),
]
"""Side, models, perturbations, and models with copies."""

PATHS = [
    *([2, 1_000, 50, [1, 4]], [3, 1_000, 50, [1, 4]], [4, 1_000, 50, [1, 4]], [6, 600, 50, [1, 4]]),
    *([8, 400, 50, [1, 4]], [10, 300, 50, [1]], [14, 24, 30, [1]], [20, 10, 15, [1]]),
]
ATTEMPTS = [[2, 1_000, 50, [1, 4]], [3, 500, 50, [1, 4]], [4, 300, 50, [1]]]
"""Side, paths or accepted attempts, samples of each bound, and couplings."""

RATIOS = 10
"""Largest side at which the acceptance itself is compared; above, its logarithm."""

CAPTION = """\
Left: U(0) - ln Z, the logarithm of the expected number of attempts of Algorithm 1, on spin glasses with strong \
fields, f = 1, against the number of variables; means over random models with two standard errors, and the exponents \
b of fits a n^b with their standard errors. Middle: the same for each variable; dotted, with the lower bound of \
Corollary 4 in the place of ln Z, from 100 copies and epsilon = 0, as the source draws it. ln Z is exact to 20x20. \
Beyond, it is an estimate between certain bounds (in the table), and, for attractive models at c = 2 and 4, the lower \
bound. Right: Algorithm 1 itself, from 2x2 to 20x20: the measured logarithm of its tries against U(0) - ln Z for its \
own estimate of U(0). The source draws one curve from 10x10 to 100x100 and does not name its couplings."""


HEADLINE = (
    "The sampler of Hazan et al. takes a number of tries that grows exponentially with the number of variables on five "
    "of six families of spin glasses with strong fields, where Figure 6 suggests that its running time is "
    "sub-exponential."
)

# fmt: off
CLAIMS = [
    *(
        Claim(f"sub-exponential, {kind}, {c}", SOURCE, "comparison", "=", 0.0, _limit(kind, c),
            "Figure 6 suggests that in practice the running time is sub-exponential: ln tries / n tends to 0 as grids "
            f"grow (limit g of a fit g + h / side to means from 10x10 to 100x100, {kind}, f = 1, c = {c}, with the "
            f"bound on ln Z that {'raises' if (kind, c) == ('attractive', 4) else 'lowers'} it)", finding=FINDING,
            scale=0.02, tag="substantive", weight=7, headline=HEADLINE)
        for kind in KINDS
        for c in COUPLINGS
    ),
    Claim("exponent", OWN, "comparison", "=", 1.0, _exponents,
        "ln tries grows about like the number of variables (exponent b of a fit a n^b, mixed models and attractive "
        "ones at c = 1, the furthest from 1)", scale=0.2, reading=Reading("about: within a tenth", 0.1)),
    Claim("other laws", OWN, "comparison", ">", 0.2, _linear,
        "ln tries is closer to a n than to a sqrt n or a ln n (share of the means that the better of these misses, "
        "less what a n misses; the same families, the least)"),
    Claim("lower bound for ln Z", SOURCE, "comparison", "=", 0.0, _same_growth,
        "ln Z can be replaced by the lower bound of Corollary 4 (exponent b with it less b with ln Z on the same "
        "models; the same families, the furthest from 0)", scale=0.2, reading=Reading("replaced: within a tenth", 0.1)),
    Claim("acceptance", "Hazan et al. Theorem 3", "identity", "=", 1.0,
        select(f"size <= {RATIOS}", part="paths").number("ratio", "ratio_error").furthest(1.0),
        "Algorithm 1 accepts with probability Z / exp(U(0)) (acceptance by paths over that, without clipping, 2x2 "
        "to 10x10, the furthest from 1)", scale=0.9),
    Claim("extrapolation", "Hazan et al. Theorem 3", "identity", "=", 1.0,
        select(f"size > {RATIOS}", part="paths").number("log_tries", "log_tries_error").per("gap").furthest(1.0),
        "Algorithm 1 accepts with probability Z / exp(U(0)) at 14x14 and 20x20, too (measured ln tries over U(0) - "
        "ln Z, the furthest from 1)", scale=0.2),
    Claim("clipping", OWN, "comparison", ">", 0.0,
        select("size >= 6", part="paths").number("clipped_log_tries", "log_tries_error").minus("gap").lowest(),
        "where bounds are means of 50 samples, or fewer above 10x10, Algorithm 1 takes more tries than exp(U(0) - "
        "ln Z) (what clipped steps add to ln tries, 6x6 and larger, the fewest standard errors above 0)"),
    Claim("upper bound", "Hazan et al. Lemma 1", "bound", ">", 0.0,
        select(f"size <= {EXACT}", part="gap").number("gap", "gap_error").lowest(),
        "U(0) >= ln Z on spin glasses to 20x20 (gap in nats, of the model that is fewest standard errors above 0)"),
    Claim("grid transfer", OWN, "comparison", ">", 0.0, _beyond_transfer,
        "on 20x20 tries are more than the entries of the tables with which grid transfer draws exact samples (ln "
        "tries less ln(400 x 2^20), mean over models, the same families, the fewest standard errors above 0)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-sampling",
    title="Cost of Algorithm 1 on spin glasses from 10x10 to 100x100",
    source=SOURCE,
    version=1,
    presets={
        "quick": {
            "couplings": [1, 4],
            "gaps": [[6, 6, 500, 1], [10, 6, 300, 1], [16, 3, 100, 1]],
            "paths": [[2, 200, 50, [1]], [6, 50, 50, [1]]],
            "attempts": [[2, 100, 50, [1]]],
        },
        "paper": {"couplings": COUPLINGS, "gaps": GAPS, "paths": PATHS, "attempts": ATTEMPTS},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    claims=CLAIMS,
)
