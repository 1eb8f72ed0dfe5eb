"""Carry out one task, in whatever process."""

from __future__ import annotations

import time
import traceback

from thesis_cli.reproduction import store
from thesis_cli.reproduction.registry import load

DIGITS = "%.12g"
"""Digits of numbers in results: enough for any reader, few enough to agree between processors."""


def run_task(task: store.Task) -> str | None:
    """Compute a task and write its file. Returns the traceback of a task that raised, else None."""
    import numpy as np

    began = time.perf_counter()
    try:
        frame = load(task.experiment).run(np.random.SeedSequence(int(task.key, 16)), **task.parameters)
        text = frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
    except Exception:  # noqa: BLE001  whatever an experiment raises is reported with its task
        return traceback.format_exc()
    store.save(task, text, time.perf_counter() - began)
    return None
