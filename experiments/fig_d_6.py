"""Figure D.6: which functions and lambdas the network of Table 5.1 confuses, on programs of T = 3.

An entry of the conditional confusion matrix is the average predicted probability of the column's
attribute over the test programs that use the row's attribute and not the column's. Each tendency
that appendix D.7 names is compared with the average false positive, and with the false positives
of the same columns in programs that lack the row's attribute too: only the second shows whether it
is the row's attribute that confuses.
"""

import numpy as np

from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.studies.synthesis.attribute_figures import confusion_figure
from thesis_cli.studies.synthesis.predictions import predicted, version
from thesis_cli.studies.synthesis.tendencies import ALL, COLUMNS, GROUPS, ROWS, STATEMENTS, tendencies
from thesis_cli.synthesis.training.corpora import held_out

LENGTH, WEIGHTS = 3, "lines-3"


def tasks(settings):
    return [{"weights": version(WEIGHTS), **settings}]


def run(seed, weights, programs, resamples):
    """The matrix and its tendencies (`tendencies`)."""
    corpus = held_out(LENGTH, programs)
    probabilities = predicted(weights, [corpus.task(row) for row in range(len(corpus))])
    return tendencies(probabilities, corpus.attributes, resamples, np.random.default_rng(seed))


def plot(frame):
    return confusion_figure(frame[frame.part == "cell"])


def _difference(name, against):
    def measure(frame):
        row = frame[(frame.part == "group") & (frame.row == name) & (frame.column == against)].iloc[0]
        return Measurement(row.value - row.average, row.standard_error)

    return measure


def _rows(frame):
    return Measurement(frame[frame.row == ROWS].value.iloc[0])


def _claim(name, against):
    compared = "average" if against == ALL else "average of the same columns without the row's attribute"
    return Claim(
        id=f"{name}, {against}",
        source="Thesis D.7",
        statement=f"{STATEMENTS[name]}: false-positive probability less the {compared}",
        published=0.0,
        relation=">",
        measure=_difference(name, against),
        scale=0.01,
    )


EXPERIMENT = Experiment(
    id="fig-d-6",
    title="Conditional confusion matrix, programs of T = 3",
    source="Thesis D.7, Figure D.6",
    version=1,
    presets={
        "quick": {"programs": 200, "resamples": 100},
        "paper": {"programs": 500, "resamples": 1000},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances=dict.fromkeys(["value", "average", "standard_error"], Tolerance(relative=1e-4, absolute=1e-6)),
    claims=[
        *(
            _claim(name, against)
            for name in GROUPS
            for against in (ALL, COLUMNS)
            if (name, against) != ("common", COLUMNS)
        ),
        Claim(
            id="common, in each row",
            source="Thesis D.7",
            statement="they are predicted more often regardless of the program (share of rows; 1: in each)",
            published=1.0,
            relation="=",
            measure=_rows,
            rounding=0.05,
        ),
    ],
)
