"""Finished tasks, one file each; a task is done when its file exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.files import write_atomic


def task_key(command: str, version: int, parameters: Mapping[str, Any], seed: int | None) -> str:
    """Digest of what a task is; its position among others plays no part."""
    return key_of(key_head(command, version, parameters), seed)


def key_head(command: str, version: int, parameters: Mapping[str, Any]) -> str:
    """What the keys of tasks with several seeds have in common."""
    return json.dumps([command, version, dict(parameters)], sort_keys=True)[:-1]


def key_of(head: str, seed: int | None) -> str:
    return hashlib.sha256(f"{head}, {json.dumps(seed)}]".encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """Plain data that any engine can hand to a process of any machine.

    Attributes
    ----------
    command : an experiment's id, or a command.
    parameters : of either.
    seed : root of its random numbers; None for a command that takes none.
    key : what the task is; also the entropy of an experiment's random numbers.
    file : where the result goes.
    """

    command: str
    parameters: Mapping[str, Any]
    seed: int | None
    key: str
    file: Path

    @property
    def log(self) -> Path:
        """What the task said."""
        return beside(self.file, ".log")

    @property
    def failure(self) -> Path:
        """How it failed when it was last tried."""
        return beside(self.file, ".error")


@dataclass(frozen=True)
class Stored:
    """A task's result: CSV text with its heading, and what is known of how it was computed."""

    text: str
    code: str
    seconds: float


def beside(result: Path, suffix: str) -> Path:
    """A file of a task, of the kind that suffix tells, by that of its result."""
    return result.parents[1] / "logs" / result.parent.name / f"{result.stem}{suffix}"


def save(task: Task, text: str, code: str, seconds: float) -> None:
    """Write a result whole; the first line records its origin and a digest of the rest."""
    meta = {
        "parameters": dict(task.parameters),
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
