"""How many cores there are to use."""

from __future__ import annotations

import os


def jobs_or_all(jobs: int | None) -> int:
    """The number of jobs that was asked for, or the cores that this process may use."""
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
