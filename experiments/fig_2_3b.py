"""Figure 2.3b: MSE of the tricks on maxima from Racing-Normal, whose probability of error is at
most delta.

The source publishes 10 states, ln Z = 0, the noise 0.1 of the rewards (log-factors) and the maxima,
but neither the potentials, nor the number of factors S, nor the first batch. Here p is uniform, the
rewards of a state are normal draws, shifted and scaled to mean -ln(10) / S and standard deviation
0.1, and the first look is at 50 factors. Under so much noise no state is surely ahead before all
factors are seen. Looks only drop the best state now and then, and how often they do depends on
their number, and so on S. At delta = 0.1 the published maxima have mean -0.055, standard error
0.004. Here the means are (parts `scan`, `quantity` loss, and `curve` of the result)

    S       1,000         2,000         5,000         10,000        20,000
    mean   -0.025(2)     -0.041(3)     -0.051(3)     -0.0556(4)    -0.061(4)

so the experiment uses S = 10,000, the power of ten that fits. There no race ends before all factors
are seen, so the values cannot show whether the source summed all factors of the winner.
"""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, band, label, panels
from thesis_cli.perturbation.racing.racing import RaceRules, race
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Sample, Tolerance
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.perturbation.racing_mse import ALPHAS, BETWEEN, STEP, as_in_the_source, hard_data, sharp

STATES, SIGMA, FACTORS = 10, 0.1, 10_000
COLUMNS, NONE = ["quantity", "alpha", "mean", "standard_error"], float("nan")
BOUNDS = NORMAL, FREE = "normal", "bernstein-serfling"
NAMES = {NORMAL: "Racing-Normal", FREE: "Bernstein-Serfling"}
BESIDE = float(ALPHAS[ALPHAS > 1e-6].min())
"""The alpha of the source's grid beside the Gumbel trick, which the grid does not hold."""
PUBLISHED = {0.001: (1.00, 0.0102, 0.0163), 0.01: (1.05, 0.0105, 0.0172), 0.1: (0.62, 0.0140, 0.0184)}
"""delta -> alpha of least MSE, that MSE, MSE at `BESIDE`; each from K = 1000 estimators."""
PUBLISHED_MEAN, PUBLISHED_ERROR = -0.0078, 0.0041
"""Mean of the published values at delta = 0.01, and its standard error."""


def tasks(settings):
    hard = {"bound": NORMAL, "delta": 0.1, "sigma": SIGMA, "factors": settings["factors"]}
    few = {**hard, "races": settings["races"], "samples": 0, "estimators": 0}
    curve = {**hard, "samples": settings["samples"], "estimators": settings["estimators"]}
    return [
        *(
            {"part": "curve", **curve, "delta": d, "races": races}
            for d, races in zip(PUBLISHED, settings["curves"], strict=True)
        ),
        *({"part": "again", **curve, "races": races} for races in settings["again"]),
        *({"part": "scan", **few, "factors": factors} for factors in settings["scan"]),
        *({"part": "noise", **few, "bound": bound, "sigma": sigma} for bound in BOUNDS for sigma in settings["sigmas"]),
    ]


