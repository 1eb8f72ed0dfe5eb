"""Choice of variables to hold at a state, one slice after the other, so that an elimination fits into
the memory; and what it is predicted to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.base.memory import SECONDS_A_BYTE, Cost, bytes_text
from thesis_cli.inference.elimination.order import Clique, best_order, cliques_of
from thesis_cli.inference.elimination.plan import BLOCK, Plan, make_plan

SECONDS_A_STEP, SECONDS_AN_ENTRY = 1e-5, 9e-10
"""Time that a step takes, and an entry of its table."""

SECONDS_OF_A_RUN, SECONDS_GATHERED = 1.3e-10, 4.3e-10
"""Time for each entry and each input of its step, where a block reads a run of it, and elsewhere.

All come from processor times of 12 networks of `benchmarks/exact.py`, .006 to 1 s, of which 10 were within
a factor of 1.25, on two cores of an AMD EPYC that others used too.
"""

SCRATCH = 2 * BLOCK
"""Entries of a block and their offsets."""

SMALLEST = 2**20
"""Bytes of memory below which a model is not solved in slices."""

FEWEST = 1
"""Number of slices at least, while a variable is left."""

PATIENCE = 3600.0
"""Predicted seconds beyond which a model is not solved in slices."""

PLANNABLE = 45.0
"""log2 of the entries of all tables up to which slices are looked for."""


GAIN = 6.0
"""Bits that the search for an order is not expected to gain on the first greedy one."""


@dataclass(frozen=True)
class Prepared:
    """A plan of elimination, in slices if needed.

    Attributes
    ----------
    plan : steps of a slice.
    held : variables that each slice holds at a state.
    slices : number of slices.
    width : variables of the largest table, less one.
    entries : of the tables of all slices.
    cost : of one partition function.
    """

    plan: Plan
    held: list[int]
    slices: int
    width: int
    entries: int
    cost: Cost


def prepared(
    cardinalities: Sequence[int], scopes: Sequence[Clique], memory: int, seconds: float = math.inf
) -> Prepared:
    """The plan of an elimination that fits into the memory.

    Parameters
    ----------
    seconds : that the entries of all tables may take alone; nothing is planned for what takes longer.

    Raises
    ------
    ModelTooLarge : there is none that takes a reasonable time.
    """
    most = math.log2(max(1.0, seconds / SECONDS_AN_ENTRY))
    ordering = best_order(cardinalities, scopes, largest=math.log2(max(memory, 1)) - 4, most=most + GAIN)
    width = ordering.width
    if ordering.bits > min(PLANNABLE, most):
        entries = 2 ** min(math.ceil(ordering.bits + 4) - 4, 1000)
        raise too_large(Cost(SECONDS_AN_ENTRY * entries, 16 * entries), width, memory)
    named = sorted({i for scope in scopes for i in scope})
    inside = set(named)
    order = [i for i in ordering.order if i in inside]
    plan = make_plan(cardinalities, order, cliques_of(order, scopes), scopes)
    cost = predicted(plan, 1)
    whole = cost
    held: list[int] = []
    slices = 1
    while cost.memory > memory or (slices < FEWEST and plan.order):
        if memory < SMALLEST or not plan.order or cost.seconds > PATIENCE:
            raise too_large(whole, width, memory)
        chosen = _cheapest(plan)
        held.append(chosen)
        slices *= cardinalities[chosen]
        left = [tuple(i for i in scope if i != chosen) for scope in scopes]
        scopes = left
        order = [i for i in plan.order if i != chosen]
        plan = make_plan(cardinalities, *_named(order, scopes), scopes)
        cost = predicted(plan, slices)
        width = max(map(len, plan.cliques), default=1) - 1
    if cost.seconds > PATIENCE and held:
        raise too_large(whole, ordering.width, memory)
    return Prepared(plan, held, slices, max(0, width), slices * sum(plan.sizes), cost)


def _named(order: list[int], scopes: Sequence[Clique]) -> tuple[list[int], list[Clique]]:
    """The variables that factors name, in order, and their cliques."""
    inside = {i for scope in scopes for i in scope}
    order = [i for i in order if i in inside]
    return order, cliques_of(order, scopes)


def too_large(cost: Cost, width: int, memory: int) -> ModelTooLarge:
    """The error about a model that does not fit.

    Parameters
    ----------
    cost, width : bytes and seconds of the elimination, and largest number of variables of a table.
    memory : bytes that it may take.
    """
    return ModelTooLarge(
        f"elimination needs {bytes_text(cost.memory)} at width {width}",
        f"raise the memory from {bytes_text(memory)}, or use a method that approximates",
        memory=cost.memory,
        seconds=cost.seconds,
        width=width,
    )


def _cheapest(plan: Plan) -> int:
    """The variable of the largest table that adds least work if it is held."""
    sizes = np.array(plan.sizes, dtype=np.float64)
    largest = plan.cliques[int(sizes.argmax())]
    within = {i: 0.0 for i in largest}
    for clique, size in zip(plan.cliques, sizes, strict=True):
        for i in clique:
            if i in within:
                within[i] += size
    # total work of all slices is k (sum of tables without i) + (sum of tables with i)
    total = float(sizes.sum())
    return min(largest, key=lambda i: (plan.cardinalities[i] * (total - within[i]) + within[i], i))


def predicted(plan: Plan, slices: int) -> Cost:
    """Cost of one partition function."""
    sizes, steps = np.array(plan.sizes, dtype=np.float64), plan.steps
    inputs = np.diff(steps.inputs)
    runs = np.diff(np.concatenate([[0], np.cumsum(steps.whole)])[steps.inputs])
    an_entry = SECONDS_AN_ENTRY + SECONDS_OF_A_RUN * runs + SECONDS_GATHERED * (inputs - runs)
    memory = 8 * (plan.places[1] + 2 * int(plan.group_at[-1]) + SCRATCH)
    seconds = SECONDS_A_STEP * len(plan.order) + float((an_entry * sizes).sum())
    return Cost(slices * seconds + SECONDS_A_BYTE * memory, memory)
