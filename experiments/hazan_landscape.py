"""Figure 3 of Hazan et al.: probability and energy of all 512 configurations of 3x3 spin glasses."""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.reproduction.experiment import Claim, Experiment, Reading, Tolerance
from thesis_cli.reproduction.measuring import select
from thesis_cli.studies.models.landscape import landscape

SIDE = 3
CONFIGURATIONS = 2 ** (SIDE * SIDE)
COUPLINGS = 0.0, 1.0, 2.0, 3.0
SHARE = 0.9
NEGLIGIBLE = 1e-4
PERTURBATIONS = 50
MEASURES = [
    *("dependence", "unevenness", "local_maxima", "dominating", "largest", "entropy", "step", "negligible_step"),
    *("highest", "climbed", "perturbed"),
]
COLUMNS = ["coupling", "model", "configuration", "potential", "probability", *MEASURES]

CAPTION = """\
Probability (top) and energy -theta(x) (bottom) of all 512 configurations of one 3x3 spin glass with \
fields from [-1, 1] and couplings from [0, C), C = 0, 1, 2 and 3, numbered in binary; the fields, and \
the couplings in units of C, are the same in all columns. n is the number of configurations that hold \
90 % of the probability (red), k the number of local maxima: configurations that no flip of one \
variable improves. The figure of the source has the same eight panels, of a model that it does not \
give; its order of the configurations is not stated either. The claims are means over 1,000 models."""


def tasks(settings):
    return [{"batch": batch, "models": settings["models"]} for batch in range(settings["batches"])]


def run(seed, batch, models):
    """A row for each model and coupling, and one for each configuration of the first model.

    `dominating` is the number of configurations that hold 90 % of the probability, `largest` the
    largest probability. `step` is the mean absolute change of the energy by one flip, in nats, and
    `negligible_step` that from configurations of probability below 1e-4. Of the 512 starts, the best
    single flips lead a share `highest` to the most probable configuration, and `climbed` to one of
    the dominating ones; `perturbed` is the share of perturbed maximisers that are among these.
    `dependence` and `unevenness` are those of `Landscape`.
    """
    table = []
    for model, child in enumerate(seed.spawn(models)):
        numbers, noise = child.spawn(2)
        for coupling in COUPLINGS:
            glass = random_spin_glass(SIDE, SIDE, coupling, 1.0, "attractive", np.random.default_rng(numbers))
            found = landscape(glass.graph())
            table.append(_measured(found, np.random.default_rng(noise)) | {"coupling": coupling, "model": model})
            if batch == model == 0:
                pairs = zip(found.values, found.probabilities, strict=True)
                table += [
                    {"coupling": coupling, "configuration": i, "potential": value, "probability": p}
                    for i, (value, p) in enumerate(pairs)
                ]
    frame = pd.DataFrame(table, columns=COLUMNS)
    frame["model"] += batch * models
    whole = ["model", "configuration", "local_maxima", "dominating"]
    frame[whole] = frame[whole].astype("Int64")
    return frame


def _measured(found, rng):
    steps = np.abs(found.neighbours - found.values)
    negligible = found.probabilities < NEGLIGIBLE
    dominating, ends = found.dominating(SHARE), found.climb()
    return {
        "dependence": found.dependence,
        "unevenness": found.unevenness,
        "local_maxima": found.local_maxima,
        "dominating": dominating.size,
        "largest": found.probabilities.max(),
        "entropy": found.entropy,
        "step": steps.mean(),
        "negligible_step": steps[:, negligible].mean() if negligible.any() else None,
        "highest": (ends == found.values.argmax()).mean(),
        "climbed": np.isin(ends, dominating).mean(),
        "perturbed": np.isin(found.perturbed(PERTURBATIONS, rng), dominating).mean(),
    }


def plot(frame):
    figure, axes = panels(2, len(COUPLINGS), height=1.9, sharex=True)
    drawn = frame[frame.configuration.notna()]
    for (above, below), (coupling, part) in zip(axes.T, drawn.groupby("coupling"), strict=True):
        number = part.configuration.to_numpy(dtype=int)
        p, energy = part.probability.to_numpy(), -part.potential.to_numpy()
        order = np.argsort(-p)
        top = order[: int(np.searchsorted(p[order].cumsum(), SHARE)) + 1]
        above.vlines(number, 0, p, color=COLOURS[0], linewidth=0.6)
        above.vlines(number[top], 0, p[top], color=COLOURS[1], linewidth=0.8)
        below.plot(number, energy, color=COLOURS[0], linewidth=0.5)
        below.plot(number[top], energy[top], ".", color=COLOURS[1], markersize=2.5)
        first = frame[(frame.model == 0) & (frame.coupling == coupling)].iloc[0]
        above.set_title(f"$C$ = {coupling:g}: $n$ = {first.dominating:g}, $k$ = {first.local_maxima:g}")
        above.set_ylim(bottom=0)
        below.set_xlabel("configuration")
        below.set_xticks([0, 256, 512])
    axes[0, 0].set_ylabel("probability")
    label(axes[1, 0], "configuration", "energy, nats")
    return figure


