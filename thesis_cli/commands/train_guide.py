"""`thesis-cli train-guide`: train a network that guides the search for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import extra
from thesis_cli.base.progress import COUNTED, Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.synthesis.corpus.corpus import Corpus
    from thesis_cli.synthesis.networks.weights import Array, Kind
    from thesis_cli.synthesis.training.corpora import TrainingData

    CorpusSource = str | Path | Corpus
else:
    CorpusSource = str

ModelName = Literal["feed-forward", "gru", "program", "next-line"]
"""Networks that can be trained, as `training.models` makes them."""

FIXED = ("program", "next-line")
"""Those of one size, which learn from a corpus of their own."""

LENGTH, SEEN, EMBEDDING = 3, 1_000_000, 20
"""Defaults: length of the programs, programs to see, and dimensions of the embedding."""

WEAK = 0.3
"""Average precision below which the model card lists an attribute as weak."""

LIMITS = (
    "It has seen random programs of the lengths of its corpus, with five random examples of each: programs of people, "
    "other lengths, fewer examples and short lists are harder. It cannot tell what the examples do not show."
)
"""A limitation of all networks."""


@dataclass(frozen=True, kw_only=True)
class TrainGuideRequest(Request):
    """Train a network that predicts from examples which functions and lambdas a program uses.

    It needs PyTorch. The same command goes on from the last checkpoint if it was cut short.
    """

    usual = ("corpus", "length", "count", "model", "programs_seen", "device", "out")

    corpus: CorpusSource | None = option(
        None,
        "Corpus to train on, a folder that make-corpus has written.",
        metavar="FOLDER",
        names="file",
        objects=True,
        default_text="made by --length",
    )
    length: int | None = option(
        None, "Lines of the programs of the corpus that is made.", least=1, most=10, default_text=str(LENGTH)
    )
    count: int | None = option(
        None,
        "Programs of the corpus that is made, or all that there are.",
        least=1,
        most=10**7,
        default_text="all of up to 3 lines, 300,000 of more",
    )
    model: ModelName = option(
        "feed-forward",
        "Network to train. feed-forward and gru predict functions and lambdas, program whole programs, next-line the "
        "next line of one.",
    )
    embedding: int = option(EMBEDDING, "Dimensions in which numbers are embedded.", least=1, most=1000)
    programs_seen: int = option(SEEN, "Programs to see in training, each counted each time.", least=1, most=10**10)
    rate: float = option(0.008, "Largest step size of Adam.", above=0, below=1)
    float32: bool = option(False, "Multiply in float32 instead of bfloat16, which takes 1.6 times as long.")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "Where to train; auto is a GPU if PyTorch sees one.")
    seed: int = option(0, "Seed of all random numbers.", least=0, not_swept="list seeds at the top of the file")
    jobs: int = option(
        1,
        "Cores to use; another number may change the last digits of the weights.",
        least=1,
        not_swept="a task has the cores that the sweep gives it",
    )
    out: Path | None = option(
        None,
        "File for the weights, .safetensors; the model card (.json), the learning curve (.csv) and, meanwhile, the "
        "checkpoint go beside it.",
        names="output",
        default_text="results/runs/train-guide.safetensors; Python writes no file",
    )
    overwrite: bool = option(
        False, "Replace files that this command did not write with these settings.", recorded=False
    )

    @property
    def _on_cpu(self) -> bool:
        """Whether the network learns on a CPU alone."""
        return self.model == "next-line"

    def check(self) -> None:
        """Refuse a corpus that is both read and made."""
        if self.corpus is not None:
            self.refuse(("length", "count"), "--corpus", "give one of them")
        if self.model in FIXED:
            device = ["device"] * (self._on_cpu and self.device == "cuda")
            self.refuse(["corpus", "length", "count", "embedding", *device], f"--model {self.model}", "leave it out")


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainGuideResult(Result):
    """The network. Its table is the learning curve, a row for each evaluation.

    Attributes
    ----------
    kind : which network.
    config : sizes, semantics and facts of the training, as the weights have them.
    arrays : the weights, as inference takes them.
    metrics : of the network on programs that are held back.
    baselines : losses on them of what knows less than the examples.
    cpu_seconds : processor seconds of the training.
    """

    kind: Kind
    config: Mapping[str, Any]
    arrays: Mapping[str, Array]
    metrics: Mapping[str, Any]
    baselines: Mapping[str, float]
    cpu_seconds: float

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Losses and how good the predictions are."""
        training, metrics = self.config["training"], self.metrics
        other = (
            "other examples of these programs"
            if training["by_examples"]
            else f"{training['held_back']:,} programs held back"
        )
        seen = f"{training['programs_seen']:,} seen of {training['programs']:,} distinct programs"
        losses = " (" + ", ".join(f"{name.replace('_', ' ')} {loss:.3f}" for name, loss in self.baselines.items()) + ")"
        lines = [
            ("network", f"{self.kind}, {training['parameters']:,} weights"),
            ("training", seen + (", stopped early" if training["stopped"] else "")),
            ("loss", f"{training['loss']:.3f} nats{losses * bool(self.baselines)}; {other}"),
        ]
        if "mean_average_precision" in metrics:
            each = {name: value for name, value in metrics["average_precision"].items() if value is not None}
            best = sorted(each, key=lambda name: -each[name])
            lines += [
                ("precision", f"mean average precision {metrics['mean_average_precision']:.3f}"),
                ("best", ", ".join(f"{name} {each[name]:.2f}" for name in best[:6])),
                ("worst", ", ".join(f"{name} {each[name]:.2f}" for name in best[:-7:-1])),
                ("calibration", f"probabilities are off by {metrics['calibration_error']:.3f} on average"),
            ]
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Metrics, as the model card has them."""
        facts: dict[str, Any] = {
            "training": self.config["training"],
            "validation": self.metrics,
            "baselines": self.baselines,
        }
        facts["cpu_seconds"] = self.cpu_seconds
        each = self.metrics.get("average_precision", {})
        weak = sorted(name for name, value in each.items() if value is not None and value < WEAK)
        return {**facts, "weak_attributes": weak, "limits": LIMITS}

    @presentation
    def draw(self) -> Figure | None:
        """Learning curve, average precision and calibration."""
        from thesis_cli.commands.figures.learning import draw

        return draw(self.columns, self.metrics, self.baselines)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the weights, their model card and the learning curve.

        Raises
        ------
        InputError : the name does not end in .safetensors; a weight is too large for float16.
        OSError : naming the file that could not be written.
        """
        from thesis_cli.base.files import write_atomic
        from thesis_cli.synthesis.networks.weights import save

        path = Path(path)
        written = save(path, self.arrays, self.kind, self.config, self.sidecar())
        curve = path.with_suffix(".csv")
        write_atomic({curve: self.columns.csv()})
        return [*written, curve]


