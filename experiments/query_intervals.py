"""How often the 95 % intervals of dp-query cover the true answers, on five real tables.

Each table is released by copula with seeded noise, at the scale of `dp-release`. Random questions
are asked of the release and of the private rows themselves: the noise and the scores are NOT
PRIVATE.
"""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.privacy.mechanism import Budget
from thesis_cli.privacy.query import ask
from thesis_cli.privacy.release import ReleaseRequest, private_record
from thesis_cli.privacy.release_rows import synthetic
from thesis_cli.privacy.replicates import limits_of, replicates, with_errors
from thesis_cli.privacy.weighted_sample import WeightedSample
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.studies.privacy.questions import FAMILIES, questions
from thesis_cli.studies.privacy.real_releases import SeededStages
from thesis_cli.studies.privacy.real_tables import SOURCES, table

DELTA = 1e-6
SEED = 19
"""Seed of the questions."""
MODELS = ("R^2 in the release", "RMSE in the release", "directions not determined")
"""Numbers of a regression that describe the release, and not the population."""


def tasks(settings):
    common = {name: settings[name] for name in ("draws", "each", "simulated", "rows")}
    return [{"name": name, "epsilon": e, **common} for name in settings["tables"] for e in settings["epsilons"]]


def answered(rows, texts, count):
    """Answers to the questions that rows can answer."""
    found = []
    for text in texts:
        try:
            found.append(ask(rows, text, count))
        except InputError:  # no rows of a group are left
            continue
    return found


def run(seed, name, epsilon, draws, each, simulated, rows):
    """A row for each draw of noise and each family of questions: numbers with an interval, how many
    of these cover the true answer, and numbers without an interval."""
    source = table(name)
    schema, private = source.schema, source.private
    asked = {text: family for family, text in questions(source, each, np.random.default_rng(SEED))}
    limits = limits_of(schema, 1)

    def ask_all(rows):
        return answered(rows, asked, 1.0)

    truths = _numbers(ask_all(WeightedSample.of_rows(schema, private)))
    true = {_key(x): x.value for x in truths if not math.isnan(x.value)}
    found = []
    for draw, child in enumerate(seed.spawn(draws)):
        rng = np.random.default_rng(child)
        request = ReleaseRequest(schema, Budget(epsilon, DELTA), "copula", entropy=int(rng.integers(2**63)))
        record = private_record([private], len(private), request, lambda *_: None, noise=SeededStages(rng))
        release = synthetic(record, rows or len(private))
        simulations = [ask_all(WeightedSample.of_release(one)) for one in replicates(release, simulated)]
        answers = with_errors(ask_all(WeightedSample.of_release(release)), simulations, limits)
        numbers = [row for row in _numbers(answers) if _key(row) in true]
        for family in FAMILIES:
            own = [row for row in numbers if asked[row.query] == family]
            known = [row for row in own if not math.isnan(row.error)]
            covered = sum(row.low <= true[_key(row)] <= row.high for row in known)
            record = {"table": name, "epsilon": epsilon, "draw": draw, "family": family}
            found.append({**record, "numbers": len(known), "covered": covered, "without": len(own) - len(known)})
    return pd.DataFrame(found)


def _numbers(answers):
    return [row for answer in answers for row in answer.rows if row.statistic not in MODELS]


def _key(row):
    return row.query, row.group, row.statistic


def coverage(frame):
    """Share of the intervals that cover, and its standard error over the draws of the tables."""
    draws = frame.groupby(["table", "epsilon", "draw"])[["covered", "numbers"]].sum()
    share = draws.covered.sum() / draws.numbers.sum()
    residuals = (draws.covered - share * draws.numbers).groupby(["table", "epsilon"])
    # The questions of a table are the same in all draws: a table is one observation.
    totals = residuals.sum()
    return Measurement(share, float(np.sqrt((totals**2).sum())) / draws.numbers.sum())


def plot(frame):
    epsilons = sorted(frame.epsilon.unique())
    figure, axes = panels(1, len(epsilons), height=2.9, sharey=True, squeeze=False)
    places = np.arange(len(FAMILIES))
    for ax, epsilon in zip(axes[0], epsilons, strict=True):
        ax.axvspan(0.93, 0.97, color="0.9", linewidth=0)
        ax.axvline(0.95, color="0.6", linewidth=0.8)
        for (name, rows), colour in zip(frame[frame.epsilon == epsilon].groupby("table"), COLOURS, strict=False):
            sums = rows.groupby("family")[["covered", "numbers"]].sum().reindex(FAMILIES)
            ax.plot(sums.covered / sums.numbers, places, "o", color=colour, markersize=4, label=name)
        label(ax, "coverage", "", rf"$\varepsilon = {epsilon:g}$")
        ax.set_yticks(places, FAMILIES)
        ax.set_ylim(len(FAMILIES) - 0.5, -0.5)
        ax.set_xlim(-0.03, 1.03)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=5)
    return figure


def _claim(name, statement, choose):
    def measure(frame):
        rows = frame[choose(frame)]
        return coverage(rows) if rows.table.nunique() > 2 else None  # else the error is unknown

    return Claim(name, "beside Thesis 4.3.3", statement, 0.95, "=", measure, rounding=0.02, scale=0.1)


EXPERIMENT = Experiment(
    id="query-intervals",
    title="How often the 95 % intervals of dp-query cover the true answers, on five real tables",
    source="beside Thesis 4.3.3, which asks for population statistics from a release",
    version=1,
    presets={
        "quick": {
            "tables": ["cps1988"],
            "epsilons": [1.0],
            "draws": 2,
            "each": 6,
            "simulated": 10,
            "rows": 1000,
        },
        "paper": {
            "tables": list(SOURCES),
            "epsilons": [0.1, 1.0, 10.0],
            "draws": 5,
            "each": 15,
            "simulated": 30,
            "rows": 2000,
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances={name: Tolerance(absolute=3) for name in ("numbers", "covered", "without")},
    claims=[
        *(
            _claim(
                family,
                f"95 % intervals of questions of the kind `{family}` cover 93 to 97 %",
                lambda frame, family=family: frame.family == family,
            )
            for family in FAMILIES
        ),
        *(
            _claim(
                f"epsilon {epsilon:g}",
                f"95 % intervals of all questions cover 93 to 97 % at epsilon = {epsilon:g}",
                lambda frame, epsilon=epsilon: frame.epsilon == epsilon,
            )
            for epsilon in (0.1, 1.0, 10.0)
        ),
    ],
)
