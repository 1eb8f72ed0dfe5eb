"""`python -m thesis_cli`, and the console script."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM") if hasattr(signal, name))
_asked_to_end = False


def main() -> None:
    catch_signals()
    try:
        from thesis_cli.cli.app import main as run

        status = run()
    except (Exception, KeyboardInterrupt) as error:
        # Before or after the program could say so itself; or code that was hit made an error of its
        # own of it.
        if not (_asked_to_end or isinstance(error, KeyboardInterrupt)):
            raise
        release_signals()
        print("error: interrupted", file=sys.stderr)  # noqa: T201
        status = 130
    release_signals()
    sys.exit(status)


def catch_signals() -> None:
    """Let signals that ask for the end raise `KeyboardInterrupt`, and again where something
    swallowed it.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks for
            signal.signal(number, _end)
    if hasattr(signal, "setitimer"):
        sys.unraisablehook = _again


def release_signals() -> None:
    """From here on a signal ends the program without a word: there is nothing left to tidy up."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def _again(unraisable: sys.UnraisableHookArgs) -> None:
    """An exception in a callback of compiled code goes nowhere: numba's loader is full of them."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    elif not _asked_to_end:
        sys.__unraisablehook__(unraisable)


def _end(signum: int, frame: FrameType | None) -> None:
    """End like Ctrl-C does, with worker processes and temporary files gone."""
    global _asked_to_end
    _asked_to_end = True
    if not _stop_compiling():
        raise KeyboardInterrupt


def _stop_compiling() -> bool:
    """Let numba stop before its next pass, in whatever thread; True if it is at work in this one.

    An exception in the midst of a pass may strike a callback of LLVM, which crashes.
    """
    lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if lock is None:
        return False
    from numba.core.event import Listener, register

    class Stop(Listener):
        def on_start(self, event: object) -> None:
            raise KeyboardInterrupt

        on_end = on_start

    for kind in ("numba:run_pass", "numba:compiler_lock"):
        register(kind, Stop())  # type: ignore[no-untyped-call]
    return bool(lock.is_locked())


if __name__ == "__main__":
    main()
