"""Figure 5.2: the probability of each function and lambda that the network predicts for the program
of Figure 5.1, from five examples.

The thesis prints one of the examples; the others are drawn (`data/tasks/negatives.json`). A
prediction depends on the examples, so the others are also drawn anew, many times.
"""

from random import Random

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Reading, Tolerance
from thesis_cli.reproduction.measuring import labelled, measured
from thesis_cli.studies.synthesis.predictions import over_trainings, predicted, trainings
from thesis_cli.studies.synthesis.rank_loss import ranked
from thesis_cli.studies.synthesis.speedups import share_of
from thesis_cli.studies.synthesis.thesis_programs import EXAMPLES, SHOWN
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, OPERATIONS
from thesis_cli.synthesis.language.program import run as run_program
from thesis_cli.synthesis.language.task import Example, Task

WEIGHTS = "lines-4"
PROGRAM = next(shown for shown in SHOWN if shown.where == "Figure 5.1")
USED = np.isin(
    range(len(ATTRIBUTES)), [a for line in PROGRAM.program.lines for a in OPERATIONS[line.operation].attributes]
)
LIKELY = 0.5
FINDING = "Figure 5.2"


def tasks(settings):
    return [
        {"training": number, "weights": weights, "redraws": 0 if number else settings["redraws"]}
        for number, weights in enumerate(trainings(WEIGHTS))
    ]


def run(seed, training, weights, redraws):
    """`probability` of each attribute, and whether the program has it (`used`). With redraws, in
    `redrawn` are the share of them in which its probability is above 1/2, and, in the row of each
    attribute, in `mean` and `spread`, the mean and standard deviation of the probability. `loss`
    has the Rank loss, and `losses` its mean over the redraws."""
    rng = Random(int(np.random.default_rng(seed).integers(2**32)))
    found = predicted(weights, [PROGRAM.task(), *(_redrawn(rng) for _ in range(redraws))])
    rows = {"attribute": ATTRIBUTES, "used": USED.astype(int), "probability": found[0]}
    rows |= _over_redraws(found) if redraws else dict.fromkeys(OVER_REDRAWS, np.nan)
    return labelled({**rows, "redraws": redraws}, training=training)


OVER_REDRAWS = "redrawn", "mean", "spread", "loss", "losses", "all_likely"


def _over_redraws(found):
    losses = [ranked(USED[None], np.argsort(-row, kind="stable").tolist()).loss[0] for row in found]
    numbers = (
        (found[1:] > LIKELY).mean(axis=0),
        found[1:].mean(axis=0),
        found[1:].std(axis=0),
        losses[0],
        np.mean(losses[1:]),
        (found[1:, USED] > LIKELY).all(axis=1).mean(),
    )
    return dict(zip(OVER_REDRAWS, numbers, strict=True))


def _redrawn(rng):
    """The printed example with others, drawn anew."""
    rows = {PROGRAM.example.inputs: PROGRAM.example.output}
    while len(rows) < EXAMPLES:
        inputs = PROGRAM.draw(rng)
        output = run_program(PROGRAM.program, inputs)
        if output is not None:
            rows[inputs] = output
    return Task(PROGRAM.name, tuple(Example(*pair) for pair in rows.items()))


def plot(frame):
    frame = frame[frame.training == 0]
    figure, ax = panels(1, 1, height=2.5)
    places = np.arange(len(frame))
    for used, colour, name in ((1, COLOURS[1], "in the program"), (0, COLOURS[0], "not in it")):
        rows = (frame.used == used).to_numpy()
        ax.bar(places[rows], frame.probability[rows], color=colour, width=0.75, label=name)
    redraws = int(frame.redraws.iloc[0])
    others = f"other examples ({redraws} draws): mean, deviation"
    ax.errorbar(places, frame["mean"], frame.spread, fmt="k_", elinewidth=0.7, markersize=4, label=others)
    for place, probability in zip(places, frame.probability, strict=True):
        ax.text(place, 1.03, f"{probability:.2f}".replace("0.", "."), ha="center", fontsize=6.3)
    ax.set_xticks(places, frame.attribute, rotation=90, fontsize=7)
    ax.set(xlim=(-0.7, len(frame) - 0.3), ylim=(0, 1.12))
    ax.grid(visible=False, axis="x")
    label(ax, "", "predicted probability")
    return legend_below(figure, ax, 3)


def _least(frame):
    """Least probability of what the program uses."""
    least = frame[frame.used == 1].groupby("training").probability.min()
    return over_trainings([(probability, 0.0) for probability in least])


def _all_likely(frame):
    redraws = int(frame.redraws.iloc[0])
    return Measurement(*share_of(round(frame.all_likely.iloc[0] * redraws), redraws))


# fmt: off
CLAIMS = [
    Claim("identified", "Thesis Figure 5.2, caption", "published", ">", LIKELY,
        measured(_least),
        "all functions and lambdas of the program of Figure 5.1 are identified (least of their predicted "
        "probabilities, mean over trainings)",
        printed="all", reading=Reading("identified: a probability above 1/2", 0.0),
        not_comparable="The thesis speaks of its own network, which is not published; here another one is trained."),
    Claim("other examples", "this project", "comparison", ">", 0.5, _all_likely,
        "all functions and lambdas of the program of Figure 5.1 are identified from most sets of the four examples "
        "that the thesis does not print (share of draws in which each probability is above 1/2)", finding=FINDING),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-5-2",
    title="Predicted functions and lambdas of the program of Figure 5.1",
    source="Thesis 5.4.3, Figure 5.2",
    version=2,
    presets={"quick": {"redraws": 100}, "paper": {"redraws": 2000}},
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances=dict.fromkeys(["probability", "mean", "spread", "redrawn", "losses", "all_likely"], Tolerance(1e-3)),
    claims=CLAIMS,
    caption="Bars: the probability that a network, trained here on programs of 4 lines, gives to each function and "
    "lambda from the printed example of Figure 5.1 and four others, with its first two digits above the bar. Black "
    "marks: mean and standard deviation over other draws of these four examples, which the thesis does not print. "
    "Orange bars are of what the program uses. In the thesis's figure all of these are identified; here REVERSE and "
    "SORT are not, since SCANL1 MIN gives falling lists, too, nor by four other trainings of the network.",
)
