"""`exact_files.py FOLDER GIB`: all networks of a folder in the UAI format, with their published answers, on one core.

Beside `NAME.uai` stand its evidence, `NAME.evid` or `NAME.uai.evid`, and answers in the format of the
competition: `NAME.PR` or `NAME.uai.PR`, and so on for MAR and MPE. Each task with an answer runs at each limit
of time until it is solved, in a process of its own that holds one core.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from thesis_cli.models.files import load_model

LIMITS = (1, 5, 20, 60)
"""Seconds, those of the command, without its start."""

GRACE = 30
"""Seconds for start, compilation and reading, after which the process is killed."""

CLOSE = {"PR": 1e-5, "MAR": 1e-4}
"""Error up to which log10 Z and a probability agree with those published, which have few digits."""

COMMANDS = {"PR": "estimate-z", "MAR": "marginals", "MPE": "map"}


def beside(model, suffix):
    """The file of a model with a suffix, or None."""
    found = [path for path in (model.with_suffix(suffix), Path(f"{model}{suffix}")) if path.exists()]
    return found[0] if found else None


def words_of(path):
    """Numbers of the last solution in a result file, which may say how many samples of evidence it has."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    return [float(word) for word in lines[-1]]


def tables_of(words):
    """Marginals of a MAR file."""
    found, at = [], 1
    for _ in range(int(words[0])):
        size = int(words[at])
        found.append(np.array(words[at + 1 : at + 1 + size]))
        at += 1 + size
    return found


def attempt(task, model, evidence, limit, memory, folder):
    """Record of the command, empty if it has no answer, the answer's file, and the peak of memory in bytes."""
    answer = Path(folder, f"answer.{task}")
    answer.unlink(missing_ok=True)
    options = ["--evidence", str(evidence)] * (evidence is not None) + ["--memory", str(memory)]
    if task != "MAR":
        options += ["--time-limit", str(limit)]
    if task == "PR":
        options += ["--jobs", "1", "--seed", "1"]
    command = [sys.executable, "-m", "thesis_cli", COMMANDS[task], str(model), *options]
    command += ["--uai", str(answer), "--json", "--no-out"]
    with open(Path(folder, "out"), "w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, process_group=0)
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
        end = threading.Timer(limit + GRACE, os.killpg, (process.pid, signal.SIGKILL))
        end.start()
        _, status, usage = os.wait4(process.pid, 0)
        end.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    return json.loads(text) if process.returncode == 0 else {}, answer, 1024 * usage.ru_maxrss


def verdict(task, model, record, answer, published, limit):
    """`solved`, `wrong`, `worse` or `better` (MPE), or `open`."""
    if not record or record["seconds"] > limit + 1:
        return "open"
    if task == "PR":
        if record["estimates"][0]["kind"] != "exact":
            return "open"
        own, other = (words_of(path)[0] for path in (answer, published))
        return "solved" if own == other or abs(own - other) <= CLOSE["PR"] * max(1.0, abs(other)) else "wrong"
    if task == "MAR":
        pairs = zip(tables_of(words_of(answer)), tables_of(words_of(published)), strict=True)
        return "solved" if all(np.abs(own - other).max() <= CLOSE["MAR"] for own, other in pairs) else "wrong"
    graph = load_model(model)
    own, other = (graph.log_potential(np.array([words_of(path)[1:]], np.int64))[0] for path in (answer, published))
    if abs(own - other) <= 1e-6 * max(1.0, abs(other)):
        return "solved"
    if own > other:
        return "better"
    return "wrong" if record["guarantee"] == "exact" else "worse"


def folder_rows(folder, memory, limits=LIMITS):
    """A row for each network and task with an answer: name, task, verdict, limit, seconds, peak."""
    for model in sorted(Path(folder).glob("*.uai")):
        evidence = beside(model, ".evid")
        for task in COMMANDS:
            published = beside(model, f".{task}")
            if published is None:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                for limit in limits:
                    record, answer, peak = attempt(task, model, evidence, limit, memory, scratch)
                    found = verdict(task, model, record, answer, published, limit)
                    if found != "open" and found != "worse":
                        break
            yield model.stem, task, found, limit, record.get("seconds", math.nan), peak


def by_folder(folder, memory):
    """Print a row for each task, and how many were solved within each limit."""
    rows = []
    for row in folder_rows(folder, memory):
        rows.append(row)
        name, task, found, limit, seconds, peak = row
        print(f"{name:30} {task:4} {found:7} at {limit:3} s  {seconds:8.3f} s  {peak / 2**20:8.1f} MiB", flush=True)
    for task in COMMANDS:
        own = [row for row in rows if row[1] == task]
        if own:
            good = [sum(row[2] in ("solved", "better") and row[3] <= limit for row in own) for limit in LIMITS]
            solved = ", ".join(f"{count} at {limit} s" for count, limit in zip(good, LIMITS, strict=True))
            worst = max(row[5] for row in own) / 2**20
            wrong = sum(row[2] == "wrong" for row in own)
            print(f"{task}: of {len(own)} solved {solved}; wrong {wrong}; largest peak {worst:.0f} MiB")


if __name__ == "__main__":
    by_folder(sys.argv[1], float(sys.argv[2]))