def run(request: TrainGuideRequest, progress: Progress) -> TrainGuideResult:
    """Make or read the corpus, and train."""
    import numpy as np

    torch = extra("torch")
    from thesis_cli.synthesis.networks.weights import config_of
    from thesis_cli.synthesis.training.corpora import TrainingData
    from thesis_cli.synthesis.training.models import MODELS
    from thesis_cli.synthesis.training.trainer import Checkpoints, TrainingPlan, train

    device = _device(request)
    corpus, about = _corpus(request, progress)
    model = MODELS[request.model]
    data = model.prepare(TrainingData.split(corpus, request.seed))
    torch.set_num_threads(request.jobs)
    settings = settings_of(request, device=device, **about)
    half = model.half and not request.float32
    plan = TrainingPlan(request.programs_seen, model.batch, request.rate, request.seed, half=half)
    learner = model.make(data, request.seed, device, embedding=request.embedding)
    checkpoints = None
    if request.out is not None:
        made_from = {name: value for name, value in settings.items() if name != "out"}
        checkpoints = Checkpoints(request.out.with_suffix(".checkpoint"), made_from)
        if request.overwrite:
            checkpoints.remove_other()
    with progress(plan.steps * plan.batch, "programs") as tick:
        course = train(learner, data, plan, checkpoints, tick)
    training = {
        **about,
        "programs": len(np.unique(data.train)),
        "programs_seen": course.step * plan.batch,
        "held_back": len(data.validation),
        "loss": course.best,
        "stopped": course.stopped,
        "by_examples": data.by_examples,
        "parameters": sum(value.numel() for value in learner.module.parameters()),
        "seed": request.seed,
    }
    metrics = learner.metrics(data.validation)
    result = TrainGuideResult(
        columns=Columns(course.curve),
        request=request,
        settings=settings,
        kind=learner.kind,
        config=config_of(corpus.semantics, training, **learner.sizes),
        arrays=learner.arrays(),
        metrics=metrics,
        baselines=_baselines(data) if "average_precision" in metrics else {},
        cpu_seconds=round(course.seconds, 1),
    )
    if request.out is not None and checkpoints is not None:
        result.save(request.out)
        checkpoints.remove()
    return result


def _baselines(data: TrainingData) -> dict[str, float]:
    """Losses on the programs that are held back of what knows less than the examples."""
    from thesis_cli.synthesis.training.metrics import baselines

    types, attributes = data.corpus.types, data.corpus.attributes
    return baselines((types[data.train], attributes[data.train]), (types[data.validation], attributes[data.validation]))


def _device(request: TrainGuideRequest) -> str:
    """Device to train on: cpu or cuda.

    Raises
    ------
    InputError : a GPU is requested that PyTorch does not see.
    """
    import torch

    there = torch.cuda.is_available() and not request._on_cpu
    if request.device == "cuda" and not there:
        raise InputError("--device is cuda, and PyTorch sees no GPU", "give --device cpu, or leave it out")
    return "cuda" if there and request.device != "cpu" else "cpu"


def _corpus(request: TrainGuideRequest, progress: Progress) -> tuple[Corpus, dict[str, Any]]:
    """The corpus, and what settings and records say of it."""
    from thesis_cli.synthesis.corpus.corpus_file import load_corpus
    from thesis_cli.synthesis.training.corpora import TRAINED, training_corpus
    from thesis_cli.synthesis.training.models import MODELS

    if request.corpus is not None:
        found = load_corpus(request.corpus) if isinstance(request.corpus, str | Path) else request.corpus
        return found, {"corpus_sha256": found.digest}
    model = MODELS[request.model]
    if model.corpus is not None:
        with progress(COUNTED, "programs of the corpus") as tick:
            found = model.corpus(tick)
        return found, {"corpus_sha256": found.digest}
    length = request.length or LENGTH
    count = request.count or TRAINED[min(length, max(TRAINED))][0]
    with progress(count, "programs of the corpus") as tick:
        made = training_corpus(length, count, progress=tick)
    return made, {"length": length, "count": count, "corpus_sha256": made.digest}


COMMAND = Command(
    TrainGuideRequest,
    run,
    examples=(
        "train-guide --length 2 --programs-seen 200000",
        "train-guide --length 3 --out results/runs/my-guide.safetensors --figure results/runs/my-guide.png",
    ),
    suffix=".safetensors",
    not_swept="it writes weights, not a table",
)
