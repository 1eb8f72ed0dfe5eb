"""The origin of every committed table and figure in one file, results/MANIFEST.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from thesis_cli.base.files import to_json
from thesis_cli.reproduction.publication import DIGEST, digest
from thesis_cli.reproduction.registry import Checkout

NAME = "MANIFEST.json"
FIGURES = ".png", ".pdf"


def manifest(checkout: Checkout, preset: str = "paper") -> str:
    """Command, commit, environment, seconds, processor and digest of each table and figure, as JSON.

    All but the digests of figures comes from the records beside the tables. An environment is the
    versions of Python and of the packages; a manifest names each once, by a digest.
    """
    folder = checkout.results(preset)
    environments: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for name in checkout.files():
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        environment = {"python": record.get("python"), **(record.get("versions") or {})}
        key = digest(json.dumps(environment, sort_keys=True).encode())[:12]
        environments[key] = environment
        files[f"{name}.csv"] = {
            "command": f"thesis-cli reproduce {name} --preset {preset} --seed {record.get('seed')}",
            "commit": record.get("git_commit"),
            "dirty": record.get("git_dirty"),
            "environment": key,
            "task_seconds": record.get("task_seconds"),
            "processor": (record.get("machine") or {}).get("cpu"),
            DIGEST: record.get(DIGEST),
        }
        for figure in (path.with_suffix(suffix) for suffix in FIGURES):
            if figure.is_file():
                command = f"thesis-cli plot {name}" + f" --preset {preset}" * (preset != "paper")
                files[figure.name] = {"command": command, DIGEST: _digest(figure)}
    return to_json({"environments": environments, "files": files})


def changed(folder: Path) -> dict[str, str]:
    """What is wrong with the files of a folder that its manifest names: their names, and why.

    Raises
    ------
    FileNotFoundError : there is no manifest.
    """
    known = json.loads((folder / NAME).read_text(encoding="utf-8"))["files"]
    found = {}
    for name, about in known.items():
        path = folder / name
        if not path.is_file():
            found[name] = "it is missing"
        elif about[DIGEST] not in (None, _digest(path)):
            found[name] = f"it is not the file that {NAME} describes"
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
