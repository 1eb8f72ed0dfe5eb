"""What the processes of `test_pool.py` do: a file of its own, since each of them imports it."""

import os
import signal
import time
from pathlib import Path

from thesis_cli.base.errors import InputError


def work(folder, name):
    """Answer, die or complain, as the name says; leaves a trace."""
    with open(Path(folder) / "trace", "a") as trace:
        trace.write(f"{name}\n")
    what, _, number = name.rpartition(" ")
    trials = (Path(folder) / "trace").read_text().count(name)
    if what == "dies" or (what == "falters" and trials == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hears Ctrl-C":
        os.kill(os.getpid(), signal.SIGINT)
    if what == "is deaf":  # a process inherits what is blocked
        return int(number) * (signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    if what == "refuses":
        raise InputError("a problem", "a remedy", source=number, line=3)
    if what == "waits":
        time.sleep(10**6)
    return int(number)
