"""Models from Python objects: vectors, factor graphs, networks of pgmpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models import vector
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model
from thesis_cli.models.files import conditioned
from thesis_cli.models.networks import KINDS, from_pgmpy


def model_of(source: Any, evidence: Sequence[str | Path] | None = None, probabilities: bool = False) -> Model:
    """The model that a Python object stands for.

    Parameters
    ----------
    source : a vector of log-potentials, shape (N,); a `FactorGraph` or `LogPotentials`; or a
        Bayesian network, Markov network or factor graph of pgmpy.
    evidence : observations that condition a model with variables, as for `load_model`.
    probabilities : the entries of a vector are probabilities up to a constant factor, not
        log-potentials.

    Raises
    ------
    InputError : the object is no model, or the evidence does not go with it.
    """
    if isinstance(source, FactorGraph | LogPotentials):
        return conditioned(source, evidence)
    if is_pgmpy(source):
        return conditioned(from_pgmpy(source), evidence)
    try:
        values = np.asarray(source)
    except (TypeError, ValueError):  # such as lists of different lengths
        values = np.asarray(None)
    if values.dtype.kind not in "fiu":
        raise InputError(f"an object of type {type(source).__name__} is no model", KINDS)
    return conditioned(vector.model(values, "", probabilities), evidence)


def is_pgmpy(source: object) -> bool:
    """Whether an object is of a class of pgmpy, or one derived from it; pgmpy is not imported."""
    return any(kind.__module__.split(".")[0] == "pgmpy" for kind in type(source).__mro__)
