"""Models from Python objects: vectors, factor graphs, networks of pgmpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model


def model_of(source: object, evidence: Sequence[str] | None = None, probabilities: bool = False) -> Model:
    """The model that an object stands for."""
    if isinstance(source, FactorGraph | LogPotentials):
        return source
    values = np.asarray(source, dtype=np.float64)
    if probabilities:
        with np.errstate(divide="ignore"):
            values = np.log(values)
    if evidence:
        raise InputError("a vector takes no evidence", "leave evidence out")
    return LogPotentials(values)
