"""Networks of pgmpy: their objects, and the files that pgmpy reads (XMLBIF, HUGIN's NET, GeNIe's XDSL)."""

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph, Names

FILES = ("xmlbif", "net", "xdsl")
"""Formats that pgmpy reads here."""

KINDS = "give a path, a vector of numbers, a FactorGraph, or a discrete network of pgmpy"


def parse(kind: str, text: str) -> FactorGraph:
    """Read a Bayesian network from the text of a file.

    Parameters
    ----------
    kind : one of `FILES`.

    Raises
    ------
    InputError : pgmpy cannot read it, or the network is refused by `from_pgmpy`.
    """
    from pgmpy.readwrite import NETReader, XDSLReader, XMLBIFReader
    from pyparsing import ParseBaseException

    if "<!ENTITY" in text:
        raise InputError("declares XML entities", "write the values themselves")
    reader = {"xmlbif": XMLBIFReader, "net": NETReader, "xdsl": XDSLReader}[kind]
    source: Any = text.encode() if kind == "xdsl" else text
    try:
        network = reader(string=source).get_model()
    except (AttributeError, LookupError, SyntaxError, TypeError, ValueError, ParseBaseException) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"is no {kind.upper()} file that pgmpy reads: {why}", f"save it as {kind} again") from error
    return from_pgmpy(network)


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


def to_pgmpy(graph: FactorGraph) -> Any:
    """Convert a model to a `DiscreteMarkovNetwork` of pgmpy, with its names.

    Variables without names are x0, x1, ..., states without names their numbers. The potentials are
    exp of the log-potentials, so that both have the same partition function.

    Raises
    ------
    InputError : a potential is too large for a double, or a factor has no variables.
    """
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    names = graph.names.variables if graph.names else tuple(f"x{i}" for i in range(len(graph.cardinalities)))
    states = [
        [graph.names.state(i, graph.observed.get(i, k)) if graph.names else str(k) for k in range(count)]
        for i, count in enumerate(graph.cardinalities)
    ]
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(names)
    scale = max((float(factor.table.max()) for factor in graph.factors), default=0.0)
    if scale > np.log(np.finfo(float).max):
        raise InputError(f"a log-potential is {scale:g}, and pgmpy takes potentials below 1e308", "scale the model")
    for scope, table in graph.factors:
        own = [names[i] for i in scope]
        if not own:
            raise InputError("a factor has no variables, which pgmpy cannot hold", "multiply it into another factor")
        network.add_edges_from((u, v) for k, u in enumerate(own) for v in own[:k])
        cards = [graph.cardinalities[i] for i in scope]
        labels = {names[i]: states[i] for i in scope}
        network.add_factors(DiscreteFactor(own, cards, np.exp(table).ravel(), state_names=labels))
    return network
