"""`thesis-cli structured train`: learn to predict label sets, rankings or paths of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, ModelTooLarge, about
from thesis_cli.base.progress import Progress, Tick
from thesis_cli.base.wording import counted
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import argument, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.trained import SUFFIX, save_trained
from thesis_cli.structured.names import FeatureName, Gradient, SamplerName, TaskName

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from thesis_cli.structured.checkpoint import Checkpoint
    from thesis_cli.structured.learn import Fit, Problem
    from thesis_cli.structured.learning_data import Table
    from thesis_cli.structured.predictor import Predictor
    from thesis_cli.structured.tasks import Task

    DataSource = str | Path | Table | pd.DataFrame
    """The path of a CSV file, or a table."""
else:
    DataSource = str


@dataclass(frozen=True, kw_only=True)
class StructuredTrainRequest(Request):
    """Learn to predict label sets, rankings or paths of a hierarchy from numbers.

    An observation is a row: inputs, then a column of 0 and 1 for each label (multilabel), the rank
    of each item (ranking, 1 is best), or 0 and 1 for each node of a tree (hierarchy). The same
    command goes on from the last checkpoint if it was cut short.
    """

    usual = ("task", "labels", "parents", "features", "regularisation", "out")

    data: DataSource = argument(
        "Observations: a CSV file with a heading, the inputs first and the labels last.", names="file", objects=True
    )
    task: TaskName | None = option(None, "What is predicted; it must be given.")
    labels: int | None = option(
        None,
        "Number of label columns, the last ones, for multilabel and ranking.",
        least=1,
        most=10**6,
        default_text="none",
    )
    parents: Path | None = option(
        None,
        "Tree of a hierarchy: a CSV file with the columns node and parent, the root's parent empty. Nodes are columns "
        "of the data.",
        names="file",
        default_text="none",
    )
    features: FeatureName | None = option(
        None,
        "Features of a structure: bits (linear) and pairs of bits; positions, ranks or orders of items; nodes.",
        default_text="linear, positions or nodes",
    )
    regularisation: float = option(0.01, "Weight of the squared norm of the parameters.", above=0, most=1e12)
    method: Gradient = option(
        "exact", "Gradients: exact ones in L-BFGS, or samples for a few observations at a time where none are exact."
    )
    iterations: int = option(1000, "Iterations of L-BFGS at most.", least=0, most=10**8, methods=("exact",))
    passes: int = option(20, "Passes over the observations.", least=1, most=10**8, methods=("sampled",))
    batch: int = option(10, "Observations in a step.", least=1, most=10**8, methods=("sampled",))
    samples: int = option(
        1, "Structures drawn for each observation in a step.", least=1, most=10**8, methods=("sampled",)
    )
    sampler: SamplerName = option(
        "draw",
        "Samples by an exact algorithm of the structures (draw), or by uniform proposals and coupling from the past.",
        methods=("sampled",),
    )
    standardise: bool = option(True, "Take each input less its mean, over its standard deviation.")
    seed: int = option(
        0, "Seed of all random numbers.", least=0, not_swept="list seeds at the top of the file", methods=("sampled",)
    )
    out: Path | None = option(
        None,
        "File for the predictor, .safetensors; the record (.json), the trace (.csv) and, meanwhile, the checkpoint go "
        "beside it.",
        names="output",
        default_text="results/runs/structured-train-DATA.safetensors; Python writes no file",
    )
    overwrite: bool = option(
        False, "Replace files that this command did not write with these settings.", recorded=False
    )

    def check(self) -> None:
        """Refuse a task without what it needs, and options of other tasks."""
        if self.task is None:
            raise InputError("--task is missing", "give multilabel, ranking or hierarchy")
        if self.task == "hierarchy":
            if self.parents is None:
                raise InputError("--task hierarchy needs --parents", "give the file of the tree")
            if self.labels is not None:
                raise InputError(
                    "--labels does not go with --task hierarchy", "leave it out: the tree names the labels"
                )
        else:
            if self.labels is None:
                raise InputError(f"--task {self.task} needs --labels", "give the number of label columns")
            if self.parents is not None:
                raise InputError(f"--parents does not go with --task {self.task}", "leave it out")


@dataclass(frozen=True, kw_only=True, repr=False)
class StructuredTrainResult(Result):
    """The predictor. The table is the trace of the training: iteration, objective and excess, the
    bound on how far the objective is above its minimum, in nats; for sampled gradients the pass, the
    structures sampled and proposed so far, and the norm of the parameters.

    Attributes
    ----------
    predictor : learnt.
    observations : number of rows.
    objective, excess : at the end; nan where ln Z has no exact algorithm.
    bounds : of the norm of the best parameters: sqrt(ln |Y| / lambda) and R / lambda.
    losses : means over the observations, by name, of the most probable structures.
    """

    predictor: Predictor
    observations: int
    objective: float
    excess: float
    bounds: tuple[float, float]
    losses: Mapping[str, float]

    @property
    def norm(self) -> float:
        """Norm of the parameters."""
        return float((self.predictor.parameters**2).sum() ** 0.5)

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Data, structures, objective, norm and losses."""
        from thesis_cli.commands.outputs.structured_losses import losses_text

        task, p = self.predictor.task, self.predictor.parameters
        space = task.space
        size = space.size()
        many = f"{size:,}" if size < 10**9 else f"{size:.3e}" if size < 10**300 else "more than 1e300"
        what = f"{counted(self.observations, 'row')}, {counted(len(self.predictor.inputs), 'input')}"
        found = [
            ("data", f"{self.settings['data']}: {what}, {counted(len(task.labels), 'label')}"),
            ("structures", f"{space.name}, {many}, features {task.features}"),
        ]
        if self.objective == self.objective:
            least = f"at most {max(self.excess, 1e-9):.1g} above the least"
            found.append(("objective", f"{self.objective:.6g} nats a row, {least}"))
        return [
            *found,
            ("parameters", f"{p.size:,}, norm {self.norm:.4g}, bounds {self.bounds[0]:.4g} and {self.bounds[1]:.4g}"),
            ("losses", f"{losses_text(self.losses)} in training"),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Sizes, objective, norms and losses."""
        return {
            "observations": self.observations,
            "structures": str(self.predictor.task.space.size()),
            "parameters": self.predictor.parameters.size,
            "objective": self.objective,
            "excess": self.excess,
            "norm": self.norm,
            "norm_bounds": list(self.bounds),
            "training_losses": dict(self.losses),
        }

    @presentation
    def draw(self) -> Figure | None:
        """The trace: how far the objective is above its end, or the norm after each pass; and the
        parameters as a picture.
        """
        from thesis_cli.commands.outputs.structured_losses import draw_training

        return draw_training(self.columns, self.predictor)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the predictor, its record and the trace.

        Raises
        ------
        InputError : the name does not end in .safetensors.
        OSError : naming the file that could not be written.
        """
        return save_trained(self, path, self.predictor.to_bytes())


def run(request: StructuredTrainRequest, progress: Progress) -> StructuredTrainResult:
    """Read the data, and train."""
    from thesis_cli.structured.checkpoint import digest
    from thesis_cli.structured.learn import Problem
    from thesis_cli.structured.learning_data import labelled, read_table
    from thesis_cli.structured.predictor import Predictor, design, standardisation

    table = read_table(request.data)
    with about(table.source):
        task, names = _task(request, table)
        values, structures = table.columns(names), labelled(table, task)
        shift, scale = standardisation(values) if request.standardise else (0 * values[0], 0 * values[0] + 1)
        problem = Problem(task.space, design(values, shift, scale), structures, request.regularisation)
    settings = settings_of(request, features=task.features)
    made_from = {name: value for name, value in settings.items() if name not in ("out", "data", "parents")}
    made_from |= {"sha256": digest(problem.inputs, structures), "labels": list(task.labels)}
    checkpoint = _checkpoint(request, made_from)
    total, unit = (request.iterations, "iterations") if request.method == "exact" else (request.passes, "passes")
    with progress(total, unit) as tick:
        fit = _fit(request, problem, checkpoint, tick)
    found = task.decide(problem.inputs @ fit.parameters)
    result = StructuredTrainResult(
        columns=fit.trace,
        request=request,
        settings=settings,
        predictor=Predictor(task, names, fit.parameters, shift, scale, made_from),
        observations=table.count,
        objective=fit.objective,
        excess=fit.excess,
        bounds=problem.norm_bounds(),
        losses={name: float(each.mean()) for name, each in task.losses(structures, found).items()},
    )
    if request.out is not None:
        result.save(request.out)
        checkpoint.remove()
    return result


def _task(request: StructuredTrainRequest, table: Table) -> tuple[Task, tuple[str, ...]]:
    """The task, and the names of the inputs."""
    from thesis_cli.structured.learning_data import read_tree, split
    from thesis_cli.structured.tasks import Task, feature_names

    assert request.task is not None
    features = request.features or feature_names(request.task)[0]
    if request.parents is not None:
        tree = read_tree(request.parents)
        names = tuple(name for name in table.names if name not in tree.names)
        table.columns(tree.names)
        if not names:
            raise InputError("it has no inputs", "give columns that are no nodes of the tree")
        return Task(request.task, tree.names, features, tree.parents), names
    assert request.labels is not None
    names, labels = split(table, request.labels)
    return Task(request.task, labels, features), names


def _checkpoint(request: StructuredTrainRequest, made_from: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint of this training; --overwrite replaces another one."""
    from thesis_cli.structured.checkpoint import Checkpoint

    path = request.out.with_suffix(".checkpoint") if request.out is not None else None
    try:
        return Checkpoint(path, made_from)
    except InputError:
        if path is None or not request.overwrite:
            raise
        path.unlink()
        return Checkpoint(path, made_from)


def _fit(request: StructuredTrainRequest, problem: Problem, checkpoint: Checkpoint, tick: Tick) -> Fit:
    """Train, from the checkpoint if there is one."""
    from thesis_cli.structured.learn import fit
    from thesis_cli.structured.meta import Coupled, Direct
    from thesis_cli.structured.online import OnlineState, TrainingPace, fit_online

    kept = checkpoint.arrays
    if request.method == "exact":

        def iterated(iteration: int, parameters: Any) -> None:
            checkpoint.keep(parameters=parameters)

        try:
            return fit(problem, request.iterations, kept.get("parameters"), tick, iterated)
        except ModelTooLarge as error:
            raise ModelTooLarge(error.problem, "give --method sampled --sampler meta") from None

    def passed(state: OnlineState) -> None:
        numbers = {"done": state.done, "proposals": state.proposals}
        checkpoint.keep(parameters=state.parameters, mean=state.mean, **numbers)

    start = OnlineState(int(kept["done"]), kept["parameters"], kept["mean"], int(kept["proposals"])) if kept else None
    pace = TrainingPace(request.passes, request.batch, request.samples)
    sampler = Direct() if request.sampler == "draw" else Coupled()
    return fit_online(problem, pace, request.seed, sampler, start, tick, passed)


COMMAND = Command(
    StructuredTrainRequest,
    run,
    examples=(
        "structured train data/labels/iris-ranking-train.csv --task ranking --labels 3 "
        "--out results/runs/iris.safetensors",
        "structured train data/labels/tumours-train.csv --task multilabel --labels 10 --regularisation 0.1",
        "structured train data/labels/wine-tree-train.csv --task hierarchy --parents data/labels/wine-tree.csv "
        "--method sampled --passes 5 --figure results/runs/wine.png",
    ),
    suffix=SUFFIX,
    not_swept="it writes a predictor, not a table",
)
