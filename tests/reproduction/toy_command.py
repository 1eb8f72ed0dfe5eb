"""A command that has a field of every kind, for tests of sweeps."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.commands.core import command
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option, probabilities_option, seed_option
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result
from thesis_cli.reproduction import command_work, sweep_file


@dataclass(frozen=True, kw_only=True)
class ToyRequest(Request):
    """Add numbers."""

    model: str = argument("Model.", names="file", objects=True)
    queries: tuple[str, ...] | None = argument("Queries.", default=None)
    method: Literal["auto", "slow", "fast"] = option("auto", "Method.")
    coupling: float = option(1.0, "Coupling.", finite=False)
    order: tuple[float, ...] | None = option(None, "Order.", least=0, finite=False, methods=("auto", "slow"))
    range: tuple[int, int] = option((-9, 9), "Range.")
    samples: int = option(10, "Samples.", least=1)
    any_order: bool = option(False, "Any order.")
    debias: bool = option(True, "Debias.")
    probabilities: bool = probabilities_option()
    evidence: tuple[str, ...] | None = option(None, "Evidence.", names="file")
    release: Path | None = option(None, "Release.", names="release")
    target: str | None = option(None, "Target.", names="object")
    save: Path | None = option(None, "File of something else.", names="output")
    ledger: Path | None = option(None, "Ledger.", not_swept="divide the budget before the sweep")
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()


@dataclass(frozen=True, kw_only=True)
class ToyResult(Result):
    """A row for each number."""


def run(request: ToyRequest, progress) -> ToyResult:
    """The request in a table, and the content of the model's file."""
    if request.samples == 13:
        raise InputError("--samples is 13", "it must be another number", source=request.model)
    if request.samples == 14:
        raise ZeroDivisionError("broken")
    if request.samples == 15:
        raise KeyboardInterrupt
    if request.samples > 100:
        logging.getLogger("thesis_cli.toy").warning("many samples")
    logging.getLogger("thesis_cli.toy").debug("not for the log")
    row = {"model": request.model, "text": Path(request.model).read_text(), "samples": request.samples}
    row |= {"coupling": request.coupling, "seed": request.seed, "target": request.target}
    columns = Columns([row])
    return ToyResult(columns=columns, request=request, settings=settings_of(request))


TOY = Command(ToyRequest, run)
UNSWEPT = Command(ToyRequest, run, not_swept="it writes no table")


@pytest.fixture
def toy(monkeypatch):
    """Commands `toy`, and `unswept`, among those of the program."""

    def command_named(name):
        return {"toy": TOY, "unswept": UNSWEPT}.get(name) or command.command_named(name)

    monkeypatch.setattr(command_work, "command_named", command_named)
    monkeypatch.setattr(sweep_file, "command_named", command_named)
    monkeypatch.setattr(sweep_file, "entries", lambda: {**command.entries(), "toy": None, "unswept": None})
    command_work._code_of.cache_clear()
    yield TOY
    command_work._code_of.cache_clear()
