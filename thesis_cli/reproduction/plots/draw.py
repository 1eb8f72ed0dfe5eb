"""Files of the figures of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import render
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.reproduction.plots.kinds import figure
from thesis_cli.reproduction.plots.run import Run
from thesis_cli.reproduction.plots.sweeps import Chosen, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARK = "thesis-cli plot "
"""How the metadata of a figure of a run begin; a digest of the table's name follows."""


def picture(run: Run, chosen: Chosen, kinds: tuple[str, ...] = ("png", "pdf")) -> dict[str, bytes]:
    """The figure of a run; returns the file of each kind.

    Raises
    ------
    InputError : no figure suits the run, or what was chosen does not suit its columns.
    """
    draw: Callable[[], Figure] = (lambda: sweep(run, chosen)) if chosen.any else figure(run)
    return render(draw, kinds, mark(run.path))


def mark(table: Path) -> str:
    """What the metadata of the figure of a table say of its origin."""
    return MARK + hashlib.sha256(table.name.encode()).hexdigest()[:16]


def check_figure(table: Path, out: Path | None, overwrite: bool) -> Path:
    """The file for the figure of a table: beside it, unless another is given.

    Raises
    ------
    InputError : it cannot be written, or is a picture that was not drawn from this table.
    """
    found = out or table.with_suffix(".png")
    check_writable("--out", found, ".png")
    for path in (found, found.with_suffix(".pdf")):
        if path.is_file() and not overwrite and mark(table).encode() not in path.read_bytes():
            problem = f"{path} exists, and was not drawn by plot from {table.name}"
            raise InputError(problem, "give another --out, or --overwrite")
    return found


def write(found: Path, drawn: dict[str, bytes]) -> dict[Path, str]:
    """Write the files that differ; returns `new`, `changed` or `unchanged` for each."""
    changes = {}
    for kind, data in sorted(drawn.items()):
        path = found.with_suffix(f".{kind}")
        old = path.read_bytes() if path.is_file() else None
        changes[path] = "new" if old is None else "unchanged" if old == data else "changed"
        if old != data:
            write_atomic({path: data})
    return changes