MODELS = select("model == model")


def _at(column, coupling):
    return MODELS.where(coupling=coupling).number(column).mean()


def _least_rise(column, sign=1.0):
    """Mean rise (fall, with `sign` -1) of a measure from one coupling to the next, where it is fewest
    standard errors above 0."""

    def rises(found):
        table = found.pivot(index="model", columns="coupling", values=column).astype(float)
        return sign * table.diff(axis=1)[[*COUPLINGS[1:]]]

    return MODELS.then(lambda found: rises(found).melt().dropna()).means("coupling").lowest()


FIGURE = "Hazan et al. Figure 3, caption"
TEXT = "Hazan et al. V: 'a relatively small set of dominating configurations'"
SMALL = Reading("relatively small: below a tenth of the configurations, 51", 0.0)


# fmt: off
CLAIMS = [
    Claim("ragged", FIGURE, "comparison", ">", 0.0, _least_rise("local_maxima"),
        "as couplings get stronger the landscape gets more ragged: more local maxima, from each of C = 0, 1, 2 to "
        "the next (mean increase in their number, least in its standard errors)"),
    Claim("steps", FIGURE, "comparison", ">", 0.0, _least_rise("step"),
        "as couplings get stronger the landscape gets more ragged: larger steps, from each of C = 0, 1, 2 to the "
        "next (increase of the mean absolute change of energy by one flip, nats, least in its standard errors)"),
    Claim("negligible configurations", FIGURE, "comparison", ">", 0.0, _least_rise("negligible_step"),
        "the landscape is ragged throughout, even for negligible configurations: their steps grow with the "
        "coupling, too (increase in nats from each of C = 0, 1, 2 to the next, from configurations of probability "
        "below 1e-4, least in its standard errors)"),
    Claim("as ragged there as elsewhere", FIGURE, "comparison", "=", 1.0,
        MODELS.where("negligible_step == negligible_step", coupling=3.0)
        .number(lambda found: found.negligible_step / found.step)
        .mean(),
        "the landscape is ragged throughout the space (mean step from configurations of probability below 1e-4 as "
        "a share of the mean step, C = 3)", scale=0.2, reading=Reading("throughout: within a tenth", 0.1)),
    Claim("few dominate", TEXT, "comparison", "<", CONFIGURATIONS / 10, _at("dominating", 3.0),
        "the landscape is characterised by a relatively small set of dominating configurations (number that holds "
        "90 % of the probability, C = 3)", reading=SMALL),
    Claim("few dominate, medium coupling", TEXT, "comparison", "<", CONFIGURATIONS / 10, _at("dominating", 2.0),
        "a relatively small set of configurations dominates (number that holds 90 % of the probability, C = 2)",
        reading=SMALL),
    Claim("fewer and fewer", TEXT, "comparison", ">", 0.0, _least_rise("dominating", sign=-1.0),
        "the stronger the couplings, the fewer configurations dominate (mean decrease from each of C = 0, 1, 2 to "
        "the next, least in its standard errors)"),
    Claim("local approaches", FIGURE, "comparison", ">", 0.0, _least_rise("highest", sign=-1.0),
        "ragged landscapes affect many local approaches: the best single flips lead to the most probable "
        "configuration from fewer starts (mean decrease of the share from each of C = 0, 1, 2 to the next, least "
        "in its standard errors)"),
    Claim("perturbations target maxima", FIGURE, "comparison", ">", SHARE, _at("perturbed", 3.0),
        "random MAP perturbation directly targets the maximal configurations and so performs well in these "
        "settings (share of perturbed maximisers among the configurations that hold 90 %, C = 3)",
        reading=Reading("well: within a tenth of the share of exact samples, 0.9", 0.1)),
    Claim("better than local approaches", FIGURE, "comparison", ">", 0.0,
        MODELS.where(coupling=3.0).number(lambda found: found.perturbed - found.climbed).mean(),
        "random MAP perturbation ends at dominating configurations more often than the best single flips from "
        "random starts (difference of the shares, C = 3)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="hazan-landscape",
    title="Probability and energy of all configurations of 3x3 spin glasses",
    source="Hazan et al. Figure 3",
    version=1,
    presets={"quick": {"batches": 1, "models": 60}, "paper": {"batches": 10, "models": 100}},
    tasks=tasks,
    run=run,
    plot=plot,
    caption=CAPTION,
    tolerances={"dependence": Tolerance(absolute=1e-12), "unevenness": Tolerance(absolute=1e-12)},
    claims=CLAIMS,
)
