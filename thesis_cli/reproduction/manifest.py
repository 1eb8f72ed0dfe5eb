"""The origin of every committed table and figure in one file, results/MANIFEST.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json
from thesis_cli.reproduction.experiment import Checkout
from thesis_cli.reproduction.publication import DIGEST, digest
from thesis_cli.reproduction.report.files import read_files

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
        record = read_files(folder, name).record
        if not record:
            continue
        environment = {"python": record.get("python"), **(record.get("versions") or {})}
        key = hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:12]
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
        for figure in (folder / f"{name}{suffix}" for suffix in FIGURES):
            if figure.is_file():
                command = f"thesis-cli plot {name}" + f" --preset {preset}" * (preset != "paper")
                files[figure.name] = {"command": command, DIGEST: digest(figure)}
    return to_json({"environments": environments, "files": files})


def changed(folder: Path) -> dict[str, str]:
    """Files of a folder that its manifest describes otherwise, each with the reason; none without a manifest.

    Raises
    ------
    InputError : the manifest is damaged.
    """
    try:
        known = json.loads((folder / NAME).read_text(encoding="utf-8"))["files"]
        digests = {name: about[DIGEST] for name, about in known.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError("is no manifest", "thesis-cli report writes it again", source=folder / NAME) from None
    found = {}
    for name, known_digest in digests.items():
        if not (folder / name).is_file():
            found[name] = "it is missing"
        elif known_digest not in (None, digest(folder / name)):
            found[name] = f"it is not the file that {NAME} describes"
    return found
