"""Slurm, through submitit: arrays of jobs, and what the queue says of them."""

from __future__ import annotations

import logging
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.arrays import HELD, STUCK, Array, Queue, Refused
from thesis_cli.reproduction.task_file import Work, read_tasks
from thesis_cli.reproduction.worker import run_task

logger = logging.getLogger(__name__)

LINES = 12
"""Of a job's output that an error quotes."""
MOST_JOBS = 1001
"""That an array may have where the site says nothing: Slurm's own default."""
SLURMS_WORD = " CANCELLED AT "
"""In the line of a job's output that tells why Slurm ended it."""
PATIENCE = 60
"""Seconds that a command of Slurm may take."""


@dataclass(frozen=True)
class JobRequest:
    """What a job asks for.

    Attributes
    ----------
    minutes : limit on its time.
    memory : of its own, as Slurm writes it.
    cores : of its own.
    setup : lines of shell before the work.
    sbatch : further options of sbatch by their long names.
    """

    minutes: int = 30
    memory: str = "4G"
    cores: int = 1
    setup: Sequence[str] = ()
    sbatch: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Those of sbatch, by their long names."""
        return {
            "time": self.minutes,
            "mem": self.memory,
            "nodes": 1,
            "ntasks": 1,
            "cpus-per-task": self.cores,
            **self.sbatch,
        }

    def line(self, jobs: int, parallel: int) -> str:
        """The command that submits an array, as one would type it."""
        options = " ".join(f"--{name}={value}" for name, value in self.options().items())
        return f"sbatch --array=0-{jobs - 1}{f'%{parallel}' if parallel else ''} {options}"


class Slurm:
    """The batch system Slurm, as this user on this host sees it.

    Parameters
    ----------
    request : what every job asks for.

    Raises
    ------
    InputError : something that is needed is not here.
    """

    def __init__(self, request: JobRequest) -> None:
        lacking = [name for name in ("sbatch", "squeue", "srun", "scontrol") if shutil.which(name) is None]
        if lacking:
            raise InputError(
                f"no Slurm on this host ({', '.join(lacking)} not found)",
                "log in where jobs are submitted, or load its module",
            )
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise InputError("submitit is not installed", "pip install 'thesis-cli[cluster]'") from None
        self.request = request
        self._most: int | None = None

    @property
    def most_jobs(self) -> int:
        """Jobs that an array may have, by the site's settings."""
        if self._most is None:
            settings = _ask("scontrol", "show", "config")
            if settings is None:
                return MOST_JOBS
            lines = dict(line.replace(" ", "").split("=", 1) for line in settings.splitlines() if "=" in line)
            self._most = max(1, int(lines.get("MaxArraySize", MOST_JOBS)))
        return self._most

    def submit(self, array: Array, work: Work) -> str:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError

        executor = SlurmExecutor(folder=array.folder, max_num_timeout=10**6)
        options = self.request.options()
        executor.update_parameters(
            job_name=array.name,
            time=options.pop("time"),
            additional_parameters=options,
            array_parallelism=array.parallel or len(array.groups),
            setup=[
                *map(_or_end, self.request.setup),
                *(f"export {name}_NUM_THREADS={self.request.cores}" for name in THREADS),
            ],
            signal_delay_s=min(90, 15 * self.request.minutes),
            stderr_to_stdout=True,
        )
        try:
            with redirect_stderr(StringIO()):  # which it prints the words of sbatch to, beside raising them
                jobs = executor.map_array(Group(array.tasks, array.results, work), array.groups)
        except FailedJobError as error:
            raise Refused("; ".join(filter(None, map(str.strip, str(error).splitlines())))) from None
        return str(jobs[0].job_id).partition("_")[0]

    def queue(self) -> Queue | None:
        return queue()

    def cancel(self, array: Array, job: int) -> None:
        _ask("scancel", _number(array, job))

    def story(self, array: Array, job: int) -> str:
        number = _number(array, job)
        state = (_ask("sacct", "-X", "-n", "-P", "-j", number, "-o", "State") or "").strip()
        ended = f" ({state})" if state else ""
        log = array.folder / f"{number}_0_log.out"
        try:
            lines = log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        if not lines:
            return f"{ended}, and said nothing"
        blamed = [
            line for line in lines if SLURMS_WORD in line
        ]  # which stands before what the job's end makes others say
        return "\n".join((f"{ended}; its last lines ({log}):", *lines[-LINES:], *blamed[:1]))


def queue() -> Queue | None:
    """This user's jobs; none where there is no Slurm, None while it does not answer."""
    if shutil.which("squeue") is None:
        return {}
    told = _ask("squeue", "--me", "--noheader", "--array", "--format=%i|%T|%j|%r")
    if told is None:
        return None
    found: dict[str, dict[int, str]] = {}
    for line in told.splitlines():
        number, state, name, reason = line.split("|", 3)
        _, _, job = number.partition("_")
        if state == "PENDING" and ("requeued held" in reason or reason == "JobHeldAdmin"):
            state = HELD
        elif reason in HOPELESS:
            state = f"{STUCK} ({reason})"
        found.setdefault(name, {})[int(job or 0)] = state
    return found


def _number(array: Array, job: int) -> str:
    """What Slurm calls a job; an array of one is none."""
    return f"{array.id()}_{job}" if len(array.groups) > 1 else array.id()


HOPELESS = (
    *("PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig"),
    *("BadConstraints", "InvalidQOS", "InvalidAccount"),
)
"""Reasons why a job waits that do not pass."""


def _or_end(line: str) -> str:
    """A line of shell without which the job is not to go on."""
    return f"{{ {line}\n}} || {{ echo {shlex.quote(f'setup failed: {line}')}; exit 1; }}"


THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
"""Libraries that start as many threads as the node has cores, whatever the job was given."""


def _ask(*command: str) -> str | None:
    """What a command says; None if it fails, as all do while their server is away."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode and command[0] == "squeue":
        _tell(done.stderr.strip().rpartition("\n")[2])
    return None if done.returncode else done.stdout


@cache
def _tell(words: str) -> None:
    """Slurm's own words, once however often it says them."""
    logger.warning("%s", words)


class Stopped(BaseException):
    """The job has been told to make room, and is queued again; no handler of exceptions is to take it for an error."""


class Group:
    """Tasks of a file, one after another in one job; those that have a result are passed over.

    Parameters
    ----------
    path : the task file.
    results : folder of results.
    work : of the file's command.
    """

    def __init__(self, path: Path, results: Path, work: Work) -> None:
        self.path, self.results, self.work = path, results, work

    def __call__(self, places: Sequence[int]) -> None:
        done, told = 0, False
        requeue = signal.getsignal(signal.SIGUSR2)

        def stop(signum: int, frame: FrameType | None) -> None:
            nonlocal told
            told = True
            if done:  # otherwise the next job would come no further than this one
                _requeue(requeue, signum, frame)

        signal.signal(signal.SIGUSR2, stop)
        try:
            for task in read_tasks(self.path, self.work, places, self.results):
                if not task.file.exists():
                    run_task(task, self.work)
                    done += 1
                    if told:
                        _requeue(requeue, signal.SIGUSR2, None)
        except Stopped:
            sys.exit(1)

    def checkpoint(self, places: Sequence[int]) -> Any:
        """What the queue is to run in this one's place, which finds what it has done."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, places)


def _requeue(handler: Any, signum: int, frame: FrameType | None) -> None:
    """Let submitit queue this job again, and end."""
    try:
        handler(signum, frame)
    except (SystemExit, Exception) as error:
        raise Stopped from error
