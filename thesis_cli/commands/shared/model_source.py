"""Open what a command takes as a model: a file, or an object of Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, about

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
    InputError : naming the source, what is wrong and what would be right.
    """
    from thesis_cli.models.files import load_model
    from thesis_cli.models.objects import model_of

    if isinstance(source, str | Path):
        return load_model(source, format, evidence, probabilities)
    if format:
        raise InputError(f"--format {format} does not go with {label(source)}", "it is for files")
    with about(label(source)):
        return model_of(source, evidence, probabilities)


def label(source: ModelSource) -> str:
    """Name of a source in tables and messages: its path, or the type of the object."""
    return str(source) if isinstance(source, str | Path) else f"<{type(source).__name__}>"
