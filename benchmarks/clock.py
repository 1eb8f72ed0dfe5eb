"""Wall-clock times of calls, which several benchmarks print."""

import time


def timed(function):
    """Result and seconds of one call."""
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def least_seconds(function, repeats):
    """Least seconds of some calls, after one that compiles and warms."""
    function()
    return min(timed(function)[1] for _ in range(repeats))
