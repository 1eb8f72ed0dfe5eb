"""Vembu et al. eq. 1 on data: losses beside those of rivals, norms beside their bounds, and sampled gradients."""

import math

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS, label, panels
from thesis_cli.reproduction.experiment import Experiment, Measurement, Tolerance
from thesis_cli.reproduction.kinds import bound, identity, observed
from thesis_cli.structured.online import Pace
from thesis_cli.studies.structured import learning_runs as runs
from thesis_cli.studies.structured.baselines import PAIRWISE, POWERSET, REGRESSION, REST
from thesis_cli.studies.structured.datasets import NAMES, dataset

LOSSES = {"multilabel": "zero_one", "ranking": "kendall_tau", "hierarchy": "hierarchy"}
"""The loss by which the regularisation is chosen, for each task."""

RAW = "inputs as they are"
STRONG = 10.0
"""Regularisation of fits to inputs as they are."""

COLUMNS = [
    *("kind", "data", "task", "fold", "method", "regularisation", "decision", "loss", "validation", "test"),
    *("objective", "excess", "norm", "bound_c1", "bound_gradient", "radius", "log_size", "log_steps", "log_bound"),
    *("draw", "passes", "left", "difference"),
]


def tasks(settings):
    losses = [{"part": "losses", "data": name, "sizes": sizes} for name, sizes in settings["losses"].items()]
    sampled = [{"part": "sampled", "data": name, "sizes": settings["sampled"]} for name in settings["traced"]]
    return [*losses, *sampled, {"part": "checks", "data": "", "sizes": {}}]


def run(seed, part, data, sizes):
    """Rows of a kind for each method, regularisation and fold.

    `loss`: mean losses of `decision` on the observations to choose the regularisation with and on those
    to test on. `fit`: objective and bound on its excess, nats; norm of the parameters and both bounds on
    it; ln of the mean number of proposals of META for a sample, and its bound 2 B R. `trace`: share `left`
    of the way to the least objective after some passes. `check`: largest difference of probabilities.
    """
    rng = np.random.default_rng(seed)
    if part == "losses":
        rows = _losses(dataset(data), sizes, rng)
    elif part == "sampled":
        seeds = [int(number) for number in rng.integers(2**31, size=sizes["draws"])]
        found = dataset(data)
        problem = runs.problem_of(found, found.task, np.arange(len(found.inputs)), sizes["regularisation"])
        rows = list(runs.traces(problem, Pace(passes=sizes["passes"]), seeds))
    else:
        rows = [
            {"kind": "check", "data": "tumours", "method": REST.name, "regularisation": weight, "difference": found}
            for weight in (0.1, 0.01)
            for found in [runs.logistic_difference(dataset("tumours"), weight)]
        ]
        rows += [{"data": name, **runs.raw_fit(dataset(name), STRONG)} for name in ("iris ranking", "wine tree")]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    if data:
        frame["data"], frame["task"] = data, dataset(data).task.name
    frame[["fold", "draw", "passes"]] = frame[["fold", "draw", "passes"]].astype("Int64")
    return frame


def _losses(data, sizes, rng):
    tolerance = sizes.get("tolerance", runs.TOLERANCE)
    return [
        {"fold": fold, **row}
        for fold, split in enumerate(runs.splits(len(data.inputs), sizes["folds"], rng))
        for row in (
            *runs.losses_of_fold(data, split, sizes["regularisations"], tolerance),
            *runs.normalised_fold(data, split, tolerance),
        )
    ]


def chosen(frame, data, method, decision="map"):
    """The regularisation of least mean validation loss; None if there is no such row."""
    rows = _of(frame, data, method, decision)
    if rows.empty:
        return None
    loss = LOSSES[rows.task.iloc[0]]
    means = rows[rows.loss == loss].groupby("regularisation").validation.mean()
    return float(means.idxmax() if loss == "kendall_tau" else means.idxmin())


def by_fold(frame, data, method, decision="map", loss=None):
    """Test losses of the folds with the chosen regularisation; None if there are no such rows."""
    weight = chosen(frame, data, method, decision)
    if weight is None:
        return None
    rows = _of(frame, data, method, decision)
    rows = rows[(rows.loss == (loss or LOSSES[rows.task.iloc[0]])) & (rows.regularisation == weight)]
    return rows.sort_values("fold").test.to_numpy()


def _of(frame, data, method, decision):
    return frame[
        (frame.kind == "loss") & (frame.data == data) & (frame.method == method) & (frame.decision == decision)
    ]


def _gain(data, better, worse, loss=None):
    """What a method is better by: the mean over folds of paired differences of test losses."""

    def measure(frame):
        pair = [by_fold(frame, data, *((one, "map") if isinstance(one, str) else one), loss) for one in (better, worse)]
        if any(one is None for one in pair) or len(pair[0]) < FOLDS:
            return None
        sign = -1 if (loss or LOSSES[dataset(data).task.name]) == "kendall_tau" else 1
        differences = sign * (pair[1] - pair[0])
        return Measurement(differences.mean(), differences.std(ddof=1) / math.sqrt(len(differences)))

    return measure


