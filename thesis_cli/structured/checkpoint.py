"""A checkpoint of a training: arrays, and what the training was made from."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic

EVERY = 5.0
"""Seconds between two checkpoints."""

_REMEDY = "remove it, or give --overwrite or another --out"


class Checkpoint:
    """Arrays of a training, kept so that it can go on after any end. Raises InputError if the file
    is damaged, or of another training.

    Parameters
    ----------
    path : file to go on from and to keep; None to keep nothing.
    made_from : settings that determine the training, in types of JSON.
    every : seconds between two checkpoints.

    Attributes
    ----------
    arrays : arrays of the file by name; empty if there is none.
    """

    def __init__(self, path: Path | None, made_from: Mapping[str, Any], every: float = EVERY) -> None:
        self.path, self._every = path, every
        self._made_from = json.dumps(made_from, sort_keys=True)
        self._kept = time.monotonic()
        self.arrays: dict[str, Floats] = self._read(path) if path is not None and path.exists() else {}

    def keep(self, **arrays: Floats | float) -> None:
        """Write the arrays if it is time."""
        if self.path is None or time.monotonic() - self._kept < self._every:
            return
        from safetensors.numpy import save

        data = save({name: np.array(array, np.float64) for name, array in arrays.items()}, {"from": self._made_from})
        write_atomic({self.path: data})
        self._kept = time.monotonic()

    def remove(self) -> None:
        """Remove the file: the training has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> dict[str, Floats]:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            data = path.read_bytes()
            arrays = load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            made_from = header["__metadata__"]["from"]
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", _REMEDY, source=path) from None
        except (SafetensorError, ValueError, LookupError, TypeError):
            raise InputError("it is not a whole checkpoint", _REMEDY, source=path) from None
        if made_from != self._made_from:
            raise InputError("it is a checkpoint of other settings or data", _REMEDY, source=path)
        return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def digest(*arrays: npt.NDArray[Any]) -> str:
    """Digest that tells the data of a training from others."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.shape}{array.dtype}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
