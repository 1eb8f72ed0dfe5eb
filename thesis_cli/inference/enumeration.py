"""The tables of a factor graph in one array, so that one compiled pass serves them all, and all configurations of a
model, a block at a time, in constant memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.progress import Tick
from thesis_cli.models.factor_graph import Factor, FactorGraph, Model

if TYPE_CHECKING:
    from thesis_cli.inference.enumeration_kernels import FlatFactors


class FlatTables(NamedTuple):
    """Tables of log-potentials.

    Attributes
    ----------
    sizes : number of states of each variable.
    first : the variables of table f are scopes[first[f] : first[f + 1]].
    scopes : variables.
    places : the entries of table f are tables[places[f] : places[f + 1]], last variable fastest.
    tables : nats.
    """

    sizes: Ints
    first: Ints
    scopes: Ints
    places: Ints
    tables: Floats


def flat_tables(sizes: Ints, factors: Sequence[Factor]) -> FlatTables:
    return FlatTables(
        sizes,
        starts([len(f.scope) for f in factors]),
        np.fromiter(chain.from_iterable(f.scope for f in factors), np.int64),
        starts([f.table.size for f in factors]),
        np.concatenate([np.empty(0), *(f.table.reshape(-1) for f in factors)]),
    )


def starts(lengths: Sequence[int] | Ints) -> Ints:
    """Starts of parts of lengths, shape (parts,), and the end of the last one; shape (parts + 1,)."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def joined(a: FlatTables, b: FlatTables) -> FlatTables:
    """The tables of both, over the same variables."""
    return FlatTables(
        a.sizes,
        np.concatenate([a.first, a.first[-1] + b.first[1:]]),
        np.concatenate([a.scopes, b.scopes]),
        np.concatenate([a.places, a.places[-1] + b.places[1:]]),
        np.concatenate([a.tables, b.tables]),
    )


def factor_of(t: FlatTables, f: int) -> Factor:
    """Table f as a factor."""
    scope = t.scopes[t.first[f] : t.first[f + 1]]
    return Factor(tuple(scope.tolist()), t.tables[t.places[f] : t.places[f + 1]].reshape(t.sizes[scope]))


def factors_of(t: FlatTables) -> list[Factor]:
    """Factors whose tables are views of the flat ones."""
    first, places, scopes = t.first.tolist(), t.places.tolist(), t.scopes.tolist()
    shapes = t.sizes[t.scopes].tolist()
    return [
        Factor(
            tuple(scopes[first[f] : first[f + 1]]),
            t.tables[places[f] : places[f + 1]].reshape(shapes[first[f] : first[f + 1]]),
        )
        for f in range(len(first) - 1)
    ]


def products(values: Ints, first: Ints) -> Ints:
    """Product of values[first[k] : first[k + 1]] for each k, shape (parts,); 1 for an empty part."""
    found = np.ones(first.size - 1, np.int64)
    filled = first[1:] > first[:-1]
    if filled.any():
        found[filled] = np.multiply.reduceat(values, first[:-1][filled])
    return found


def users_of(t: FlatTables) -> tuple[Ints, Ints]:
    """The tables that name each variable, one variable after the other, shape (sum of scopes,), and
    where those of each variable start, shape (n + 1,).
    """
    owner = np.repeat(np.arange(t.first.size - 1), np.diff(t.first))
    order = np.argsort(t.scopes, kind="stable")
    return owner[order], starts(np.bincount(t.scopes, minlength=t.sizes.size))


BLOCK = 2**16
"""Configurations in a block: 512 KiB of potentials, which stay in a core's cache."""
MAX_CONFIGURATIONS = 2**30
"""Default limit on |X|; a sweep over as many takes tens of seconds a perturbation."""


class Enumeration:
    """The configurations of a model in their order: last variable fastest, or the vector's own.

    Parameters
    ----------
    model : the model.
    max_configurations : largest number of configurations that is not refused.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    """

    def __init__(self, model: Model, max_configurations: int = MAX_CONFIGURATIONS) -> None:
        if model.size > max_configurations:
            raise ModelTooLarge(
                f"{model.describe()}: more than --max-configurations {max_configurations:,}",
                "raise it, or use a method that does not enumerate: exact if the width is small, or a bound",
            )
        self.size = model.size
        self._fill = (
            _graph_filler(model) if isinstance(model, FactorGraph) else partial(_fill_from_vector, model.values)
        )

    def blocks(self, block: int | None = None) -> Iterator[Floats]:
        """phi of the configurations, in consecutive blocks; each array is overwritten by the next.

        Parameters
        ----------
        block : configurations in each but the last; `BLOCK`, if not given.

        Raises
        ------
        InputError : a vector has a NaN or a `+inf`.
        """
        block = block or BLOCK
        buffer = np.empty(min(block, self.size))
        for start in range(0, self.size, block):
            part = buffer[: min(block, self.size - start)]
            self._fill(start, part)
            yield part


def _fill_from_vector(values: Floats, start: int, out: Floats) -> None:
    out[:] = values[start : start + out.size]
    wrong = np.isnan(out) | (out == np.inf)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"log-potential {start + at} is {out[at]}", "it must be finite, or -inf if the configuration is impossible"
        )


def _graph_filler(graph: FactorGraph) -> Callable[[int, Floats], None]:
    from thesis_cli.inference import enumeration_kernels

    layout = layout_of(graph)
    return lambda start, out: enumeration_kernels.fill(start, out, layout)


def layout_of(graph: FactorGraph) -> FlatFactors:
    """Flatten the factors for compiled kernels."""
    from thesis_cli.inference.enumeration_kernels import FlatFactors

    constant = float(sum(f.table for f in graph.factors if not f.scope))
    factors = sorted((f for f in graph.factors if f.scope), key=lambda f: max(f.scope))
    last = [max(f.scope) for f in factors]
    n = len(graph.cardinalities)
    return FlatFactors(
        np.array(graph.cardinalities, np.int64),
        constant,
        np.searchsorted(last, np.arange(n + 1)).astype(np.int64),
        starts([len(f.scope) for f in factors]),
        np.array([i for f in factors for i in f.scope], np.int64),
        np.array([s // 8 for f in factors for s in f.table.strides], np.int64),
        starts([f.table.size for f in factors]),
        np.concatenate([f.table.reshape(-1) for f in factors] or [np.empty(0)]),
    )


def log_partition_function(
    model: Model, *, max_configurations: int = MAX_CONFIGURATIONS, progress: Tick | None = None
) -> float:
    """Exact ln Z = ln sum_x exp(phi(x)), by one sweep over the configurations.

    Returns
    -------
    ln Z in nats; `-inf` when no configuration is possible.

    Raises
    ------
    ModelTooLarge, InputError : as `Enumeration`.
    """
    highest, total = -math.inf, 0.0
    for block in Enumeration(model, max_configurations).blocks():
        top = float(block.max())
        if top > highest:
            total *= math.exp(highest - top)
            highest = top
        if highest > -math.inf:
            with np.errstate(over="ignore"):  # 1e308 below or more is -inf, whose exponential is 0 too
                total += float(np.exp(block - highest).sum())
        if progress:
            progress(block.size)
    return highest + math.log(total) if total > 0 else -math.inf
