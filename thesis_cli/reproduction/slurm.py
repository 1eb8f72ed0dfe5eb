"""Slurm, through submitit: submit arrays of jobs, and read the queue."""

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
from thesis_cli.base.modules import extra
from thesis_cli.reproduction.arrays import HELD, STUCK, Array, Queue, Refused
from thesis_cli.reproduction.engines import run_task
from thesis_cli.reproduction.tasks import Store, Work, read_tasks

logger = logging.getLogger(__name__)

LINES = 12
"""Number of lines of a job's output that an error quotes."""
MOST_JOBS = 1001
"""Largest number of jobs in an array if the site sets none: the default of Slurm."""
CANCELLED = " CANCELLED AT "
"""Words in the line of a job's output in which Slurm explains why it ended the job."""
PATIENCE = 60
"""Largest number of seconds that a command of Slurm may take."""


@dataclass(frozen=True)
class JobRequest:
    """Resources that a job requests of Slurm.

    Attributes
    ----------
    minutes : time limit.
    memory : memory, as Slurm writes it.
    cores : number of cores.
    setup : lines of shell before the work.
    sbatch : further options of sbatch by their long names.
    """

    minutes: int = 30
    memory: str = "4G"
    cores: int = 1
    setup: Sequence[str] = ()
    sbatch: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """All options of sbatch, by their long names."""
        return {
            "time": self.minutes,
            "mem": self.memory,
            "nodes": 1,
            "ntasks": 1,
            "cpus-per-task": self.cores,
            **self.sbatch,
        }

    def line(self, jobs: int, parallel: int) -> str:
        """The command line that submits an array."""
        options = " ".join(f"--{name}={value}" for name, value in self.options().items())
        return f"sbatch --array=0-{jobs - 1}{f'%{parallel}' if parallel else ''} {options}"


class Slurm:
    """The batch system Slurm.

    Parameters
    ----------
    request : resources that every job requests.

    Raises
    ------
    InputError : this host has no Slurm, or submitit is not installed.
    """

    def __init__(self, request: JobRequest) -> None:
        lacking = [name for name in ("sbatch", "squeue", "srun", "scontrol") if shutil.which(name) is None]
        if lacking:
            raise InputError(
                f"no Slurm on this host ({', '.join(lacking)} not found)",
                "log in where jobs are submitted, or load its module",
            )
        extra("submitit")
        self.request = request
        self._most: int | None = None

    @property
    def most_jobs(self) -> int:
        """Largest number of jobs in an array, by the site's settings."""
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
            with redirect_stderr(StringIO()):  # submitit prints the message beside raising it
                jobs = executor.map_array(JobTasks(array.tasks, array.results, work), array.groups)
        except FailedJobError as error:
            raise Refused("; ".join(filter(None, map(str.strip, str(error).splitlines())))) from None
        return str(jobs[0].job_id).partition("_")[0]

    def queue(self) -> Queue | None:
        return queue()

    def cancel(self, array: Array, job: int) -> None:
        _ask("scancel", *([_number(array, job)] if array.id() else ["--me", f"--name={array.name}"]))

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
            return f"{ended}, without any output"
        reasons = [line for line in lines if CANCELLED in line]  # other messages may follow it
        return "\n".join((f"{ended}; its last lines ({log}):", *lines[-LINES:], *reasons[:1]))


def queue() -> Queue | None:
    """Jobs of this user; empty if there is no Slurm, None while it does not answer."""
    if shutil.which("squeue") is None:
        return {}
    answer = _ask("squeue", "--me", "--noheader", "--array", "--format=%i|%T|%j|%r")
    if answer is None:
        return None
    found: dict[str, dict[int, str]] = {}
    for line in answer.splitlines():
        number, state, name, reason = line.split("|", 3)
        _, _, job = number.partition("_")
        if state == "PENDING" and ("requeued held" in reason or reason == "JobHeldAdmin"):
            state = HELD
        elif reason in HOPELESS:
            state = f"{STUCK} ({reason})"
        found.setdefault(name, {})[int(job or 0)] = state
    return found


def _number(array: Array, job: int) -> str:
    """Slurm's id of a job; an array of one job has no numbers."""
    return f"{array.id()}_{job}" if len(array.groups) > 1 else array.id()


HOPELESS = (
    *("PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig"),
    *("BadConstraints", "InvalidQOS", "InvalidAccount"),
)
"""Reasons to wait that never end."""


def _or_end(line: str) -> str:
    """A line of shell that ends the job if it fails."""
    return f"{{ {line}\n}} || {{ echo {shlex.quote(f'setup failed: {line}')}; exit 1; }}"


THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
"""Libraries that start a thread for each core of the node unless a variable limits them."""


def _ask(*command: str) -> str | None:
    """Output of a command; None if it fails, as it does while Slurm's server is down."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode and command[0] == "squeue":
        _warn(done.stderr.strip().rpartition("\n")[2])
    return None if done.returncode else done.stdout


@cache
def _warn(message: str) -> None:
    """Log a message of Slurm, once."""
    logger.warning("%s", message)


class Stopped(BaseException):
    """The job is preempted and queued again. No handler of errors may catch this."""


class JobTasks:
    """The tasks of one job, run one after another; those with a result are skipped.

    Parameters
    ----------
    path : the task file.
    results : folder of the store.
    work : carries out the tasks of the file's command.
    """

    def __init__(self, path: Path, results: Path, work: Work) -> None:
        self.path, self.results, self.work = path, results, work

    def __call__(self, places: Sequence[int]) -> None:
        done, preempted = 0, False
        requeue = signal.getsignal(signal.SIGUSR2)

        def stop(signum: int, frame: FrameType | None) -> None:
            nonlocal preempted
            preempted = True
            if done:  # otherwise the next job would get no further than this one
                _requeue(requeue, signum, frame)

        signal.signal(signal.SIGUSR2, stop)
        try:
            store = Store(self.results)
            store.look()
            for task in read_tasks(self.path, self.work, places, self.results):
                if task.key not in store.results:
                    run_task(task, self.work)
                    done += 1
                    if preempted:
                        _requeue(requeue, signal.SIGUSR2, None)
        except Stopped:
            sys.exit(1)

    def checkpoint(self, places: Sequence[int]) -> Any:
        """The job that continues after this one; it skips the finished tasks."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, places)


def _requeue(handler: Any, signum: int, frame: FrameType | None) -> None:
    """Let submitit queue this job again, and end it."""
    try:
        handler(signum, frame)
    except (SystemExit, Exception) as error:
        raise Stopped from error
