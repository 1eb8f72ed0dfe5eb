"""The single-node Slurm of the tests: arrays, cancelling, a restart of its controller, submitit."""

from __future__ import annotations

import pickle
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.conftest import HERE, Slurm, start

pytestmark = pytest.mark.integration


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def submit(slurm: Slurm, folder: Path, script: str) -> str:
    """An array of three, one core each; its number."""
    return slurm.run("sbatch", "--parsable", "--array=0-2", f"--output={folder}/%a.log", "--wrap", script).strip()


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("done*")}


def test_an_array_runs_each_element(slurm: Slurm, tmp_path: Path) -> None:
    job = submit(slurm, tmp_path, f"echo $SLURM_ARRAY_JOB_ID > {tmp_path}/done$SLURM_ARRAY_TASK_ID")
    slurm.wait(job)
    assert written(tmp_path) == {"done0", "done1", "done2"}
    assert (tmp_path / "done2").read_text().strip() == job


def test_elements_run_at_once_and_one_can_be_cancelled(slurm: Slurm, tmp_path: Path) -> None:
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; touch {tmp_path}/done$SLURM_ARRAY_TASK_ID"
    job = submit(slurm, tmp_path, script)
    everyone = {(f"{job}_{i}", "RUNNING") for i in range(3)}
    until(lambda: everyone <= set(slurm.squeue()))
    slurm.run("scancel", f"{job}_1")
    until(lambda: f"{job}_1" not in dict(slurm.squeue()))
    (tmp_path / "go").touch()
    slurm.wait(job)
    assert written(tmp_path) == {"done0", "done2"}


@pytest.mark.long
def test_a_restarted_controller_loses_no_job(slurm: Slurm, tmp_path: Path) -> None:
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo x >> {tmp_path}/done$SLURM_ARRAY_TASK_ID"
    first, second = submit(slurm, tmp_path, script), submit(slurm, tmp_path, script)
    until(lambda: sum(state == "RUNNING" for _, state in slurm.squeue()) == 4)
    before = sorted(slurm.squeue())
    time.sleep(7)  # for the queue to be written
    for kill in (signal.SIGKILL, signal.SIGTERM):
        slurm.restart_controller(kill)
        until(lambda: sorted(slurm.squeue()) == before)
    (tmp_path / "go").touch()
    slurm.wait(first)
    slurm.wait(second)
    assert [(tmp_path / f"done{i}").read_text() for i in range(3)] == ["x\nx\n"] * 3


def test_arrays_are_limited(slurm: Slurm) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        slurm.run("sbatch", "--array=0-40", "--wrap", "true")
    assert "Invalid job array specification" in refused.value.stderr
    with pytest.raises(subprocess.CalledProcessError):
        slurm.run("sacct")


def test_submitit_runs_an_array(slurm: Slurm, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.AutoExecutor(folder=tmp_path, cluster="slurm")
    executor.update_parameters(timeout_min=10)  # submitit has a signal sent 90 s before the end
    jobs = executor.map_array(pow, [2, 3, 4], [5, 5, 5])
    slurm.wait(jobs[0].job_id.split("_")[0])
    for job in jobs:
        assert job.paths.result_pickle.exists(), job.stderr()
    outcomes = [pickle.loads(job.paths.result_pickle.read_bytes()) for job in jobs]
    assert outcomes == [("success", 32), ("success", 243), ("success", 1024)]


def test_a_second_start_changes_nothing(slurm: Slurm) -> None:
    before = {path: path.read_text() for path in slurm.folder.glob("*.pid")}
    assert len(before) == 3
    start(slurm.folder)
    assert {path: path.read_text() for path in slurm.folder.glob("*.pid")} == before


def named(folder: Path) -> list[str]:
    """The processes whose command line names the folder."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if f"{folder}/" in line]


@pytest.mark.long
def test_a_stop_ends_its_own_cluster_alone(slurm: Slurm) -> None:
    with tempfile.TemporaryDirectory(prefix="slurm", dir="/tmp") as name:
        other = Slurm(Path(name))
        stop = ["bash", str(HERE / "stop.sh"), name]
        try:
            start(other.folder)
            script = f"setsid tail -f {name}/munged.log & tail -f {name}/slurmd.log"
            other.run("sbatch", f"--output={name}/job.log", "--wrap", script)
            until(lambda: sum(line.startswith("tail") for line in named(other.folder)) == 2)
            subprocess.run(stop, check=True)
            assert named(other.folder) == []
            assert slurm.squeue() == []
        finally:
            subprocess.run(stop, check=False)


@pytest.mark.parametrize("folder", ["/dev/null/slurm", f"/tmp/{'x' * 60}"])
def test_a_start_that_fails_prints_one_line(slurm: Slurm, folder: str) -> None:
    try:
        with pytest.raises(RuntimeError, match=r"^error: Slurm cannot start here: .*$"):
            start(Path(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
