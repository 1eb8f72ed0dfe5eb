"""`thesis-cli denoise`: denoise images by a grid model that train-denoiser has learnt."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.files import check_writable, to_json, write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import RUNS, SolverName, solver_option
from thesis_cli.commands.core.fields import Request, files_named, option, settings_of
from thesis_cli.commands.core.result import Result, check_overwritten, presentation, written_by
from thesis_cli.commands.inputs.images import (
    ImagesSource,
    images_argument,
    open_images,
    paired,
    threshold_option,
)

logger = logging.getLogger("thesis_cli")

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.commands.train_denoiser import TrainDenoiserResult
    from thesis_cli.learning.shared_model import Weights
    from thesis_cli.learning.values import Pixels, Values
    from thesis_cli.models.images import Images

    WeightsSource: TypeAlias = str | Path | Weights | TrainDenoiserResult
    """The path of weights, weights, or what `train_denoiser` returns."""
else:
    WeightsSource = str

RECORD, TABLE = "denoise.json", "denoise.csv"
"""Names of the record and of the table among the images."""


@dataclass(frozen=True, kw_only=True)
class DenoiseRequest(Request):
    """Denoise images by a grid model that train-denoiser has learnt."""

    usual = ("weights", "clean", "decision", "threshold", "out")

    noisy: ImagesSource = images_argument("Noisy images, of values as those the weights were learnt from")
    weights: WeightsSource = option(
        None, "Weights that train-denoiser has written.", metavar="FILE", names="file", objects=True
    )
    clean: ImagesSource | None = option(
        None,
        "Clean images of the same names or in the same order, to count errors.",
        metavar="FOLDER",
        names="file",
        objects=True,
        default_text="none",
    )
    decision: Literal["map", "marginal"] = option(
        "map", "The most probable image, or each pixel's more probable state, or mean, under perturbed maxima."
    )
    samples: int = option(100, "Perturbations of an image, for --decision marginal.", least=1, most=10**7)
    solver: SolverName = solver_option()
    threshold: float | None = threshold_option()
    model_out: Path | None = option(
        None,
        "File for the model of one image, .uai, which map, sample and estimate-z take; a variable a pixel, row by row.",
        names="output",
        default_text="none",
    )
    image: str | None = option(None, "Name of the image for --model-out.", default_text="the first")
    seed: int = option(0, "Seed of the perturbations.", least=0)
    out: Path | None = option(
        None,
        "Folder for the images, with a table of errors and a record.",
        metavar="FOLDER",
        names="output",
        default_text="results/runs/denoise-NOISY; Python writes no file",
    )
    overwrite: bool = option(
        False, "Replace files that this command did not write with these settings.", recorded=False
    )

    def check(self) -> None:
        """Refuse options without those that they belong to."""
        if self.weights is None:
            raise InputError("--weights is missing", "give a file that thesis-cli train-denoiser has written")
        if self.decision == "map" and self.samples != 100:
            raise InputError("--samples goes with --decision marginal", "leave it out")
        if self.image is not None and self.model_out is None:
            raise InputError("--image is given without --model-out", "leave it out")


@dataclass(frozen=True, kw_only=True, repr=False)
class DenoiseResult(Result):
    """The images. Its table has a row for each: name, pixels that were changed and, if clean images
    were given, the errors before (`noisy_error`) and after (`error`): shares of wrong pixels, or root
    mean squares of grey images.

    Attributes
    ----------
    images : denoised, with their names.
    noisy : before.
    clean : as given; None if they were not.
    values : of the images.
    solver : of the MAP problems.
    """

    images: Images
    noisy: Pixels
    clean: Pixels | None
    values: Values
    solver: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Images, pixels changed, and errors."""
        height, width = self.noisy.shape[1:]
        facts = self.facts()
        lines = [
            ("images", f"{self.settings['noisy']}: {len(self.noisy)} of {height} x {width} pixels"),
            ("changed", f"{facts['changed']:.3%} of pixels  ({self.solver})"),
        ]
        if self.clean is not None:
            error, before = self.values.shown(facts["error"]), self.values.shown(facts["noisy_error"])
            spread = facts["standard_error"]
            if spread is not None:
                shown = f"{spread:.2g}" if self.values.kind == "grey" else f"{spread:.3%}"
                error += f" (standard error {shown} over images)"
            lines.append(("error", f"{error}, {before.removesuffix(' of pixels')} before"))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Share of pixels that were changed, and errors."""
        changed = float((self.images.pixels != self.noisy).mean())
        found = {"images": len(self.noisy), "changed": changed, "solver": self.solver}
        if self.clean is None:
            return found
        errors = self.values.errors(self.images.pixels, self.clean)
        many = len(errors) > 1
        return {
            **found,
            "noisy_error": float(self.values.errors(self.noisy, self.clean).mean()),
            "error": float(errors.mean()),
            "standard_error": float(errors.std(ddof=1) / len(errors) ** 0.5) if many else None,
        }

    @presentation
    def draw(self) -> Figure | None:
        """The first images: noisy, denoised and, if given, clean."""
        from thesis_cli.commands.figures.denoising import draw_images

        rows = {"noisy": self.noisy, "denoised": self.images.pixels}
        rows = rows if self.clean is None else {**rows, "clean": self.clean}
        return draw_images(self.images.names, rows, self.values)

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the images into a folder, PNG of two values or of bytes and NPY of others, with the table
        and the record: all or none.

        Raises
        ------
        OSError : naming the file that could not be written.
        """
        from thesis_cli.models.images import encoded

        folder = Path(path)
        files: dict[Path, str | bytes] = {}
        for name, pixels in zip(self.images.names, self.images.pixels, strict=True):
            file = folder / f"{name}{_suffix(pixels.dtype)}"
            files[file] = encoded(pixels, file)
        files |= {folder / TABLE: self.columns.csv(), folder / RECORD: to_json(self.sidecar())}
        write_atomic(files)
        return list(files)


