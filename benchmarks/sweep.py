"""A sweep of many trivial tasks: CPU seconds with child processes, peak memory, and files.

The sweep runs, half of its results are removed, it is resumed, and it is run when all is done. Each
table must have the same bytes. Arguments: number of tasks (100,000), engine (`local` or `dask`), and
how many times a worker is killed (0).
"""

import os
import resource
import shutil
import signal
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


def kill_workers(driver, times, ended):
    """Kill a worker of the driver, the one that has worked most, every few seconds."""
    command = ["ps", "--ppid", str(driver), "-o", "pid=,cputimes=,args="]
    while times and not ended.wait(3):
        shown = subprocess.run(command, capture_output=True, text=True)
        workers = [line.split(None, 2) for line in shown.stdout.splitlines() if "spawn_main" in line or "loky" in line]
        if workers := [w for w in workers if "resource_tracker" not in w[2] and int(w[1]) > 2]:
            os.kill(int(max(workers, key=lambda w: int(w[1]))[0]), signal.SIGKILL)
            times -= 1


def run(folder, name, engine, kills=0):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, ended = time.perf_counter(), threading.Event()
    words = [sys.executable, "-m", "thesis_cli", "sweep", "sweep.toml", "--jobs", "2", "--engine", engine, "--quiet"]
    driver = subprocess.Popen(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    killer = threading.Thread(target=kill_workers, args=(driver.pid, kills, ended))
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


main()
