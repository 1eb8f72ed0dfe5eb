"""Wall-clock times of calls and CPU times of processes, which several benchmarks print."""

import os
import time
from pathlib import Path


def timed(function):
    """Result and seconds of one call."""
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def least_seconds(function, repeats):
    """Least seconds of some calls, after one that compiles and warms."""
    function()
    return min(timed(function)[1] for _ in range(repeats))


def cpu_seconds():
    """CPU seconds of this process and of its children, also of those that run (on Linux)."""
    children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split()
    stats = [Path("/proc", child, "stat").read_text().rpartition(")")[2].split() for child in children]
    running = sum(int(ticks) for stat in stats for ticks in stat[11:15]) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + sum(os.times()[2:4]) + running
