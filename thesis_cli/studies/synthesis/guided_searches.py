"""Searches of the same held-out tasks with the predictions of a network, and with the prior alone
(Thesis sections 5.5.1 and 5.5.2).

The searches are those of the source, depth-first search and Sort-and-add over all programs, and
those of today, which leave out most programs. The time of the former is told by the programs that
they examine, at the source's speed: it is the same on every machine. These programs are counted, and
most of them are not run (`source_search`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thesis_cli.studies.synthesis import timing
from thesis_cli.studies.synthesis.incidence import incidence
from thesis_cli.studies.synthesis.predictions import guide_of, trainings
from thesis_cli.studies.synthesis.source_search import SourceSearch
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Solver
from thesis_cli.synthesis.training.corpora import held_out

if TYPE_CHECKING:
    import pandas as pd

RATE = 3e6
"""Programs a second that the source's depth-first search examines (appendix D.4)."""

SOURCE = {"dfs, source": "dfs", "sort-and-add, source": "sort-and-add"}
"""The source's searches, and today's in their place."""

PRIOR, NETWORK = "prior", "network"
"""Guides: the global incidence in a training corpus, and the network that was trained on it; another
training of that network has its name in `predictions.trainings`."""

WEIGHTS = {"beam": "program"}
"""Searches with a network of their own, and its weights; others take `lines-T`."""

COLUMNS = ["search", "guide", "trained", "length", "task", "nodes", "seconds", "call", "answer", "stopped"]

FACTOR = 8
"""By which the limit of `until_share` grows."""


def solver(name: str) -> Solver:
    """A search by name: the source's, or today's."""
    return SourceSearch(SOURCE[name]) if name in SOURCE else timing.solver(name)


def tasks_of(length: int, first: int, last: int) -> list[Task]:
    """Held-out tasks of a length, from number `first` to `last`."""
    corpus = held_out(length)
    return [corpus.task(row) for row in range(first, min(last + 1, len(corpus)))]


def orders(guide: str, weights: str, trained: int, tasks: Sequence[Task]) -> tuple[list[Order], list[float]]:
    """The order of each task, and the processor seconds of making it, one task at a time.

    Parameters
    ----------
    guide : `PRIOR`, `NETWORK`, or another training.
    weights : name of the weights of `NETWORK`.
    trained : length T of the programs that the prior counts.
    """
    if guide == PRIOR:
        return [incidence(trained)] * len(tasks), [0.0] * len(tasks)
    network = guide_of(weights if guide == NETWORK else guide)
    network.orders(tasks[:1])  # everything is loaded
    found: list[Order | None] = []
    seconds: list[float] = []
    for task in tasks:
        began = time.process_time()
        found += network.orders([task])
        seconds.append(time.process_time() - began)
    return [order or incidence(trained) for order in found], seconds


def plan(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tasks of an experiment.

    Parameters
    ----------
    settings : `trained` and `length`, as `run` takes them, and `searches`: name, guide, number of
        held-out tasks, how many of them an experiment's task has, and the limits of each. With
        `trainings` the other trainings of the network guide the source's searches as well.
    """
    both = {name: settings[name] for name in ("trained", "length")}
    others = trainings(f"lines-{settings['trained']}")[1:] if settings.get("trainings") else []
    names = ("search", "guide", "first", "last", "nodes", "timeout")
    return [
        {**both, **dict(zip(names, (search, guide, first, min(first + batch, count) - 1, nodes, timeout), strict=True))}
        for search, network, count, batch, nodes, timeout in settings["searches"]
        for guide in [network, *(others if network == NETWORK and search in SOURCE else [])]
        for first in range(0, count, batch)
    ]


def run(
    seed: Any,
    trained: int,
    length: int,
    search: str,
    guide: str,
    first: int,
    last: int,
    **limits: Any,
) -> pd.DataFrame:
    """A row for each of some held-out tasks.

    Parameters
    ----------
    trained : length T of the programs of the training corpus.
    length : T of the tasks, and of the longest programs that are searched.
    search : name of the search, as `solver` takes it.
    guide : as `orders` takes it.
    first, last : numbers of the tasks.
    limits : `nodes` and `timeout`, as for `limits_of`.

    Returns
    -------
    Columns `COLUMNS`. `seconds` are processor seconds of the search, of the source's searches those of
    counting; `call` are those of making the order before it. `answer` is the length of the program
    found, missing without one.
    """
    import pandas as pd

    tasks = tasks_of(length, first, last)
    given, calls = orders(guide, WEIGHTS.get(search, f"lines-{trained}"), trained, tasks)
    by = solver(search)
    by.solve(Task("any", (Example(((0,),), 0),)), Order.uniform(), Limits(1))  # everything is loaded
    chosen = limits_of(search, length, **limits)
    rows = []
    for place, (task, order, call) in enumerate(zip(tasks, given, calls, strict=True), first):
        began = time.process_time()
        found = timing.solution_of(by, task, order, chosen)
        seconds = time.process_time() - began
        answer = len(found.program) if found.program else None
        what = (search, guide, trained, length, place, found.nodes)
        rows.append((*what, rounded(seconds), rounded(call), answer, found.stopped))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"answer": "Int64"})


def limits_of(search: str, length: int, nodes: int | None, timeout: float | None) -> Limits:
    """Limits of a search: a number of programs, or what `timing.within` makes of seconds."""
    return Limits(length, nodes=nodes) if nodes is not None else timing.within(search, length, timeout)


def until_share(
    search: str, given: Sequence[Order], tasks: Sequence[Task], length: int, share: float, nodes: int
) -> list[Solution]:
    """Search all tasks with a growing limit, until a share of them is solved.

    Parameters
    ----------
    search : name of a depth-first search, as `solver` takes it.
    given : the order of each task.
    length : T of the longest programs.
    nodes : the last limit of the programs of a task.

    Returns
    -------
    The solution of each task under the last limit that was tried. Those that are not solved cost
    more than the share needs, unless that is not solved at all.
    """
    limit, by = min(nodes, 2**16), solver(search)
    found: dict[int, Solution] = {}
    while True:
        for place in range(len(tasks)):
            if place not in found or not found[place].program:  # a larger limit changes no other
                found[place] = timing.solution_of(by, tasks[place], given[place], Limits(length, nodes=limit))
        if sum(bool(solution.program) for solution in found.values()) >= share * len(tasks) or limit >= nodes:
            return [found[place] for place in range(len(tasks))]
        limit = min(nodes, FACTOR * limit)


def rounded(seconds: float) -> float:
    """Seconds to three digits."""
    return float(f"{seconds:.3g}")
