"""Several attempts at one question, each in a process of its own, within a number of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from thesis_cli.base.child import Child
from thesis_cli.base.errors import OutOfTime
from thesis_cli.base.progress import Tick

GRACE = 1.0
"""Seconds by which an attempt may overrun its deadline before its process is stopped."""

WAIT = 0.02
"""Seconds to wait for one process before looking at the next."""


@dataclass(frozen=True)
class Attempt:
    """A generator function of a module, to be called in a process of its own.

    Attributes
    ----------
    name : what it is called.
    function : takes a deadline, then the arguments; yields answers, each better than the one
        before. The deadline is a value of `time.monotonic`, a clock that processes share.
    arguments : pickled.
    seconds : the most that it may take.
    """

    name: str
    function: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """The end of an attempt by an error."""

    error: Exception


def attempts(
    asked: Sequence[Attempt], seconds: float, jobs: int, tick: Tick | None = None
) -> Iterator[tuple[Attempt, Any]]:
    """Make attempts in order, `jobs` of them at a time; closing the iterator stops them all.

    Parameters
    ----------
    asked : in order of their start.
    seconds : for all together.
    jobs : number of processes.
    tick : called with 1 after each second.

    Yields
    ------
    An attempt and its next answer, as they come; a `Failed` if it raises, or its process dies or
    takes too long.
    """
    end = time.monotonic() + seconds
    second = time.monotonic() + 1
    waiting = list(reversed(asked))
    running: list[tuple[Attempt, Child, float]] = []
    with ExitStack() as stack:
        while waiting or running:
            while waiting and len(running) < jobs and time.monotonic() < end:
                attempt = waiting.pop()
                deadline = min(end, time.monotonic() + attempt.seconds)
                child = stack.enter_context(Child(attempt.function, deadline, *attempt.arguments))
                running.append((attempt, child, deadline + GRACE))
            if not running:
                return
            while tick and time.monotonic() > second:
                second += 1
                tick(1)
            for place in list(running):
                attempt, child, latest = place
                try:
                    yield attempt, child.next(WAIT)
                    continue
                except StopIteration:
                    pass
                except OutOfTime as error:
                    if not child.ended and time.monotonic() < latest:
                        continue
                    yield attempt, Failed(error)
                except Exception as error:  # noqa: BLE001 - the caller judges it
                    yield attempt, Failed(error)
                child.stop()
                running.remove(place)
