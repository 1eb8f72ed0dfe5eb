"""`python -m thesis_cli`."""

import signal
import sys
from types import FrameType

from thesis_cli.cli.app import main as _main


def main() -> None:
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    sys.exit(_main())


def _end(signum: int, frame: FrameType | None) -> None:
    """End like Ctrl-C does, with worker processes and temporary files gone."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
