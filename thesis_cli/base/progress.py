"""Progress reports of long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from thesis_cli.base.compilation import LEDGER, observed

Tick = Callable[[int], None]
"""Called with the number of units just done."""

Progress = Callable[[int, str], AbstractContextManager[Tick]]
"""Called with the number of units to do and what one is; opens a progress bar and yields its
`Tick`.
"""

COUNTED = 10**18
"""A bar for more units than this shows no total: they are never counted through."""


def silent(total: int, unit: str) -> AbstractContextManager[Tick]:
    """A `Progress` that shows nothing."""
    return nullcontext(lambda done: None)


@contextmanager
def bars(total: int, unit: str, name: str | None = None) -> Iterator[Tick]:
    """A `Progress` that shows bars on standard error.

    While code is compiled the bar shows `compiling`; rate and time left do not count these seconds.
    """
    from tqdm import tqdm

    shown = total if total < COUNTED else None
    with tqdm(total=shown, desc=name, unit=unit, unit_scale=True, file=sys.stderr, leave=False) as bar:
        begun = LEDGER.seconds
        labelled = False

        def label() -> bool:
            nonlocal labelled
            if not labelled:
                bar.set_postfix_str("compiling")
            labelled = True
            return True

        def tick(done: int) -> None:
            nonlocal begun, labelled
            seconds = LEDGER.seconds
            bar.start_t += seconds - begun
            bar.last_print_t += seconds - begun
            begun = seconds
            if labelled:
                bar.set_postfix_str("", refresh=False)
            labelled = False
            bar.update(done)

        with observed(label):
            yield tick
