"""Small requests that together call the kernels that the commands call, with the same types.

numba compiles a kernel for the types of its arguments, and only a call shows which these are. So
each part of this table carries out commands on a model or a table of a few lines, which it writes
to a temporary folder. The results are thrown away.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from thesis_cli.base.errors import InputError, WorkFailed, describe

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
                found = {key: v.format(folder=folder) if isinstance(v, str) else v for key, v in values.items()}
                found |= {key: 1 for key in ("seed", "jobs") if key in command.fields}
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
