"""Algorithm 1 on enumerated models: acceptance, exactness, and the effect of estimated bounds on both.

The library's sampler uses the same noise at all prefixes. Its behaviour with estimates of any
quality, and with independent estimates for each prefix, is also computed without drawing: the
bounds at all prefixes give the probability of each configuration, of acceptance, and of a step
whose probabilities sum to more than 1.
"""

import math

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.figures import COLOURS, diagonal, label, legend_below, panels
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.low_rank.sequential import SequentialSampler
from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import labelled, pooled_by, select
from thesis_cli.studies.models.landscape import small_potentials
from thesis_cli.studies.perturbation.sequential_paths import one_factor, total_variation, without_drawing

ALPHAS = np.array([-0.2, 0.0, 0.5, 1.0])
MODEL = ["kind", "strength", "model"]
COLUMNS = [
    *("method", "order", "alpha", "samples", "draws", "acceptance", "acceptance_error", "prediction"),
    *("prediction_error", "estimate_error", "given_estimates", "clipped", "distance", "distance_error"),
    *("exact_distance", "exact_deviation", "map_calls"),
]


def tasks(settings):
    rest = {name: settings[name] for name in ("draws", "reference", "repeats", "sizes")}
    return [
        {"kind": kind, "strength": strength, "model": model, "samples": settings["samples"][kind], **rest}
        for kind, strength in settings["families"]
        for model in range(settings["models"])
    ]


def run(seed, kind, strength, model, samples, draws, reference, repeats, sizes):
    """A row for each way to sample one model at one alpha.

    `method` is `library` (with `order` the variables as they are, or reversed), `backward` (exact),
    or, computed without drawing, `shared` or `own`, by the noise of the estimates; these are means
    over `repeats` sets of estimates. `prediction` is Z / exp(U(alpha)), with U(alpha) from
    `reference` samples. `estimate_error` is the standard error of the sampler's own U(alpha), from
    `samples`, in the same units. `distance` is the total variation from the Gibbs distribution;
    `exact_distance` and `exact_deviation` are its mean and standard deviation over as many exact
    draws. `clipped` is the number of steps in an attempt whose probabilities summed to more than 1.
    """
    tables, bounds_seed, backward, library, computed = seed.spawn(5)
    phi = small_potentials(kind, strength, np.random.default_rng(tables))
    p = np.exp(phi - logsumexp(phi)).ravel()
    solver = map_solver(one_factor(phi), exact=True)[0]
    maxima = low_rank_maxima(solver, reference, bounds_seed)
    logs, log_errors = power_bounds(maxima.values, phi.ndim, ALPHAS)
    predictions = np.exp(logsumexp(phi) - logs)
    rng = np.random.default_rng(backward)
    chance = 0.5 * np.abs(rng.multinomial(draws, p, 400) / draws - p).sum(axis=1)
    sampled = {"draws": draws, "exact_distance": chance.mean(), "exact_deviation": chance.std()}
    exact = total_variation(exact_samples(solver.graph, draws, rng)[0], phi, p)
    found = [{"method": "backward", "distance": exact, **sampled}]
    streams = iter(library.spawn(2 * ALPHAS.size))
    for alpha, prediction, log_error in zip(ALPHAS, predictions, log_errors, strict=True):
        predicted = {
            "prediction": prediction,
            "prediction_error": prediction * log_error,
            "estimate_error": prediction * log_error * math.sqrt(reference / samples),
        }
        for order in ("as it is", "reversed"):
            drawn = _drawn(phi, p, order, alpha, samples, draws, next(streams))
            found.append({"method": "library", **drawn, **predicted, **sampled})
    for size, child in zip(sizes, computed.spawn(len(sizes)), strict=True):
        for method in ("shared", "own"):
            predicted = {"prediction": predictions[1], "prediction_error": predictions[1] * log_errors[1]}
            found.append(
                {"method": method, **_computed(phi, size, child.spawn(repeats), method == "shared"), **predicted}
            )
    return labelled(found, COLUMNS, kind=kind, strength=strength, model=model)


def _drawn(phi, p, order, alpha, samples, draws, seed):
    """Numbers of the library's sampler."""
    table = phi if order == "as it is" else phi.T
    sampler = SequentialSampler(map_solver(one_factor(table), exact=True)[0], alpha, samples, seed)
    found = sampler.draw(draws)
    a = found.acceptance
    return {
        "order": order,
        "alpha": alpha,
        "samples": samples,
        "acceptance": a,
        "acceptance_error": a * math.sqrt((1 - a) / draws),
        "given_estimates": math.exp(logsumexp(phi) - sampler.log_bound),
        "clipped": found.clipped / found.attempts,
        "distance": total_variation(found.states if order == "as it is" else found.states[:, ::-1], phi, p),
        "map_calls": sampler.map_calls / draws,
    }


