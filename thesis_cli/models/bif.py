"""Bayesian networks in the BIF format, read by pgmpy."""

from __future__ import annotations

import logging
import math
import re

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph

ROUNDING = 0.02
"""How far from 1 a column of a table may sum: published networks print few digits."""


def parse(text: str, source: str) -> FactorGraph:
    """Read a network; its variables are numbered in the order of their declarations.

    Raises
    ------
    InputError : what pgmpy cannot read, tables that are missing or short, entries that are no
        probabilities, and columns that do not sum to 1.
    """
    # pgmpy's reader skips a block whose closing brace is not followed at once by a newline.
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if not re.search(r"^\s*variable\b", text, re.MULTILINE):
        raise InputError("declares no variable", "a BIF file is wanted", source=source, line=1)
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    from pgmpy.readwrite import BIFReader

    try:
        reader = BIFReader(string=text)
    except Exception as error:  # pgmpy and pyparsing raise whatever comes
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"pgmpy cannot read it ({detail})", "a BIF file is wanted", source=source) from error
    names: list[str] = list(reader.variable_names)
    cardinalities = [len(reader.variable_states[name]) for name in names]
    index = {name: i for i, name in enumerate(names)}
    factors = []
    for name in names:
        if name not in reader.variable_cpds:
            raise InputError(
                f"variable {name} has no probability table",
                "a block 'probability (...)' for each variable is wanted",
                source=source,
                line=_line(text, "variable", name),
            )
        line = _line(text, "probability", name)
        scope = [name, *reader.variable_parents[name]]
        unknown = [parent for parent in scope if parent not in index]
        if unknown:
            raise InputError(f"{name} has a parent {unknown[0]}", "every parent is declared", source=source, line=line)
        shape = tuple(cardinalities[index[v]] for v in scope)
        table = _checked(np.asarray(reader.variable_cpds[name]), shape, name, source, line)
        factors.append(Factor(tuple(index[v] for v in scope), table))
    return FactorGraph(cardinalities, factors)


def _checked(table: Floats, shape: tuple[int, ...], name: str, source: str, line: int | None) -> Floats:
    """The log-potentials of a table of probabilities, first axis the child."""
    if table.size != math.prod(shape):
        problem, remedy = f"the table of {name} has {table.size} entries", f"{math.prod(shape)} are wanted"
    elif not np.all((table >= 0) & np.isfinite(table)):
        problem, remedy = f"the table of {name} has an entry below 0 or infinite", "probabilities are wanted"
    elif np.any(off := np.abs(table.reshape(shape[0], -1).sum(axis=0) - 1) > ROUNDING):
        total = table.reshape(shape[0], -1).sum(axis=0)[off][0]
        problem, remedy = (
            f"a distribution of {name} sums to {total:.6g}",
            "probabilities that sum to 1 are wanted",
        )
    else:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table.reshape(shape)))
    raise InputError(problem, remedy, source=source, line=line)


def _line(text: str, keyword: str, name: str) -> int | None:
    """1-based line of the block `keyword name`."""
    found = re.search(rf"^[^\n]*\b{keyword}\b[\s(\"]*{re.escape(name)}\b", text, re.MULTILINE | re.IGNORECASE)
    return text.count("\n", 0, found.start()) + 1 if found else None
