"""Figure D.6: which functions and lambdas the network of Table 5.1 confuses, on programs of T = 3.

An entry of the conditional confusion matrix is the average predicted probability of the column's
attribute over the test programs that use the row's attribute and not the column's. Each tendency
that appendix D.7 names is compared with the average false positive, and with the false positives
of the same columns in programs that lack the row's attribute too: only the second shows whether it
is the row's attribute that confuses.
"""

import numpy as np

from thesis_cli.reproduction.experiment import Claim, Experiment, Tolerance
from thesis_cli.reproduction.measuring import labelled, measured
from thesis_cli.studies.synthesis.attribute_figures import confusion_figure
from thesis_cli.studies.synthesis.confusion import (
    COMPARISONS,
    EVERY_ROW,
    PLACES,
    contrast,
    least_common,
    statement,
    tendencies,
)
from thesis_cli.studies.synthesis.predictions import predicted, trainings
from thesis_cli.synthesis.training.corpora import held_out

NETWORK = "The thesis speaks of its own network and programs, which are not published; here another one is trained."
LENGTH, WEIGHTS = 3, "lines-3"


def tasks(settings):
    return [{"training": number, "weights": weights, **settings} for number, weights in enumerate(trainings(WEIGHTS))]


def run(seed, training, weights, programs, resamples):
    """The matrix of a training and its tendencies (`tendencies`)."""
    corpus = held_out(LENGTH, programs)
    probabilities = predicted(weights, [corpus.task(row) for row in range(len(corpus))])
    found = tendencies(probabilities, corpus.attributes, resamples, np.random.default_rng(seed))
    return labelled(found, training=training)


def plot(frame):
    return confusion_figure(frame[(frame.part == "cell") & (frame.training == 0)])


# fmt: off
CLAIMS = [
    *(
        Claim(f"{name}, {against}", f"Thesis {PLACES[name]}", "comparison", ">", 0.0, measured(contrast, name, against),
            statement(name, against), not_comparable=NETWORK)
        for name, against in COMPARISONS
    ),
    Claim("common, in each row", f"Thesis {PLACES['common']}", "comparison",
            ">", 0.0, measured(least_common), EVERY_ROW,
        not_comparable=NETWORK),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-d-6",
    title="Conditional confusion matrix, programs of T = 3",
    source="Thesis D.7, Figure D.6",
    version=2,
    presets={"quick": {"programs": 200, "resamples": 100}, "paper": {"programs": 500, "resamples": 1000}},
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances=dict.fromkeys(["value", "average", "standard_error"], Tolerance(relative=1e-4, absolute=1e-6)),
    claims=CLAIMS,
    caption="Conditional confusion matrix of the network trained on programs of 3 lines, which Table 5.1 uses, on 500 "
    "held-out programs of 3 lines. The shade of a cell is the average probability of the column's function or "
    "lambda over the programs that use the row's and not the column's; numbers are those of 0.2 and above, dots "
    "are cells of fewer than 10 programs, and white cells have none. Rows and columns are in an order, found by "
    "clustering, that brings similar ones together. The thesis's figure is the same of its own network and "
    "programs, in an order of its own. Claims are about the mean over trainings of the network, of which this is the "
    "first.",
)
