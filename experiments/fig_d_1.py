"""Figure D.1: the probabilities that the network predicts for the nine programs of appendix D.1.

The network was trained on programs of T = 4, none of which does what one of the nine does
(`training.corpora`). Each program has five examples (`data/tasks`): the printed one and others of
the corrected program.
"""

import numpy as np
import pandas as pd

from thesis_cli.base.figures import panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import measure
from thesis_cli.studies.synthesis.attribute_figures import attributes_on_top, numbers, square
from thesis_cli.studies.synthesis.predictions import predicted, version
from thesis_cli.studies.synthesis.rank_loss import ranked
from thesis_cli.studies.synthesis.thesis_programs import SHOWN
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, OPERATIONS

WEIGHTS = "lines-4"
NINE = [shown for shown in SHOWN if shown.where.startswith("Program")]


def tasks(settings):
    return [{"weights": version(WEIGHTS), **settings}]


def run(seed, weights, programs):
    """A row for each program and attribute: whether the program has it (`used`), the `probability`
    that the network predicts, and that of the `prior`."""
    chosen = NINE[:programs]
    found = predicted(weights, [shown.task() for shown in chosen])
    rows = []
    for shown, probabilities in zip(chosen, found, strict=True):
        used = {a for line in shown.program.lines for a in OPERATIONS[line.operation].attributes}
        before = prior.load().probabilities
        rows += [
            (shown.where, shown.name, name, int(a in used), probabilities[a], before[a])
            for a, name in enumerate(ATTRIBUTES)
        ]
    return pd.DataFrame(rows, columns=["where", "program", "attribute", "used", "probability", "prior"])


def plot(frame):
    where = frame["where"].drop_duplicates()
    figure, axes = panels(1, 1, height=0.24 * len(where) + 0.75)
    matrix, used = (_matrix(frame, name) for name in ("probability", "used"))
    numbers(axes, matrix, 1.0, 6.3)
    for i, j in np.argwhere(used > 0):
        square(axes, i, j)
    attributes_on_top(axes)
    programs = frame.drop_duplicates("where").program
    axes.set_yticks(range(len(where)), [f"{p.split()[1]}  {n}" for p, n in zip(where, programs, strict=True)])
    axes.tick_params(left=False)
    return figure


def _matrix(frame, name):
    """A column as an array, shape (programs, 34)."""
    return frame[name].to_numpy(float).reshape(-1, len(ATTRIBUTES))


def _losses(frame, name):
    """Rank loss of each program."""
    used = _matrix(frame, "used") > 0
    orders = np.argsort(-_matrix(frame, name), axis=1, kind="stable")
    return np.array([ranked(y[None], order.tolist()).loss[0] for y, order in zip(used, orders, strict=True)])


def _apart(frame):
    """Mean probability of an attribute that is used less that of one that is not, over programs."""
    used, found = _matrix(frame, "used") > 0, _matrix(frame, "probability")
    return _mean(np.array([p[y].mean() - p[~y].mean() for y, p in zip(used, found, strict=True)]))


def _fewer(frame):
    return _mean(_losses(frame, "prior") - _losses(frame, "probability"))


def _mean(values):
    return Measurement(values.mean(), values.std(ddof=1) / len(values) ** 0.5)


@measure
def _share(frame, used, above):
    """Mean over programs of the share of what they use, or do not, whose probability is above 1/2, or
    below."""
    chosen = frame[frame.used == used]
    return _mean(((chosen.probability > 0.5) == above).groupby(chosen.program, sort=False).mean())


# fmt: off
CLAIMS = [
    Claim("used", "this project", "comparison", ">", 0.5, _share(1, True),
        "most of the functions and lambdas that a program of appendix D.1 uses get a probability above 1/2; the "
        "thesis has 'ideally close to 1' (share, mean over the nine programs)", finding="Figure D.1"),
    Claim("not used", "this project", "comparison", ">", 0.5, _share(0, False),
        "most of the functions and lambdas that a program of appendix D.1 does not use get a probability below "
        "1/2; the thesis has 'ideally close to 0' (share, mean over the nine programs)"),
    Claim("apart", "this project", "comparison", ">", 0.0, _apart,
        "functions and lambdas that a program of appendix D.1 uses get a higher probability than those that it "
        "does not use (difference of mean probabilities, mean over the nine programs)"),
    Claim("Rank loss", "this project", "comparison", ">", 0.0, _fewer,
        "the network has smaller Rank losses than the prior on the programs of appendix D.1 (the prior's less the "
        "network's, mean over the nine programs)"),
]
# fmt: on

EXPERIMENT = Experiment(
    id="fig-d-1",
    title="Predicted functions and lambdas of the nine programs of appendix D.1",
    source="Thesis D.1, Figure D.1",
    version=1,
    presets={"quick": {"programs": 9}, "paper": {"programs": 9}},
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances={"probability": Tolerance(1e-3, 1e-6)},
    claims=CLAIMS,
    caption="Probability of each function and lambda (columns) for the nine programs of appendix D.1 (rows), by a "
    "network trained on programs of 4 lines that do what none of the nine does; numbers are rounded to two digits and "
    "written without the leading 0. Squares mark what a program uses: ideally they hold 1, and other cells 0. The "
    "thesis has the same table with the numbers of its own network, which its text does not contain; four of the five "
    "examples of each task are drawn here, since it prints one.",
)