def _computed(phi, size, seeds, shared):
    """The same without drawing, at alpha = 0, as means over sets of estimates."""
    every = [without_drawing(phi, 0.0, size, seed, shared) for seed in seeds]
    means, errors = np.mean(every, axis=0), np.std(every, axis=0, ddof=1) / math.sqrt(len(every))
    return {
        "alpha": 0.0,
        "samples": size,
        "acceptance": means[0],
        "acceptance_error": errors[0],
        "distance": means[1],
        "distance_error": errors[1],
        "clipped": means[2],
    }


def plot(frame):
    figure, axes = panels(1, 3, height=3.3)
    library = LIBRARY(frame)
    diagonal(axes[0], 1)
    for colour, (alpha, part) in zip(COLOURS, library.groupby("alpha"), strict=False):
        for found, fill, name in (
            (part[part.clipped == 0], "full", rf"$\alpha$ = {alpha:g}"),
            (part[part.clipped > 0], "none", ""),
        ):
            style = {"fillstyle": fill, "color": colour, "alpha": 0.7, "label": name}
            axes[0].plot(found.given_estimates, found.acceptance, "o", **style)
    axes[0].legend(loc="upper left")
    axes[0].set(xlim=(0, None), ylim=(0, 1.05))
    label(axes[0], r"$Z\,/\,\exp($estimate of $U(\alpha))$", "share accepted", "open: some steps clipped")
    grids = frame[(frame.kind == "mixed") & (frame.strength > 0)]
    for colour, (strength, part) in zip(COLOURS[4:], grids.groupby("strength"), strict=False):
        chance = part[part.method == "library"].exact_distance.mean()
        axes[1].axhline(chance, color=colour, linestyle=":", label=f"exact draws, $C$ = {strength:g}")
        for method, style in (("shared", "-o"), ("own", "--s")):
            means = part[part.method == method].groupby("samples")[["distance", "clipped"]].mean()
            for ax, column in zip(axes[1:], means, strict=True):
                ax.plot(means.index, means[column], style, color=colour, label=f"{method} noise, $C$ = {strength:g}")
    for ax in axes[1:]:
        ax.set_xscale("log")
    axes[1].set_yscale("log")
    label(axes[1], "MAP calls for each bound", "total variation of accepted draws", r"mixed, $\alpha$ = 0")
    label(axes[2], "MAP calls for each bound", "clipped steps an attempt", r"mixed, $\alpha$ = 0")
    axes[2].set_ylim(bottom=0)
    return legend_below(figure, axes[1], 3)


def _acceptance(*alphas):
    """Share accepted less Z / exp(U(alpha)) on tables, where the estimates have most samples, mean over models and
    orders of the variables, which share the prediction."""

    def error(found):
        return (found.acceptance_error**2 + found.estimate_error**2 + 2 * found.prediction_error**2) ** 0.5

    found = UNCLIPPED.where(kind="table", alpha=list(alphas)).number(lambda f: f.acceptance - f.prediction, error)
    return found.then(pooled_by("alpha")).furthest(floor=FLOOR)


def _excess(found):
    """Total variation less that of exact draws, mean over models and orders at each alpha."""
    excess = found.number(lambda f: f.distance - f.exact_distance, "exact_deviation")
    return excess.then(lambda f: f.fillna({"alpha": 0.0})).then(pooled_by("alpha")).furthest(floor=FLOOR)


FLOOR = 1e-12
"""Least standard error of a number that should be 0."""
LIBRARY = select(method="library")
UNCLIPPED = LIBRARY.where("clipped == 0")
"""The library's sampler where the estimates never summed to more than 1."""
SHARES = UNCLIPPED.number("acceptance", lambda found: np.hypot(found.acceptance_error, found.estimate_error))
PREDICTED = LIBRARY.then(lambda f: f.drop_duplicates([*MODEL, "alpha"])).number("prediction", "prediction_error")
OWN_NOISE, SHARED_NOISE = (select(method=name).number("distance", "distance_error") for name in ("own", "shared"))
ACCEPTED, APART, DISTANCE = 0.1, 0.04, 0.01
"""Shares accepted are 0.2 to 1, on tables 0.09 less at alpha = 1 than at 0; a sampler off by a total
variation of 0.02 adds 0.01 to that of the draws, and clipping up to 0.1."""

OWN = "this project"

CAPTION = """\
Left: the share of attempts that Algorithm 1 accepts against Z / exp(its own estimate of U(alpha)), on \
16 models and in two orders of the variables; standard errors are at most 0.005. Filled points, where \
no step was clipped, lie on the line; open ones, where the estimated probabilities of some step summed \
to more than 1, lie on or below it. Middle and right, on mixed spin glasses of coupling C at alpha = 0: \
the total variation between accepted draws and the Gibbs distribution, and the number of clipped steps \
in an attempt, against the number of samples in each estimate, with noise that all estimates share or \
that each prefix has for itself. Dotted lines are what as many exact draws as were made on the left \
have by chance. The source has no such figure; it proves exactness for expectations."""


