"""A sweep of many trivial tasks: CPU seconds with child processes, peak memory, and files.

The sweep runs, half of its results are removed, it is resumed, and it is run when all is done. Each
table must have the same bytes, those of the engine `local` for another one. Arguments: number of
tasks (100,000), engine (`local`, `dask` or `slurm`), and how many times a worker or job is killed (0).
"""

import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SWEEP = """
command = "race"
seeds = {seeds}
out = "table.csv"
[options]
factors = "factors-5x2000.npy"
samples = 10
"""


def workers(engine, driver):
    """Processes or jobs at work, those that have worked for seconds; each as a command that kills it."""
    if engine == "slurm":
        jobs = subprocess.check_output(["squeue", "--me", "--noheader", "--states=R", "--format=%i"], text=True)
        return [["scancel", "--signal=KILL", job] for job in jobs.split()]
    command = ["ps", "--ppid", str(driver), "-o", "pid=,cputimes=,args="]
    rows = [line.split(None, 2) for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    busy = [(pid, words) for pid, seconds, words in rows if int(seconds) > 4]  # older than their start
    return [["kill", "-9", pid] for pid, words in busy if "spawn_main" in words or "LokyProcess" in words]


def kill_workers(engine, driver, times, ended):
    """Kill a worker at random, every few seconds."""
    while times and not ended.wait(random.uniform(1, 3)):
        if found := workers(engine, driver):
            subprocess.run(random.choice(found))
            times -= 1


def run(folder, name, engine, kills=0):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, ended = time.perf_counter(), threading.Event()
    words = [sys.executable, "-m", "thesis_cli", "sweep", "sweep.toml", "--jobs", "2", "--engine", engine, "--quiet"]
    words += ["--settle", "2", "--mem", "1G", "--target-minutes", "0.1"] * (engine == "slurm")
    driver = subprocess.Popen(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    killer = threading.Thread(target=kill_workers, args=(engine, driver.pid, kills, ended))
    killer.start()
    _, status, own = os.wait4(driver.pid, 0)
    ended.set()
    killer.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    files = sum(len(names) for *_, names in os.walk(folder / "table"))
    print(
        f"{name:<22} {cpu:6.1f} s of CPU {time.perf_counter() - began:6.1f} s {own.ru_maxrss / 1024:5.0f} MB at most"
        f" {files:4} files, status {status}",
        flush=True,
    )
    return (folder / "table.csv").read_bytes()


def main():
    tasks, engine, kills = [*sys.argv[1:], *("100000", "local", "0")[len(sys.argv) - 1 :]]
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "data/models/factors-5x2000.npy", folder)
        (folder / "sweep.toml").write_text(SWEEP.format(seeds=tasks))
        table = run(folder, f"all {int(tasks):,}", engine, int(kills))
        for segment in sorted((folder / "table/segments").iterdir()):
            os.truncate(segment, segment.stat().st_size // 2)
        assert run(folder, "half are there", engine) == table
        assert run(folder, "all are there", engine) == table
        if engine != "local":
            shutil.rmtree(folder / "table")
            assert run(folder, "all, by local", "local") == table


main()
