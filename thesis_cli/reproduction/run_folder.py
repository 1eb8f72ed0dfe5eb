"""The folder of a sweep's results: its record, and the process that works on it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.base.locks import locked
from thesis_cli.base.version import VERSION

LAYOUT = 1
"""Version of the files in the folder; raise it if they change."""

WAIT = 60.0
"""Most seconds that another process may take to record itself."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of one sweep's results, recorded in `run.json`.

    Attributes
    ----------
    path : the folder; its tasks are in `tasks.json`.
    command : the command of its tasks.
    base : folder that relative paths among parameters start from.
    table : file of the merged table.
    cores : cores that each task uses.
    sweep : file of the sweep; empty in records of earlier versions.
    """

    path: Path
    command: str
    base: Path
    table: Path
    cores: int = 1
    sweep: str = ""

    @property
    def tasks(self) -> Path:
        return self.path / "tasks.json"

    def save(self, overwrite: bool = False) -> bool:
        """Create the folder, or take over one of the same layout and sweep; of any, to overwrite it.

        Returns
        -------
        Whether it has the results of another sweep.

        Raises
        ------
        InputError : something else has that name.
        """
        other = False
        if (self.path / "run.json").exists():
            other = not self._is_of(RunFolder.load(self.path))
            if other and not overwrite:
                self.check_sweep()
        elif self.path.exists() and not (self.path.is_dir() and all(n.startswith(".") for n in os.listdir(self.path))):
            raise InputError("exists, and is no folder of a sweep", "give another --out", source=self.path)
        what = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        del what["path"]
        write_atomic({self.path / "run.json": to_json({"layout": LAYOUT, "version": VERSION, **what})})
        return other

    def _is_of(self, found: RunFolder) -> bool:
        """Whether a folder is of the same sweep."""
        return found.sweep == self.sweep if found.sweep else found.base == self.base

    def check_sweep(self) -> None:
        """Refuse the results of another sweep's file.

        Raises
        ------
        InputError : naming that file, or its folder.
        """
        found = RunFolder.load(self.path)
        if not self._is_of(found):
            whose = found.sweep or f"a sweep in {found.base}"
            raise InputError(f"has the results of {whose}", "give another --out, or --overwrite", source=self.path)

    @classmethod
    def load(cls, path: Path) -> RunFolder:
        """Read the record of a folder.

        Raises
        ------
        InputError : the folder has none, or one of another version of this program.
        """
        file = path / "run.json"
        try:
            what = json.loads(file.read_text())
            layout, version = what.pop("layout"), what.pop("version")
            if layout != LAYOUT:
                raise InputError(
                    f"written by thesis-cli {version}, whose folders have another layout ({layout}, not {LAYOUT})",
                    "use that version, or give another --out",
                    source=path,
                )
            base, table, cores = Path(what["base"]), Path(what["table"]), int(what["cores"])
            return cls(path.absolute(), what["command"], base, table, cores, str(what.get("sweep", "")))
        except InputError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            raise InputError("no folder of a sweep (it has no run.json)", source=path) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise InputError(f"damaged ({error!r})", "remove the folder, or give another --out", source=file) from None


@dataclass(frozen=True)
class Driver:
    """A process that runs tasks, or waits for jobs that do.

    Attributes
    ----------
    started : start of the process in clock ticks, to know it from a later one of that number.
    jobs : tasks that it runs at once itself; 0 if jobs of a cluster run them.
    """

    host: str
    pid: int
    started: str
    jobs: int

    @property
    def alive(self) -> bool | None:
        """Whether the process still runs; None if it is on another machine."""
        if self.host != socket.gethostname():
            return None
        started = _started(self.pid)
        return started != "" and started == self.started


@contextmanager
def driving(file: Path, jobs: int) -> Iterator[None]:
    """Be the only driver of a task file, recorded in `tasks.driver` beside it.

    A lock alone would not do: drivers run on several machines that share the folder. It keeps two
    of one machine from recording themselves at once.

    Raises
    ------
    InputError : another driver runs on this machine.
    """
    place = file.with_suffix(".driver")
    me = Driver(socket.gethostname(), os.getpid(), _started(os.getpid()), jobs)
    with locked(place, wait=WAIT):
        check_free(file)
        for stale in place.parent.glob(f".{place.name}.*"):  # of killed processes
            if not stale.name.endswith(".lock"):
                stale.unlink(missing_ok=True)
        write_atomic({place: to_json(asdict(me))})
    try:
        yield
    finally:
        if driver_of(file) == me:
            place.unlink(missing_ok=True)


def check_free(file: Path) -> None:
    """Refuse a task file that another process of this machine works on.

    Raises
    ------
    InputError : naming the process.
    """
    other = driver_of(file)
    if other and other.pid != os.getpid() and other.alive:
        raise InputError(f"another run works on {file} (process {other.pid})", "wait until it ends, or end it")


def driver_of(file: Path) -> Driver | None:
    """The recorded driver of a task file, alive or not."""
    try:
        return Driver(**json.loads(file.with_suffix(".driver").read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def _started(pid: int) -> str:
    """Start of a process; empty if there is none, `unknown` if the system does not show it.

    A process that has ended and whose parent has not noticed (state Z) is none.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "unknown"
    return "" if state in ("Z", "X") else fields[18]
