"""`thesis-cli structured predict`: predict label sets, rankings or paths with what structured train learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.progress import Progress
from thesis_cli.base.wording import counted
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import argument, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.structured.names import Decision

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.commands.structured_train import StructuredTrainResult
    from thesis_cli.structured.learning_data import Table
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

    def check(self) -> None:
        """Refuse a request without a predictor."""
        if self.weights is None:
            raise InputError("--weights is missing", "give a file that thesis-cli structured train has written")


@dataclass(frozen=True, kw_only=True, repr=False)
class StructuredPredictResult(Result):
    """The predictions. The table has a row for each observation: a column for each label, and
    `log_probability`, ln p of the structure, if ln Z has an exact algorithm. If the data have
    labels, their `log_likelihood` and the losses follow, by name.

    Attributes
    ----------
    predictor : that was applied.
    structures : rows of its space, shape (n, width).
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
            found.append(("losses", f"{losses_text(means)} (standard error of the first {error:.2%})"))
        if "log_likelihood" in self.losses:
            mean, error = self.losses["log_likelihood"]
            found.append(("log-loss", f"{-mean:.4f} nats a row (standard error {error:.4f})"))
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


def run(request: StructuredPredictRequest, progress: Progress) -> StructuredPredictResult:
    """Read predictor and data, and predict."""
    import numpy as np

    from thesis_cli.structured.learning_data import labelled, read_table

    predictor, table = _predictor(request.weights), read_table(request.data)
    task = predictor.task
    present = [name for name in task.labels if name in table.names]
    with about(table.source):
        weights = predictor.weights(table.columns(predictor.inputs))
        truth = labelled(table, task) if present else None
        parts, part_exact = [], []
        with progress(len(weights), "rows") as tick:
            for start in range(0, len(weights), ROWS):
                part = slice(start, start + ROWS)
                known = None if truth is None else truth[part]
                found, exact = _decided(predictor, weights[part], request.decision)
                parts.append(_measured(predictor, weights[part], found, known))
                part_exact.append(exact)
                tick(len(found))
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    structures = whole.pop("structures")
    measured = {name: values for name, values in whole.items() if name != "log_probability"}
    labels = task.labels_of(structures)
    columns = {name: labels[:, at] for at, name in enumerate(task.labels)}
    return StructuredPredictResult(
        columns=Columns({**columns, **whole}),
        request=request,
        settings=settings_of(request),
        predictor=predictor,
        structures=structures,
        exact=None if request.decision == "marginal" else all(part_exact),
        losses={name: (float(each.mean()), _standard_error(each)) for name, each in measured.items()},
    )


def _decided(predictor: Predictor, weights: Floats, decision: Decision) -> tuple[Ints, bool]:
    """Structures of some rows, and whether they are known to be what the decision asks for."""
    if decision == "map":
        found = predictor.task.space.maximise(weights)
        return found.structures, found.exact
    return predictor.task.decide(weights, decision), True


def _measured(predictor: Predictor, weights: Floats, structures: Ints, truth: Ints | None) -> dict[str, Any]:
    """Structures of some rows with their probabilities and losses."""
    from thesis_cli.base.errors import ModelTooLarge
    from thesis_cli.structured.learn import negative_log_likelihood

    task = predictor.task
    found: dict[str, Any] = {"structures": structures}
    try:
        found["log_probability"] = -negative_log_likelihood(task.space, weights, found["structures"])
        if truth is not None:
            found["log_likelihood"] = -negative_log_likelihood(task.space, weights, truth)
    except ModelTooLarge:
        pass  # the table then has no probabilities
    return found if truth is None else {**found, **task.losses(truth, found["structures"])}


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


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
        "--decision marginal --out results/runs/tumours.csv",
    ),
)
