"""Results of tasks, one file each; a task is done when its file exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.files import write_atomic
from thesis_cli.base.wording import without_secrets


def shown_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a task for messages, without passwords of databases."""
    return {name: without_secrets(value) if isinstance(value, str) else value for name, value in parameters.items()}


def task_key(command: str, version: int, parameters: Mapping[str, Any], seed: int | None) -> str:
    """Digest of a task; it does not depend on the position among other tasks."""
    return key_of(key_head(command, version, parameters), seed)


def key_head(command: str, version: int, parameters: Mapping[str, Any]) -> str:
    """The part of a key that tasks of all seeds share."""
    return json.dumps([command, version, dict(parameters)], sort_keys=True)[:-1]


def key_of(head: str, seed: int | None) -> str:
    return hashlib.sha256(f"{head}, {json.dumps(seed)}]".encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """A task as plain data that can be sent to any process.

    Attributes
    ----------
    command : id of an experiment, or name of a command.
    parameters : JSON values by name.
    seed : seed of its random numbers; None if the command takes none.
    key : digest of the three; it seeds the random numbers of an experiment.
    file : file of the result.
    """

    command: str
    parameters: Mapping[str, Any]
    seed: int | None
    key: str
    file: Path

    @property
    def log(self) -> Path:
        """File of its messages."""
        return beside(self.file, ".log")

    @property
    def failure(self) -> Path:
        """File of the error of its last try."""
        return beside(self.file, ".error")


@dataclass(frozen=True)
class Stored:
    """The result of a task: CSV text with its heading, fingerprint of the code, and seconds."""

    text: str
    code: str
    seconds: float


def beside(result: Path, suffix: str) -> Path:
    """The file of a task with another suffix than that of its result."""
    return result.parents[1] / "logs" / result.parent.name / f"{result.stem}{suffix}"


def save(task: Task, text: str, code: str, seconds: float) -> None:
    """Write a result. The first line records its origin and a digest of the rest."""
    meta = {
        "parameters": shown_parameters(task.parameters),
        "code": code,
        "seconds": round(seconds, 3),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    write_atomic({task.file: f"# {json.dumps(meta)}\n{text}"})


def read(file: Path) -> Stored | None:
    """A stored result; None if there is none, or if the file is damaged."""
    try:
        head, _, text = file.read_bytes().partition(b"\n")
        meta = json.loads(head.removeprefix(b"# "))
        if hashlib.sha256(text).hexdigest() != meta["sha256"]:
            return None
        return Stored(text.decode(), meta["code"], meta["seconds"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
