"""A Slurm of one node with four cores, the tests' own, for as long as the session lasts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Slurm:
    """A cluster with files and logs in `folder`; partitions `debug` and `short` (one minute)."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to talk to this cluster; the session's own environment has it."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: object) -> str:
        """The output of a command such as `sbatch`; raises CalledProcessError where it fails."""
        return subprocess.run(
            [str(a) for a in command], env=self.environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def squeue(self) -> list[tuple[str, str]]:
        """Jobs that are not done, as (`JOB` or `JOB_INDEX`, state in capitals)."""
        rows = self.run("squeue", "--me", "--noheader", "--array", "--format=%i|%T").splitlines()
        return [(job, state) for job, state in (row.split("|") for row in rows)]

    def wait(self, job: str | int, seconds: float = 60) -> None:
        """Until no element of the job is in the queue; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while any(name.split("_")[0] == str(job) for name, _ in self.squeue()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"job {job} is still in the queue: {self.squeue()}")
            time.sleep(0.1)

    def restart_controller(self, kill: signal.Signals = signal.SIGKILL) -> None:
        """Kill slurmctld and start it again.

        It saves its queue at most every five seconds. After SIGKILL, later changes are lost: a job
        that was submitted is gone, one that was started may be held. After SIGTERM they are kept.
        """
        process = int((self.folder / "slurmctld.pid").read_text())
        os.kill(process, kill)
        while Path(f"/proc/{process}/cmdline").exists() and Path(f"/proc/{process}/cmdline").read_bytes():
            time.sleep(0.05)
        start(self.folder)


def start(folder: Path) -> None:
    done = subprocess.run(["bash", HERE / "start.sh", folder], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.removesuffix("\n"))


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    for program in ("sbatch", "slurmctld", "slurmd", "munged"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"no Slurm here: {program} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # paths of sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SLURM", "SBATCH", "SQUEUE"))]:
            patch.delenv(name)  # of a job that the tests may run in
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            try:
                start(folder)
            except RuntimeError as error:
                pytest.skip(f"no Slurm here: {error}")
            yield Slurm(folder)
        finally:
            subprocess.run(["bash", HERE / "stop.sh", folder], check=False)
            shutil.rmtree(folder, ignore_errors=True)
