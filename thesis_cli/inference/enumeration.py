"""All configurations of a model, a block at a time, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.progress import Tick
from thesis_cli.inference.flat_tables import starts
from thesis_cli.models.factor_graph import FactorGraph, Model

if TYPE_CHECKING:
    from thesis_cli.inference.enumeration_kernels import FlatFactors

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
