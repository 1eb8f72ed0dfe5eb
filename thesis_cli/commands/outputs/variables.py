"""Names of variables and of their states in tables and summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.base.columns import Columns
    from thesis_cli.models.factor_graph import FactorGraph, Model

SHOWN, SHOWN_STATES = 16, 8
"""Variables, and states of each, that a summary lists."""


def naming_columns(model: Model, variables: Ints, states: Ints) -> dict[str, Any]:
    """Columns of a table with a state of a variable in each row.

    Parameters
    ----------
    variables, states : one for each row, shape (rows,); states are numbered as without evidence.

    Returns
    -------
    `variable` and `state`; and `name` and `label`, their names, if the model has them.
    """
    from thesis_cli.models.factor_graph import FactorGraph

    names = model.names if isinstance(model, FactorGraph) else None
    columns: dict[str, Any] = {"variable": variables}
    if names:
        columns["name"] = [names.variables[i] for i in variables.tolist()]
    columns["state"] = states
    if names and any(names.states):
        columns["label"] = [names.state(i, k) for i, k in zip(variables.tolist(), states.tolist(), strict=True)]
    return columns


def column_names(model: Model) -> list[str]:
    """Headings for a column for each variable: names, or x0, x1, ...; `index` for a vector."""
    from thesis_cli.models.factor_graph import FactorGraph

    if not isinstance(model, FactorGraph):
        return ["index"]
    return list(model.names.variables) if model.names else [f"x{i}" for i in range(len(model.cardinalities))]


@presentation
def texts(columns: Columns, count: int) -> list[str]:
    """Each of the first rows as `name=label`; as the state alone if variables have no names."""
    states = [str(state) for state in columns["label" if "label" in columns else "state"][:count]]
    if "name" not in columns:
        return states
    return [f"{name}={state}" for name, state in zip(columns["name"], states, strict=False)]


def state_names(graph: FactorGraph) -> dict[str, tuple[str, ...]]:
    """The states of each variable, as they are numbered without evidence: names, else numbers."""
    names = graph.names
    return {
        column: tuple(names.state(i, k) if names else str(k) for k in range(graph.unobserved[i]))
        for i, column in enumerate(column_names(graph))
    }


@presentation
def distribution_lines(states: Mapping[str, Sequence[str]], probabilities: Sequence[Floats]) -> list[tuple[str, str]]:
    """A line for each of the first variables, with the probabilities of its first states.

    Parameters
    ----------
    states : as `state_names` gives them.
    probabilities : for each variable one for each state.
    """
    lines = []
    for (name, own), p in islice(zip(states.items(), probabilities, strict=True), SHOWN):
        pairs = ", ".join(f"{state} {value:.4g}" for state, value in islice(zip(own, p, strict=True), SHOWN_STATES))
        lines.append((name, pairs + f" ... ({len(own)} states)" * (len(own) > SHOWN_STATES)))
    if len(states) > SHOWN:
        lines.append(("...", f"{len(states)} variables in all"))
    return lines
