"""Options that say where tasks run: in processes here, or in jobs of a cluster."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.cli import options

if TYPE_CHECKING:
    from thesis_cli.reproduction.arrays import Queue
    from thesis_cli.reproduction.engines import Engine
    from thesis_cli.reproduction.slurm import Request

EngineName = Annotated[
    Literal["local", "slurm", "none"],
    typer.Option(help="Processes here, jobs of Slurm, or none: task files are written and nothing is run."),
]
Partition = Annotated[str | None, typer.Option(help="Of jobs.", show_default="the site's")]
Time = Annotated[int | None, typer.Option(min=1, help="Limit of a job, minutes.", show_default="30")]
Mem = Annotated[str | None, typer.Option(help="Memory of a job, as Slurm writes it.", show_default="4G")]
Cpus = Annotated[int | None, typer.Option(min=1, help="Cores of a job.", show_default="1")]
ArrayLimit = Annotated[int | None, typer.Option(min=1, help="Jobs that may run at once.", show_default="no limit")]
TargetMinutes = Annotated[
    float | None,
    typer.Option(min=0.01, help="How long a job is to last: tasks are grouped by measured times.", show_default="10"),
]
Retries = Annotated[
    int | None, typer.Option(min=1, help="How often a task is submitted whose jobs are killed.", show_default="3")
]
Settle = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds after which a file written on a node is seen here.", show_default="60"),
]
Setup = Annotated[
    list[str] | None, typer.Option(help="Line of shell before the work, such as 'module load python'; repeatable.")
]
Sbatch = Annotated[list[str] | None, typer.Option(help="Further option of sbatch, such as account=NAME; repeatable.")]
Detach = Annotated[bool, typer.Option("--detach", help="Submit and do not wait.")]


@dataclass(frozen=True)
class Settings:
    """How tasks are put into jobs. A flag beats the file of a sweep, which beats these.

    Attributes
    ----------
    time : minutes.
    mem : per job, as Slurm writes it.
    cpus : cores of a job.
    array_limit : jobs at once; 0 for no limit.
    settle : seconds that a result may take to be seen by the driver.
    setup : lines of shell before the work.
    sbatch : further options by their long names.
    """

    partition: str = ""
    time: int = 30
    mem: str = "4G"
    cpus: int = 1
    array_limit: int = 0
    target_minutes: float = 10.0
    retries: int = 3
    settle: float = 60.0
    setup: tuple[str, ...] = ()
    sbatch: Mapping[str, Any] | None = None

    @property
    def request(self) -> Request:
        from thesis_cli.reproduction.slurm import Request

        partition = {"partition": self.partition} if self.partition else {}
        return Request(self.time, self.mem, self.cpus, self.setup, {**partition, **(self.sbatch or {})})


def flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's parameters that are settings."""
    return {field.name: given[field.name] for field in fields(Settings)}


def settings(table: Mapping[str, Any], flags: Mapping[str, Any]) -> Settings:
    """Settings from a sweep's table and from flags, which are None where they are not given.

    Raises
    ------
    InputError : an unknown key, or a value that Slurm could not take.
    """
    known = {field.name: field.default for field in fields(Settings)}
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            near = get_close_matches(name, known, 1)
            remedy = f"{(near[0] if near else ', '.join(known)).replace('_', '-')} is known"
            raise InputError(f"slurm.{key}: unknown key", remedy)
        found[name] = _checked(f"slurm.{key}", name, value)
    for name, value in flags.items():
        if value is not None:
            found[name] = _checked(f"--{name.replace('_', '-')}", name, _pairs(value) if name == "sbatch" else value)
    return Settings(**found)


def _checked(where: str, name: str, value: Any) -> Any:
    """A value of the type that its setting has."""
    least = {"time": 1, "cpus": 1, "array_limit": 1, "retries": 1, "target_minutes": 0.01, "settle": 0}
    if name in least:
        whole = name not in ("target_minutes", "settle")
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not (number and least[name] <= value < math.inf):
            kind = "whole number" if whole else "number"
            raise InputError(f"{where} = {value!r}", f"a {kind} from {least[name]} is wanted")
        return value
    if name == "setup":
        lines = [value] if isinstance(value, str) else value
        if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
            raise InputError(f"{where} = {value!r}", "lines of shell are wanted")
        return tuple(lines)
    if name == "sbatch":
        if not isinstance(value, Mapping):
            raise InputError(f"{where} = {value!r}", 'options of sbatch are wanted, such as { account = "NAME" }')
        for option, setting in value.items():
            named = re.fullmatch(r"[a-z][a-z-]*", option) and isinstance(setting, str | int | float)
            if not named or setting is False or not str(setting) or not str(setting).isprintable():
                raise InputError(f"{where} {option}={setting}", "NAME=VALUE is wanted, such as account=NAME")
        return dict(value)
    if not isinstance(value, str) or not value or re.search(r"\s", value):
        raise InputError(f"{where} = {value!r}", "a word is wanted")
    if name == "mem" and not re.fullmatch(r"[1-9]\d*[KMGT]?B?", value, re.IGNORECASE):
        raise InputError(f"{where} = {value!r}", "a size is wanted, such as 4G")
    return value


def _pairs(given: list[str]) -> dict[str, str]:
    return dict(text.removeprefix("--").partition("=")[::2] for text in given)


def engine(name: str, jobs: int | None, wanted: Settings, detach: bool) -> Engine:
    """What runs the tasks.

    Raises
    ------
    InputError : there is no Slurm here, or options do not go together.
    """
    from thesis_cli.reproduction.engines import LocalEngine, NoEngine

    if detach and name != "slurm":
        raise InputError(f"--detach with --engine {name}", "--engine slurm is wanted")
    if name == "local":
        return LocalEngine(options.jobs_or_all(jobs), wanted.retries)
    if name == "none":
        return NoEngine()
    from thesis_cli.reproduction.arrays import ArrayEngine
    from thesis_cli.reproduction.slurm import Slurm

    return ArrayEngine(
        Slurm(wanted.request),
        target_minutes=wanted.target_minutes,
        parallel=wanted.array_limit,
        retries=wanted.retries,
        detach=detach,
        settle=wanted.settle,
    )


def queue() -> Queue:
    """Jobs of this user; none where there is no Slurm, or while it does not answer."""
    from thesis_cli.reproduction.slurm import queue as ask

    found = ask()
    if found is None:
        options.logger.warning("Slurm does not answer; which tasks run is not known")
    return found or {}
