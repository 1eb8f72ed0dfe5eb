"""The journal of a batch of tasks keeps each solution, so that a run that is cut short can go on."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import WorkFailed, describe
from thesis_cli.base.files import locked
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.program import parse
from thesis_cli.synthesis.language.task import Task, check
from thesis_cli.synthesis.search.solver import Closest, Doubt, Meaning, Order, Solution

logger = logging.getLogger("thesis_cli")


class Journal:
    """Solutions of a batch that has no table yet: a file beside the future table, with one solution
    a line.

    The first line describes the batch; a run of the same batch keeps the solutions that follow,
    except damaged lines, such as a last line that was cut short. Raises OSError naming the file.

    Parameters
    ----------
    table : the CSV file.
    tasks : the tasks, in order.
    orders : order of each task; a solution that was found with another order is not kept.
    settings : whatever else a solution depends on, such as the version of this package, in types of
        JSON.
    semantics : programs that are read must fit their task under it.

    Attributes
    ----------
    kept : solutions by place of their task.
    """

    def __init__(
        self,
        table: Path,
        tasks: Sequence[Task],
        orders: Sequence[Order],
        settings: Mapping[str, object],
        semantics: Semantics,
    ) -> None:
        self.path = table.with_name(f"{table.name}.journal")
        self._tasks, self._orders, self._semantics = tasks, orders, semantics
        digest = hashlib.sha256("\n".join(task.to_json() for task in tasks).encode()).hexdigest()
        head = json.dumps({**settings, "tasks": digest}).encode()
        self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        self._synced = time.monotonic()
        first, *lines = self._file.read().split(b"\n")[:-1] or [b""]
        same = first == head
        self.kept = dict(filter(None, map(self._read, lines))) if same else {}
        if first and not same:
            logger.warning("%s belongs to another batch; all tasks are solved again", self.path)
        self._file.truncate(sum(len(line) + 1 for line in (first, *lines)) if same else 0)
        self._file.seek(0, os.SEEK_END)
        self._due = b"" if same else head + b"\n"

    def add(self, place: int, found: Solution) -> None:
        """Keep a solution. It survives the end of this process at once, and a power failure after a
        second or so."""
        programs = [program.one_line for program in found.programs]
        line = json.dumps(
            {
                "place": place,
                "order": [float(f"{p:.6g}") for p in self._orders[place].probabilities],
                "solution": {**vars(found), "programs": programs, **_weighed(found)},
            }
        ).encode()
        try:
            self._file.write(self._due + line + b"\n")
            self._file.flush()
            if time.monotonic() - self._synced > 1:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._due = b""
        self.kept[place] = found

    def _read(self, line: bytes) -> tuple[int, Solution] | None:
        """Read what `add` wrote; None if the line is damaged, or the order is another one now."""
        try:
            row = json.loads(line)
            place, found = row["place"], row["solution"]
            programs = tuple(map(parse, found["programs"]))
            same = tuple(found.get("same", ()))
            solution = Solution(**{**found, "programs": programs, "same": same, **_read_weighed(found)})
            fits = _near(row["order"], self._orders[place].probabilities)
            fits &= all(check(program, self._tasks[place], self._semantics) for program in solution.programs)
        except (ValueError, TypeError, LookupError):
            return None
        return (place, solution) if fits else None

    @property
    def state(self) -> str:
        """Number of tasks that a next run need not solve, in words."""
        if not self.kept:
            return f"none of {len(self._tasks):,} tasks is finished"
        return f"{len(self.kept):,} of {len(self._tasks):,} tasks are kept; run the same command again to go on"

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the file if all went well, the table included, or if it keeps nothing."""
        if kind is None or not self.kept:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):  # a full disk refuses again what it has refused before
            self._file.close()


def _weighed(found: Solution) -> dict[str, object]:
    """Meaning, doubtful examples and hints of a solution, in types of JSON."""
    meaning = found.meaning and {**vars(found.meaning), "others": [p.one_line for p in found.meaning.others]}
    return {
        "meaning": meaning,
        "doubts": [(doubt.example, doubt.program.one_line) for doubt in found.doubts],
        "closest": found.closest and [found.closest.missed, found.closest.program.one_line],
        "larger": found.larger and found.larger.one_line,
    }


def _read_weighed(row: Mapping[str, Any]) -> dict[str, object]:
    """Read what `_weighed` made."""
    meaning = row.get("meaning")
    if meaning is not None:
        settles = (tuple(x if isinstance(x, int) else tuple(x) for x in inputs) for inputs in meaning["settles"])
        others, shares = tuple(map(parse, meaning["others"])), tuple(meaning["shares"])
        meaning = Meaning(**{**meaning, "others": others, "shares": shares, "settles": tuple(settles)})
        if len(shares) != 1 + len(others) or not all(0 <= share <= 1 for share in (*shares, meaning.unseen)):
            raise ValueError
    doubts = tuple(Doubt(number, parse(text)) for number, text in row.get("doubts", ()))
    closest, larger = row.get("closest"), row.get("larger")
    return {
        "meaning": meaning,
        "doubts": doubts,
        "closest": closest and Closest(tuple(closest[0]), parse(closest[1])),
        "larger": larger and parse(larger),
    }


def _near(kept: Sequence[float], now: Sequence[float]) -> bool:
    """Whether the probabilities of two orders agree but for rounding: what a network computes depends
    on the number of threads of the linear algebra.
    """
    return len(kept) == len(now) and all(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(kept, now, strict=True))


@contextmanager
def journal_beside(
    table: Path,
    tasks: Sequence[Task],
    orders: Sequence[Order],
    settings: Mapping[str, object],
    semantics: Semantics,
) -> Iterator[Journal]:
    """The journal of a batch, for this run alone; whatever stops the batch is reported with what is
    kept. Raises InputError if another run is about to write the table, and WorkFailed if the work
    failed.

    Parameters
    ----------
    table, tasks, orders, settings, semantics : arguments of `Journal`.
    """
    table.parent.mkdir(parents=True, exist_ok=True)
    with locked(table, "give another --out"), Journal(table, tasks, orders, settings, semantics) as journal:
        try:
            yield journal
        except (WorkFailed, OSError, MemoryError) as error:
            raise WorkFailed(f"{describe(error)}; {journal.state}") from error
        except KeyboardInterrupt:
            logger.info("%s", journal.state)
            raise
