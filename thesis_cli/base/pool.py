"""Work in several processes, of which any may be killed.

`answers` is the one function. It tries an item again, after all others, if its process is killed:
`TRIALS` times in all unless the caller says otherwise, the last time alone, so that an item that
kills its process stops no other. The processes end with the one that started them, however that
ends, and leave Ctrl-C to it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

logger = logging.getLogger("thesis_cli")

TRIALS = 3
"""Most attempts at an item whose process is killed."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Killed:
    """The answer for an item whose process was killed each time.

    Attributes
    ----------
    times : how often.
    """

    times: int = TRIALS

    def __str__(self) -> str:
        return f"its process was killed {self.times} times"


def answers(
    work: Callable[[Item], Answer],
    items: Callable[[Sequence[int]], Iterable[Item]],
    places: Sequence[int],
    jobs: int = 1,
    trials: int = TRIALS,
) -> Generator[tuple[int, Answer | Killed], None, None]:
    """Carry out work on items, in any order.

    Parameters
    ----------
    work : a function of one item. It may see an item again that it has finished, if the process
        died before it could answer.
    items : reads the items of some places, one after another as they are needed.
    places : numbers that name the items.
    jobs : number of processes. A single job, or a single item, is carried out in this process.
    trials : how often an item is tried whose process is killed.

    Yields
    ------
    The place of an item and its answer, as they come; `Killed` if its process was killed each time.

    Raises
    ------
    Exception : whatever `work` raises; the processes are ended.
    """
    if min(jobs, len(places)) <= 1:
        yield from ((place, work(item)) for place, item in zip(places, items(places), strict=True))
        return
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    deaths: Counter[int] = Counter()
    batches = deque([list(places)])
    while batches:
        batch = batches.popleft()
        begun: dict[int, None] = {}  # in the order in which they began
        answered: set[int] = set()
        try:
            with closing(_in_processes(work, items, batch, jobs, begun)) as found:
                for place, answer in found:
                    answered.add(place)
                    yield place, answer
        except TerminatedWorkerError:
            suspects = [place for place in begun if place not in answered]
            logger.warning("a worker process was killed; what it worked on is tried again")
            deaths.update(suspects)
            if others := [place for place in batch if place not in begun]:
                batches.appendleft(others)
            if together := [place for place in suspects if deaths[place] < trials - 1]:
                batches.append(together)
            batches.extend([place] for place in suspects if deaths[place] == trials - 1)
            yield from ((place, Killed(trials)) for place in suspects if deaths[place] >= trials)


def _in_processes(
    work: Callable[[Item], Answer],
    items: Callable[[Sequence[int]], Iterable[Item]],
    places: Sequence[int],
    jobs: int,
    begun: dict[int, None],
) -> Generator[tuple[int, Answer], None, None]:
    """`answers` until a process dies; the places of items that were handed out are entered in
    `begun`."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.backend import resource_tracker

    def calls() -> Iterator[object]:
        for place, item in zip(places, items(places), strict=True):
            begun[place] = None
            yield delayed(_attempt)(work, place, item)

    options = {"batch_size": 1, "return_as": "generator_unordered"}
    run = Parallel(jobs, backend="loky", initializer=_belong_to, initargs=(os.getpid(),), **options)
    # No news to a user: a process that has grown, by compiling for example, is replaced; work is given up after Ctrl-C.
    for text in ("A worker stopped while some jobs", ".*tasks have been successfully executed"):
        warnings.filterwarnings("ignore", text, UserWarning)
    resource_tracker.ensure_running()  # started later, it would unblock what is blocked here
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the processes inherit it
    try:
        found = run(calls())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    yield from found


def _attempt(work: Callable[[Item], Answer], place: int, item: Item) -> tuple[int, Answer]:
    return place, work(item)


def _belong_to(driver: int) -> None:
    """Leave Ctrl-C to the driver, and end this process soon after the driver has ended."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
