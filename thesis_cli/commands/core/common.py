"""Fields that several commands have, and what they stand for: the model, a seed, memory, the file of
`--uai`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, about
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.commands.core.fields import argument, files_named, option
from thesis_cli.inference.names import SolverName as SolverName

FormatName = Literal["uai", "fg", "bif", "cnf", "xmlbif", "net", "xdsl", "csv", "npy", "npz"]

GIB = 2**30

RUNS = Path("results/runs")
"""Folder of results that are given no name; it is made when it is needed."""


def model_argument() -> Any:
    """A model; its type is `ModelSource`."""
    return argument(
        "Model: a UAI, FG, BIF, CNF, XMLBIF, NET, XDSL, CSV, NPY or NPZ file; - reads standard input.",
        names="file",
        objects=True,
    )


def evidence_option() -> Any:
    """Evidence; its type is `tuple[str, ...] | None`."""
    return option(
        None,
        "Observed variables, as in xray=yes or 6=0,4=1; or a UAI evidence file: a count, then pairs of variable and"
        " state.",
        metavar="NAME=STATE|FILE",
        names="file",
    )


def format_option() -> Any:
    return option(None, "Format of the model file.", default_text="detected from its name or content")


def probabilities_option() -> Any:
    return option(False, "Read a vector as probabilities, not as log-potentials.")


if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model

    ModelSource = str | Path | Floats | FactorGraph | LogPotentials | Any
    """A path, a vector of log-potentials, a factor graph, or a discrete network of pgmpy."""
else:
    ModelSource = str


def open_model(
    source: ModelSource,
    format: str | None = None,
    evidence: Sequence[str] | None = None,
    probabilities: bool = False,
) -> Model:
    """The model that a source stands for.

    Parameters
    ----------
    source : a path, or an object.
    format : of the file, as for `load_model`; objects have none.
    evidence, probabilities : as for `load_model`.

    Raises
    ------
    InputError : the source is no model, or an option does not go with it; the message names the
        source.
    """
    from thesis_cli.models.factor_graph import LogPotentials

    with about(label(source)):
        model = _open(source, format, evidence, probabilities)
        if probabilities and (model is source or not isinstance(model, LogPotentials)):
            raise InputError("--probabilities is for vectors; the factors of a model hold potentials", "leave it out")
    return model


def open_function(source: ModelSource) -> Model:
    """A function f >= 0 of configurations as the model exp(phi) = f.

    Parameters
    ----------
    source : a path or an object, as for `open_model`; the entries of a vector are values of f.

    Raises
    ------
    InputError : the source is no such function; the message names it.
    """
    with about(label(source)):
        return _open(source, None, None, True)


def _open(source: ModelSource, format: str | None, evidence: Sequence[str] | None, probabilities: bool) -> Model:
    if isinstance(source, str | Path):
        from thesis_cli.models.files import load_model

        return load_model(source, format, evidence, probabilities)
    if format:
        raise InputError(f"--format {format} does not go with an object", "it is for files")
    from thesis_cli.models.files import model_of

    return model_of(source, evidence, probabilities)


def label(source: ModelSource) -> str:
    """Name of a source in tables and messages: its path, or the type of the object."""
    return str(source) if isinstance(source, str | Path) else f"<{type(source).__name__}>"


def memory_option(users: str = "exact solvers", **about: Any) -> Any:
    return option(2.0, f"Memory in GiB that {users} may use.", least=0.001, **about)


def solver_option(**about: Any) -> Any:
    return option("auto", "MAP solver; --verbose says which one auto chose, and why.", **about)


def max_configurations_option(default: int | None = 2**30, **about: Any) -> Any:
    return option(default, "Largest number of configurations to enumerate.", least=1, **about)


def confidence_option(**about: Any) -> Any:
    return option(0.95, "Confidence level of the interval.", above=0, below=1, **about)


def seed_option() -> Any:
    return option(
        None,
        "Seed of all random numbers.",
        least=0,
        default_text="drawn and printed",
        not_swept="list seeds at the top of the file",
    )


def jobs_option() -> Any:
    return option(
        None,
        "Cores to use; results do not depend on it.",
        least=1,
        default_text="all",
        not_swept="a task has the cores that the sweep gives it",
    )


def seed_or_fresh(seed: int | None) -> int:
    """The seed that was given, or one that nobody has used."""
    return int.from_bytes(os.urandom(4)) if seed is None else seed


def bytes_of(memory: float) -> int:
    """GiB in bytes."""
    return int(memory * GIB)


logger = logging.getLogger("thesis_cli")


def uai_option(task: str) -> Any:
    """File for the result; its type is `Path | None`.

    Parameters
    ----------
    task : PR, MAR or MPE.
    """
    return option(
        None,
        f"File for the result in the format of the UAI competitions, such as asia.uai.{task}.",
        names="output",
        not_swept="the tasks of a sweep would overwrite each other's file",
    )


def check_uai(path: Path | None, request: object) -> None:
    """Refuse, before the work, a file that cannot be written or that the request reads.

    Raises
    ------
    InputError : naming the file.
    """
    if path is None:
        return
    check_writable("--uai", path)
    if any(Path(text).resolve() == path.resolve() for text in files_named(request)):
        raise InputError(f"--uai {path} would overwrite the input", "give another --uai")


def write_uai(path: Path | None, text: str) -> None:
    """Write the text of `models.uai`, if a file was given."""
    if path is not None:
        write_atomic({path: text})
        logger.info("wrote %s", path)
