"""Images as arrays: PNG, PBM, PGM and NPY files, or folders of them, read and written.

Binary images are booleans: True is white in a picture, and the larger of the two values of an NPY
file. Those of more values keep them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools
from thesis_cli.base.errors import InputError
from thesis_cli.base.npy import array_of
from thesis_cli.models.tokens import read_whole, unreadable

MOST_BYTES = 2**26
"""Most bytes of a file."""

MOST_PIXELS = 2**27
"""Most pixels of all images together."""

SUFFIXES = (".png", ".pbm", ".pgm", ".npy")
"""Endings of the files that are read and written."""

OTHER_SUFFIXES = (".ppm", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")
"""Formats of pictures that are not read; a folder that has one is refused rather than read in part."""

_REMEDY = "give PNG, PBM, PGM or NPY files"

Grey = npt.NDArray[Any]


class Images(NamedTuple):
    """Images of one size.

    Attributes
    ----------
    names : of the files without their suffix; the images of a stack have its name and a number.
    pixels : booleans, or values as the files have them, shape (count, height, width).
    """

    names: list[str]
    pixels: Grey


def read_images(path: Path, threshold: float | None = None, several: bool = False) -> Images:
    """The images of a file, or those of a folder sorted by name.

    Parameters
    ----------
    path : a PNG, PBM, PGM or NPY file, or a folder of them. An NPY file holds one image (height,
        width) or a stack of them (count, height, width).
    threshold : grey value; brighter pixels are True. Colours count as their brightness. None if the
        images have two values and no more.
    several : whether images keep their values, which may be many.

    Raises
    ------
    InputError : there is no image, one cannot be read, is grey though there is no threshold, or has
        another size than the first.
    """
    names: list[str] = []
    stacks: list[Grey] = []
    left = MOST_PIXELS
    for file in _files(path):
        grey = _grey(file, left)
        if stacks and grey.shape[1:] != stacks[0].shape[1:]:
            problem = f"is {_size(grey)}, but {names[0]} is {_size(stacks[0])}"
            raise InputError(problem, "give images of one size", source=file)
        if threshold is None and not several:
            _check_binary(grey, file)
        left -= grey.size
        stacks.append(grey if threshold is None else grey > threshold)
        names += _names(file, len(grey))
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"has two images {twice}", "give each a name of its own", source=path)
    return Images(names, np.concatenate(stacks) if threshold is not None or several else _two_values(stacks, path))


def encoded(pixels: Grey, path: Path) -> bytes:
    """The bytes of a file with an image, booleans or bytes of shape (height, width), in the format of its name.

    Raises
    ------
    InputError : the name has another suffix.
    """
    suffix = path.suffix.lower()
    data = io.BytesIO()
    if suffix == ".npy":
        np.save(data, pixels)
    elif suffix == ".png":
        from PIL import Image

        Image.fromarray(pixels).save(data, format="PNG")
    elif suffix in (".pbm", ".pgm"):
        if pixels.dtype != np.bool_ and suffix == ".pbm":
            raise InputError(f"{path} is for two values", "give a .png, .pgm or .npy file")
        grey = pixels if pixels.dtype != np.bool_ else np.uint8(255) * pixels
        kind, rest, body = (b"P4", b"", np.packbits(~pixels, axis=1)) if suffix == ".pbm" else (b"P5", b"255\n", grey)
        data.write(b"%s\n%d %d\n%s" % (kind, pixels.shape[1], pixels.shape[0], rest))
        data.write(body.tobytes())
    else:
        raise InputError(f"{path} does not end in {', '.join(SUFFIXES)}", "give a name that does")
    return data.getvalue()


def add_flips(pixels: Bools, share: float, rng: np.random.Generator) -> Bools:
    """Images, shape (count, h, w), in which each pixel is flipped with probability `share`."""
    return pixels ^ (rng.random(pixels.shape) < share)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    try:
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    except OSError as error:
        raise unreadable(error, str(path), "give a folder that can be read") from error
    for file in files:
        if file.suffix.lower() in OTHER_SUFFIXES:
            raise InputError(f"{file.suffix} files are not read", _REMEDY, source=file)
    known = [file for file in files if file.suffix.lower() in SUFFIXES]
    if not known:
        raise InputError("there is no image in this folder", _REMEDY, source=path)
    yield from known


def _names(file: Path, count: int) -> list[str]:
    return [file.stem] if count == 1 else [f"{file.stem}-{k:0{len(str(count - 1))}}" for k in range(count)]


def _grey(file: Path, most: int) -> Grey:
    """Grey values of the images of a file, shape (count, height, width), finite."""
    try:
        data = read_whole(file, MOST_BYTES, "give smaller images, or several files")
    except OSError as error:
        raise unreadable(error, str(file), _REMEDY) from error
    if file.suffix.lower() == ".npy":
        found = array_of(data, file)
        if found.ndim not in (2, 3):
            problem = f"has the shape {found.shape}"
            raise InputError(problem, "give (height, width) or (count, height, width)", source=file)
        if not np.isfinite(found).all():
            raise InputError("has values that are no finite numbers", "give finite ones", source=file)
        found = found.reshape(-1, *found.shape[-2:])
    else:
        found = _picture(data, file, most)[None]
    if found.size == 0:
        raise InputError("has no pixels", _REMEDY, source=file)
    _check_pixels(found.size, file, most)
    return found


def _picture(data: bytes, file: Path, most: int) -> Grey:
    """Grey values of a PNG, PBM or PGM file, shape (height, width)."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked here
            picture: Any = Image.open(io.BytesIO(data), formats=["PNG", "PPM"])
            _check_pixels(picture.width * picture.height, file, most)
            if picture.mode == "P":
                picture = picture.convert("RGBA")
            if "A" in picture.getbands():
                if picture.getchannel("A").getextrema()[0] < 255:
                    problem = "has transparent pixels, which are neither black nor white"
                    raise InputError(problem, "give it a background", source=file)
                picture = picture.convert("RGB")
            return np.asarray(picture.convert("L") if picture.mode in ("1", "RGB") else picture)
    except InputError:
        raise
    except Exception as error:  # of a damaged picture, decoders raise errors of any kind
        reason = str(error).splitlines()[0][:80] if str(error) and "BytesIO" not in str(error) else "no picture"
        raise InputError(f"not a whole PNG, PBM or PGM file ({reason})", _REMEDY, source=file) from error


