"""`thesis-cli plot`: figures of experiments, and of a user's own runs, from their CSV files alone."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.commands import OwnCommand, short

logger = logging.getLogger(__name__)

OF_RUNS = ("out", "x", "y", "hue", "log", "overwrite")
"""Fields that are for tables, not for experiments."""


@dataclass(frozen=True, kw_only=True)
class PlotRequest(Request):
    """Draw figures, PDF and PNG, from CSV files alone: of experiments, or of your own runs.

    The record beside a table says which command wrote it, and so what suits it. Sweeps, and tables
    for which --x or --y is given, are drawn column against column.
    """

    usual = ("out", "x", "y", "hue", "log")

    names: tuple[str, ...] | None = argument(
        "Ids of experiments, or tables of your own runs.",
        default=None,
        default_text="all experiments that have results",
        metavar="ID|RUN.csv",
    )
    preset: str = option("paper", "Sizes: quick takes seconds, paper has those of the sources.")
    out: Path | None = option(
        None,
        "File for the figure of one table, .png; a .pdf goes beside it.",
        metavar="FILE",
        names="output",
        default_text="RUN.png beside the table",
    )
    x: str = option("", "Column of the horizontal axis.", metavar="COLUMN", default_text="what varies most")
    y: str = option("", "Column of the vertical axis.", metavar="COLUMN", default_text="the result")
    hue: str = option(
        "", "Column that colours the lines.", metavar="COLUMN", default_text="the method, if there is one"
    )
    log: Literal["x", "y", "xy"] | None = option(None, "Axes that are logarithmic.", default_text="none")
    show: bool = option(False, "Open the figures in the viewer of the desktop.")
    overwrite: bool = option(False, "Replace a picture that plot did not draw from this table.")

    def check(self) -> None:
        runs = [name for name in self.names or () if is_run(name)]
        if not runs or len(runs) < len(self.names or ()):
            self.refuse(OF_RUNS, "ids of experiments", "give the table of one run")
        if self.out is not None and len(runs) > 1:
            raise InputError(f"--out does not go with {len(runs)} tables", "give one table")


def is_run(name: str) -> bool:
    """Whether a word names a table, not an experiment."""
    return name.lower().endswith(".csv") or Path(name).is_file()


@dataclass(frozen=True, kw_only=True, repr=False)
class PlotResult(Summary):
    """The figures that were drawn.

    Attributes
    ----------
    figures : each file, PNG and PDF, and whether it is new, changed or the same.
    """

    figures: Mapping[Path, str]

    def facts(self) -> Mapping[str, Any]:
        return {"figures": {str(path): change for path, change in self.figures.items()}}

    def summary(self, full: bool = False) -> str:
        return "\n".join(f"{short(path)} {change}" for path, change in self.figures.items())


def plot(request: PlotRequest, progress: Progress) -> PlotResult:
    """Draw figures, and show them if that was asked for."""
    names = request.names or ()
    drawn = dict(_runs([Path(name) for name in names if is_run(name)], request))
    ids = [name for name in names if not is_run(name)]
    if ids or not names:
        drawn |= _experiments(ids, request.preset)
    for picture in (path for path in drawn if request.show and path.suffix == ".png"):
        if problem := open_file(picture):
            logger.warning("%s is not shown: %s", short(picture), problem)
            break
    return PlotResult(request=request, figures=drawn)


def _experiments(ids: Sequence[str], preset: str) -> Iterator[tuple[Path, str]]:
    from thesis_cli.reproduction.experiment import checkout_here, load
    from thesis_cli.reproduction.publication import draw

    checkout = checkout_here()
    folder = checkout.results(preset)
    for name, path in checkout.select(list(ids)).items():
        experiment = load(path)
        experiment.settings(preset)
        if not ids and not (folder / f"{name}.csv").is_file():
            logger.warning("%s has no result at preset %s", name, preset)
            continue
        yield from draw(experiment, folder).items()


def _runs(tables: Sequence[Path], request: PlotRequest) -> Iterator[tuple[Path, str]]:
    from thesis_cli.reproduction.plots.kinds import check_figure, picture, write
    from thesis_cli.reproduction.plots.run import read_run
    from thesis_cli.reproduction.plots.sweeps import ChosenColumns

    chosen = ChosenColumns(request.x, request.y, request.hue, request.log or "")
    for table in tables:
        figure = check_figure(table, request.out, request.overwrite)
        run = read_run(table)
        drawn = picture(run, chosen)
        for fault in run.faults if run.record or not chosen.any else ():  # columns of the user need no record
            logger.warning("%s", fault)
        yield from write(figure, drawn).items()


def open_file(path: Path) -> str:
    """Open a picture or a page, and do not wait for the viewer.

    Returns
    -------
    Why it could not be opened, in words; empty if it was.
    """
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return "there is no display"
    try:
        if sys.platform.startswith("linux") and (viewer := shutil.which("xdg-open")):
            null = subprocess.DEVNULL
            subprocess.Popen([viewer, str(path)], stdin=null, stdout=null, stderr=null, start_new_session=True)
            return ""
        return "" if webbrowser.open(path.resolve().as_uri()) else "there is no viewer"
    except OSError as error:
        return f"the viewer cannot be started ({error.strerror})"


COMMANDS = {
    "plot": OwnCommand(
        PlotRequest,
        plot,
        examples=("plot fig-2-1", "plot"),
        more="Your own runs:\n  thesis-cli plot results/runs/glasses.csv --x coupling --hue method --show",
    ),
}
