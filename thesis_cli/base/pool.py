"""Work in several processes, of which any may be killed.

`answers` is the one function. It tries an item again, after all others, if its process is killed:
`TRIALS` times in all unless the caller says otherwise, the last time alone, so that an item that
kills its process stops no other. Quick items go to processes in batches. The processes end with the
one that started them, however that ends, and leave Ctrl-C to it.
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
    rounds = deque([Batches(places, jobs)])
    while rounds:
        batches = rounds.popleft()
        try:
            while batches.left:
                with closing(_in_processes(work, items, batches, jobs)) as found:
                    yield from found
        except TerminatedWorkerError:
            suspects = list(batches.out)
            logger.warning("a worker process was killed; what it worked on is tried again")
            deaths.update(suspects)
            if batches.left:
                batches.out.clear()
                rounds.appendleft(batches)
            if together := [place for place in suspects if deaths[place] < trials - 1]:
                rounds.append(Batches(together, jobs, most=1))
            rounds.extend(Batches([place], jobs) for place in suspects if deaths[place] == trials - 1)
            yield from ((place, Killed(trials)) for place in suspects if deaths[place] >= trials)


BATCH = 0.5
"""Seconds of work in a batch of items, as planned and at most, if no single item takes longer."""


class Batches:
    """Items that are handed out in batches, which are small where their times are unknown and
    where few are left.

    Parameters
    ----------
    places : numbers that name the items.
    workers : number of processes that share the items.
    most : largest number of items in a batch.

    Attributes
    ----------
    left : items that no process has.
    out : items that a process has, in the order in which they were handed out.
    """

    def __init__(self, places: Iterable[int], workers: int, most: int = 1000) -> None:
        self.left, self.out = deque(places), dict[int, None]()
        self._workers, self._most, self._size = workers, most, 1
        self._apart = set[int]()

    def take(self) -> list[int]:
        """The next batch; empty if nothing is left."""
        size = min(self._size, self._most, -(-len(self.left) // (2 * self._workers)))
        alone = bool(self.left) and self.left[0] in self._apart
        batch = [self.left.popleft() for _ in range(1 if alone else size)]
        self.out |= dict.fromkeys(batch)
        return batch

    def back(self, batch: Sequence[int], done: int, seconds: float, apart: bool = False) -> None:
        """Take back a batch of which a process has done the first items in some seconds.

        Those that are left come next; `apart`, each comes alone, after all others.
        """
        for place in batch:
            del self.out[place]
        if apart:
            self._apart.update(batch[done:])
            self.left.extend(batch[done:])
        else:
            self.left.extendleft(reversed(batch[done:]))
            self._size = max(1, int(BATCH * done / max(seconds, 1e-9)))


def work_on(work: Callable[[Item], Answer], items: Sequence[Item]) -> tuple[list[Answer], float]:
    """Answers for the first items of a batch, as many as its time allows, and the seconds that they took."""
    begun, found = time.perf_counter(), list[Answer]()
    for item in items:
        found.append(work(item))
        if (seconds := time.perf_counter() - begun) > BATCH:
            break
    return found, seconds


def _in_processes(
    work: Callable[[Item], Answer],
    items: Callable[[Sequence[int]], Iterable[Item]],
    batches: Batches,
    jobs: int,
) -> Generator[tuple[int, Answer], None, None]:
    """`answers` until a process dies, or no item is left that no process has."""
    from multiprocessing import resource_tracker

    from joblib import Parallel, delayed
    from joblib.externals.loky.backend import resource_tracker as tracker_of_loky

    def calls() -> Iterator[object]:
        while batch := batches.take():
            yield delayed(_attempt)(work, batch, list(items(batch)))

    options = {"batch_size": 1, "return_as": "generator_unordered"}
    run = Parallel(jobs, backend="loky", initializer=_belong_to, initargs=(os.getpid(),), **options)
    # No news to a user: a process that has grown, by compiling for example, is replaced; work is given up after Ctrl-C.
    for text in ("A worker stopped while some jobs", ".*tasks have been successfully executed"):
        warnings.filterwarnings("ignore", text, UserWarning)
    for tracker in resource_tracker, tracker_of_loky:  # started later, they would unblock what is blocked here
        tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the processes inherit it
    try:
        found = run(calls())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for batch, (got, seconds) in found:
        batches.back(batch, len(got), seconds)
        yield from zip(batch, got, strict=False)


def _attempt(
    work: Callable[[Item], Answer], batch: Sequence[int], items: Sequence[Item]
) -> tuple[Sequence[int], tuple[list[Answer], float]]:
    return batch, work_on(work, items)


def _belong_to(driver: int) -> None:
    """Leave Ctrl-C to the driver, and end this process soon after the driver has ended."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
