"""Open what a command takes as images: a folder, a file or an array; and pair noisy with clean ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import argument, option

if TYPE_CHECKING:
    import numpy.typing as npt

    from thesis_cli.models.images import Images

    ImagesSource = str | Path | npt.NDArray[Any]
    """The path of a folder, or of a PNG, PBM, PGM or NPY file, or an array (h, w) or (count, h, w)."""
else:
    ImagesSource = str

SHOWN = 3
"""Names of images that a message lists."""


def images_argument(what: str) -> Any:
    """Images; its type is `ImagesSource`."""
    return argument(f"{what}: a folder or a file of PNG, PBM, PGM or NPY images.", names="file", objects=True)


def threshold_option() -> Any:
    return option(
        None,
        "Grey value above which a pixel is foreground.",
        default_text="none; images have two values",
    )


def open_images(source: ImagesSource, threshold: float | None, several: bool = False) -> Images:
    """The images of a source, with names; of several values if these are kept.

    Raises
    ------
    InputError : there is none, one cannot be read, has more than two values although there is no
        threshold, or has another size than the others.
    """
    import numpy as np

    from thesis_cli.models.images import Images, read_images

    if isinstance(source, str | Path):
        return read_images(Path(source), threshold, several)
    values = np.asarray(source)
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "biuf":
        problem = f"the images are an array of shape {values.shape} and type {values.dtype}"
        raise InputError(problem, "give numbers or booleans, (height, width) or (count, height, width)")
    if not np.isfinite(values).all():
        raise InputError("the images have a NaN or an infinity", "all pixels must be finite")
    stack = values.reshape(-1, *values.shape[-2:])
    names = [f"image-{k:0{len(str(len(stack) - 1))}}" for k in range(len(stack))]
    if threshold is not None:
        return Images(names, stack > threshold)
    if several:
        return Images(names, stack)
    low, high = stack.min(), stack.max()
    if not ((stack == low) | (stack == high)).all():
        raise InputError("the images have more than two values", "give threshold")
    return Images(names, stack == high if high > low else stack > 0)


def paired(noisy: Images, clean: Images, sources: Sequence[object]) -> Images:
    """The clean images in the order of the noisy ones: by name, or in their order if both sources are
    single files or arrays.

    Raises
    ------
    InputError : they have another size, or one has no partner.
    """
    from thesis_cli.models.images import Images

    sizes = [" x ".join(map(str, images.pixels.shape[1:])) for images in (noisy, clean)]
    if sizes[0] != sizes[1]:
        raise InputError(
            f"the noisy images are {sizes[0]} and the clean ones {sizes[1]}", "give pairs of images of one size"
        )
    at = {name: k for k, name in enumerate(clean.names)}
    missing = [name for name in noisy.names if name not in at]
    if not missing:
        order = [at[name] for name in noisy.names]
        return Images(list(noisy.names), clean.pixels[order])
    folders = any(isinstance(source, str | Path) and Path(source).is_dir() for source in sources)
    if len(noisy.names) == len(clean.names) and not folders:
        return Images(list(noisy.names), clean.pixels)
    if len(clean.names) < len(noisy.names):
        problem = f"there are {len(noisy.names)} noisy images and {len(clean.names)} clean ones"
        raise InputError(f"{problem}; none is named {_listed(missing)}", "give a clean image for each noisy one")
    raise InputError(f"no clean image is named {_listed(missing)}", "give clean images the names of the noisy ones")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + f" ({len(names)} in all)" * (len(names) > SHOWN)