def run(seed, part, bound, delta, sigma, factors, races, samples, estimators):
    """Statistics of races, and errors of estimators of ln Z from `samples` maxima each (none if
    that is 0), of which `estimators` are sampled as in the source."""
    data, racing, grouping = seed.spawn(3)
    matrix = hard_data(np.random.default_rng(data), STATES, factors, sigma)
    found = race(matrix, races, delta, racing, RaceRules(bound))
    wrong = found.losses > 0
    spread = found.values.var()
    fourth = ((found.values - found.values.mean()) ** 4).mean()
    rows = [
        ("value", NONE, found.values.mean(), _error(found.values)),
        ("variance", NONE, spread, np.sqrt((fourth - spread**2) / races)),
        ("loss", NONE, found.losses.mean(), _error(found.losses)),
        ("wrong", NONE, wrong.mean(), _error(wrong)),
        ("share", NONE, found.share, _error(found.evaluations) / (STATES * factors)),
        ("looks", NONE, found.looks.mean(), _error(found.looks)),
    ]
    frames = [pd.DataFrame(rows, columns=COLUMNS)]
    if samples:
        rng = np.random.default_rng(grouping)
        curves = {
            "plain": as_in_the_source(found.values[: samples * estimators], samples, rng),
            "sharp": sharp(found.values, found.losses, samples, rng),
        }
        for method, curve in curves.items():
            columns = zip(COLUMNS, (f"mse, {method}", ALPHAS, curve.mse, curve.error), strict=True)
            numbers = [(f"{name}, {method}", NONE, *number) for name, number in curve.numbers.items()]
            frames += [pd.DataFrame(dict(columns)), pd.DataFrame(numbers, columns=COLUMNS)]
    settings = {"part": part, "bound": bound, "delta": delta, "sigma": sigma, "factors": factors, "races": races}
    frame = pd.concat(frames).assign(**settings)
    return frame[[*settings, *COLUMNS]]


def _error(x):
    return np.std(x) / np.sqrt(np.size(x))


def _curve(frame, method, delta):
    return select(part="curve", quantity=f"mse, {method}", delta=delta)(frame).sort_values("alpha")


