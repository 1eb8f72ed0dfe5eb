"""The engine on a real Slurm of one node: the bytes of a local run, whatever is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reproduction.test_runner import SOURCE
from tests.slurm.conftest import Slurm
from tests.slurm.test_start import until
from thesis_cli.reproduction.tasks import Store

pytest.importorskip("submitit")
pytestmark = pytest.mark.integration

SECONDS = 100.0
"""That a run may take before it is taken for stuck."""
TOY = SOURCE.replace(
    "    time.sleep(pause)\n",
    "    (HERE / f'begun-{k}').write_text(str(os.getpid()))\n"
    "    while (HERE / f'hold-{k}').exists():\n"
    "        time.sleep(0.05)\n",
)
SWEEP = """
command = "spin-glass"
[options]
size = "4x4"
samples = 20
[grid]
coupling = [0.5, 1]
"""


@dataclass
class Checkout:
    """A folder with the toy experiment, whose task k waits while there is a file `hold-k`."""

    root: Path
    drivers: list[subprocess.Popen[bytes]]

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "thesis_cli", *map(str, arguments)]

    def drive(self, *options: object) -> subprocess.Popen[bytes]:
        """A driver of the toy on Slurm, in the background."""
        with open(self.root / "said", "ab") as said:
            process = subprocess.Popen(
                self.command("reproduce", "--engine", "slurm", "--settle", 3, "--mem", "1G", *options),
                cwd=self.root,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
        self.drivers.append(process)
        return process

    def done(self, process: subprocess.Popen[bytes]) -> None:
        assert process.wait(SECONDS) == 0, self.said

    @property
    def said(self) -> str:
        return (self.root / "said").read_text()

    def hold(self, *tasks: int) -> None:
        for k in tasks:
            (self.root / "experiments" / f"hold-{k}").touch()

    def release(self) -> None:
        for file in (self.root / "experiments").glob("hold-*"):
            file.unlink()

    def begun(self, *tasks: int) -> list[int]:
        """Processes of tasks, as soon as all are at work."""
        files = [self.root / "experiments" / f"begun-{k}" for k in tasks]
        until(lambda: all(file.exists() and file.read_text() for file in files), SECONDS)
        return [int(file.read_text()) for file in files]

    @property
    def runs(self) -> list[int]:
        """Tasks that were carried out, as often as they were."""
        return sorted(map(int, (self.root / "experiments" / "runs").read_text().split()))

    @property
    def table(self) -> bytes:
        return (self.root / "results" / "quick" / "toy.csv").read_bytes()


def make(root: Path) -> Checkout:
    (root / "thesis_cli").mkdir(parents=True)
    (root / "experiments").mkdir()
    (root / "experiments" / "toy.py").write_text(TOY)
    return Checkout(root, [])


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Where the toy was run without Slurm."""
    checkout = make(tmp_path_factory.mktemp("local"))
    subprocess.run(checkout.command("reproduce", "--jobs", 1, "--quiet"), cwd=checkout.root, check=True)
    return checkout


@pytest.fixture
def checkout(slurm: Slurm, tmp_path: Path) -> Iterator[Checkout]:
    checkout = make(tmp_path)
    yield checkout
    for driver in checkout.drivers:
        driver.kill()
        driver.wait()
    checkout.release()
    slurm.run("scancel", "--me")
    until(lambda: slurm.squeue() == [])


def one_job(checkout: Checkout, local: Checkout) -> None:
    """Give it the result of task 3, whose time puts all others into one job."""
    store = Path("results", ".store", "toy")
    records = "".join(file.read_text() for file in (local.root / store).glob("segments/*"))
    (record,) = [text for text in records.split("\n# ") if '"k": 3' in text]
    copy = checkout.root / store / "segments/3"
    copy.parent.mkdir(parents=True)
    copy.write_text(f"# {record}")


def jobs(slurm: Slurm) -> list[str]:
    return [job for job, state in slurm.squeue() if state == "RUNNING"]


def test_an_array_gives_the_bytes_of_a_local_run(checkout: Checkout, local: Checkout) -> None:
    checkout.done(checkout.drive())
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2, 3]
    assert "4 tasks submitted in 4 jobs" in checkout.said
    assert not list((checkout.root / "results" / ".store" / "toy").glob("*.jobs/*"))


@pytest.mark.long
def test_a_job_that_is_cancelled_and_one_that_is_killed_are_replaced(
    slurm: Slurm, checkout: Checkout, local: Checkout
) -> None:
    checkout.hold(1, 2)
    driver = checkout.drive()
    cancelled, killed = checkout.begun(1, 2)
    (job,) = [job for job in jobs(slurm) if job.endswith("_1")]
    slurm.run("scancel", job)
    os.kill(killed, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{cancelled}") and not os.path.exists(f"/proc/{killed}"))
    checkout.release()
    checkout.done(driver)
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2, 3]
    assert "2 tasks submitted in 1 job" in checkout.said or checkout.said.count("1 task submitted in 1 job") == 2


