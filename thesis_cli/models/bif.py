"""Bayesian networks in the BIF format, read by pgmpy."""

from __future__ import annotations

import logging
import math
import re

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.names import Names

ROUNDING = 0.02
"""Largest distance of the sum of a distribution from 1: published networks print few digits."""


def parse(text: str, source: str) -> FactorGraph:
    """Read a network; variables are numbered in the order of their declarations.

    Raises
    ------
    InputError : pgmpy cannot read the text, a table is missing or has the wrong number of entries,
        an entry is no probability, or a distribution does not sum to 1.
    """
    # pgmpy's reader skips a block whose closing brace is not followed at once by a newline.
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if not re.search(r"^\s*variable\b", text, re.MULTILINE):
        raise InputError("declares no variable", "give a BIF file", source=source, line=1)
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    from pgmpy.readwrite import BIFReader

    try:
        reader = BIFReader(string=text)
    except Exception as error:  # pgmpy and pyparsing raise errors of any kind
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"pgmpy cannot read it ({detail})", "give a BIF file", source=source) from error
    names: list[str] = list(reader.variable_names)
    cardinalities = [len(reader.variable_states[name]) for name in names]
    index = {name: i for i, name in enumerate(names)}
    factors = []
    for name in names:
        if name not in reader.variable_cpds:
            raise InputError(
                f"variable {name} has no probability table",
                "give a block 'probability (...)' for each variable",
                source=source,
                line=_line(text, "variable", name),
            )
        line = _line(text, "probability", name)
        scope = [name, *reader.variable_parents[name]]
        unknown = [parent for parent in scope if parent not in index]
        if unknown:
            raise InputError(f"{name} has a parent {unknown[0]}", "declare every parent", source=source, line=line)
        shape = tuple(cardinalities[index[v]] for v in scope)
        table = _checked(np.asarray(reader.variable_cpds[name]), shape, name, source, line)
        factors.append(Factor(tuple(index[v] for v in scope), table))
    known = Names(tuple(names), tuple(tuple(map(str, reader.variable_states[name])) for name in names))
    return FactorGraph(cardinalities, factors, names=known)


def _checked(table: Floats, shape: tuple[int, ...], name: str, source: str, line: int | None) -> Floats:
    """Log-potentials of a table of probabilities; its first axis is the child."""
    if table.size != math.prod(shape):
        problem, remedy = f"the table of {name} has {table.size} entries", f"it must have {math.prod(shape)}"
    elif not np.all((table >= 0) & np.isfinite(table)):
        problem, remedy = (
            f"the table of {name} has an entry below 0 or infinite",
            "probabilities must be between 0 and 1",
        )
    elif np.any(off := np.abs(table.reshape(shape[0], -1).sum(axis=0) - 1) > ROUNDING):
        total = table.reshape(shape[0], -1).sum(axis=0)[off][0]
        problem, remedy = f"a distribution of {name} sums to {total:.6g}", "it must sum to 1"
    else:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table.reshape(shape)))
    raise InputError(problem, remedy, source=source, line=line)


def _line(text: str, keyword: str, name: str) -> int | None:
    """Line of the block `keyword name`, from 1; None if it is not found."""
    found = re.search(rf"^[^\n]*\b{keyword}\b[\s(\"]*{re.escape(name)}\b", text, re.MULTILINE | re.IGNORECASE)
    return text.count("\n", 0, found.start()) + 1 if found else None
