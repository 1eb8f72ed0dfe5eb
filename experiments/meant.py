"""How often is the answer of `synthesize` the program that was meant?

Held-out programs of 1 to 6 lines make the examples, 1 to 10 of them, with inputs of four kinds; an answer is
right if it gives the outputs of the program on 64 fresh inputs of that kind. The most probable behaviour is
compared with the shortest program, and its probability with how often it is right. A user who knows the
program answers the questions. Work is counted in programs, so that another machine gives the same answers.
"""

import numpy as np

from thesis_cli.base.figures import COLOURS, label, legend_below, panels
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.synthesis.meanings import answers, calibration
from thesis_cli.studies.synthesis.speedups import share_of
from thesis_cli.synthesis.meant.fitting import KINDS

EXAMPLES = [1, 2, 3, 5, 10]
ASKED = 3
BLOCK = 5
FINDING = "The program that was meant, goals of this project"


def tasks(settings):
    return [
        {"length": length, "kind": kind, "first": first, "programs": min(BLOCK, settings["programs"] - first),
         "examples": settings["examples"], "asked": ASKED}
        for first in range(0, settings["programs"], BLOCK)
        for length in settings["lengths"]
        for kind in KINDS
    ]  # fmt: skip


def run(seed, **parameters):
    return answers(seed, **parameters)


def plot(frame):
    figure, (left, middle, right) = panels(1, 3)
    lengths = sorted(frame.length.unique())
    for colour, count in zip(COLOURS, sorted(frame.examples.unique()), strict=False):
        rows = frame[frame.examples == count].groupby("length")
        left.plot(lengths, rows.meant.mean(), "o-", color=colour, markersize=3, label=f"$M = {count}$")
        left.plot(lengths, rows.shortest.mean(), ":", color=colour)
        middle.plot(lengths, rows.share.mean(), "--", color=colour)
        middle.plot(lengths, rows.collected.mean(), "-", color=colour)
    points = calibration(frame.share.to_numpy(float), frame.meant.to_numpy(float))
    error = 2 * np.sqrt(np.maximum(points[:, 1] * (1 - points[:, 1]), 0.01) / points[:, 2])
    right.errorbar(points[:, 0], points[:, 1], yerr=error, fmt="o", markersize=3, color=COLOURS[0])
    right.plot([0, 1], [0, 1], color="black", linewidth=0.6)
    label(left, "length $T$", "share of answers that are right", "answers\n(dotted: shortest)")
    label(middle, "length $T$", "share of tasks", "right one weighed\n(dashed: mean probability)")
    label(right, "probability of the answer", "share that is right", "calibration")
    for ax in (left, middle, right):
        ax.set_ylim(0, 1.02)
    return legend_below(figure, left, 3)


@measure
def _right(frame, column, **rows):
    """Share of the answers that are right."""
    found = select(**rows)(frame)[column].astype(float).dropna()
    return Measurement(*share_of(int(found.sum()), len(found))) if len(found) else None


@measure
def _gain(frame, **rows):
    """Share of right answers of the most probable program, less that of the shortest one."""
    found = select(**rows)(frame)
    gain = (found.meant - found.shortest).to_numpy(float)
    return Measurement(gain.mean(), max(gain.std(), 0.1) / len(gain) ** 0.5) if len(gain) else None


def _miscalibration(frame):
    """Mean distance of the share that is right from the probability, over intervals of the probability, by
    the number of answers."""
    points = calibration(frame.share.to_numpy(float), frame.meant.to_numpy(float))
    weight = points[:, 2] / points[:, 2].sum()
    errors = np.sqrt(np.maximum(points[:, 1] * (1 - points[:, 1]), 0.01) / points[:, 2])
    return Measurement(weight @ abs(points[:, 0] - points[:, 1]), float(np.sqrt((weight**2) @ errors**2)))


