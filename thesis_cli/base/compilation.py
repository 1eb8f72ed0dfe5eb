"""Telling when compiled code has to be compiled first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("thesis_cli")


@contextmanager
def telling_of_compilation() -> Iterator[None]:
    """Log it, once, if code is compiled meanwhile; code that is loaded from the cache is not."""
    from numba.core.event import Listener, install_listener

    class Teller(Listener):
        told = False

        def on_start(self, event: object) -> None:
            if not self.told:
                logger.info("compiling code on its first use, which takes 10 to 40 seconds")
            self.told = True

        def on_end(self, event: object) -> None:
            pass

    with install_listener("numba:compile", Teller()):
        yield
