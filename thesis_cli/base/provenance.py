"""Origin of a result: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("thesis-cli", "numpy", "scipy", "numba", "pandas", "matplotlib", "pgmpy")

INSTALLED_FROM = Path(__file__).resolve().parents[2]
"""A checkout, or a folder of packages."""


def provenance(checkout: Path = INSTALLED_FROM) -> dict[str, object]:
    """Versions, machine and, if the toolkit runs from a git checkout, its commit and whether it was
    changed since.

    The command line is not part of it: a record holds settings, in which passwords are `***`.
    """
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "machine": {"system": platform.system(), "cpu": _processor(), "cores": os.cpu_count()},
        **git_state(checkout),
    }


@cache
def _processor() -> str:
    """Architecture and model of the processor: last bits of floating-point results depend on it."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":", 1)[1] for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return " ".join([platform.machine(), *model.split()])


@cache
def git_state(checkout: Path) -> dict[str, object]:
    """Commit of a checkout, and whether tracked files other than results differ from it; None if it
    is none.

    Asked once: it is the code of this process that matters.
    """
    try:
        top, commit = _git(checkout, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        if Path(top) != checkout.resolve():
            return {"git_commit": None, "git_dirty": None}
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude,top)results")
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {"git_commit": None, "git_dirty": None}
    return {"git_commit": commit, "git_dirty": bool(changed)}


def is_public(checkout: Path) -> bool:
    """Whether a branch of a remote holds the commit of a checkout; also if it has no remote, or is no checkout."""
    try:
        return not _git(checkout, "remote") or bool(_git(checkout, "branch", "--remotes", "--contains", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        return True


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
