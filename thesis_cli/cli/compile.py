"""`thesis-cli compile`: compile the kernels of all commands, so that none compiles at its first use."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.pool import answers
from thesis_cli.base.progress import Progress
from thesis_cli.cli import warm_up
from thesis_cli.cli.warm_up import PARTS, Part
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import Request
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.commands import OwnCommand, task_bars

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = ("numba", "llvmlite", "numpy")
RECORD = "thesis-cli-compiled.json"


@dataclass(frozen=True, kw_only=True)
class CompileRequest(Request):
    """Compile the kernels of all commands into the cache, so that no command compiles them at its
    first use.

    Kernels that are compiled already are not compiled again, and an interrupted run continues where
    it stopped. The kernels belong to this version of the package, to this processor and to one
    folder, which NUMBA_CACHE_DIR changes.
    """

    jobs: int | None = jobs_option()


@dataclass
class Compiled:
    """The parts that are compiled into a folder, as a file in this folder records them.

    Attributes
    ----------
    path : the file.
    code : digest of what the compiled code depends on.
    parts : names of the parts.
    files : files of the cache that they need, at least.
    """

    path: Path
    code: str
    parts: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path, code: str) -> Compiled:
        """The record of the folder; nothing if it is about other code, or if a file is gone."""
        try:
            found = json.loads(path.read_text())
            if found["code"] == code and all(map(os.path.exists, found["files"])):
                return cls(path, code, set(found["parts"]), set(found["files"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return cls(path, code)

    def add(self, part: Part, folders: set[str]) -> None:
        """Record a part, and the files that are in its folders now."""
        self.parts.add(part.name)
        self.files |= {str(file) for folder in folders for file in Path(folder).glob("*.nb[ci]")}
        record = {"code": self.code, "parts": sorted(self.parts), "files": sorted(self.files)}
        write_atomic({self.path: to_json(record)})


@dataclass(frozen=True, kw_only=True, repr=False)
class CompileResult(Summary):
    """Summary of a compilation.

    Attributes
    ----------
    compiled, kept : number of parts that were compiled now and before.
    errors : why the others are not, a line each.
    folder : folder of the compiled code.
    """

    compiled: int
    kept: int
    errors: Sequence[str]
    folder: Path
    seconds: float

    def failures(self, full: bool = False) -> Sequence[str]:
        failed = f"{len(self.errors)} of {len(PARTS)} parts are not compiled"
        return [f"{failed}: {self.errors[0]}"] if self.errors else ()

    def facts(self) -> Mapping[str, Any]:
        found = {"compiled": self.compiled, "kept": self.kept, "errors": self.errors, "folder": str(self.folder)}
        return {**found, "seconds": round(self.seconds, 3)}

    def lines(self) -> list[tuple[str, str]]:
        kept = f", {self.kept} were compiled before" if self.kept else ""
        done = ("parts", f"{self.compiled} compiled{kept}")
        return [done, ("folder", str(self.folder)), ("cost", f"{self.seconds:.1f} s")]


def run(request: CompileRequest, progress: Progress) -> CompileResult:
    """Compile what is not compiled yet."""
    began = time.perf_counter()
    folder = cache_folder()
    compiled = Compiled.read(folder / RECORD, digest())
    missing = [part for part in PARTS if part.name not in compiled.parts]
    errors = []
    if missing:
        with task_bars(progress)(len(missing), "compiling") as tick:
            for part, folders, error in compile_parts(missing, jobs_or_all(request.jobs), folder):
                if error is None:
                    compiled.add(part, folders)
                else:
                    errors.append(error)
                tick(1)
    return CompileResult(
        request=request,
        compiled=len(missing) - len(errors),
        kept=len(PARTS) - len(missing),
        errors=errors,
        folder=folder,
        seconds=time.perf_counter() - began,
    )


def cache_folder() -> Path:
    """The folder of numba's cache in which the record is.

    Raises
    ------
    WorkFailed : there is no folder that can be written.
    """
    try:
        from thesis_cli.inference.enumeration_kernels import fill
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        raise WorkFailed(
            f"no folder for compiled code can be written, neither {PACKAGE} nor that of the user; set NUMBA_CACHE_DIR"
            " to one that can"
        ) from error
    return Path(getattr(fill, "stats").cache_path)  # noqa: B009  fill is typed as what it computes


def sources() -> list[Path]:
    """Files with compiled functions."""
    marks = b"njit", b"base.compiled"
    return [path for path in sorted(PACKAGE.rglob("*.py")) if any(mark in path.read_bytes() for mark in marks)]


def digest() -> str:
    """Digest of what compiled code depends on: versions, processor, kernels and the parts."""
    from llvmlite import binding

    stamps = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sources()]
    processor = (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    about = (sys.version, [version(name) for name in LIBRARIES], processor, settings, stamps, PARTS)
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def compile_parts(
    parts: Sequence[Part], jobs: int, folder: Path
) -> Generator[tuple[Part, set[str], str | None], None, None]:
    """Compile parts in several processes; yields each part, its folders of the cache, and what failed."""
    with tempfile.TemporaryDirectory(prefix="thesis-cli-compile-") as inputs:
        warm_up.write_inputs(Path(inputs))
        work = partial(_compile, Path(inputs), folder / ".thesis-cli-compile.lock")
        places = range(len(parts))
        with closing(answers(work, lambda chosen: (parts[i] for i in chosen), places, jobs)) as found:
            for place, answer in found:
                part = parts[place]
                if isinstance(answer, tuple):
                    yield part, *answer
                else:
                    yield part, set(), f"{part.name}: {answer}"


def _compile(inputs: Path, lock: Path, part: Part) -> tuple[set[str], str | None]:
    warm_up.one_writer_at_a_time(lock)
    error = warm_up.carry_out(part, inputs)
    return warm_up.cache_folders(), error


COMMANDS = {"compile": OwnCommand(CompileRequest, run, examples=("compile",))}