def _ceiling(frame):
    """Share of right answers, less the mean probability of the answers: 0 if the examples leave the rest to chance."""
    rest = (frame.meant - frame.share).to_numpy(float)
    return Measurement(rest.mean(), rest.std() / len(rest) ** 0.5)


@measure
def _limit(frame, **rows):
    """Share of right answers that no rule exceeds: what was not weighed is taken for one behaviour, which would be
    the answer wherever it is more probable than the best one."""
    found = select(**rows)(frame)
    best = np.maximum(found.share, found.unseen).to_numpy(float)
    return Measurement(best.mean(), best.std() / len(best) ** 0.5) if len(best) else None


def _median_questions(frame):
    found = select(examples=ASKED, length=UP_TO_FIVE)(frame).questions.astype(float).dropna()
    return Measurement(found.median(), 0.5 / len(found) ** 0.5) if len(found) else None


UP_TO_FIVE = [1, 2, 3, 4, 5]

# fmt: off
CLAIMS = [
    Claim("three examples", "this project", "comparison", ">", 0.93, _right("meant", examples=3, length=UP_TO_FIVE),
        "with three examples, 93 % of the answers for programs of up to five lines are right on 64 fresh inputs",
        finding=FINDING),
    Claim("three examples, T = 5", "this project", "comparison", ">", 0.85, _right("meant", examples=3, length=5),
        "with three examples, 85 % of the answers for programs of five lines are right", finding=FINDING),
    *(Claim(f"gain, {count} examples", "this project", "comparison", ">", 0.0, _gain(examples=count),
        f"with {count} example{'s' * (count > 1)}, the most probable program is right more often than the shortest "
        "one (difference of the shares)", finding=FINDING) for count in EXAMPLES),
    Claim("calibration", "this project", "comparison", "<", 0.05, _miscalibration,
        "the probability of an answer is the share that is right, within 5 points (mean over tenths)",
        finding=FINDING),
    Claim("ceiling", "this project", "comparison", "=", 0.0, _ceiling,
        "as many answers are right as their probabilities promise: of the programs that are weighed, no rule could "
        "choose better", scale=0.05, finding=FINDING),
    Claim("limit", "this project", "comparison", "<", 0.93, _limit(examples=3, length=UP_TO_FIVE),
        "with three examples, no rule is right for 93 % of the programs of up to five lines: the examples leave the "
        "rest to chance (mean of the larger of the probabilities of the answer and of all that was not weighed)"),
    Claim("limit, T = 5", "this project", "comparison", "<", 0.85, _limit(examples=3, length=5),
        "with three examples, no rule is right for 85 % of the programs of five lines"),
    Claim("two questions", "this project", "comparison", ">", 0.99,
        _right("after two", examples=ASKED, length=UP_TO_FIVE),
        "after at most two questions, 99 % of the answers for programs of up to five lines are right (three examples "
        "at first)", finding=FINDING),
    Claim("median of questions", "this project", "comparison", "<", 1.5, _median_questions,
        "the median number of questions is at most one", finding=FINDING),
]
# fmt: on

EXPERIMENT = Experiment(
    id="meant",
    title="How often the answer is the program that was meant",
    source="this project",
    version=3,
    presets={
        "quick": {"lengths": [2, 3], "programs": 3, "examples": [1, 3]},
        "paper": {"lengths": [1, 2, 3, 4, 5, 6], "programs": 10, "examples": EXAMPLES},
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=CLAIMS,
    caption="Left: share of the held-out programs of T lines for which the answer is right on 64 fresh inputs; solid "
    "the most probable program, dotted the shortest one, by the number of examples M. Middle: share of the tasks for "
    "which the right behaviour is among those that were weighed (solid), and mean probability of the answer (dashed), "
    "which is as often as any rule that chooses among them could be right. Right: share of right answers by the "
    "probability of the answer, with two standard errors. There are ten programs of each length and each kind of "
    "inputs. The thesis has no such figure.",
)
