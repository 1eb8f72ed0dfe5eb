"""`python -m thesis_cli`, and the console script."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    catch_signals()
    try:
        from thesis_cli.cli.app import main as run

        status = run()
    except KeyboardInterrupt:  # before or after the program could say so itself
        print("error: interrupted", file=sys.stderr)  # noqa: T201
        status = 130
    sys.exit(status)


def catch_signals() -> None:
    """Let signals that ask for the end raise `KeyboardInterrupt`, and again where something swallowed it."""
    for name in ("SIGTERM", "SIGHUP", "SIGALRM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    if hasattr(signal, "setitimer"):
        sys.unraisablehook = _again


def _again(unraisable: sys.UnraisableHookArgs) -> None:
    """An exception in a callback of compiled code goes nowhere: numba's loader is full of them."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def _end(signum: int, frame: FrameType | None) -> None:
    """End like Ctrl-C does, with worker processes and temporary files gone."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
