"""Checkpoints of a training: whole or not there, and of one training only."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic

FORMAT = "thesis-cli checkpoint 1"

_REMEDY = "remove it, or give --overwrite or another --out"


class Checkpoints:
    """The checkpoint of a training, one file.

    Parameters
    ----------
    path : of the file.
    made_from : settings that determine the training, in types of JSON.
    every : seconds between two checkpoints.
    """

    def __init__(self, path: Path, made_from: Mapping[str, Any], every: float = 20.0) -> None:
        self.path, self.every = path, every
        self._made_from = json.dumps(made_from, sort_keys=True)

    def load(self) -> dict[str, Any] | None:
        """What was saved last; None if nothing was.

        Raises
        ------
        InputError : the file is damaged, or it is of another training.
        """
        if not self.path.exists():
            return None
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", _REMEDY, source=self.path) from None
        try:
            found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except Exception as error:  # of a damaged file, torch raises errors of any kind
            raise InputError("it is not a whole checkpoint", _REMEDY, source=self.path) from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"it is not a {FORMAT}", _REMEDY, source=self.path)
        if found["made_from"] != self._made_from:
            raise InputError("it is a checkpoint of other settings", _REMEDY, source=self.path)
        state: dict[str, Any] = found["state"]
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace what was saved last.

        Raises
        ------
        OSError : naming the file; what was saved last is still there.
        """
        file = io.BytesIO()
        torch.save({"format": FORMAT, "made_from": self._made_from, "state": dict(state)}, file)
        write_atomic({self.path: file.getvalue()})

    def remove_other(self) -> None:
        """Remove the file if `load` refuses it."""
        try:
            self.load()
        except InputError:
            self.remove()

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)
