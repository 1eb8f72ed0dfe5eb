"""`python -m thesis_cli`, and the console script."""

import signal
import sys
from types import FrameType


def main() -> None:
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    try:
        from thesis_cli.cli.app import main as run

        status = run()
    except KeyboardInterrupt:  # before or after the program could say so itself
        print("error: interrupted", file=sys.stderr)  # noqa: T201
        status = 130
    sys.exit(status)


def _end(signum: int, frame: FrameType | None) -> None:
    """End like Ctrl-C does, with worker processes and temporary files gone."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
