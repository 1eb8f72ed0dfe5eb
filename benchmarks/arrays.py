"""The array engine's bookkeeping of a million tasks: seconds of each part, and peak memory.

A sweep is written to its task file and read. A first driver submits a few tasks, then the rest, and
is killed. A second driver takes the jobs over, watches them, and finds all tasks finished.
`make bench` runs it; the number of tasks is an optional argument.

Nothing is computed, and the cluster is simulated. This leaves out the commands of a batch system
(a second or so each, for any number of jobs), and the reading of results (`sweep.py`).
"""

import resource
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from thesis_cli.reproduction import arrays
from thesis_cli.reproduction.arrays import ArrayEngine
from thesis_cli.reproduction.runner import complete
from thesis_cli.reproduction.sweep_file import read_sweep
from thesis_cli.reproduction.tasks import TaskFile

TASKS = 1_000_000
SECONDS = 20.0
"""Seconds of a task: thirty tasks make a job."""
LOOKS = 10
"""Looks at the queue, from the first result to the last."""
SWEEP = """
command = "spin-glass"
seeds = {seeds}
[options]
size = "10x10"
field = 1
samples = 1000
alpha = [0, -0.5]
[grid]
kind = ["attractive", "mixed"]
coupling = {{ from = 0.5, to = 5, count = 100 }}
"""


class Killed(BaseException):
    """A driver is killed."""


@dataclass(frozen=True)
class Work:
    """Work of tasks that never run."""

    version: int = 1

    def code(self, task):
        return "code"


class Tasks(TaskFile):
    """Tasks of which the first `done`, and those at the places `pilot`, are finished."""

    done, pilot = 0, ()

    def finished(self):
        self.store.look()
        for i in range(self.done):
            self.store.results.setdefault(self.keys[i], self.store.results[self.keys[self.pilot[0]]])
        return self.store.results.keys()

    def failed(self):
        return set()


@dataclass
class Cluster:
    """Jobs in memory: the first few end at the next look, the others gradually once `going`."""

    tasks: Tasks | None = None
    most_jobs: int = 1001
    going: bool = False
    looks: int = 0
    arrays: dict = field(default_factory=dict)

    def submit(self, array, work):
        self.arrays[array.name] = array
        return str(len(self.arrays))

    def queue(self):
        tasks = self.tasks
        if self.arrays and not tasks.pilot:  # the pilot has ended
            (array,) = self.arrays.values()
            tasks.pilot = [i for group in array.groups for i in group]
            for task in tasks.some(tasks.pilot):
                task.save("x\n1\n", "code", SECONDS)
            self.arrays.clear()
        if self.going:
            self.looks += 1
            tasks.done = min(len(tasks), len(tasks) * self.looks // LOOKS)
        if tasks.done == len(tasks):
            self.arrays.clear()
        return {name: dict.fromkeys(range(len(array.groups)), "RUNNING") for name, array in self.arrays.items()}


@contextmanager
def part(name):
    began = time.perf_counter()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:<46} {time.perf_counter() - began:6.1f} s {peak:7.0f} MB at most", flush=True)


def drive(tasks, cluster):
    cluster.tasks = tasks
    engine = ArrayEngine(cluster, settle=0, longest_pause=0)
    return complete(tasks, engine, refresh=False, bar=lambda total, name: nullcontext(lambda n: None), name="sweep")


def main():
    count = int(sys.argv[1]) if sys.argv[1:] else TASKS
    cluster = Cluster()

    def sleep(seconds):
        if cluster.tasks.pilot and cluster.arrays and not cluster.going:
            raise Killed

    arrays.time = type("Clock", (), {"sleep": staticmethod(sleep), "monotonic": staticmethod(time.monotonic)})
    with TemporaryDirectory() as folder, part(f"{count:,} tasks in all"):
        sweep = Path(folder, "sweep.toml")
        sweep.write_text(SWEEP.format(seeds=count // 200))
        file = Path(folder, "run", "tasks.json")
        with part("task file written"):
            tasks = Tasks.write(file, read_sweep(sweep).entries(), Work())
        with part("first driver: submits a few, then all"):
            try:
                drive(tasks, cluster)
            except Killed:
                pilot = tasks.pilot
        del tasks, cluster.tasks
        with part("task file read"):
            Tasks(file, Work())
        with part("task file written again, and compared"):
            tasks = Tasks.write(file, read_sweep(sweep).entries(), Work())
        tasks.pilot, cluster.going = pilot, True
        with part(f"second driver: takes over, looks {LOOKS} times"):
            outcome = drive(tasks, cluster)
        assert (outcome.computed, outcome.kept, outcome.errors) == (len(tasks) - len(pilot), len(pilot), [])
        print(f"{'of the task file':<46} {file.stat().st_size / 2**20:14.0f} MB")


if __name__ == "__main__":
    main()
