"""Models from Python objects: vectors, factor graphs, networks of pgmpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models import vector
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials, Model, Names
from thesis_cli.models.files import conditioned

KINDS = "give a path, a vector of numbers, a FactorGraph, or a discrete network of pgmpy"


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


def from_pgmpy(network: Any) -> FactorGraph:
    """Convert a Bayesian network, Markov network or factor graph of pgmpy, with its names.

    The variables are numbered in the order of the network's nodes, the states in the order in which
    the first table that names a variable lists them.

    Raises
    ------
    InputError : the network is not discrete, a variable has no table, or two tables disagree on its
        states.
    """
    factors = _factors_of(network)
    states: dict[Any, list[Any]] = {}
    for factor in factors:
        for name in factor.variables:
            states.setdefault(name, list(factor.state_names[name]))
    variables = list(network.nodes())
    if hasattr(network, "get_factor_nodes"):  # its factors are nodes too
        variables = [node for node in variables if node in states]
    for name in variables:
        if name not in states:
            raise InputError(f"variable {name} has no table", "add its CPD or a factor to the network")
    index = {name: i for i, name in enumerate(variables)}
    if any(name not in index for name in states):
        raise InputError("a table names a variable that is no node of the network", "add the node")
    names = Names(tuple(map(str, variables)), tuple(tuple(map(str, states[name])) for name in variables))
    tables = [Factor(tuple(index[v] for v in f.variables), _log_table(f, states)) for f in factors]
    return FactorGraph([len(states[name]) for name in variables], tables, names=names)


def _factors_of(network: Any) -> list[Any]:
    """The tables of a network: its CPDs or its factors."""
    get = getattr(network, "get_cpds", None) or getattr(network, "get_factors", None)
    factors = list(get()) if get else []
    if not factors or not all(hasattr(f, "values") and hasattr(f, "state_names") for f in factors):
        raise InputError(f"the class {type(network).__name__} of pgmpy has no tables of discrete variables", KINDS)
    return factors


def _log_table(factor: Any, states: dict[Any, list[Any]]) -> Any:
    """Log-potentials of a table, with the states of each variable in their common order."""
    table = np.asarray(factor.values, dtype=np.float64)
    for axis, name in enumerate(factor.variables):
        own = list(factor.state_names[name])
        if sorted(map(repr, own)) != sorted(map(repr, states[name])):
            raise InputError(f"two tables disagree on the states of {name}", f"one lists {states[name]}, another {own}")
        if own != states[name]:
            table = table.take([own.index(state) for state in states[name]], axis=axis)
    if not np.all((table >= 0) & np.isfinite(table)):
        raise InputError(
            f"the table of {', '.join(map(str, factor.variables))} has a negative entry, a NaN or an infinity",
            "the entries must be finite and 0 or above",
        )
    with np.errstate(divide="ignore"):
        return np.log(table)
