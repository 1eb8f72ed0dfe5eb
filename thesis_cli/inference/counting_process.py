"""The process in which Ganak counts: `model_counting.py` starts it and writes one job to it.

It imports nothing of this package, so that it starts in hundredths of a second. Its arguments are
the file of the library, the limit of memory in bytes, and the process that it belongs to. A job is
the header, the clauses, the variables that have weights, and the weights of their two literals. The
answer is one line: `whole COUNT` or `real COUNT` in hexadecimal, or `error TEXT`.
"""

from __future__ import annotations

import array
import importlib.util
import os
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import Any

HEADER = struct.Struct("<qqqq")
"""Numbers of variables, of integers of the clauses and of weighted variables, and whether only
satisfiability counts: the answer is then 0 or 1."""


def answer(job: bytes, library: Any) -> str:
    """Count a job by the library."""
    variables, integers, weights, satisfiable = HEADER.unpack_from(job)
    at = HEADER.size

    def take(kind: str, count: int) -> array.array[float]:
        nonlocal at
        found: array.array[float] = array.array(kind)
        end = at + found.itemsize * count
        found.frombytes(job[at:end])
        at = end
        return found

    clauses, weighted, values = take("i", integers), take("i", weights), take("d", 2 * weights)
    counter = library.WeightedCounter() if weights else library.Counter()
    counter.new_vars(variables)
    start = 0
    while start < integers:
        end = clauses.index(0, start)
        counter.add_clause(clauses[start:end])
        start = end + 1
    for k, variable in enumerate(weighted):
        counter.set_lit_weight(variable, values[2 * k])
        counter.set_lit_weight(-variable, values[2 * k + 1])
    if satisfiable:
        counter.set_sampling_set([])
    found = counter.count()
    return f"real {found.hex()}" if weights else f"whole {found:x}"


def _library(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("pyganak", path)
    assert spec is not None
    assert spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    return library


def _belong_to(starter: int) -> None:
    """End this process soon after its starter has ended."""
    while os.getppid() == starter:
        time.sleep(0.5)
    os._exit(1)


def _limit(memory: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # the system may have no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def main() -> None:
    """Count the job of standard input and answer on standard output."""
    path, memory, starter = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library prints there
    sys.set_int_max_str_digits(0)  # the library makes its integers from decimal text
    threading.Thread(target=_belong_to, args=(starter,), daemon=True).start()
    _limit(memory)
    try:
        text = answer(sys.stdin.buffer.read(), _library(path))
    except MemoryError:
        text = "error std::bad_alloc"
    except (RuntimeError, ImportError, ValueError, OverflowError) as error:
        text = f"error {' '.join(str(error).split()) or type(error).__name__}"
    os.write(out, f"{text}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
