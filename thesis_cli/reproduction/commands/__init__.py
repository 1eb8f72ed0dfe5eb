"""Commands that run, judge and show experiments and sweeps; each file has the request, the work and the
summary of one or a few.

`OWN` lists them; those that have a function of Python say its name.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


class Own(NamedTuple):
    """Location of a command: its module, its function of Python if it has one, and one line of help."""

    module: str
    function: str
    help: str

    def command(self, name: str) -> OwnCommand:
        """The command, imported."""
        found: OwnCommand = importlib.import_module(self.module).COMMANDS[name]
        return found


def _own(module: str, function: str, help: str) -> Own:
    return Own(f"{__name__}.{module}", function, help)


OWN = {
    "sweep": _own("sweep", "sweep", "Run a command over a grid of its options, here or on a cluster, into one table."),
    "status": _own("status", "status", "Count the finished and unfinished tasks of sweeps and experiments."),
    "collect": _own("sweep", "collect", "Merge the finished tasks of a sweep into its table."),
    "run-task": _own("sweep", "", "Run tasks of a task file, as a job of any batch system does."),
    "reproduce": _own("experiments", "reproduce", "Run experiments, draw their figures and check the claims."),
    "plot": _own("plot", "plot", "Draw figures of experiments and of your own runs from their CSV files alone."),
    "claims": _own("experiments", "claims", "Compare the statements of the sources with the results."),
    "verify": _own("verify", "verify", "Compute random tasks of the committed results again, and compare."),
    "report": _own("report", "report", "Write one page of HTML with every figure, claim and verdict."),
    "compile": Own(
        "thesis_cli.cli.compile", "", "Compile the code of all commands, so that none compiles at its first use."
    ),
    "list": _own("experiments", "list_experiments", "List the experiments of this checkout."),
}
"""Commands by name. Those without a function are for batch scripts and for installation."""
