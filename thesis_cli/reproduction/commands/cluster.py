"""Options that choose where tasks run: in processes here, or in jobs of a cluster."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import Request, option

if TYPE_CHECKING:
    from thesis_cli.reproduction.arrays import Queue
    from thesis_cli.reproduction.engines import Engine
    from thesis_cli.reproduction.slurm import JobRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobSettings:
    """Options that put tasks into jobs: a flag beats the file of a sweep, which beats these defaults.

    Attributes
    ----------
    time : limit of a job, in minutes.
    mem : memory of a job, as Slurm writes it.
    cpus : cores of a job.
    array_limit : jobs that may run at once; 0 for no limit.
    target_minutes : planned length of a job.
    settle : seconds until a result is visible to the driver.
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
    sbatch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> JobRequest:
        from thesis_cli.reproduction.slurm import JobRequest

        partition = {"partition": self.partition} if self.partition else {}
        return JobRequest(self.time, self.mem, self.cpus, self.setup, {**partition, **self.sbatch})


@dataclass(frozen=True, kw_only=True)
class EngineRequest(Request):
    """Options of commands that run tasks."""

    engine: Literal["local", "slurm", "dask", "none"] = option(
        "local",
        "Where tasks run: processes here, jobs of Slurm, workers of dask, or nowhere (only the task file is written).",
    )
    jobs: int | None = jobs_option()
    scheduler: str = option(
        "", "Address of a dask scheduler, such as tcp://HOST:8786.", default_text="workers on this machine"
    )
    partition: str | None = option(None, "Partition of the jobs.", default_text="the site's")
    time: int | None = option(None, "Time limit of a job, in minutes.", least=1, default_text=f"{JobSettings.time}")
    mem: str | None = option(None, "Memory of a job, as Slurm writes it.", metavar="SIZE", default_text=JobSettings.mem)
    cpus: int | None = option(None, "Cores of a job.", least=1, default_text=f"{JobSettings.cpus}")
    array_limit: int | None = option(None, "Jobs that may run at once.", least=1, default_text="no limit")
    target_minutes: float | None = option(
        None,
        "Planned length of a job, in minutes: tasks are grouped by their measured times.",
        least=0.01,
        default_text=f"{JobSettings.target_minutes:g}",
    )
    retries: int | None = option(
        None, "Times that a task is submitted if its jobs are killed.", least=1, default_text=f"{JobSettings.retries}"
    )
    settle: float | None = option(
        None,
        "Seconds until a file that a node writes is visible here.",
        least=0,
        default_text=f"{JobSettings.settle:g}",
    )
    setup: tuple[str, ...] | None = option(
        None, "Line of shell that a job runs before its work, such as 'module load python'.", metavar="LINE"
    )
    sbatch: tuple[str, ...] | None = option(
        None, "Further option of sbatch, such as account=NAME.", metavar="NAME=VALUE"
    )
    detach: bool = option(False, "Submit the jobs and do not wait for them.")

    def check(self) -> None:
        """Refuse words that Slurm cannot take, and --detach without it."""
        for name, word in (("--partition", self.partition), ("--mem", self.mem)):
            if word is not None and not re.fullmatch(r"\S+", word):
                raise InputError(f"{name} is {word!r}", "it must be one word")
        if self.mem is not None and not re.fullmatch(r"[1-9]\d*[KMGT]?B?", self.mem, re.IGNORECASE):
            raise InputError(f"--mem is {self.mem}", "it must be a size such as 4G")
        _checked_options(_pairs(self.sbatch or ()))
        if self.scheduler and self.engine != "dask":
            raise InputError(f"--scheduler does not go with --engine {self.engine}", "it is for --engine dask")
        if self.detach and self.engine != "slurm":
            raise InputError(f"--detach does not go with --engine {self.engine}", "it is for --engine slurm")


def settings(table: Mapping[str, Any], flags: EngineRequest | None = None) -> JobSettings:
    """The settings of jobs, from the table of a sweep's file and from flags.

    Raises
    ------
    InputError : the table has an unknown key, or a value that Slurm cannot take.
    """
    names = JobSettings.__dataclass_fields__
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in names:
            known = [known.replace("_", "-") for known in names]
            raise InputError(f"slurm.{key}: unknown key", nearest(key, known))
        try:
            request = EngineRequest(**({} if name == "sbatch" else {name: value}))
            found[name] = _checked_options(value) if name == "sbatch" else getattr(request, name)
        except InputError as error:
            raise InputError(f"slurm.{key}: {error.problem}", error.remedy) from None
    for name in names:
        value = getattr(flags, name, None)
        if value is not None:
            found[name] = _pairs(value) if name == "sbatch" else value
    return JobSettings(**found)


def _checked_options(given: Any) -> dict[str, Any]:
    """Options of sbatch: names, and values of one line."""
    if not isinstance(given, Mapping):
        raise InputError(f"--sbatch is {given!r}", 'it must be a table such as { account = "NAME" }')
    for name, value in given.items():
        named = re.fullmatch(r"[a-z][a-z-]*", name) and isinstance(value, str | int | float)
        if not named or value is False or not str(value) or not str(value).isprintable():
            raise InputError(f"--sbatch is {name}={value}", "it must be NAME=VALUE, such as account=NAME")
    return dict(given)


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    return dict(text.removeprefix("--").partition("=")[::2] for text in given)


def engine(request: EngineRequest, job_settings: JobSettings) -> Engine:
    """The engine that runs the tasks.

    Raises
    ------
    InputError : there is no Slurm, or no dask, here.
    """
    from thesis_cli.reproduction.engines import LocalEngine, NoEngine

    if request.engine == "local":
        return LocalEngine(jobs_or_all(request.jobs), job_settings.retries)
    if request.engine == "none":
        return NoEngine()
    if request.engine == "dask":
        from thesis_cli.reproduction.dask_engine import DaskEngine

        return DaskEngine(request.scheduler, jobs_or_all(request.jobs))
    from thesis_cli.reproduction.arrays import ArrayEngine
    from thesis_cli.reproduction.slurm import Slurm

    return ArrayEngine(
        Slurm(job_settings.request),
        target_minutes=job_settings.target_minutes,
        parallel=job_settings.array_limit,
        retries=job_settings.retries,
        detach=request.detach,
        settle=job_settings.settle,
    )


def queue() -> Queue:
    """Jobs of this user; empty if there is no Slurm, or while it does not answer."""
    from thesis_cli.reproduction.slurm import queue as ask

    found = ask()
    if found is None:
        logger.warning("Slurm does not answer; which tasks run is unknown")
    return found or {}
