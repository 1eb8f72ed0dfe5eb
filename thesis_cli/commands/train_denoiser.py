"""`thesis-cli train-denoiser`: learn from pairs of noisy and clean images how to denoise others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.images import (
    ImagesSource,
    images_argument,
    open_images,
    paired,
    threshold_option,
)
from thesis_cli.commands.inputs.trained import SUFFIX, save_trained
from thesis_cli.learning.settings import Couplings, Loss, Method, Schedule, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.base.progress import Tick
    from thesis_cli.learning.grid_model import GridWeights
    from thesis_cli.learning.train import Trained
    from thesis_cli.models.images import Images


@dataclass(frozen=True, kw_only=True)
class TrainDenoiserRequest(Request):
    """Learn a weight for each pixel and each pair of neighbours from pairs of noisy and clean images.

    All images have one size and what they show is in one place, as in aligned scans: denoise takes
    other noisy images of that size. The same command goes on from the last checkpoint if it was cut
    short.
    """

    usual = ("method", "iterations", "regularisation", "couplings", "out")

    noisy: ImagesSource = images_argument("Noisy images")
    clean: ImagesSource = images_argument("Clean images of the same names, or in the same order")
    method: Method = option(
        "perturb-max",
        "Objective: expected maxima under noise, maxima alone (structured-svm; svm-frank-wolfe has a label loss and a "
        "certificate), ln Z (crf, narrow images) or each pixel given its neighbours.",
    )
    iterations: int | None = option(
        None,
        "Iterations at most: gradients, steps, passes over the images, or steps of L-BFGS.",
        least=0,
        most=10**8,
        default_text="30, 10,000, 50, 200 and 500 in the order of the methods",
    )
    regularisation: float = option(1.0, "Weight of the squared norm of the weights.", above=0)
    bias: bool = option(False, "Give each pixel a second weight that does not depend on the noisy image.")
    couplings: Couplings = option(
        "attractive", "Whether neighbours may only attract each other, so that graph cuts are exact."
    )
    perturbations: int = option(
        5, "Perturbations of each image in a gradient.", least=1, most=10**6, methods=("perturb-max",)
    )
    schedule: Schedule = option(
        "halving",
        "Steps: halved where one does not help, as the source has it, or 1/t and averaged.",
        methods=("perturb-max",),
    )
    rate: float | None = option(
        None,
        "Size of the first step (perturb-max) or of all.",
        above=0,
        methods=("perturb-max", "structured-svm"),
        default_text="1, or 10 over the root of --iterations",
    )
    loss: Loss = option("none", "Label loss; the source has none.", methods=("structured-svm",))
    images_per_step: int = option(1, "Random images in a step.", least=1, methods=("structured-svm",))
    threshold: float | None = threshold_option()
    seed: int = option(0, "Seed of all random numbers.", least=0, not_swept="list seeds at the top of the file")
    out: Path | None = option(
        None,
        "File for the weights, .safetensors; the record (.json), the trace of the objective (.csv) and, meanwhile, "
        "the checkpoint go beside it.",
        names="output",
        default_text="results/runs/train-denoiser-NOISY.safetensors; Python writes no file",
    )
    overwrite: bool = option(
        False, "Replace files that this command did not write with these settings.", recorded=False
    )

    def check(self) -> None:
        """Refuse a rate that the schedule determines."""
        if self.rate is not None and self.schedule == "decaying":
            raise InputError("--rate does not go with --schedule decaying", "leave one of them out")


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainDenoiserResult(Result):
    """The weights. The table is the trace of the training.

    Attributes
    ----------
    weights : learnt.
    images : number of pairs.
    map_calls : MAP problems solved.
    noisy_error, error : shares of wrong pixels in the noisy images and in the most probable clean
        images.
    solver : that found these.
    """

    weights: GridWeights
    images: int
    map_calls: int
    noisy_error: float
    error: float
    solver: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Images, weights, objective, work and error."""
        height, width = self.weights.shape
        right, down = self.weights.right, self.weights.down
        count = self.weights.field.size * (1 + bool(self.settings["bias"])) + right.size + down.size
        last = len(self.columns["objective"]) - 1
        found = []
        if last >= 0:
            first, value = self.columns["objective"][0], self.columns["objective"][last]
            text = f"{first:.6g} -> {value:.6g} in {self.columns['iteration'][last]:,} iterations"
            if "gap" in self.columns:
                text += f", at most {self.columns['gap'][last]:.3g} above the least"
            found = [("objective", text)]
        return [
            ("images", f"{self.settings['noisy']}: {self.images} pairs of {height} x {width} pixels"),
            ("method", f"{self.settings['method']}, {count:,} weights"),
            *found,
            ("work", f"{self.map_calls:,} MAP calls"),
            ("error", f"{self.error:.3%} of pixels in training, {self.noisy_error:.3%} before  ({self.solver})"),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Sizes, work and errors."""
        objectives = list(self.columns["objective"])
        gap = {"gap": list(self.columns["gap"])[-1]} if "gap" in self.columns and objectives else {}
        return {
            "images": self.images,
            "shape": list(self.weights.shape),
            "objective": objectives[-1] if objectives else None,
            **gap,
            "map_calls": self.map_calls,
            "training_error": self.error,
            "noisy_error": self.noisy_error,
            "solver": self.solver,
        }

    @presentation
    def draw(self) -> Figure | None:
        """The trace of the objective, and the weights as pictures."""
        from thesis_cli.commands.figures.denoising import draw_training

        return draw_training(self.columns, self.weights)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the weights, their record and the trace.

        Raises
        ------
        InputError : the name does not end in .safetensors.
        OSError : naming the file that could not be written.
        """
        return save_trained(self, path, self.weights.to_bytes())


def run(request: TrainDenoiserRequest, progress: Progress) -> TrainDenoiserResult:
    """Read the images, and train."""
    from thesis_cli.learning.decoding import Decoder, map_images

    noisy = open_images(request.noisy, request.threshold)
    clean = paired(noisy, open_images(request.clean, request.threshold), (request.noisy, request.clean))
    names = ("method", "iterations", "regularisation", "bias", "couplings", "perturbations")
    more = ("schedule", "rate", "loss", "images_per_step")
    settings = Settings(**{name: getattr(request, name) for name in (*names, *more)})
    checkpoint = request.out.with_suffix(".checkpoint") if request.out is not None else None
    with progress(settings.total, "iterations") as tick:
        trained = _trained(request, noisy, clean, settings, checkpoint, tick)
    decoder = Decoder(trained.weights)
    found = map_images(trained.weights, noisy.pixels, solver=decoder)
    result = TrainDenoiserResult(
        columns=trained.columns,
        request=request,
        settings=settings_of(request, iterations=settings.total),
        weights=trained.weights,
        images=len(noisy.names),
        map_calls=trained.map_calls,
        noisy_error=float((noisy.pixels != clean.pixels).mean()),
        error=float((found != clean.pixels).mean()),
        solver=f"{decoder.name}, {decoder.guarantee}",
    )
    if request.out is not None and checkpoint is not None:
        result.save(request.out)
        checkpoint.unlink(missing_ok=True)
    return result


def _trained(
    request: TrainDenoiserRequest,
    noisy: Images,
    clean: Images,
    settings: Settings,
    checkpoint: Path | None,
    tick: Tick,
) -> Trained:
    """Train, from the checkpoint if it is of this training; --overwrite replaces another one."""
    from thesis_cli.learning.train import train

    def go() -> Trained:
        return train(noisy.pixels, clean.pixels, settings, request.seed, tick, checkpoint)

    try:
        return go()
    except InputError as error:
        if checkpoint is None or error.source != str(checkpoint) or not request.overwrite:
            raise
        checkpoint.unlink()
        return go()


COMMAND = Command(
    TrainDenoiserRequest,
    run,
    examples=(
        "train-denoiser data/images/train/noisy data/images/train/clean --out results/runs/men.safetensors",
        "train-denoiser data/images/train/noisy data/images/train/clean --method svm-frank-wolfe "
        "--regularisation 0.01 --figure results/runs/svm.png",
    ),
    suffix=SUFFIX,
    not_swept="it writes weights, not a table",
)
