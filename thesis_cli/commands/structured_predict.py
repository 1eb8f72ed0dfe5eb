"""`thesis-cli structured predict`: predict label sets, rankings or paths with what structured train learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, ModelTooLarge, about, counted
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.structured.names import Decision

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.commands.structured_train import StructuredTrainResult
    from thesis_cli.structured.learning_data import Table
    from thesis_cli.structured.observations import Known, Observed
    from thesis_cli.structured.predictor import Predictor

    DataSource = str | Path | Table | pd.DataFrame
    """The path of a CSV file, or a table."""
    PredictorSource = str | Path | Predictor | StructuredTrainResult
    """The path of a predictor, a predictor, or what `structured_train` returns."""
else:
    DataSource = PredictorSource = str

ROWS = 10_000
"""Rows that are predicted between two ticks of the progress bar."""


@dataclass(frozen=True, kw_only=True)
class StructuredPredictRequest(Request):
    """Predict label sets, rankings or paths of a hierarchy with what structured train has learnt.

    If the data have the labels as well, their losses are measured.
    """

    data: DataSource = argument(
        "Observations: a CSV file with the inputs under the names that they had in training.",
        names="file",
        objects=True,
    )
    weights: PredictorSource = option(
        None, "Predictor that structured train has written.", metavar="FILE", names="file", objects=True
    )
    decision: Decision = option(
        "map",
        "The most probable structure, or the one that makes expected loss least: labels more probable than not, or "
        "items sorted by expected position.",
    )

    best: int = option(1, "Structures for each observation, the most probable first.", least=1, most=1000)

    def check(self) -> None:
        """Refuse a request without a predictor, and several structures that are not the most probable."""
        if self.weights is None:
            raise InputError("--weights is missing", "give a file that thesis-cli structured train has written")
        if self.best > 1 and self.decision == "marginal":
            raise InputError("--best does not go with --decision marginal", "leave one of them out")


@dataclass(frozen=True, kw_only=True, repr=False)
class StructuredPredictResult(Result):
    """The predictions. The table has a row for each observation, or for each of its best structures, which
    `row` and `place` number: a column for each label, and `log_probability`, ln p of the structure, if
    ln Z has an exact algorithm. If the data have labels, their `log_likelihood` and the losses follow, by
    name; of rankings in several preferences, means over these.

    Attributes
    ----------
    predictor : that was applied.
    structures : rows of its space, the best for each observation, shape (n, width).
    exact : whether the most probable structures are known to be; None with --decision marginal.
    losses : means over the rows with their standard errors, by name; empty without labels.
    """

    predictor: Predictor
    structures: Ints
    exact: bool | None
    losses: Mapping[str, tuple[float, float]]

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Data, predictor and losses."""
        from thesis_cli.commands.outputs.structured_losses import losses_text

        task = self.predictor.task
        means = {name: mean for name, (mean, _) in self.losses.items() if name != "log_likelihood"}
        how = {None: "marginal", True: "map, exact", False: "map by local search, approximate"}[self.exact]
        found = [
            ("data", f"{self.settings['data']}: {counted(len(self.structures), 'row')}"),
            ("predictor", f"{task.name}, {counted(len(task.labels), 'label')}, features {task.features}"),
            ("decision", how),
        ]
        if means:
            _, error = self.losses["zero_one"]
            found.append(("losses", losses_text(means) + _spread(f"of the first {error:.2%}", error)))
        if "log_likelihood" in self.losses:
            mean, error = self.losses["log_likelihood"]
            found.append(("log-loss", f"{0.0 - mean:.4f} nats a row" + _spread(f"{error:.4f}", error)))
        return found

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Sizes, and losses with their standard errors."""
        task = self.predictor.task
        return {
            "rows": len(self.structures),
            "task": task.name,
            "labels": list(task.labels),
            "exact": self.exact,
            "losses": {name: mean for name, (mean, _) in self.losses.items()},
            "standard_errors": {name: error for name, (_, error) in self.losses.items()},
        }

    @presentation
    def draw(self) -> Figure:
        """How often each label has each of its values, or ranks."""
        from thesis_cli.commands.figures.shares import draw_values

        task = self.predictor.task
        values = task.labels_of(self.structures)
        word = "rank" if task.name == "ranking" else "value"
        return draw_values(task.labels, values, word, "share of the rows", counted(len(values), "row"))


def run(request: StructuredPredictRequest, progress: Progress) -> StructuredPredictResult:
    """Read predictor and data, and predict."""
    import numpy as np

    from thesis_cli.structured.learning_data import observed, read_table

    predictor, table = _predictor(request.weights), read_table(request.data)
    task = predictor.task
    present = [name for name in task.columns if name in table.names]
    with about(table.source):
        weights = predictor.weights(table)
        truth = observed(table, task) if present else None
        truth = truth if truth is not None and len(truth.rows) else None
        parts, exact = [], True
        with progress(len(weights), "rows") as tick:
            for start in range(0, len(weights), ROWS):
                found, sure = _decided(predictor, weights[start : start + ROWS], request)
                parts.append(found)
                exact &= sure
                tick(len(found))
    structures = np.concatenate(parts)
    several = structures.shape[1]
    weights = np.repeat(weights, several, axis=0)
    measured = {} if truth is None else _losses(predictor, weights, structures, truth)
    labels = task.labels_of(structures.reshape(len(weights), -1))
    numbers = {"row": np.arange(len(weights)) // several + 1, "place": np.arange(len(weights)) % several + 1}
    columns = numbers if several > 1 else {}
    columns |= {name: labels[:, at] for at, name in enumerate(task.labels)}
    columns |= _log_likelihood(predictor, weights, structures.reshape(len(weights), -1), "log_probability")
    return StructuredPredictResult(
        columns=Columns(columns | measured),
        request=request,
        settings=settings_of(request),
        predictor=predictor,
        structures=structures[:, 0],
        exact=None if request.decision == "marginal" else exact,
        losses={name: _mean(each[::several]) for name, each in measured.items()},
    )


def _decided(predictor: Predictor, weights: Floats, request: StructuredPredictRequest) -> tuple[Ints, bool]:
    """Structures of some rows, shape (n, best, width), and whether they are known to be what is asked for."""
    if request.best > 1:
        return predictor.task.space.best(weights, request.best)[1], True
    if request.decision == "map":
        found = predictor.task.space.maximise(weights)
        return found.structures[:, None], found.exact
    return predictor.task.decide(weights, request.decision)[:, None], True


def _losses(predictor: Predictor, weights: Floats, structures: Ints, truth: Observed) -> dict[str, Floats]:
    """Log-likelihoods and losses of structures, shape (n, best, width), by name; nan for rows without labels."""
    import numpy as np

    several = structures.shape[1]
    rows = (truth.rows[:, None] * several + np.arange(several)).ravel()
    which = np.repeat(np.arange(len(truth.rows)), several)
    known, own = None if truth.known is None else truth.known[which], truth.structures[which]
    found = _log_likelihood(predictor, weights[rows], own, "log_likelihood", known)
    found |= predictor.task.losses(own, structures.reshape(len(weights), -1)[rows], known)
    counts = np.bincount(rows, minlength=len(weights))
    with np.errstate(invalid="ignore"):
        return {name: np.bincount(rows, each, minlength=len(weights)) / counts for name, each in found.items()}


def _log_likelihood(
    predictor: Predictor, weights: Floats, structures: Ints, name: str, known: Known | None = None
) -> dict[str, Floats]:
    """ln p of structures by a name; nothing if ln Z has no exact algorithm."""
    from thesis_cli.structured.learn import negative_log_likelihood

    try:
        return {name: -negative_log_likelihood(predictor.task.space, weights, structures, known)}
    except ModelTooLarge:
        return {}


@presentation
def _spread(text: str, error: float) -> str:
    """A standard error in brackets, unless one row has none."""
    return f" (standard error {text})" if math.isfinite(error) else ""


def _mean(values: Floats) -> tuple[float, float]:
    """Mean of the values that there are, and its standard error."""
    import numpy as np

    there = values[~np.isnan(values)]
    error = float(there.std(ddof=1) / len(there) ** 0.5) if len(there) > 1 else float("nan")
    return float(there.mean()), error


def _predictor(source: PredictorSource) -> Predictor:
    """The predictor of a source."""
    from thesis_cli.structured.predictor import Predictor

    if isinstance(source, str | Path):
        return Predictor.load(source)
    found = getattr(source, "predictor", source)
    if not isinstance(found, Predictor):
        raise InputError(f"the predictor is of type {type(source).__name__}", "give a file, or a Predictor")
    return found


COMMAND = Command(
    StructuredPredictRequest,
    run,
    examples=(
        "structured predict data/labels/iris-ranking-test.csv --weights data/labels/iris-ranking.safetensors",
        "structured predict data/labels/tumours-test.csv --weights data/labels/tumours-pairs.safetensors "
        "--decision marginal --out results/runs/tumours.csv --figure results/runs/tumours.png",
        "structured predict data/labels/iris-ranking-test.csv --weights data/labels/iris-ranking.safetensors "
        "--best 3 --out results/runs/best.csv",
    ),
)