def plot(frame):
    figure, axes = panels(1, 3, height=3.4, width_ratios=[1.7, 1, 1])
    for colour, style, delta in zip(COLOURS, ("-", (0, (4, 3)), "-"), PUBLISHED, strict=False):
        best, plain = (_curve(frame, method, delta) for method in ("sharp", "plain"))
        axes[0].semilogy(best.alpha, best["mean"], linestyle=style, color=colour, label=rf"$\delta$ = {delta:g}")
        if delta != 0.01:  # its band is that of delta = 0.001
            band(axes[0], plain.alpha, plain["mean"], plain.standard_error, colour, 0.2)
        best = best.loc[best["mean"].idxmin()]
        axes[0].semilogy([best.alpha], [best["mean"]], "v", color=colour, markersize=5)
        alpha, least, beside = PUBLISHED[delta]
        axes[0].semilogy([alpha, BESIDE], [least, beside], "x", color=colour, markersize=6)
    for alpha, name in ((0, "Gumbel"), (1, "Exponential")):
        axes[0].axvline(alpha, color="#555555", linewidth=0.6, linestyle="--")
        axes[0].annotate(name, (alpha, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=7)
    axes[0].set_ylim(8e-3, 3.4e-2)
    axes[0].set_yticks([0.01, 0.02, 0.03], ["0.01", "0.02", "0.03"])
    axes[0].yaxis.set_minor_formatter("")
    axes[0].fill_between([], [], [], color="#555555", alpha=0.2, label="sampled as in the source, two s.e.")
    axes[0].plot([], [], "v", color="#555555", markersize=5, label="least MSE")
    axes[0].plot([], [], "x", color="#555555", markersize=6, label="published: least, and beside Gumbel")
    label(axes[0], r"$\alpha$", r"MSE of $\ln Z$, nats$^2$")
    axes[0].set_title(r"tricks on maxima from Racing-Normal", pad=14)
    for colour, bound in zip(COLOURS[3:], BOUNDS, strict=False):
        for ax, quantity in ((axes[1], "wrong"), (axes[2], "share")):
            found = NOISE.where(quantity=quantity, bound=bound)(frame)
            percent, error = 100 * found["mean"], 200 * found.standard_error
            name = NAMES[bound] if quantity == "wrong" else None
            ax.errorbar(found.sigma, percent, error, fmt="o-", color=colour, label=name, capsize=2)
    axes[1].axhline(10, color="#555555", linestyle="--", linewidth=0.8)
    axes[1].annotate(r"$\delta$ = 0.1", (0.03, 10), xycoords=("axes fraction", "data"), ha="left", va="bottom")
    axes[1].set_ylim(-0.5, 11)
    axes[2].set_ylim(0, 105)
    for ax, title, unit in ((axes[1], "errors", "wrong races, %"), (axes[2], "work", "evaluations, %")):
        ax.set_xscale("log")
        label(ax, r"noise $\sigma$", unit)
        ax.set_title(rf"{title} at $\delta$ = 0.1", pad=14)
    figure.legend(loc="outside lower center", ncol=3)
    return figure


def _curves(quantity, **where):
    return select(part="curve", quantity=quantity, **where).number("mean", "standard_error")


@measure
def _over_between(frame, trick):
    """A trick's MSE at delta = 0.1 over that of the trick between, from all races."""
    found = select(quantity=f"{trick} over between, sharp", part=["curve", "again"], delta=0.1)(frame)
    shares = found.races / found.races.sum()
    return Measurement((shares * found["mean"]).sum(), np.sqrt(((shares * found.standard_error) ** 2).sum()))


@measure
def _against_published(frame, delta, alpha):
    """MSE at an alpha; the published one has the sampling error of K = 1000 estimators."""
    plain, best = (_curve(frame, method, delta) for method in ("plain", "sharp"))
    at = int(np.abs(best.alpha - alpha).argmin())
    sources = plain.standard_error.iloc[at]
    return Measurement(best["mean"].iloc[at], np.hypot(sources, best.standard_error.iloc[at]), sources=sources)


@measure
def _best_against_published(frame, delta):
    """The best alpha; the published one has the sampling error of K = 1000 estimators."""
    plain, best = (_curves(f"best alpha, {method}", delta=delta)(frame) for method in ("plain", "sharp"))
    if not len(plain) or not len(best):
        return None
    sources = plain.standard_error.iloc[0]
    return Measurement(best["mean"].iloc[0], np.hypot(sources, best.standard_error.iloc[0]), sources=sources)


def _mean_of_values(frame):
    """Mean of the values, from the mean loss: without losses it is ln Z = 0 exactly."""
    loss = _curves("loss", delta=0.01)(frame)
    error = np.hypot(loss.standard_error.iloc[0], PUBLISHED_ERROR) if len(loss) else 0.0
    return Measurement(-loss["mean"].iloc[0], error, sources=PUBLISHED_ERROR) if len(loss) else None


def _most_wrong_free(frame):
    found = NOISE.where(quantity="wrong", bound=FREE)
    # Among n races none is wrong by a chance of exp(-15) if a share of 15 / n is.
    return found.largest(error=15 / found(frame).races.min(), weakest=False)(frame)


NOISE = select(part="noise").number("mean", "standard_error")
NORMAL_SHARE, FREE_SHARE = (NOISE.where(quantity="share", bound=bound) for bound in BOUNDS)


ESTIMATORS = Sample(1000, "estimators")
"""The source's curves are means over these."""

CAPTION = (
    "Left: MSE of estimators of ln Z from M = 100 maxima of Racing-Normal against alpha, for three bounds delta on "
    "the probability of a wrong race; the curves of 0.001 (solid) and 0.01 (dashed) coincide, as do their bands. "
    "Bands are two standard errors of a curve from 1,000 estimators, as in the source, and crosses are read off the "
    "source's curves, which have that error. Triangles mark the least MSE. The source shows this panel alone. Its "
    "data set is not published: here p is uniform over 10 states, and the number of factors, 10,000, is the one that "
    "gives the published mean at delta = 0.1. Middle and right, not in the source: share of wrong races, and of the "
    "factors evaluated, against the noise of the factors, for Racing-Normal and for bounds that hold for any "
    "distribution; bars are two standard errors."
)

# fmt: off
CLAIMS = [
    Claim("mean at delta = 0.01", "Thesis Figure 2.3b, its published values", "published", "=", PUBLISHED_MEAN,
        _mean_of_values,
        "at delta = 0.01 the maxima have the published mean (mean in nats, where ln Z = 0; the number S of factors "
        "is chosen to give the published mean at delta = 0.1)", rounding=5e-5, scale=-PUBLISHED_MEAN,
        sample=Sample(100_000, "values")),
    *(
        claim
        for delta, (alpha, least, beside) in PUBLISHED.items()
        for apart in [(beside - least) / 2]  # half of the distance to the other trick
        for claim in (
            Claim(f"wrong at delta = {delta:g}",
                "Thesis 2.5.2: 'only guarantees to find the MAP configuration with a probability'",
                "comparison", "<", delta,
                _curves("wrong", delta=delta).read(),
                "Racing-Normal finds the MAP configuration with probability 1 - delta: at most a share delta of the "
                f"races is wrong (share at delta = {delta:g})"),
            Claim(f"best alpha at delta = {delta:g}", "Thesis Figure 2.3b", "published", "=", alpha,
                _best_against_published(delta),
                f"the alpha of least MSE at delta = {delta:g} is that of the source's curve (alpha; its error counts "
                "the noise of both curves)",
                rounding=STEP / 2, scale=0.5 if delta < 0.1 else (1 - alpha) / 2, sample=ESTIMATORS),
            Claim(f"least MSE at delta = {delta:g}", "Thesis Figure 2.3b", "published", "=", least,
                _against_published(delta, alpha),
                f"the MSE at alpha = {alpha:g}, where the source's curve for delta = {delta:g} is lowest, is that of "
                "the source (MSE, nats^2; its error counts the noise of both curves)", rounding=5e-5, scale=apart,
                sample=ESTIMATORS),
            Claim(f"beside the Gumbel trick at delta = {delta:g}", "Thesis Figure 2.3b", "published", "=", beside,
                _against_published(delta, BESIDE),
                f"the MSE at alpha = {BESIDE:.3f}, next to the Gumbel trick, for delta = {delta:g} is that of the "
                "source's curve (MSE, nats^2; its error counts the noise of both curves)", rounding=5e-5, scale=apart,
                sample=ESTIMATORS),
        )
    ),
    *(
        Claim(f"Exponential trick at delta = {delta:g}", "Thesis 2.5.2, Figure 2.3b", "comparison", "<", 1.0,
            _curves("exponential over least, sharp", delta=delta).read(),
            f"at delta = {delta:g} the Exponential trick is close to optimal (its MSE over the least of any alpha)",
            reading=Reading("close: at most a twentieth above", 0.05))
        for delta in (0.001, 0.01)
    ),
    *(
        Claim(f"between the tricks, against {trick}", "Thesis 2.5.2, Figure 2.3b", "comparison", ">", 1.0,
            _over_between(trick),
            f"at delta = 0.1 a trick between Gumbel and Exponential has a lower MSE than the {trick.capitalize()} "
            f"trick (MSE of the {trick.capitalize()} trick over that at alpha = {ALPHAS[BETWEEN]:.3f})")
        for trick in ("gumbel", "exponential")
    ),
    Claim("wrong, distribution-free", "this project", "bound", "<", 0.1, _most_wrong_free,
        "with Bernstein-Serfling bounds, which hold for any distribution, at most a share delta of the races is "
        "wrong (share at delta = 0.1, the largest for any noise sigma of the factors)"),
    Claim("price, distribution-free", "this project", "comparison", ">", 1.0,
        FREE_SHARE.over(NORMAL_SHARE, "sigma").least(weakest=False),
        "races with Bernstein-Serfling bounds evaluate more factors than Racing-Normal (ratio, the least for any "
        "noise sigma of the factors)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-2-3b",
    title="MSE of the tricks on maxima from Racing-Normal",
    source="Thesis Figure 2.3b",
    version=2,
    presets={
        "quick": {
            **{"samples": 100, "estimators": 100, "factors": 2_000, "curves": [10_000] * 3, "again": []},
            **{"races": 500, "scan": [1_000], "sigmas": [1e-3, 1e-2]},
        },
        "paper": {
            **{"samples": 100, "estimators": 1_000, "factors": FACTORS, "curves": [300_000, 100_000, 800_000]},
            **{"again": [800_000], "races": 10_000, "scan": [1_000, 2_000, 5_000, 10_000, 20_000]},
            "sigmas": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # The bootstrap of an alpha that is always the same leaves 1e-15 of it.
    tolerances={"standard_error": Tolerance(absolute=1e-12)},
    claims=CLAIMS,
    caption=CAPTION,
)