FOLDS = 5
"""Fewest folds of which differences are judged."""


def _fits(frame, method=None):
    rows = frame[frame.kind == "fit"]
    return rows[rows.method == method] if method else rows[~rows.method.isin([runs.NORMALISED, RAW])]


def _least_ratio(column):
    """Least ratio of a bound to the norm over all fits, and how far the fits may be from the minimum."""

    def measure(frame):
        rows = frame[frame.kind == "fit"]
        ratio = rows[column] / rows.norm
        at = ratio.idxmin()
        distance = math.sqrt(rows.excess[at] / rows.regularisation[at])
        return Measurement(ratio[at], error=ratio[at] * distance / rows.norm[at])

    return measure


def _median_ratio(frame):
    """Median of Proposition C.1's bound over the norm, with the regularisation that is chosen for each data set."""
    rows = _fits(frame)
    ratios = [
        (part.bound_c1 / part.norm).median()
        for (data, method), part in rows.groupby(["data", "method"])
        for part in [part[part.regularisation == chosen(frame, data, method)]]
    ]
    return Measurement(float(np.median(ratios)))


def _printed_norm(frame):
    """Least ratio of sqrt(ln |Y|) / lambda to the norm over fits to inputs as they are."""
    rows = _fits(frame, RAW)
    return Measurement((rows.log_size**0.5 / rows.regularisation / rows.norm).min(), error=1e-6)


def _steps(method):
    def measure(frame):
        return Measurement(math.exp(_fits(frame, method).log_steps.max()), error=1e-6)

    return measure


def _chosen_steps(frame):
    """Largest ln of the mean steps of META at the chosen regularisation, over data sets with their first features."""
    found = [
        rows[rows.regularisation == chosen(frame, data, dataset(data).task.features)].log_steps.mean()
        for data, rows in _fits(frame).groupby("data")
        for rows in [rows[rows.method == dataset(data).task.features]]
    ]
    return Measurement(max(found), error=1e-6)


def _loose(frame):
    rows = _fits(frame)
    return Measurement((rows.log_bound - rows.log_steps).min(), error=1e-6)


def _difference(frame):
    return Measurement(frame[frame.kind == "check"].difference.max(), error=1e-5)


def _passes(method, share):
    """Largest number of passes, over data sets, until a share of the way is left; mean over draws."""

    def passes(rows):
        near = rows[rows.left <= share]
        return near.passes.min() if len(near) else math.inf

    return lambda frame: {
        data: [passes(part) for _, part in rows.groupby("draw", dropna=False)]
        for data, rows in frame[(frame.kind == "trace") & (frame.method == method)].groupby("data")
    }


def _sooner(share, samples=1):
    """Least ratio over data sets of passes of L-BFGS to those of online learning."""

    def measure(frame):
        exact, online = _passes(runs.EXACT, share)(frame), _passes(runs.ONLINE[samples], share)(frame)
        found = [
            Measurement(exact[data][0] / np.mean(each), exact[data][0] / np.mean(each) ** 2 * _error(each))
            for data, each in online.items()
            if len(each) > 1
        ]
        return min(found, key=lambda one: one.value) if found else None

    return measure


def _error(values):
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _rate(frame):
    """Largest share that is left after all passes, over that after a quarter of them."""
    rows = frame[(frame.kind == "trace") & (frame.method == runs.ONLINE[1])]
    last = rows.passes.max()
    if last < 40:
        return None
    ends, early = (rows[rows.passes == at].groupby("data").left for at in (last, 20))
    ratios = ends.mean() / early.mean()
    worst = ratios.idxmax()
    parts = [each.std()[worst] / math.sqrt(each.count()[worst]) / each.mean()[worst] for each in (ends, early)]
    return Measurement(ratios[worst], ratios[worst] * math.hypot(*parts))


def plot(frame):
    from thesis_cli.studies.structured.learning_figure import draw

    return draw(frame, by_fold, [name for name in NAMES if name in set(frame[frame.kind == "loss"].data)])


SOURCE, OWN = "Vembu et al.", "this project"
ALL = [1.0, 0.1, 0.01, 0.001]
MANY = {"folds": 10, "regularisations": ALL}

EXPERIMENT = Experiment(
    id="structured-learning",
    title="Structured predictors learnt from data: losses, norms and sampled gradients",
    source="Vembu et al. eq. 1, appendix C",
    version=1,
    presets={
        "quick": {
            "losses": {
                name: {"folds": 5, "regularisations": [0.1, 0.01]}
                for name in ("iris ranking", "segments", "levels", "wine tree")
            },
            "traced": ["iris ranking"],
            "sampled": {"draws": 2, "passes": 5, "regularisation": 0.1},
        },
        "paper": {
            "losses": {
                **{name: MANY for name in NAMES},
                "digits ranking": {"folds": 5, "regularisations": [0.1, 0.01], "tolerance": 1e-3},
            },
            "traced": ["iris ranking", "segments", "levels"],
            "sampled": {"draws": 5, "passes": 80, "regularisation": 0.01},
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    claims=[],
    tolerances={"excess": Tolerance(absolute=1e-3), "difference": Tolerance(absolute=1e-4)},
)
