"""Files that are written whole or not at all, and the record of how a result came about."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("thesis-cli", "numpy", "scipy", "numba", "pandas", "matplotlib", "pgmpy")


def write_atomic(files: Mapping[Path, str | bytes]) -> None:
    """Write files so that a reader sees the old content or the new, whatever dies meanwhile.

    None takes its name before all are on the disk.

    Raises
    ------
    OSError : naming the file that could not be written; what was there before is still there.
    """
    temporaries: dict[Path, str] = {}
    try:
        for path, data in files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle, temporaries[path] = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
                with os.fdopen(handle, "wb") as file:
                    file.write(data.encode() if isinstance(data, str) else data)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporaries[path], 0o666 & ~_umask())
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    except BaseException:
        for temporary in temporaries.values():
            Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to_json(record: object) -> str:
    """Indented JSON; numbers that JSON has no word for (inf, nan) become null."""
    return json.dumps(finite(record), indent=2, ensure_ascii=False) + "\n"


def finite(value: object) -> object:
    """The same record with None for inf and nan, which JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


INSTALLED_FROM = Path(__file__).resolve().parents[2]
"""A checkout, or a folder of packages."""


def provenance(checkout: Path = INSTALLED_FROM) -> dict[str, object]:
    """Versions, machine and, if the toolkit runs from a git checkout, its commit and whether it was changed since."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": sys.argv[1:],
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "machine": {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()},
        **git_state(checkout),
    }


def git_state(checkout: Path) -> dict[str, object]:
    """Commit of a checkout, and whether tracked files other than results differ from it; None if it is none."""
    try:
        if Path(_git(checkout, "rev-parse", "--show-toplevel")) != checkout.resolve():
            return {"git_commit": None, "git_dirty": None}
        commit = _git(checkout, "rev-parse", "HEAD")
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude,top)results")
    except (OSError, subprocess.CalledProcessError):
        return {"git_commit": None, "git_dirty": None}
    return {"git_commit": commit, "git_dirty": bool(changed)}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
