"""Names of variables and of their states in tables and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thesis_cli.commands.core.result import presentation

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Ints
    from thesis_cli.base.columns import Columns
    from thesis_cli.models.factor_graph import Model


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
