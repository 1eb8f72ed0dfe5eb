"""Function calls in processes of their own, which can be stopped at any moment: one, or several attempts at a question.

For libraries that heed no time limit, no Ctrl-C and no limit of memory, or that may crash. Each
process is a fresh interpreter, so that the caller's `__main__` is not run again; it ends with the
one that started it, however that ends, and leaves Ctrl-C to it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import OutOfTime, WorkFailed

if TYPE_CHECKING:
    from thesis_cli.base.progress import Tick

_END = object()


class Child:
    """A process that calls a function and sends what it yields; used as a context, which stops it.

    Parameters
    ----------
    function : a generator function of a module; it and its arguments are pickled. What it prints is
        dropped.
    arguments : its arguments.
    memory : bytes of address space that the process may take; no limit if None.

    Attributes
    ----------
    ended : whether the last of its answers has been taken.

    Raises
    ------
    OSError : the process cannot be started.
    """

    def __init__(
        self,
        function: Callable[..., Iterator[Any]],
        *arguments: Any,
        memory: int | None = None,
        requests: bool = False,
    ) -> None:
        paths = [path for path in sys.path if path]
        inherited, self._alive = (_above_standard(end) for end in os.pipe())  # it closes when this process ends
        unix = os.name == "posix"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "thesis_cli.base.child", *([str(inherited)] if unix else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
            pass_fds=(inherited,) if unix else (),
        )
        os.close(inherited)
        self.ended = False
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last: Any = None
        self._begun = threading.Event()
        work = pickle.dumps((function, arguments, memory, requests))
        threading.Thread(target=self._talk, args=(work,), daemon=True).start()

    def _talk(self, work: bytes) -> None:
        """Send the work and read the answers until the process ends."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(work)
            stdin.flush()
            self._begun.set()
            while True:
                self._answers.put(pickle.load(stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self._begun.set()
            self._answers.put(_END)

    def send(self, request: Any) -> None:
        """Hand the function its next request; if the process died, `next` says so."""
        stdin = self._process.stdin
        assert stdin is not None
        self._begun.wait()
        with contextlib.suppress(OSError):
            stdin.write(pickle.dumps(request))
            stdin.flush()

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def next(self, timeout: float | None = None) -> Any:
        """The next value that the function yields.

        Parameters
        ----------
        timeout : seconds to wait for it; no limit if None.

        Raises
        ------
        OutOfTime : it did not come in time; the process goes on.
        StopIteration : the function has returned.
        WorkFailed : the process died.
        Exception : what the function raised.
        """
        try:
            answer = self._last or self._answers.get(timeout=timeout)
        except queue.Empty:
            raise OutOfTime("the work did not end in time") from None
        if answer is _END:
            self.ended, self._last = True, answer
            raise WorkFailed(f"a process died ({_cause(self._process.wait())})")
        kind, value = answer
        if kind == "value":
            return value
        self.ended, self._last = True, answer
        if kind == "error":
            raise value
        raise StopIteration

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        if self._alive >= 0:
            os.close(self._alive)
        self._alive = -1

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def call(function: Callable[..., Any], *arguments: Any, timeout: float | None = None, memory: int | None = None) -> Any:
    """The value of a function of a module, called in a process of its own; as for `Child`.

    Raises
    ------
    OutOfTime : the function did not return within `timeout` seconds; the process is stopped.
    WorkFailed : the process died.
    Exception : what the function raised.
    """
    with Child(_once, function, arguments, memory=memory) as child:
        return child.next(timeout)


def _once(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[Any]:
    yield function(*arguments)


def _above_standard(descriptor: int) -> int:
    """The same file under a number that is not one of the standard streams, which may be closed."""
    if descriptor > 2:
        return descriptor
    copy = _above_standard(os.dup(descriptor))
    os.close(descriptor)
    return copy


def _cause(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _main() -> None:
    """Run the work of the child process and send its answer."""
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    if len(sys.argv) > 1:
        _end_with_parent(int(sys.argv[1]))
    source = sys.stdin.buffer
    function, arguments, memory, requests = pickle.load(source)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, inbox), daemon=True).start()
    if memory is not None:
        _limit(memory)

    def send(kind: str, value: Any) -> None:
        pickle.dump((kind, value), answers)
        answers.flush()

    try:
        for value in function(*([iter(inbox.get, _END)] if requests else []), *arguments):
            send("value", value)
        send("end", None)
    except Exception as error:  # noqa: BLE001 - it is raised again where the answer is taken
        send("error", error)
    os._exit(0)


def _listen(source: Any, inbox: queue.SimpleQueue[Any]) -> None:
    """Take requests until the pipe closes, which the parent holds open as long as it lives."""
    try:
        while True:
            inbox.put(pickle.load(source))
    finally:
        os._exit(1)


def _end_with_parent(pipe: int) -> None:
    """End at the signal that a pipe closes, since a library that holds the interpreter keeps the
    thread that listens from noticing it.
    """
    try:
        import fcntl
        import select
    except ImportError:  # not a Unix
        return
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(pipe, select.POLLHUP)
    if poll.poll(0):
        os._exit(1)


def _limit(memory: int) -> None:
    try:
        import resource
    except ImportError:  # not a Unix
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    _main()


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
