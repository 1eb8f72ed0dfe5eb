"""How long work reports how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Tick = Callable[[int], None]
"""Called with the number of units just done."""

Progress = Callable[[int, str], AbstractContextManager[Tick]]
"""Called with the number of units to do and what a unit is; opens a progress bar, which yields its `Tick`."""


def silent(total: int, unit: str) -> AbstractContextManager[Tick]:
    """A `Progress` that shows nothing."""
    return nullcontext(lambda done: None)