# fmt: off
CLAIMS = [
    Claim("acceptance, Gumbel", "Hazan et al. Theorem 3", "identity", "=", 0.0, _acceptance(0.0),
        "at alpha = 0 the share accepted is Z / exp(U(0)) (mean difference; random tables, no clipping)", scale=APART),
    Claim("acceptance", "Thesis 2.3.3: 'only depend on the quality of the upper bound'",
        "identity", "=", 0.0, _acceptance(*ALPHAS[ALPHAS != 0]),
        "the number of restarts depends on the quality of the bound alone, U(alpha) - ln Z: the share of attempts "
        "that Algorithm 1 accepts is Z / exp(U(alpha)) (mean difference of the shares; tables of random "
        "potentials, no step clipped, the furthest from 0 of alpha = -0.2, 0.5 and 1)", scale=APART),
    Claim("order", "Thesis 2.3.3: 'and not on the chosen order'", "identity", "=", 0.0,
        SHARES.where(order="as it is").less(SHARES.where(order="reversed"), *MODEL, "alpha").furthest(floor=FLOOR),
        "the order of the variables does not matter (share accepted less that in reverse order, no step clipped)",
        scale=ACCEPTED),
    Claim("exactness", "Thesis A.2.2, Hazan et al. Theorem 3", "identity", "=", 0.0, _excess(UNCLIPPED),
        "accepted draws follow the Gibbs distribution: their total variation is that of as many exact draws (mean "
        "difference where no step is clipped, at the alpha where it is furthest from 0)", scale=DISTANCE),
    Claim("exact draws", OWN, "identity", "=", 0.0, _excess(select(method="backward")),
        "backward sampling has the total variation of as many exact draws (mean difference)", scale=DISTANCE),
    Claim("acceptance given the estimates", OWN, "identity", "=", 0.0,
        UNCLIPPED.number("acceptance", "acceptance_error").minus("given_estimates").furthest(floor=FLOOR),
        "with sample averages, of however few samples, the share of attempts accepted is Z / exp(estimate of "
        "U(alpha)) as long as no step is clipped (difference of the shares, furthest from 0)", scale=ACCEPTED),
    Claim("sample averages", OWN, "comparison", ">", 0.0,
        LIBRARY.number("clipped").largest(),
        "p_j(reject) >= 0 holds for expectations; with sample averages in their place, which A.2.2 mentions, steps "
        "are clipped (clipped steps an attempt, at the model with most)"),
    Claim("loss by clipping", OWN, "comparison", ">", 0.0,
        select("kind != 'table' and strength > 0", method="shared")
        .where("samples == samples.min()")
        .number(lambda f: f.prediction - f.acceptance, lambda f: np.hypot(f.acceptance_error, f.prediction_error))
        .per("prediction")
        .pooled(),
        "clipping lowers the share accepted on coupled spin glasses (mean relative loss, fewest samples)"),
    Claim("shared noise", OWN, "comparison", ">", 0.0,
        OWN_NOISE.less(SHARED_NOISE, *MODEL, "samples").pooled(),
        "separate noise for the estimates at each prefix takes accepted draws further from the Gibbs distribution "
        "than noise that all share (difference of total variations, mean over models and sizes)"),
    Claim("Frechet accepts more", OWN, "bound", ">", 0.0,
        PREDICTED.where("alpha < 0").less(PREDICTED.where(alpha=0.0), *MODEL).lowest(),
        "Z / exp(U(-0.2)) >= Z / exp(U(0)), the shares accepted (difference fewest standard errors > 0)",
        scale=ACCEPTED),
]
# fmt: on

EXPERIMENT = Experiment(
    id="sequential-sampler",
    title="The sequential sampler: acceptance, exactness, clipped steps and cost",
    source="Thesis Algorithm 1",
    version=1,
    presets={
        "quick": {
            **{"families": [["mixed", 3], ["table", 2]], "models": 1, "samples": {"mixed": 300, "table": 20_000}},
            **{"draws": 500, "reference": 20_000, "repeats": 4, "sizes": [30, 300]},
        },
        "paper": {
            "families": [
                *(["mixed", 0], ["mixed", 1], ["mixed", 3], ["attractive", 1], ["attractive", 3]),
                *(["table", 1], ["table", 2], ["table", 3]),
            ],
            "models": 2,
            "samples": {"mixed": 1_000, "attractive": 1_000, "table": 20_000},
            **{"draws": 10_000, "reference": 200_000, "repeats": 20},
            "sizes": [10, 30, 100, 300, 1_000, 3_000, 10_000],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    # Where estimates share their noise, and no step is clipped, accepted draws are exact: 1e-17 to 1e-14 is left.
    tolerances=dict.fromkeys(["distance", "distance_error"], Tolerance(absolute=1e-12)),
    claims=CLAIMS,
)
