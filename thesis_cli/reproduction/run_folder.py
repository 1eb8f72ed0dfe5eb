"""The folder of a sweep's results: what it is of, and who is at work on it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from thesis_cli import __version__
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json, write_atomic

LAYOUT = 1
"""Of the files in the folder; raised when they change."""


@dataclass(frozen=True)
class RunFolder:
    """A folder for the results of one sweep, in `run.json`.

    Attributes
    ----------
    path : the folder; its tasks are in `tasks.json`.
    command : of its tasks.
    base : what relative paths of the tasks' parameters start from.
    table : where the merged table goes.
    cores : that each task uses.
    """

    path: Path
    command: str
    base: Path
    table: Path
    cores: int = 1

    @property
    def tasks(self) -> Path:
        return self.path / "tasks.json"

    def save(self) -> None:
        """Make the folder, or take over one of the same layout.

        Raises
        ------
        InputError : there is something else.
        """
        if (self.path / "run.json").exists():
            RunFolder.load(self.path)
        elif self.path.exists() and not (self.path.is_dir() and all(n.startswith(".") for n in os.listdir(self.path))):
            raise InputError("is there, and no folder of a sweep", "another --out is wanted", source=self.path)
        what = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        del what["path"]
        write_atomic({self.path / "run.json": to_json({"layout": LAYOUT, "version": __version__, **what})})

    @classmethod
    def load(cls, path: Path) -> RunFolder:
        """The run whose folder this is.

        Raises
        ------
        InputError : it is none, or of another version of this program.
        """
        file = path / "run.json"
        try:
            what = json.loads(file.read_text())
            layout, version = what.pop("layout"), what.pop("version")
            if layout != LAYOUT:
                raise InputError(
                    f"written by thesis-cli {version}, whose folders have another layout ({layout}, not {LAYOUT})",
                    "that version, or another --out is wanted",
                    source=path,
                )
            return cls(path.absolute(), what["command"], Path(what["base"]), Path(what["table"]), int(what["cores"]))
        except InputError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            raise InputError("no folder of a sweep (it has no run.json)", source=path) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise InputError(f"damaged ({error!r})", "remove the folder, or give another --out", source=file) from None


@dataclass(frozen=True)
class Driver:
    """A process that runs tasks, or waits for those who do.

    Attributes
    ----------
    started : of its process, in clock ticks of its machine; tells it from a later one of the same number.
    jobs : tasks that it runs at once itself; 0 if others do.
    """

    host: str
    pid: int
    started: str
    jobs: int

    @property
    def alive(self) -> bool | None:
        """None if that cannot be seen from this machine."""
        if self.host != socket.gethostname():
            return None
        return _started(self.pid) == self.started


@contextmanager
def driving(file: Path, jobs: int) -> Iterator[None]:
    """Be the one driver of a task file: `tasks.driver` beside it says so.

    Raises
    ------
    InputError : there is another, and it is alive.
    """
    place = file.with_suffix(".driver")
    me = Driver(socket.gethostname(), os.getpid(), _started(os.getpid()), jobs)
    check_free(file)
    write_atomic({place: to_json(asdict(me))})
    try:
        yield
    finally:
        if driver_of(file) == me:
            place.unlink(missing_ok=True)


def check_free(file: Path) -> None:
    """Refuse a task file that another process works on, as far as that can be seen from here.

    Raises
    ------
    InputError : naming the process.
    """
    other = driver_of(file)
    if other and other.pid != os.getpid() and other.alive:
        raise InputError(f"another run works on {file} (process {other.pid})", "wait for it, or end it")


def driver_of(file: Path) -> Driver | None:
    """Who says that it works on a task file."""
    try:
        return Driver(**json.loads(file.with_suffix(".driver").read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def _started(pid: int) -> str:
    """When a process began; empty if there is none, `unknown` where the system does not say."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "unknown"
