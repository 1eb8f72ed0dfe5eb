"""`thesis-cli compile`: compile the kernels of all commands, so that none compiles at its first use.

numba compiles a kernel for the types of its arguments, and only a call shows which these are. So each part of
`PARTS` carries out commands on a model or a table of a few lines, which it writes to a temporary folder: small
requests that together call the kernels that the commands call, with the same types. The results are thrown away.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from thesis_cli.base.errors import InputError, WorkFailed, describe
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.pool import answers
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import Request
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.commands import OwnCommand, task_bars

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = ("numba", "llvmlite", "numpy")
RECORD = "thesis-cli-compiled.json"

Call = tuple[str, Mapping[str, object]]
"""A command by its name in the shell, and fields of its request; `{folder}` in a text is the folder
of the inputs."""


class Part(NamedTuple):
    """Commands that share kernels, so that one process compiles them.

    Attributes
    ----------
    name : for messages.
    calls : the commands, in order.
    modules : further modules, whose `prepare` calls kernels that no command of a part calls.
    """

    name: str
    calls: tuple[Call, ...]
    modules: tuple[str, ...] = ()


GRID, ATTRACTIVE = "{folder}/grid.uai", "{folder}/attractive.uai"
LONG, COLOURS = "{folder}/long.uai", "{folder}/colours.uai"
"""Too many variables for elimination without compiled code."""

PEOPLE = "{folder}/people.csv"
_RELEASE: Mapping[str, object] = {"table": PEOPLE, "schema": "{folder}/people.toml", "epsilon": 1}
_RELEASED = "{folder}/release.csv"
_RANKS, _RANKER = "{folder}/ranks.csv", "{folder}/ranker.safetensors"
_CHOSEN, _CHOOSER = "{folder}/chosen.csv", "{folder}/chooser.safetensors"
_LABELS: Mapping[str, object] = {"labels": 3, "seed": 0}

PARTS = (
    Part(
        "corpora",
        (
            ("make-corpus", {"length": 3, "count": 20, "test": 2}),
            ("make-corpus", {"length": 4, "all_lengths": True, "count": 10, "inputs": "[int]"}),
        ),
    ),
    Part("densities", (("posterior", {"regression": "{folder}/line.csv", "samples": 4, "exact": True}),)),
    Part(
        "binary grids",
        (
            ("spin-glass", {"published": "1", "samples": 4}),
            ("spin-glass", {"size": "5x5", "samples": 200}),
            ("map", {"model": LONG}),
            ("map", {"model": GRID, "solver": "grid-strips"}),
            ("map", {"model": GRID, "solver": "trw-s"}),
            ("map", {"model": GRID, "solver": "qpbo"}),
            ("map", {"model": ATTRACTIVE, "solver": "graph-cut"}),
            ("estimate-z", {"model": LONG, "method": "exact"}),
            ("estimate-z", {"model": GRID, "method": "expanded", "copies": 4}),
            ("estimate-z", {"model": GRID, "method": "wish", "samples": 2, "max_configurations": 4}),
        ),
        ("thesis_cli.models.bulk", "thesis_cli.inference.message_passing.block_search"),
    ),
    Part(
        "releases",
        (
            ("dp-release", {**_RELEASE, "delta": 1e-6}),
            ("dp-release", {**_RELEASE, "delta": 1e-6, "method": "features", "out": _RELEASED}),
            ("dp-test", {"release": _RELEASED, "other": PEOPLE, "permutations": 20}),
            ("dp-audit", {"runs": 40, "command_runs": 0}),
        ),
    ),
    Part(
        "other models",
        (
            ("bound", {"model": COLOURS, "exact": True}),
            ("bound", {"model": COLOURS, "method": "bethe"}),
            ("bound", {"model": COLOURS, "method": "unary", "samples": 4}),
            ("map", {"model": COLOURS, "solver": "elimination"}),
            ("map", {"model": "{folder}/states.uai", "solver": "elimination"}),
            ("bound", {"model": COLOURS, "method": "importance", "table_size": 1}),
            ("map", {"model": COLOURS, "solver": "trw-s"}),
            ("map", {"model": COLOURS, "solver": "max-product"}),
            ("estimate-z", {"model": COLOURS, "method": "ais", "chains": 2, "temperatures": 2}),
            ("estimate-z", {"model": COLOURS, "method": "coupling", "chains": 2, "temperatures": 2}),
        ),
    ),
    Part(
        "programs",
        (("synthesize", {"tasks": "{folder}/task.json", "timeout": 60}),),
        (
            "thesis_cli.synthesis.search.execution",
            "thesis_cli.synthesis.networks.next_line",
            "thesis_cli.synthesis.networks.state_kernels",
        ),
    ),
    Part(
        "rankings and labels",
        (
            ("structured train", {"data": _RANKS, "task": "ranking", **_LABELS, "out": _RANKER}),
            ("structured predict", {"data": _RANKS, "weights": _RANKER, "best": 2}),
            ("structured train", {"data": _CHOSEN, "task": "multilabel", **_LABELS, "out": _CHOOSER}),
            ("structured predict", {"data": _CHOSEN, "weights": _CHOOSER, "decision": "marginal"}),
        ),
    ),
    Part(
        "enumerations",
        (
            ("estimate-z", {"model": "{folder}/vector.csv", "samples": 4}),
            ("estimate-z", {"model": "{folder}/vector.csv", "method": "wish", "samples": 4}),
        ),
        ("thesis_cli.studies.perturbation.published_messages",),
    ),
    Part(
        "entropies",
        (
            ("renyi", {"model": GRID, "shannon": True, "bounds": True, "samples": 4}),
            ("renyi", {"model": GRID, "integrand": GRID, "samples": 4}),
        ),
    ),
    Part(
        "marginals",
        (
            ("marginals", {"model": GRID, "method": "bethe"}),
            ("marginals", {"model": LONG, "method": "exact"}),
            ("marginals", {"model": LONG, "method": "sample", "samples": 4}),
        ),
        ("thesis_cli.inference.zeros.sparse_elimination", "thesis_cli.inference.elimination.contraction"),
    ),
    Part("races", (("race", {"factors": "{folder}/factors.npy", "samples": 4}),)),
    Part("releases in a subspace", (("dp-release", {**_RELEASE, "delta": 1e-6, "method": "subspace", "size": 20}),)),
)
"""The longest first, and those that share kernels apart from each other."""


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
        write_inputs(Path(inputs))
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
    one_writer_at_a_time(lock)
    error = carry_out(part, inputs)
    return cache_folders(), error


def write_inputs(folder: Path) -> None:
    """Write the models, tables and tasks that the parts read."""
    import numpy as np

    from thesis_cli.models import uai
    from thesis_cli.models.factor_graph import Factor, FactorGraph
    from thesis_cli.models.spin_glass import SpinGlass
    from thesis_cli.privacy.examples import SCHEMA, people

    rng = np.random.default_rng(1)
    glass = SpinGlass(rng.normal(size=(4, 4)), rng.normal(size=(4, 3)), rng.normal(size=(3, 4)))
    # Smaller grids are cut as other networks are.
    attractive = SpinGlass(rng.normal(size=(16, 16)), np.ones((16, 15)), np.ones((15, 16)))
    long = SpinGlass(rng.normal(size=(3, 14)), rng.normal(size=(3, 13)), rng.normal(size=(2, 14)))
    edges = [(3 * i + j, 3 * i + j + 1) for i in range(14) for j in range(2)]
    edges += [(i, i + 3) for i in range(39)]
    factors = [Factor(edge, rng.normal(size=(3, 3))) for edge in edges]
    texts = {
        "grid.uai": uai.write(glass.graph()),
        "attractive.uai": uai.write(attractive.graph()),
        "long.uai": uai.write(long.graph()),
        "colours.uai": uai.write(FactorGraph([3] * 42, factors)),
        "states.uai": "MARKOV 1 300 1 1 0 300" + " 1" * 299 + " 2",  # their numbers exceed a byte
        "vector.csv": "log_potential\n" + "".join(f"{-0.1 * i}\n" for i in range(50)),
        "line.csv": "x,y\n" + "".join(f"{i - 2},{2 * i - 3.5}\n" for i in range(5)),
        "task.json": json.dumps(
            {
                "name": "any",
                "examples": [
                    {"inputs": [[3, 7, 5, 2, 8]], "output": [3, 2, 5, 2, 3]},
                    {"inputs": [[14, 23, -10, 6]], "output": [6, -10, -10, 6]},
                ],
            }
        ),
        "ranks.csv": "x,y,a,b,c\n"
        + "".join(f"{i},{i % 7},{1 + i % 3},{1 + (i + 1) % 3},{1 + (i + 2) % 3}\n" for i in range(60)),
        "chosen.csv": "x,y,a,b,c\n" + "".join(f"{i},{i % 7},{i % 2},{i // 2 % 2},{i // 4 % 2}\n" for i in range(60)),
        "people.toml": SCHEMA,
        "people.csv": people(40, rng),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    np.save(folder / "factors.npy", rng.normal(size=(3, 200)))


def carry_out(part: Part, folder: Path) -> str | None:
    """Carry out the calls of a part, which compiles what they need; returns what failed."""
    from thesis_cli.commands.core.command import command_named

    logger = logging.getLogger("thesis_cli")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, values in part.calls:
                command = command_named(name)
                found: dict[str, object] = {key: 1 for key in ("seed", "jobs") if key in command.fields}
                found |= {key: v.format(folder=folder) if isinstance(v, str) else v for key, v in values.items()}
                command.execute(command.request(**found))
            for name in part.modules:
                import_module(name).prepare()
    except (InputError, WorkFailed, OSError, RuntimeError, MemoryError) as error:
        return f"{name}: {' '.join(describe(error).split())}"
    finally:
        logger.setLevel(level)
    return None


def cache_folders() -> set[str]:
    """Folders in which numba keeps the kernels that this process has imported."""
    from numba.core.dispatcher import Dispatcher

    found = set()
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "thesis_cli":
            kernels = (value for value in vars(module).values() if isinstance(value, Dispatcher))
            found |= {kernel.stats.cache_path for kernel in kernels}
    return {folder for folder in found if folder}


@cache
def one_writer_at_a_time(lock: Path) -> None:
    """Let this process write to numba's cache only while it holds a lock.

    numba reads the index of the compiled versions of a function, adds one, and writes it again. If
    two processes do so at once, one version is lost, or takes the file of the other.
    """
    from filelock import FileLock
    from numba.core.caching import IndexDataCacheFile

    save = IndexDataCacheFile.save

    def locked(self: IndexDataCacheFile, key: object, data: object) -> None:
        with FileLock(lock):
            save(self, key, data)  # type: ignore[no-untyped-call]

    IndexDataCacheFile.save = locked  # type: ignore[method-assign]


COMMANDS = {"compile": OwnCommand(CompileRequest, run, examples=("compile",))}
