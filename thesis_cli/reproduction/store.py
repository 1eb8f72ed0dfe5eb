"""Finished tasks, one file each; a task is done when its file exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.reproduction.records import write_atomic


def task_key(experiment: str, version: int, parameters: Mapping[str, Any], seed: int) -> str:
    """Digest of what a task is; its position among others plays no part."""
    content = json.dumps([experiment, version, dict(parameters), seed], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """Plain data that any engine can hand to a process of any machine.

    Attributes
    ----------
    experiment : file that declares the experiment.
    key : what the task is; also the entropy of its random numbers.
    parameters : for the experiment's `run`.
    code : fingerprint of the code at submission.
    file : where the result goes.
    """

    experiment: Path
    key: str
    parameters: Mapping[str, Any]
    code: str
    file: Path


@dataclass(frozen=True)
class Stored:
    """A task's result: CSV text with its heading, and what is known of how it was computed."""

    text: str
    code: str
    seconds: float


def path_of(store: Path, experiment: str, key: str) -> Path:
    return store / experiment / key[:2] / f"{key}.csv"


def save(task: Task, text: str, seconds: float) -> None:
    """Write a result whole; the first line records its origin and a digest of the rest."""
    meta = {
        "parameters": dict(task.parameters),
        "code": task.code,
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
