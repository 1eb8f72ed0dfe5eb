"""The definition of a command that runs, judges or shows experiments and sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.progress import Progress, bars, silent
from thesis_cli.commands.core.command import Definition

if TYPE_CHECKING:
    from thesis_cli.reproduction.runner import Bar


@dataclass(frozen=True)
class OwnCommand(Definition):
    """A command that writes no result of its own under `--out` and cannot be swept.

    Attributes
    ----------
    more : further examples, with a heading.
    json : whether it has a summary, which `--json` changes.
    """

    more: str = ""
    json: bool = True


def task_bars(progress: Progress) -> Bar:
    """Progress bars of tasks, with the name of the run; none where `progress` shows none."""
    return silent if progress is silent else lambda total, name: bars(total, "task", name)


def short(path: Path) -> str:
    """A path relative to the working folder, if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
