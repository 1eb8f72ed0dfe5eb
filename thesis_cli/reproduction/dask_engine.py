"""Run tasks on the workers of dask.distributed: processes of this machine, or a cluster's."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import how_to_install, is_installed
from thesis_cli.base.pool import Batches, work_on
from thesis_cli.base.progress import Tick
from thesis_cli.reproduction.engines import Unfinished, attempt
from thesis_cli.reproduction.tasks import Pending

if TYPE_CHECKING:
    from distributed import Client, Future, as_completed

AHEAD = 2000
"""Tasks that the scheduler holds at once, so that its memory does not grow with their number."""
PATIENCE = 30
"""Seconds within which a scheduler must answer, and after which workers are counted where nothing ends."""
PAUSE = 0.01
"""Seconds between two looks at what has ended."""


class DaskEngine:
    """Runs tasks on workers that see the same folder, each with one thread.

    The scheduler tries a task again whose worker is killed, as often as its setting
    `distributed.scheduler.allowed-failures` says.

    Parameters
    ----------
    scheduler : its address, such as tcp://HOST:8786; empty for workers of this machine.
    jobs : number of the workers of this machine.

    Raises
    ------
    InputError : dask.distributed is not installed.
    """

    def __init__(self, scheduler: str = "", jobs: int = 1) -> None:
        if not is_installed("distributed"):
            raise InputError("--engine dask needs dask.distributed", how_to_install("distributed"))
        self.scheduler, self.jobs = scheduler, jobs

    def run(self, tasks: Unfinished, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        """Try the tasks at some places; those that have not begun are withdrawn if this is interrupted.

        Raises
        ------
        InputError : no scheduler or no worker answers, all workers or the scheduler end, or a worker has
            several threads.
        OSError : a worker could not write a file.
        """
        from distributed import KilledWorker, as_completed
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        errors: dict[int, str] = {}
        with self._client() as client:
            workers = _check_workers(client)
            batches = Batches(missing, workers, most=max(1, AHEAD // (4 * workers)))
            given: dict[Future, list[int]] = {}
            finished = as_completed()

            def submit() -> None:
                while batches.left and len(batches.out) < AHEAD:
                    batch = batches.take()
                    future = client.submit(_attempt, list(tasks.unfinished(batch)), pure=False)
                    given[future] = batch
                    finished.add(future)

            submit()
            for future in _ended(client, finished):
                batch = given.pop(future)
                try:
                    error = future.exception()
                    found, seconds = future.result() if error is None else ([], 0.0)
                except (FutureCancelledError, CommClosedError):
                    problem = f"the dask scheduler {self.scheduler or 'of this process'} has ended"
                    raise InputError(problem, "start it, and run this again: results stay") from None
                if isinstance(error, OSError):  # results cannot be stored
                    raise error
                if error is not None and len(batch) == 1:
                    killed = isinstance(error, KilledWorker)
                    found = [f"its worker was killed {error.allowed_failures + 1} times" if killed else str(error)]
                batches.back(batch, len(found), seconds, apart=error is not None)
                errors |= {place: problem for place, problem in zip(batch, found, strict=False) if problem is not None}
                progress(len(found))
                submit()
        return errors

    @contextmanager
    def _client(self) -> Iterator[Client]:
        import dask
        from distributed import Client, LocalCluster

        for name in ("distributed", "distributed.client"):  # they tell of their connections
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if not self.scheduler:
            here: dict[str, Any] = {"n_workers": self.jobs, "threads_per_worker": 1, "dashboard_address": None}
            here["silence_logs"] = logging.ERROR
            # No limit on the silence of workers: it is as long as this process was suspended.
            with (
                dask.config.set({"distributed.scheduler.worker-ttl": None}),
                LocalCluster(**here) as cluster,
                Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = Client(self.scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise InputError(f"no dask scheduler answers at {self.scheduler}", "start one: dask scheduler") from error
        with client:
            yield client


def _ended(client: Client, futures: as_completed) -> Iterator[Future]:
    """Futures as they end, as long as there is a worker: one that is killed while it starts has no successor.

    Raises
    ------
    InputError : nothing has ended for a while, and no worker is left.
    """
    last = time.monotonic()
    while not futures.is_empty():
        if futures.has_ready():
            yield next(futures)
            last = time.monotonic()
        elif time.monotonic() - last < PATIENCE:
            time.sleep(PAUSE)
        elif client.nthreads():
            last = time.monotonic()
        else:
            raise InputError("no dask worker is left", "run this again: results stay")


def _check_workers(client: Client) -> int:
    """Wait for the first worker; returns the number of workers.

    Raises
    ------
    InputError : none comes, or one has several threads.
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError("the dask scheduler has no worker", "start one: dask worker ADDRESS --nthreads 1") from None
    threads = client.nthreads().values()
    if max(threads) > 1:
        raise InputError("a dask worker has several threads", "start workers with --nthreads 1")
    return len(threads)


def _attempt(tasks: Sequence[Pending | None]) -> tuple[list[str | None], float]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return work_on(attempt, tasks)
