"""Options that commands share, and what they do: seeds, messages, progress bars."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from thesis_cli.base.progress import Progress, Tick, bars, silent
from thesis_cli.inference.names import SolverName

_MODEL = typer.Argument(help="UAI, FG, BIF, CSV, NPY or NPZ file; - reads standard input.")
ModelFile = Annotated[str, _MODEL]
ModelFileOrNone = Annotated[str | None, _MODEL]
Evidence = Annotated[Path | None, typer.Option(help="UAI evidence file.")]
Format = Annotated[
    Literal["uai", "fg", "bif", "csv", "npy", "npz"] | None,
    typer.Option(help="Of MODEL, where neither name nor content tells."),
]
Memory = Annotated[float, typer.Option(min=0.001, help="GiB that grid transfer or elimination may take.")]
Solver = Annotated[SolverName, typer.Option(help="MAP solver; auto says with -v what it chose and why.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of the noise. Left out, one is drawn and printed.", show_default=False),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Cores to use; the result does not depend on it.", show_default="all"),
]
Out = Annotated[Path | None, typer.Option(help="Where the result goes: .csv, beside it a .json.")]
Division = Annotated[Literal["trunc", "floor"], typer.Option(help="How (/2), (/3) and (/4) round negative numbers.")]
Range = Annotated[
    tuple[int, int], typer.Option(help="Least and largest number that a value may have.", metavar="LO HI")
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages and no progress bar.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More messages.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

logger = logging.getLogger("thesis_cli")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return ("warning: " if record.levelno == logging.WARNING else "") + super().format(record)


def set_messages(quiet: bool, verbose: bool) -> None:
    """Messages of the library go to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)


def jobs_or_all(jobs: int | None) -> int:
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def seed_or_fresh(seed: int | None) -> int:
    return secrets.randbits(32) if seed is None else seed


def counted(number: float, what: str, form: str = ",") -> str:
    """`1 state`, `1,000 states`."""
    text = format(number, form)
    return f"{text} {what}{'s' * (text != '1')}"


@contextmanager
def telling_of_compilation() -> Iterator[None]:
    """Say that code is being compiled, once and only if it is: what is loaded from the cache is not."""
    from numba.core.event import Listener, install_listener

    class Teller(Listener):
        told = False

        def on_start(self, event: object) -> None:
            if not self.told:
                logger.info("compiling, which is done once and takes some 10 to 40 seconds")
            self.told = True

        def on_end(self, event: object) -> None:
            pass

    with install_listener("numba:compile", Teller()):
        yield


@contextmanager
def progress(total: int, unit: str, quiet: bool, name: str | None = None) -> Iterator[Tick]:
    """A bar on standard error, when that is a terminal; yields a function that takes a number of units done."""
    if quiet or not sys.stderr.isatty():  # even a bar that is not shown makes a lock, which a killed process leaves
        yield lambda done: None
        return
    from tqdm import tqdm

    with tqdm(
        total=total if total < 10**18 else None,  # beyond, it is not going to be counted through
        desc=name,
        unit=unit,
        unit_scale=True,
        file=sys.stderr,
        leave=False,
    ) as bar:

        def tick(done: int) -> None:
            bar.update(done)

        yield tick


def bars_unless(quiet: bool) -> Progress:
    """Progress bars, where standard error is a terminal and nobody asked for quiet."""
    if quiet or not sys.stderr.isatty():  # even a bar that is not shown makes a lock, which a killed process leaves
        return silent
    return bars


def task_bars(quiet: bool) -> Callable[[int, str], AbstractContextManager[Tick]]:
    """Bars that count tasks, by their number and the name of the run; silent as for `bars_unless`."""
    if bars_unless(quiet) is silent:
        return silent
    return lambda total, name: bars(total, "task", name)
