"""The one reader of NPY and NPZ files, whole or damaged: real numbers only, and never a pickle.

The header of an array is matched against a pattern, not evaluated, and an array is allocated only
once the bytes that its header promises are there.

Source: NumPy Enhancement Proposal 1, A Simple File Format for NumPy Arrays.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import MAGIC, is_npy

Array = npt.NDArray[Any]

MAX_BYTES = 2**31
"""Most bytes that an array of an archive unpacks to, by default."""

LONGEST_HEADER = 10_000
"""Most bytes of a header, as in NumPy: that of a plain array has some 80."""

MOST_AXES = 64
"""Most axes of an array of NumPy."""

_ITEM = r"""(?:
    (?P<q>['"])descr(?P=q)\s*:\s*(?P<descr>'[^']*'|"[^"]*"|\[.*\])
    | (?P<r>['"])fortran_order(?P=r)\s*:\s*(?P<fortran>True|False)
    | (?P<s>['"])shape(?P=s)\s*:\s*\((?P<shape>[0-9L,\s]*)\)
)"""
_HEADER = re.compile(rf"\s*\{{\s*(?:{_ITEM}\s*(?:,\s*)?){{3}}\}}\s*", re.VERBOSE | re.DOTALL | re.ASCII)
_REAL = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f(?:2|4|8|12|16))")
_REMEDY = "give an array of real numbers that numpy.save has written"


def map_array(path: str | Path) -> Array:
    """Map the array of an NPY file, without loading it.

    Raises
    ------
    InputError : the file holds no whole array of real numbers or booleans; the message names it.
    OSError : it cannot be read.
    """
    with open(path, "rb") as file:
        shape, order, dtype = _header(file, path)
        start = file.tell()
        _check_size(shape, dtype, file.seek(0, io.SEEK_END), start, path)
    if 0 in shape:
        return _made(b"", shape, order, dtype, path)
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape, order=order)


def array_of(data: bytes, source: str | Path) -> Array:
    """The array of an NPY file that is in memory; raises as `map_array`."""
    file = io.BytesIO(data)
    shape, order, dtype = _header(file, source)
    _check_size(shape, dtype, len(data), file.tell(), source)
    return _made(data[file.tell() :], shape, order, dtype, source)


def array_names(file: IO[bytes], source: str | Path) -> list[str]:
    """Names of the arrays of an NPZ file, as `numpy.savez` was given them; raises as `arrays_of`."""
    try:
        with zipfile.ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except Exception as error:  # of a damaged archive, zipfile raises errors of any kind
        raise _damaged(error, source) from error


def arrays_of(file: IO[bytes], names: Sequence[str], source: str | Path, most: int = MAX_BYTES) -> dict[str, Array]:
    """Arrays of an NPZ file, by their names.

    Parameters
    ----------
    file : the file, in which one can seek.
    most : bytes that an array may unpack to.

    Raises
    ------
    InputError : the file is no whole archive, has no such array, has a larger one, or as
        `map_array`.
    """
    return {name: array_of(_unpacked(file, name, source, most), f"{source}") for name in names}


def _unpacked(file: IO[bytes], name: str, source: str | Path, most: int) -> bytes:
    try:
        with zipfile.ZipFile(file) as archive:
            known = archive.namelist()
            member = archive.getinfo(name if name in known else f"{name}.npy")
            size = member.file_size
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"compression {member.compress_type}")
            if size <= most:
                with archive.open(member) as packed:  # a read of so many bytes unpacks no more
                    return packed.read(size)
    except Exception as error:  # as in `array_names`
        raise _damaged(error, source) from error
    remedy = "write the array as NPY, which is read a block at a time"
    raise InputError(f"unpacks to {size:,} bytes, more than {most >> 20} MiB", remedy, source=source)


def _damaged(error: Exception, source: str | Path) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"not a whole NPZ file ({reason[:80]})", "give a file that numpy.savez has written", source=source
    )


def _header(file: IO[bytes], source: str | Path) -> tuple[tuple[int, ...], Any, np.dtype[Any]]:
    """Shape, order (C or F) and type of the array whose bytes come next."""
    start = file.read(len(MAGIC) + 2)
    if not is_npy(start):
        archive = start.startswith(b"PK")
        raise InputError("holds an archive of arrays" if archive else "is no NPY file", _REMEDY, source=source)
    version = tuple(start[len(MAGIC) :])
    size = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if version not in ((1, 0), (2, 0), (3, 0)) or size > LONGEST_HEADER:
        raise InputError("not a whole NPY file (the header is damaged)", _REMEDY, source=source)
    found = _HEADER.fullmatch(file.read(size).decode("latin-1"))
    if found is None or None in (found["descr"], found["fortran"], found["shape"]):
        raise InputError("not a whole NPY file (the header is damaged)", _REMEDY, source=source)
    kind = found["descr"].strip("'\"")
    lengths = [word.strip().removesuffix("L") for word in found["shape"].split(",")]
    if lengths[-1] == "":
        del lengths[-1]
    if not _REAL.fullmatch(kind):
        what = "Python objects" if "O" in kind else "numbers of type " + kind[:40]
        raise InputError(f"holds {what}, not real numbers", _REMEDY, source=source)
    try:
        if len(lengths) > MOST_AXES:
            raise ValueError
        return tuple(map(int, lengths)), "F" if found["fortran"] == "True" else "C", np.dtype(kind)
    except (ValueError, TypeError) as error:  # as (3,,4), or a type that this processor lacks
        raise InputError("not a whole NPY file (the header is damaged)", _REMEDY, source=source) from error


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], end: int, start: int, source: str | Path) -> None:
    promised = math.prod(shape) * dtype.itemsize
    if promised > end - start:
        problem = f"not a whole NPY file (its header promises {promised:,} bytes, it has {end - start:,})"
        raise InputError(problem, _REMEDY, source=source)


def _made(data: bytes, shape: tuple[int, ...], order: Any, dtype: np.dtype[Any], source: str | Path) -> Array:
    """The array that the first of some bytes hold."""
    try:
        return np.frombuffer(data, dtype, math.prod(shape)).reshape(shape, order=order).copy()
    except (ValueError, OverflowError) as error:  # no entries, for a length is 0, but another is huge
        raise InputError("not a whole NPY file (the header is damaged)", _REMEDY, source=source) from error
