"""`thesis-cli run-program`: run a program of the DSL on inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.programs import (
    DivisionName,
    check_range,
    division_option,
    max_list_option,
    range_option,
    semantics_of,
)

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Value
    from thesis_cli.synthesis.language.program import Program

    ProgramSource = str | Program
    Inputs = str | list[Any] | tuple[Any, ...]
else:
    ProgramSource = Inputs = str


@dataclass(frozen=True, kw_only=True)
class RunProgramRequest(Request):
    """Run a program of the DSL of DeepCoder on inputs, and print its value as JSON.

    The value is null if a line has no value, such as HEAD of an empty list, or leaves the range.
    """

    program: ProgramSource = argument("Program, its lines separated by semicolons.", objects=True)
    inputs: Inputs = argument("Inputs: a JSON list of them, such as [[3, 1, 2]] for one list.", objects=True)
    division: DivisionName = division_option()
    range: tuple[int, int] = range_option()
    max_list: int = max_list_option()

    def check(self) -> None:
        """Refuse bounds in the wrong order."""
        check_range(self.range)


@dataclass(frozen=True, kw_only=True, repr=False)
class RunProgramResult(Result):
    """The value of the program's last line.

    Attributes
    ----------
    value : a number, a tuple of numbers, or None (NULL).
    """

    value: Value | None

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The value."""
        return [("value", json.dumps(self.value))]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The value."""
        return {"value": self.value}


def run(request: RunProgramRequest, progress: Progress) -> RunProgramResult:
    """Interpret the program."""
    from thesis_cli.synthesis.language import program as language
    from thesis_cli.synthesis.language.task import plain, read_inputs

    program = language.parse(request.program) if isinstance(request.program, str) else request.program
    semantics = semantics_of(request.division, request.range, request.max_list, program.language.name)
    content = _json(request.inputs) if isinstance(request.inputs, str | Path) else plain(request.inputs)
    inputs = read_inputs(content, "INPUTS", semantics)
    value = language.run(program, inputs, semantics)
    row = {"program": program.one_line, "inputs": json.dumps(inputs), "value": json.dumps(value)}
    settings = settings_of(request, program=program.one_line, inputs=inputs)
    return RunProgramResult(columns=Columns([row]), request=request, settings=settings, value=value)


def _json(text: str | Path) -> object:
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        raise InputError(f"INPUTS is {str(text)[:60]!r}", "it must be JSON, such as [[1, 2, 3]]") from None


COMMAND = Command(
    RunProgramRequest,
    run,
    examples=('run-program "a <- [int]; b <- FILTER (<0) a; c <- SORT b" "[[3, -1, 2, -5]]"',),
    saves=False,
    not_swept="it has one value, not a table",
)
