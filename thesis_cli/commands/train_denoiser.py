"""`thesis-cli train-denoiser`: learn from pairs of noisy and clean images how to denoise others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.images import (
    ImagesSource,
    images_argument,
    open_images,
    paired,
    threshold_option,
)
from thesis_cli.commands.inputs.trained import SUFFIX, save_trained
from thesis_cli.learning.settings import (
    FOLDS,
    LEVELS,
    Couplings,
    Kind,
    Loss,
    Method,
    Schedule,
    Settings,
    WeightsKind,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.learning.choose import Learner, Learnt
    from thesis_cli.learning.shared_model import Weights


SIDES, UNITS = (1, 3, 7), 16
"""Sides of the patches among which is chosen, and hidden units where they are above 1."""


@dataclass(frozen=True, kw_only=True)
class TrainDenoiserRequest(Request):
    """Learn a grid model from pairs of noisy and clean images, to denoise others with.

    Its weights are shared by all pixels, or each pixel and each pair of neighbours has its own, for
    images that show things in one place. What is auto is chosen by three-fold cross-validation, and
    then learnt from all images. The same command goes on from the last checkpoint if it was
    cut short.
    """

    usual = ("weights", "regularisation", "values", "method", "iterations", "out")

    noisy: ImagesSource = images_argument("Noisy images")
    clean: ImagesSource = images_argument("Clean images of the same names, or in the same order")
    weights: Literal["auto", WeightsKind] = option(
        "auto", "Weights: shared by all pixels, or of each pixel and pair of neighbours; or what does better."
    )
    regularisation: float | None = option(
        None, "Weight of the squared norm of the weights.", above=0, default_text="chosen by cross-validation"
    )
    values: Kind = option("two", "Values of the images: two, grey levels, or labels in no order.")
    levels: int = option(LEVELS, "Levels of grey images, if more values occur.", least=2, most=256)
    patch: int | None = option(
        None,
        "Side of the patch of the noisy image that shared weights read about each pixel; odd.",
        least=1,
        most=15,
        default_text="1, 3 or 7, as chosen",
    )
    hidden: int | None = option(
        None,
        "Hidden units of a network that reads the patch; 0 for weights of the patch alone.",
        least=0,
        most=1000,
        default_text=f"{UNITS}, and 0 for patches of 1 or other schedules than adam",
        methods=("perturb-max",),
    )
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
        default_text="400 (30 of other schedules), 10,000, 50, 200 and 500 in the order of the methods",
    )
    bias: bool = option(False, "Give each pixel a second weight that does not depend on the noisy image.")
    couplings: Couplings = option(
        "attractive", "Whether neighbours may only attract each other, so that graph cuts are exact."
    )
    perturbations: int | None = option(
        None,
        "Perturbations of each image in a gradient.",
        least=1,
        most=10**6,
        default_text="1, or 5 of other schedules than adam",
        methods=("perturb-max",),
    )
    schedule: Schedule = option(
        "adam",
        "Steps: of Adam with some images each; of all images, halved where one does not help, as the source has it, "
        "or 1/t and averaged.",
        methods=("perturb-max",),
    )
    rate: float | None = option(
        None,
        "Size of the first step (perturb-max) or of all.",
        above=0,
        methods=("perturb-max", "structured-svm"),
        default_text="0.05 of adam, 1 of halving, or 10 over the root of --iterations",
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
        """Refuse a rate that the schedule determines, and options of other weights."""
        if self.rate is not None and self.schedule == "decaying":
            raise InputError("--rate does not go with --schedule decaying", "leave one of them out")
        if self.threshold is not None and self.values != "two":
            raise InputError(f"--threshold does not go with --values {self.values}", "it makes two values of many")
        if self.levels != LEVELS and self.values != "grey":
            raise InputError(f"--levels does not go with --values {self.values}", "it is for grey")
        if self.patch is not None and not self.patch % 2:
            raise InputError(f"--patch is {self.patch}", "it must be odd")
        if self.weights == "pixel" and (self.patch, self.hidden) != (None, None):
            name = "--patch" if self.patch else "--hidden"
            raise InputError(f"{name} does not go with --weights pixel", "it is for shared weights")
        if self.weights != "pixel" and self.bias:
            raise InputError(f"--bias does not go with --weights {self.weights}", "it is for pixel")
        if self.hidden and self.schedule != "adam":
            raise InputError(f"--hidden does not go with --schedule {self.schedule}", "it is for adam")

    def kinds(self) -> list[Settings]:
        """Settings that the options leave to choose from."""
        names = ("method", "iterations", "bias", "couplings", "schedule", "rate", "loss", "images_per_step")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        adam = self.method == "perturb-max" and self.schedule == "adam"
        given["regularisation"] = 1.0 if self.regularisation is None else self.regularisation
        pixel = Settings(**given, perturbations=self.perturbations or (1 if adam else 5))
        if self.weights == "pixel" or (self.weights == "auto" and self.method == "structured-svm"):
            return [pixel]
        found = []
        for side in SIDES if self.patch is None else (self.patch,):
            units = self.hidden if self.hidden is not None else UNITS * (adam and side > 1)
            if side > 1 or not self.hidden or self.patch:
                found.append(replace(pixel, weights="shared", bias=False, patch=side, hidden=units))
        if self.weights == "auto" and self.patch is None and not self.hidden:
            found.append(pixel)
        return found


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainDenoiserResult(Result):
    """The weights. The table is the trace of the training.

    Attributes
    ----------
    weights : learnt.
    images : number of pairs.
    shape : height and width of the images.
    map_calls : MAP problems solved.
    noisy_error, error : of the noisy images and of the most probable clean images: shares of wrong
        pixels, or root mean squares of grey ones.
    solver : that found these.
    candidates : what was tried with images held out, the best first: weights, patch, hidden,
        regularisation, factor of the couplings, and error on the images held out.
    """

    weights: Weights
    images: int
    shape: tuple[int, int]
    map_calls: int
    noisy_error: float
    error: float
    solver: str
    candidates: Sequence[Mapping[str, Any]]

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Images, choice, weights, objective, work and error."""
        from thesis_cli.learning.values import Values

        pairs = "1 pair" if self.images == 1 else f"{self.images} pairs"
        values, (height, width) = Values.read(self.weights.about), self.shape
        last = len(self.columns["objective"]) - 1
        found = []
        if self.candidates:
            text = f"{values.shown(self.candidates[0]['error'], 2)}, the least of {len(self.candidates)} settings"
            found = [("held out", text)]
        kind = _named(self.weights.about["settings"])
        found.append(("method", f"{self.settings['method']}, {self.weights.count:,} {kind}"))
        if last >= 0:
            first, value = self.columns["objective"][0], self.columns["objective"][last]
            text = f"{first:.6g} -> {value:.6g} in {self.columns['iteration'][last]:,} iterations"
            if "gap" in self.columns:
                text += f", at most {self.columns['gap'][last]:.3g} above the least"
            found.append(("objective", text))
        return [
            ("images", f"{self.settings['noisy']}: {pairs} of {height} x {width} pixels"),
            *found,
            ("work", f"{self.map_calls:,} MAP calls"),
            ("error", f"{values.shown(self.error)} in training, {values.shown(self.noisy_error)} before"),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Sizes, work and errors."""
        objectives = list(self.columns["objective"])
        gap = {"gap": list(self.columns["gap"])[-1]} if "gap" in self.columns and objectives else {}
        return {
            "images": self.images,
            "shape": list(self.shape),
            "candidates": list(self.candidates),
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


def _named(settings: Mapping[str, Any]) -> str:
    """Weights in words."""
    if settings["weights"] == "pixel":
        return "weights of pixels"
    network = f" and {settings['hidden']} hidden units" if settings["hidden"] else ""
    return f"shared weights of patch {settings['patch']}{network}"


def run(request: TrainDenoiserRequest, progress: Progress) -> TrainDenoiserResult:
    """Read the images, choose settings, and train."""
    from thesis_cli.learning.choose import STRENGTHS, Learner
    from thesis_cli.learning.decoding import Decoder, denoised
    from thesis_cli.learning.values import Values

    several = request.values != "two"
    noisy = open_images(request.noisy, request.threshold, several)
    clean = paired(noisy, open_images(request.clean, request.threshold, several), (request.noisy, request.clean))
    kinds, strengths = request.kinds(), request.regularisation is None
    values = Values.of(request.values, clean.pixels, request.levels)
    checkpoint = request.out.with_suffix(".checkpoint") if request.out is not None else None
    tried = len(kinds) + (len(STRENGTHS) - 1) * strengths
    trainings = 1 if tried == 1 else tried * min(FOLDS, len(clean.names)) + 1
    with progress(trainings * kinds[0].total, "iterations") as tick:
        images = noisy.pixels, clean.pixels, values
        learnt = _learnt(request, lambda: Learner(*images, request.seed, tick, checkpoint), checkpoint)
    weights = learnt.trained.weights
    height, width = clean.pixels.shape[1:]
    decoder = Decoder(weights.on(height, width))
    found = denoised(weights, values, noisy.pixels, solver=decoder)
    resolved = asdict(learnt.settings)
    result = TrainDenoiserResult(
        columns=learnt.trained.columns,
        request=request,
        settings=settings_of(request, iterations=learnt.settings.total, **{k: resolved[k] for k in CHOSEN}),
        weights=weights,
        images=len(noisy.names),
        shape=(height, width),
        map_calls=learnt.trained.map_calls,
        noisy_error=float(values.errors(noisy.pixels, clean.pixels).mean()),
        error=float(values.errors(found, clean.pixels).mean()),
        solver=f"{decoder.name}, {decoder.guarantee}",
        candidates=[one.row() for one in learnt.candidates],
    )
    if request.out is not None and checkpoint is not None:
        result.save(request.out)
        checkpoint.unlink(missing_ok=True)
    return result


CHOSEN = ("weights", "regularisation", "patch", "hidden", "perturbations")
"""Options that the record has as they were chosen."""


def _learnt(request: TrainDenoiserRequest, learner: Callable[[], Learner], checkpoint: Path | None) -> Learnt:
    """Train, from the checkpoint if it is of this training; --overwrite replaces another one."""

    def go() -> Learnt:
        return learner().learn(request.kinds(), request.regularisation is None)

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
        "train-denoiser data/images/train/noisy data/images/train/clean --weights pixel --method svm-frank-wolfe "
        "--regularisation 0.01 --figure results/runs/svm.png",
    ),
    suffix=SUFFIX,
    not_swept="it writes weights, not a table",
)