def _check_pixels(pixels: int, file: Path, most: int) -> None:
    if pixels > most:
        problem = f"has {pixels:,} pixels, and all images together may have {MOST_PIXELS:,}"
        raise InputError(problem, "give fewer or smaller images", source=file)


def _check_binary(grey: Grey, file: Path) -> None:
    low, high = grey.min(), grey.max()
    if not ((grey == low) | (grey == high)).all():
        count = len(np.unique(grey))
        problem = f"is grey: it has {count:,} values from {low:g} to {high:g}"
        remedy = f"give --threshold, such as {(float(low) + float(high)) / 2:g}; brighter pixels are white"
        raise InputError(problem, remedy, source=file)


def _two_values(stacks: list[Grey], path: Path) -> Bools:
    """Images that have two values each as images of booleans; a single value is True unless it is 0."""
    values = sorted({float(extreme(grey)) for grey in stacks for extreme in (np.min, np.max)})
    if len(values) > 2:
        problem = f"the images have {len(values)} values: {', '.join(f'{value:g}' for value in values[:4])}"
        remedy = f"give --threshold, such as {(values[0] + values[-1]) / 2:g}; brighter pixels are white"
        raise InputError(problem + (", ..." if len(values) > 4 else ""), remedy, source=path)
    lower = values[0] if len(values) == 2 else 0.0
    return np.concatenate([grey > lower for grey in stacks])


def _size(grey: Grey) -> str:
    return f"{grey.shape[2]} x {grey.shape[1]}"