def run(request: DenoiseRequest, progress: Progress) -> DenoiseResult:
    """Read weights and images, check where results go, denoise, and write."""
    import numpy as np

    from thesis_cli.learning.decoding import Decoder, denoised
    from thesis_cli.learning.values import Values
    from thesis_cli.models.images import Images

    weights = _weights(request.weights)
    with about(_label(request.weights)):
        values = Values.read(weights.about)
    _check_values(request, values)
    several = values.kind != "two"
    noisy = open_images(request.noisy, request.threshold, several)
    clean = None
    if request.clean is not None:
        found = open_images(request.clean, request.threshold, several)
        clean = paired(noisy, found, (request.noisy, request.clean)).pixels
    chosen = _chosen(request, noisy)
    if doubt := values.doubt(noisy.pixels):
        logger.warning("%s: %s", request.noisy if isinstance(request.noisy, str | Path) else "noisy images", doubt)
    kind = _type(noisy, values)
    _check_files(request, noisy, _suffix(kind))
    with about(_label(request.weights)), progress(len(noisy.names) * values.parts, "images") as tick:
        grid = weights.on(*noisy.pixels.shape[1:])
        decoder = Decoder(grid, request.solver)
        pixels = denoised(
            weights,
            values,
            noisy.pixels,
            request.decision,
            request.samples,
            request.seed,
            solver=decoder,
            progress=tick,
        )
    solver = f"{decoder.name}{' of each threshold' * (values.kind == 'grey')}, {decoder.guarantee}"
    if values.kind == "labels":
        solver = "alpha-expansion, approximate"
    pixels = (np.rint(pixels) if kind.kind == "u" else pixels).astype(kind)
    columns: dict[str, Any] = {"name": noisy.names, "changed": (pixels != noisy.pixels).sum(axis=(1, 2))}
    if clean is not None:
        columns["noisy_error"] = values.errors(noisy.pixels, clean)
        columns["error"] = values.errors(pixels, clean)
    result = DenoiseResult(
        columns=Columns(columns),
        request=request,
        settings=settings_of(request),
        images=Images(noisy.names, pixels),
        noisy=noisy.pixels,
        clean=clean,
        values=values,
        solver=solver,
    )
    if request.out is not None:
        result.save(request.out)
    if request.model_out is not None:
        from thesis_cli.models.uai import write

        write_atomic({request.model_out: write(grid.graph(noisy.pixels[chosen]))})
    return result


