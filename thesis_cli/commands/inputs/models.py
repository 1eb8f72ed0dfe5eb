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
    from thesis_cli.models.objects import model_of

    return model_of(source, evidence, probabilities)


def label(source: ModelSource) -> str:
    """Name of a source in tables and messages: its path, or the type of the object."""
    return str(source) if isinstance(source, str | Path) else f"<{type(source).__name__}>"
