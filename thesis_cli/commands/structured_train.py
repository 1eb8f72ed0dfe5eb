"""`thesis-cli structured train`: learn to predict label sets, rankings or paths of a hierarchy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, ModelTooLarge, about, counted
from thesis_cli.base.progress import Progress, Tick
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, given, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.trained import SUFFIX, save_trained
from thesis_cli.structured.names import FeatureName, Gradient, Interactions, SamplerName, TaskName, Unranked

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from thesis_cli.structured.checkpoint import Checkpoint
    from thesis_cli.structured.learn import Fit
    from thesis_cli.structured.learning_data import Table
    from thesis_cli.structured.predictor import Predictor
    from thesis_cli.structured.tasks import Task
    from thesis_cli.structured.training import Prepared
    from thesis_cli.structured.validation import Chosen

    DataSource = str | Path | Table | pd.DataFrame
    """The path of a CSV file, or a table."""
else:
    DataSource = str

MOST_REGULARISATION = 1e12


@dataclass(frozen=True, kw_only=True)
class StructuredTrainRequest(Request):
    """Learn to predict label sets, rankings or paths of a hierarchy.

    An observation is a row: inputs, then a column of 0 and 1 for each label (multilabel), the rank
    of each item (ranking, 1 is best), or 0 and 1 for each node of a tree (hierarchy). Inputs may be text,
    and cells may be empty: inputs that are missing, items without a rank. The same command goes on from the
    last checkpoint if it was cut short.
    """

    usual = ("task", "labels", "preferences", "parents", "features", "interactions", "regularisation", "out")

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
    preferences: str | None = option(
        None,
        "Column of rankings such as `a > b = c`, with commas between several, instead of a column for each rank.",
        metavar="COLUMN",
        default_text="none",
    )
    unranked: Unranked = option("anywhere", "Place of items without a rank: anywhere, or after all others.")
    parents: Path | None = option(
        None,
        "Tree of a hierarchy: a CSV file with the columns node and parent, the root's parent empty. Nodes are columns "
        "of the data.",
        names="file",
        default_text="none",
    )
    features: FeatureName | None = option(
        None,
        "Model: labels that are independent (linear) or that depend on each other (pairs); rankings by Plackett-Luce, "
        "Mallows, or with weights of ranks, positions or orders of items; nodes.",
        default_text="pairs, or linear beyond 14 labels; plackett-luce, or positions with --method sampled; nodes",
    )
    interactions: Interactions = option(
        "trees", "Interactions of inputs: none, or what extremely randomised trees predict, as further inputs."
    )
    categories: tuple[str, ...] = option(
        (), "Input whose numbers stand for categories.", metavar="COLUMN", default_text="none"
    )
    regularisation: str = option(
        "auto",
        "Weight of the squared norm of the parameters; auto takes what cross-validation finds best, or 0.01 with "
        "--method sampled.",
        metavar="auto|NUMBER",
    )
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

    @property
    def strength(self) -> float | None:
        """The regularisation; None if it shall be chosen."""
        return None if self.regularisation == "auto" else float(self.regularisation)

    def check(self) -> None:
        """Refuse a task without what it needs, and options of other tasks."""
        if self.task is None:
            raise InputError("--task is missing", "give multilabel, ranking or hierarchy")
        places = ("labels", "preferences", "parents")
        own = {"hierarchy": ("parents",), "ranking": ("labels", "preferences")}.get(self.task, ("labels",))
        named = [name for name in places if name in given(self)]
        if not named:
            raise InputError(f"--task {self.task} needs {' or '.join(map(self.shell_name, own))}", "give one")
        self.refuse([name for name in places if name not in own], f"--task {self.task}", "leave it out")
        if len(named) > 1:
            self.refuse(named, self.shell_name(named[1]), "give one of them")
        if self.task != "ranking":
            self.refuse(["unranked"], f"--task {self.task}", "leave it out")
        if self.regularisation != "auto":
            try:
                found = float(self.regularisation)
            except ValueError:
                found = math.nan
            if not 0 < found <= MOST_REGULARISATION:
                remedy = f"it must be auto, or a number above 0 and up to {MOST_REGULARISATION:g}"
                raise InputError(f"--regularisation is {self.regularisation[:60]}", remedy)


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
    regularisation : lambda.
    chosen : what cross-validation tried; None if the regularisation was given.
    losses : means over the observations, by name, of the most probable structures.
    """

    predictor: Predictor
    observations: int
    objective: float
    excess: float
    bounds: tuple[float, float]
    regularisation: float
    chosen: Chosen | None
    losses: Mapping[str, float]

    @property
    def norm(self) -> float:
        """Norm of the parameters."""
        return float((self.predictor.parameters**2).sum() ** 0.5)

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Data, structures, trees, regularisation, objective, norm and losses."""
        from thesis_cli.commands.outputs.structured_losses import losses_text
        from thesis_cli.structured.forest import TREES

        task, p = self.predictor.task, self.predictor.parameters
        space = task.space
        size = space.size()
        many = f"{size:,}" if size < 10**9 else f"{size:.3e}" if size < 10**300 else "more than 1e300"
        what = f"{counted(self.observations, 'row')}, {counted(len(self.predictor.inputs), 'input')}"
        found = [
            ("data", f"{self.settings['data']}: {what}, {counted(len(task.labels), 'label')}"),
            ("structures", f"{space.name}, {many}, features {task.features}"),
        ]
        if self.predictor.encoding.forest is not None:
            found.append(("trees", f"{TREES}, whose predictions are further inputs"))
        how = f", {self.chosen.loss:.4f} nats a held-out row" if self.chosen else ""
        found.append(("regularisation", f"{self.regularisation:.3g}{how}"))
        if self.objective == self.objective:
            least = f"at most {max(self.excess, 1e-9):.1g} above the least" if self.excess == self.excess else "local"
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
            "chosen_regularisation": self.regularisation,
            "held_out_loss": self.chosen.loss if self.chosen else None,
            "tried": dict(self.chosen.tried) if self.chosen else None,
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
    import dataclasses

    from thesis_cli.structured.checkpoint import digest
    from thesis_cli.structured.learning_data import read_table
    from thesis_cli.structured.predictor import Predictor
    from thesis_cli.structured.training import prepared

    table = read_table(request.data)
    with about(table.source):
        task, names = _task(request, table)
        ready = prepared(table, task, names, request.categories, request.interactions, request.standardise)
        if request.method == "sampled" and not (task.space.linear and ready.problem.known is None):
            what = "rankings known in part" if task.space.linear else task.features
            raise InputError(f"--method sampled does not go with {what}", "leave it out")
    settings = settings_of(request, features=task.features)
    made_from = {name: value for name, value in settings.items() if name not in ("out", "data", "parents")}
    made_from |= {"sha256": digest(ready.problem.inputs, ready.observed.structures), "labels": list(task.labels)}
    checkpoint = _checkpoint(request, made_from)
    total, unit = (request.iterations, "iterations") if request.method == "exact" else (request.passes, "passes")
    with progress(total, unit) as tick:
        fit, strength, chosen = _fit(request, ready, checkpoint, tick)
    found = task.decide(ready.problem.inputs @ fit.parameters)
    losses = task.losses(ready.problem.structures, found, ready.problem.known)
    result = StructuredTrainResult(
        columns=fit.trace,
        request=request,
        settings=settings,
        predictor=Predictor(task, ready.encoding, fit.parameters, {**made_from, "regularisation": strength}),
        observations=len(ready.observed.rows),
        objective=fit.objective,
        excess=fit.excess,
        bounds=dataclasses.replace(ready.problem, regularisation=strength).norm_bounds(),
        regularisation=strength,
        chosen=chosen,
        losses={name: float(each.mean()) for name, each in losses.items()},
    )
    if request.out is not None:
        result.save(request.out)
        checkpoint.remove()
    return result


def _task(request: StructuredTrainRequest, table: Table) -> tuple[Task, tuple[str, ...]]:
    """The task, and the names of the inputs."""
    from thesis_cli.structured.learning_data import items_of, read_tree, split
    from thesis_cli.structured.tasks import Task, default_features

    assert request.task is not None
    parents: tuple[int, ...] = ()
    if request.parents is not None:
        tree = read_tree(request.parents)
        labels, parents = tree.names, tree.parents
        names = tuple(name for name in table.names if name not in labels)
        table.columns(labels)
    elif request.preferences is not None:
        labels = items_of(table, request.preferences)
        names = tuple(name for name in table.names if name != request.preferences)
    else:
        assert request.labels is not None
        names, labels = split(table, request.labels)
    if not names and request.task != "ranking":
        raise InputError("it has no inputs", "give columns that are no labels")
    features = request.features or default_features(request.task, len(labels), request.method == "sampled")
    return Task(request.task, labels, features, parents, request.preferences or "", request.unranked), names


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


def _fit(
    request: StructuredTrainRequest, ready: Prepared, checkpoint: Checkpoint, tick: Tick
) -> tuple[Fit, float, Chosen | None]:
    """Train, from the checkpoint if there is one; the parameters, the regularisation, and how it was chosen."""
    import dataclasses

    from thesis_cli.structured.meta import Coupled, Direct
    from thesis_cli.structured.online import OnlineState, TrainingPace, fit_online
    from thesis_cli.structured.training import DEFAULT, learnt

    kept = checkpoint.arrays
    if request.method == "exact":

        def iterated(iteration: int, parameters: Any, strength: float) -> None:
            checkpoint.keep(parameters=parameters, regularisation=strength)

        strength = float(kept["regularisation"]) if kept else request.strength
        try:
            found = learnt(ready, strength, request.iterations, kept.get("parameters"), tick, iterated)
        except ModelTooLarge as error:
            raise ModelTooLarge(error.problem, "give --method sampled --sampler meta") from None
        return found.fit, found.regularisation, found.chosen

    def passed(state: OnlineState) -> None:
        numbers = {"done": state.done, "proposals": state.proposals}
        checkpoint.keep(parameters=state.parameters, mean=state.mean, **numbers)

    start = OnlineState(int(kept["done"]), kept["parameters"], kept["mean"], int(kept["proposals"])) if kept else None
    pace = TrainingPace(request.passes, request.batch, request.samples)
    sampler = Direct() if request.sampler == "draw" else Coupled()
    strength = request.strength or DEFAULT
    problem = dataclasses.replace(ready.problem, regularisation=strength, penalties=None)
    return fit_online(problem, pace, request.seed, sampler, start, tick, passed), strength, None


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