def _weights(source: WeightsSource) -> Weights:
    """The weights of a source."""
    from thesis_cli.learning.grid_model import GridWeights
    from thesis_cli.learning.shared_model import SharedWeights, load_weights

    if isinstance(source, str | Path):
        return load_weights(source)
    found = getattr(source, "weights", source)
    if not isinstance(found, GridWeights | SharedWeights):
        raise InputError(f"the weights are of type {type(source).__name__}", "give a file, or what was learnt")
    return found


def _check_values(request: DenoiseRequest, values: Values) -> None:
    """Refuse options that weights for these values do not heed."""
    given: dict[str, object] = {}
    if values.kind != "two":
        given = {"--model-out": request.model_out, "--threshold": request.threshold}
    if values.kind == "labels":
        given |= {
            "--decision": None if request.decision == "map" else request.decision,
            "--solver": None if request.solver == "auto" else request.solver,
        }
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} does not go with weights for {values.kind}", "leave it out")


def _type(noisy: Images, values: Values) -> Any:
    """The type of denoised pixels: that of noisy bytes and the like if they hold all levels, rounded, or labels."""
    import numpy as np

    found = noisy.pixels.dtype
    if values.kind == "two":
        return np.dtype(bool)
    levels = np.array(values.values if values.kind == "labels" else np.rint(values.values))
    whole = found.kind == "u" and ((levels >= 0) & (levels <= np.iinfo(found).max) & (levels % 1 == 0)).all()
    return found if whole else np.dtype(np.float64)


def _suffix(kind: Any) -> str:
    """The ending of files that hold images of a type."""
    return ".png" if kind in (bool, "uint8") else ".npy"


def _label(source: WeightsSource) -> str:
    return str(source) if isinstance(source, str | Path) else ""


def _chosen(request: DenoiseRequest, noisy: Images) -> int:
    """The image for `--model-out`."""
    if request.image is None:
        return 0
    if request.image not in noisy.names:
        raise InputError(f"no image is named {request.image[:60]}", f"the first is {noisy.names[0]}")
    return noisy.names.index(request.image)


def _check_files(request: DenoiseRequest, noisy: Images, suffix: str) -> None:
    """Refuse, before the work, files that cannot be written or that must not be replaced."""
    out, model = request.out, request.model_out
    same = out is not None and written_by(out / RECORD, request)
    if model is not None:
        check_writable("--model-out", model, ".uai")
        if any(Path(text).resolve() == model.resolve() for text in files_named(request)):
            raise InputError(f"--model-out {model} would overwrite the input", "give another name")
        if not same:
            check_overwritten("--model-out", model, request.overwrite)
    if out is None:
        return
    check_writable("--out", out, is_folder=True)
    if any(Path(text).resolve() == out.resolve() for text in files_named(request)):
        raise InputError(f"--out {out} holds the input", "give another folder")
    if not same:
        for name in (*(f"{name}{suffix}" for name in noisy.names), TABLE, RECORD):
            check_overwritten("", out / name, request.overwrite)


def _default_out(request: DenoiseRequest) -> Path:
    """A folder under results/runs with the name of the images, with a number if it is taken."""
    stem = Path(request.noisy).stem if isinstance(request.noisy, str | Path) else "images"
    for number in count(1):
        folder = RUNS / (f"denoise-{stem}" if number == 1 else f"denoise-{stem}-{number}")
        if not folder.exists() or request.overwrite or written_by(folder / RECORD, request):
            return folder
    raise AssertionError


COMMAND = Command(
    DenoiseRequest,
    run,
    examples=(
        "denoise data/images/test/noisy --weights data/images/men.safetensors --clean data/images/test/clean "
        "--out results/runs/denoised --figure results/runs/denoised.png",
        "denoise data/images/test/noisy --weights data/images/men.safetensors --clean data/images/test/clean "
        "--decision marginal --samples 50 --seed 1",
        "denoise data/images/test/noisy --weights data/images/men.safetensors --image man-0 "
        "--model-out results/runs/man-0.uai",
    ),
    saves=False,
    default_out=_default_out,
    not_swept="it writes images",
)
