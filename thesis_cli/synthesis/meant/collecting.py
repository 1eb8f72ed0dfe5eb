"""Collects what fits a task: all programs in turn, length by length, and the one that a search found.

If the work does not suffice for all programs of a length, the network that looks at the examples decides
which ones come first; a prior or a guide of the user's overrules it.
"""

from __future__ import annotations

from dataclasses import replace

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.meant.classes import Collection, Collector, lines_of
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, Order, Solution

WORK = 3 * 10**7
"""Programs that are examined, some 0.4 s."""

NETWORK = "lines-4"
"""Weights of the network that orders the programs."""

BEYOND = 1
"""Lines that programs may have more than the shortest one."""


def collect(
    task: Task,
    order: Order,
    limits: Limits,
    semantics: Semantics,
    known: Solution | None = None,
    led: bool = True,
) -> Collection:
    """The behaviours of the programs that fit a task; an example that is given again says nothing more.

    Parameters
    ----------
    task, order, limits, semantics : arguments of a solver; the time is what `known` has left of it.
    known : what a search found; its programs are collected, too.
    led : whether the network takes the place of the default order.
    """
    task = replace(task, examples=tuple(dict.fromkeys(task.examples)))
    spent = known.seconds if known else 0.0
    left = None if limits.timeout is None else max(limits.timeout - spent, 1e-9)
    clock = Clock(replace(limits, timeout=left, nodes=None))
    collector = Collector(task, _led(task, order) if led else order, semantics)
    collector.by_length(clock, limits.max_length, BEYOND, WORK)
    for program in known.programs if known else ():
        collector.add(lines_of(program)[None])
    collector.found.seconds = clock.seconds
    return collector.found


def _led(task: Task, order: Order) -> Order:
    """The order of the network, instead of the default one."""
    from thesis_cli.synthesis.networks.network_guide import network_guide

    return (network_guide(NETWORK).orders([task])[0] or order) if order == prior.load() else order
