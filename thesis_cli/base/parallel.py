"""Cores and threads: work shared among threads gives results in order, which do not depend on their number."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from thesis_cli.base.progress import Tick


def jobs_or_all(jobs: int | None) -> int:
    """The number of jobs that was asked for, or the cores that this process may use."""
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


T = TypeVar("T")

AHEAD = 8
"""Calls that each thread may have finished or waiting, so that long work takes little memory."""


class Threads:
    """A pool of threads, used as a context: `with Threads(jobs) as threads: threads.map(...)`.

    After an exception in the block, Ctrl-C included, no further call starts; the block ends when
    the calls that run have ended. Long calls may look at `stopped` to end early.

    Parameters
    ----------
    jobs : number of threads; with one, all work is done by the thread that asks for it.

    Attributes
    ----------
    stopped : whether an exception has ended the block.
    """

    def __init__(self, jobs: int) -> None:
        self.stopped = False
        self._jobs = jobs
        self._pool = ThreadPoolExecutor(jobs) if jobs > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopped = kind is not None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, work: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        """Results of `work` on the arguments, in order; all iterables must have the same length."""
        calls = zip(*arguments, strict=True)
        if self._pool is None:
            for call in calls:
                yield work(*call)
            return
        waiting: deque[Future[T]] = deque()
        try:
            for call in calls:
                waiting.append(self._pool.submit(work, *call))
                if len(waiting) >= AHEAD * self._jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def run(self, work: Callable[..., int], *arguments: Iterable[Any], progress: Tick | None = None) -> None:
        """Call `work`, which returns the number of units done, and report these in order."""
        for units in self.map(work, *arguments):
            if progress:
                progress(units)