def test_a_driver_that_is_killed_is_followed_by_another(slurm: Slurm, checkout: Checkout, local: Checkout) -> None:
    checkout.hold(0, 1, 2, 3)
    driver = checkout.drive()
    before = checkout.begun(0, 1, 2, 3)
    driver.kill()
    driver.wait()
    driver = checkout.drive()
    until(lambda: "4 jobs of an earlier run taken over" in checkout.said)
    checkout.release()
    checkout.done(driver)
    assert checkout.begun(0, 1, 2, 3) == before
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2, 3]


def test_a_driver_that_is_killed_while_it_submits_leaves_no_jobs_that_wait(
    slurm: Slurm, checkout: Checkout, local: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without files that the driver was to write, a job of submitit waits for a minute and fails."""
    with monkeypatch.context() as patch:
        script = f'#!/bin/sh\n{shutil.which("sbatch")} "$@"\nkill -9 $PPID\n'
        (checkout.root / "sbatch").write_text(script)
        (checkout.root / "sbatch").chmod(0o755)
        patch.setenv("PATH", f"{checkout.root}:{os.environ['PATH']}")
        assert checkout.drive().wait(SECONDS) == -signal.SIGKILL
    assert slurm.squeue()
    checkout.done(checkout.drive())
    assert "taken over" not in checkout.said
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2, 3]


SAVED = 7
"""Seconds after which the controller has saved the jobs that began: it does so every five."""


@pytest.mark.long
@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_a_controller_that_is_restarted_costs_nothing(
    slurm: Slurm, checkout: Checkout, local: Checkout, kill: signal.Signals
) -> None:
    checkout.hold(0, 1, 2, 3)
    driver = checkout.drive()
    checkout.begun(0, 1, 2, 3)
    if kill == signal.SIGKILL:
        time.sleep(SAVED)
    slurm.restart_controller(kill)
    checkout.release()

    def repaired() -> bool:
        """Whether the driver has ended; resumes the node, which a restarted controller drains."""
        if "drain" in slurm.run("sinfo", "--noheader", "--format=%T"):
            slurm.run("scontrol", "update", "NodeName=localhost", "State=RESUME")
        return driver.poll() is not None

    until(repaired, SECONDS)
    checkout.done(driver)
    assert checkout.table == local.table
    assert set(checkout.runs) == {0, 1, 2, 3}


@pytest.mark.long
def test_a_job_that_makes_room_goes_on_later(slurm: Slurm, checkout: Checkout, local: Checkout) -> None:
    one_job(checkout, local)
    checkout.hold(1)
    driver = checkout.drive()
    (process,) = checkout.begun(1)
    assert checkout.runs == [0]
    (job,) = jobs(slurm)
    slurm.run("scancel", "--signal=USR2", job)
    until(lambda: not os.path.exists(f"/proc/{process}"))
    checkout.release()
    checkout.done(driver)
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2]
    assert checkout.said.count("submitted") == 1
    assert checkout.begun(0, 1)[0] == process != checkout.begun(1)[0]
    store = Store(checkout.root / "results" / ".store" / "toy")
    store.look()
    assert not store.errors


@pytest.mark.long
def test_a_job_that_is_preempted_in_its_first_task_continues(slurm: Slurm, checkout: Checkout, local: Checkout) -> None:
    checkout.hold(1)
    driver = checkout.drive()
    (process,) = checkout.begun(1)
    (job,) = [job for job in jobs(slurm) if job.endswith("_1")]
    slurm.run("scancel", "--signal=USR2", job)
    until(lambda: slurm.run("squeue", "--me", "--noheader").count("\n") == 1)
    assert os.path.exists(f"/proc/{process}")
    checkout.release()
    checkout.done(driver)
    assert checkout.table == local.table
    assert checkout.runs == [0, 1, 2, 3]
    assert checkout.begun(1) == [process]


def test_a_sweep_is_submitted_watched_and_collected(slurm: Slurm, checkout: Checkout) -> None:
    (checkout.root / "glasses.toml").write_text(SWEEP)
    run: Callable[..., subprocess.CompletedProcess[str]] = lambda *arguments: subprocess.run(  # noqa: E731
        checkout.command(*arguments), cwd=checkout.root, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    submit = ("sweep", "glasses.toml", "--engine", "slurm", "--settle", 3, "--mem", "1G")
    for _ in range(2):  # of which the second finds all in the queue
        found = run(*submit, "--detach")
        assert (found.returncode, "2 without result" in found.stdout) == (0, True), found.stderr
    assert len({job.split("_")[0] for job, _ in slurm.squeue()}) == 1
    assert run("status", "glasses.toml").stdout.splitlines()[1].split()[:2] == ["glasses", "2"]
    found = run(*submit)
    assert found.returncode == 0, found.stderr
    table = checkout.root / "results" / "runs" / "glasses.csv"
    assert run("sweep", "glasses.toml", "--jobs", 1, "--out", "local.csv").returncode == 0
    assert table.read_bytes() == (checkout.root / "local.csv").read_bytes()
    assert run("collect", "glasses.toml").returncode == 0
