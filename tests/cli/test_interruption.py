"""What a signal does: while code is compiled, while it runs, and when it is ignored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LINE = ROOT / "data/models/line.csv"


COLD = [
    pytest.param("search", ["posterior", "--regression", LINE], marks=pytest.mark.long),
    ("race", ["race", "terms.npy"]),
]


@pytest.mark.parametrize(("kernel", "arguments"), COLD, ids=["posterior", "race"])
def test_compilation_is_announced_and_ends_with_ctrl_c(tmp_path, kernel, arguments):
    """The program does not wait for the kernel that is being compiled, which is then not cached."""
    np.save(tmp_path / "terms.npy", np.zeros((3, 100)))
    process = subprocess.Popen(
        [sys.executable, "-m", "thesis_cli", *map(str, arguments), "--jobs", "2"],
        cwd=tmp_path, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline().startswith("compiling code")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    # CPython ends by the signal itself (130 to a shell) if it comes in an exec() of an import.
    assert process.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "error: interrupted\n")
    assert not list((tmp_path / "cache").rglob(f"*.{kernel}-*.nbc"))
    assert not (tmp_path / "results").exists()


INTERRUPTED = """
import atexit, ctypes, os, signal, time
import thesis_cli.cli.app
from thesis_cli.__main__ import main
def ask():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
def run():
    {run}
thesis_cli.cli.app.main = run
atexit.register(time.sleep, 0.1)
main()
"""


@pytest.mark.parametrize(
    ("run", "status", "last"),
    [
        ("ask()", 130, "error: interrupted"),
        (
            "try: ask()\n    except BaseException: raise RuntimeError('no compiled object yet')",
            130,
            "error: interrupted",
        ),
        ("ctypes.CFUNCTYPE(None)(ask)(); raise RuntimeError('no compiled object yet')", 130, "error: interrupted"),
        ("ctypes.CFUNCTYPE(None)(ask)(); return 0", 0, ""),
        ("import numba; ask()", 130, "error: interrupted"),
        ("raise RuntimeError('a mistake')", 1, "RuntimeError: a mistake"),
    ],
    ids=["alone", "changed", "swallowed", "done", "idle", "none"],
)
def test_what_an_interruption_became_is_no_traceback(run, status, last):
    """And one that comes again, or is no longer of use, says nothing more."""
    code = [sys.executable, "-c", INTERRUPTED.format(run=run)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert (done.stderr if status != 1 else done.stderr.splitlines()[-1]) == last + "\n" * (status == 130)


def test_a_pass_of_the_compiler_comes_to_its_end_before_an_interruption():
    """An exception in a callback of LLVM may crash."""
    run = """
    from numba.core.compiler_lock import global_compiler_lock
    with global_compiler_lock:
        os.kill(os.getpid(), signal.SIGINT)
        print("whole", flush=True)
    print("and no more")
"""
    code = [sys.executable, "-c", INTERRUPTED.format(run=run)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", "error: interrupted\n")


def test_a_signal_that_is_ignored_stays_so():
    code = "import signal; from thesis_cli.__main__ import catch_signals\n"
    code += "signal.signal(signal.SIGHUP, signal.SIG_IGN); catch_signals()\n"
    code += "signal.raise_signal(signal.SIGHUP); print('on')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("on\n", "")
