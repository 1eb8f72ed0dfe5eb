"""State of a training: its trace, and the checkpoint from which it goes on after any end."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.npy import array_names, arrays_of
from thesis_cli.base.progress import Tick

State = Mapping[str, npt.NDArray[Any]]

EVERY = 5.0
"""Seconds between two checkpoints."""

DIGEST = hashlib.sha256().digest_size
"""Bytes of the digest with which a checkpoint begins."""

OTHER = "it is a checkpoint of other settings or images"

REMEDY = "remove it, or give --overwrite or another --out"


class TrainingRun:
    """The trace of a training, and its checkpoint. Raises InputError if the checkpoint is damaged,
    or of another training.

    Parameters
    ----------
    made_from : settings that determine the training, in types of JSON.
    checkpoint : file to go on from and to keep; None to keep nothing.
    progress : called with the number of iterations just done.
    every : seconds between two checkpoints.
    anew : whether to begin, and to replace a checkpoint that is there.

    Attributes
    ----------
    rows : rows of the trace.
    map_calls : MAP problems solved.
    state : state of the method when it was cut short, empty if it was not.
    """

    def __init__(
        self,
        made_from: Mapping[str, Any],
        checkpoint: Path | None = None,
        progress: Tick | None = None,
        every: float = EVERY,
        anew: bool = False,
    ) -> None:
        self.rows: list[dict[str, float]] = []
        self.map_calls = 0
        self.state: dict[str, npt.NDArray[Any]] = {}
        self._made_from = np.frombuffer(json.dumps(made_from, sort_keys=True).encode(), np.uint8)
        self._path, self._every, self._progress = checkpoint, every, progress
        self._before = 0.0
        self._begun = self._kept = time.monotonic()
        if checkpoint is not None and anew:
            self._save(checkpoint, {})
        elif checkpoint is not None and checkpoint.exists():
            self._load(checkpoint)

    @property
    def seconds(self) -> float:
        """Time of the training so far, in all runs of it."""
        return self._before + time.monotonic() - self._begun

    def restored(self, **start: npt.NDArray[Any] | float) -> dict[str, npt.NDArray[Any]]:
        """The state to go on from, `start` at the beginning; `t` counts the iterations done."""
        if self._progress and "t" in self.state:
            self._progress(int(self.state["t"]))
        return self.state or {name: np.asarray(value) for name, value in start.items()}

    def row(self, iteration: int, objective: float, **more: float) -> None:
        """Add a row to the trace."""
        facts = {"iteration": iteration, "map_calls": self.map_calls, "seconds": round(self.seconds, 3)}
        self.rows.append({**facts, "objective": objective, **more})

    def done(self, iterations: int, state: State) -> None:
        """Report iterations, and keep a state if it is time."""
        if self._path is not None and time.monotonic() - self._kept >= self._every:
            self._save(self._path, state)
            self._kept = time.monotonic()
        if self._progress:
            self._progress(iterations)

    def columns(self) -> Columns:
        """The trace: iteration, map_calls, seconds, objective and what the method adds."""
        names = list(self.rows[0]) if self.rows else ["iteration", "map_calls", "seconds", "objective"]
        return Columns({name: [row[name] for row in self.rows] for name in names})

    def _save(self, path: Path, state: State) -> None:
        names = list(self.rows[0]) if self.rows else []
        trace = np.array([[row[name] for name in names] for row in self.rows], np.float64)
        file = io.BytesIO()
        arrays: dict[str, Any] = {
            "made_from": self._made_from,
            "names": np.frombuffer(json.dumps(names).encode(), np.uint8),
            "trace": trace,
            "totals": np.array([self.map_calls, self.seconds]),
            **{f"state_{name}": value for name, value in state.items()},
        }
        np.savez(file, **arrays)
        data = file.getvalue()
        write_atomic({path: hashlib.sha256(data).digest() + data})

    def _load(self, path: Path) -> None:
        arrays = _arrays(path)
        keys = json.loads(arrays["names"].tobytes())
        if arrays["made_from"].tobytes() != self._made_from.tobytes():
            raise InputError(OTHER, REMEDY, source=path)
        whole = ("iteration", "map_calls")
        for row in arrays["trace"].tolist():
            self.rows.append({key: int(x) if key in whole else x for key, x in zip(keys, row, strict=True)})
        self.map_calls, self._before = int(arrays["totals"][0]), float(arrays["totals"][1])
        self.state = {name.removeprefix("state_"): a for name, a in arrays.items() if name.startswith("state_")}


def tried_before(checkpoint: Path) -> Sequence[Mapping[str, Any]]:
    """Trainings that ended before the one of a checkpoint; none if there is no checkpoint.

    Raises
    ------
    InputError : it is damaged.
    """
    if not checkpoint.exists():
        return []
    found: Sequence[Mapping[str, Any]] = json.loads(_arrays(checkpoint)["made_from"].tobytes()).get("tried", [])
    return found


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a checkpoint."""
    try:
        found = path.read_bytes()
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", REMEDY, source=path) from None
    digest, data = found[:DIGEST], io.BytesIO(found[DIGEST:])
    if hashlib.sha256(data.getvalue()).digest() != digest:
        raise InputError("it is not a whole checkpoint", REMEDY, source=path)
    return arrays_of(data, array_names(data, path), path)
