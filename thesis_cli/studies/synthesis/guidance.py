"""Today's searches with the prior, with the network of appendix D.3, and with the network that reads
the state: the time to a program, beside the time of one call of the network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, limits_of, orders, rounded, solver, tasks_of
from thesis_cli.studies.synthesis.predictions import version
from thesis_cli.studies.synthesis.timing import solution_of, until_found
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks.network_guide import network_guide
from thesis_cli.synthesis.networks.weights import shipped
from thesis_cli.synthesis.search.solver import Limits, LineOrder, Order, Solver
from thesis_cli.synthesis.training.corpora import held_out

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.base.arrays import Floats

STATE = "state"
"""Guide of `guided` and `auto`: the network that reads the values of partial programs, and that of
appendix D.3 for the order of operations. `auto` then gives a guided search turns."""

TRAINED = 4
"""Length T of the programs of the training corpus."""

WEIGHTS, STATE_WEIGHTS = f"lines-{TRAINED}", "next-line"

SOURCE = "dfs, source"
"""The source's depth-first search; its time is that of the programs that it examines, and `seconds` are those
of counting them."""

COLUMNS = ["search", "guide", "length", "task", "nodes", "seconds", "found", "call", "answer", "stopped"]

CALL = "one call"
"""Name of the rows of network calls; `task` is the number of tasks in a call, `seconds` its time."""

REPEATS = 20


def plan(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tasks of the experiment.

    Parameters
    ----------
    settings : `calls`, tasks in a network call; and `searches`: name, guides, length, numbers of the
        first held-out task and of the one after the last, how many of them an experiment's task has,
        and the limits of each, `nodes` and seconds.
    """
    calls = [{"search": CALL, "guides": [_known(NETWORK)], "first": size, "last": size} for size in settings["calls"]]
    names = ("search", "guides", "length", "first", "last", "nodes", "timeout")
    return calls + [
        dict(zip(names, (search, given, length, start, min(start + batch, end) - 1, nodes, seconds), strict=True))
        for search, guides, length, first, end, batch, nodes, seconds in settings["searches"]
        for given in [_available(guides)]
        for start in range(first, end, batch)
    ]


def _available(guides: Sequence[str]) -> list[str]:
    """Guides whose weights are shipped."""
    return [_known(guide) for guide in guides if guide != STATE or STATE_WEIGHTS in shipped()]


def _known(guide: str) -> str:
    """A guide with the digests of its weights, so that results of other weights do not count."""
    known = {NETWORK: [WEIGHTS], STATE: [WEIGHTS, STATE_WEIGHTS]}.get(guide, [])
    return ": ".join([guide, *[", ".join(version(name) for name in known)]]) if known else guide


def run(seed: Any, search: str, guides: Sequence[str], first: int, last: int, **given: Any) -> pd.DataFrame:
    """A row for each task and guide; all guides have a task before the next one comes.

    Parameters
    ----------
    search : name of the search, as `guided_searches.solver` takes it, or `CALL`.
    guides : guides, written as by `plan`.
    first, last : numbers of the held-out tasks.
    given : `length` T, and the limits `nodes` and `timeout` (seconds), as for `limits_of`.

    Returns
    -------
    Columns `COLUMNS`. `found` are processor seconds until the first program, missing without one,
    `seconds` those of the whole search, and `call` those of making the order before it.
    """
    import pandas as pd

    rows = _calls(first) if search == CALL else _searched(search, guides, first, last, **given)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"answer": "Int64", "nodes": "Int64", "length": "Int64"})


def _calls(size: int) -> list[tuple[Any, ...]]:
    """The least time of some calls for so many tasks."""
    corpus = held_out(5)
    tasks = [corpus.task(row % len(corpus)) for row in range(size)]
    network, best = network_guide(WEIGHTS), np.inf
    for _ in range(REPEATS):
        began = time.process_time()
        network.orders(tasks)
        best = min(best, time.process_time() - began)
    return [(CALL, NETWORK, None, size, None, rounded(best), None, None, None, "")]


def _searched(
    search: str, guides: Sequence[str], first: int, last: int, length: int, nodes: int | None, timeout: float | None
) -> list[tuple[Any, ...]]:
    tasks = tasks_of(length, first, last)
    names = [guide.split(":")[0] for guide in guides]
    made = [orders(PRIOR if name == PRIOR else NETWORK, WEIGHTS, TRAINED, tasks) for name in names]
    rows = []
    limits = limits_of(search, length, nodes, timeout)
    for place, task in enumerate(tasks):
        for name, (given, calls) in zip(names, made, strict=True):
            by, order = _ready(search, name), given[place]
            if name == STATE:
                order = LineOrder(order.probabilities, STATE_WEIGHTS)
            began = time.process_time()
            solution = solution_of(by, task, order, limits)
            seconds = time.process_time() - began
            answer = len(solution.program) if solution.program else None
            found = rounded(until_found(solution, seconds)) if answer else None
            what = (search, name, length, first + place, solution.nodes)
            rows.append((*what, rounded(seconds), found, rounded(calls[place]), answer, solution.stopped))
    return rows


@cache
def _ready(search: str, guide: str) -> Solver:
    """A search that has answered once: everything is compiled and loaded."""
    by = solver(search)
    if guide == STATE:
        from thesis_cli.synthesis.guided.anytime_beam import network, prepare

        prepare()
        network(STATE_WEIGHTS)
    by.solve(Task("any", (Example(((0,),), 0),)), Order.uniform(), Limits(1))
    return by


def times(frame: pd.DataFrame, search: str, guide: str, length: int, rate: float) -> pd.Series[float]:
    """Seconds of each task until its program, by the number of the task; those that are not solved
    count with all the time that they were given.

    Parameters
    ----------
    rate : programs a second of the source's search.
    """
    rows = frame[(frame.search == search) & (frame.guide == guide) & (frame.length == length)].set_index("task")
    if search == SOURCE:
        return rows.nodes.astype(float) / rate
    return rows.found.fillna(rows.seconds)


def ratio(frame: pd.DataFrame, search: str, guide: str, length: int, rate: float, with_call: bool = True) -> Floats:
    """log10 of the time with a guide over the time with the prior, of each task that both were given.

    Tasks that neither search has solved say nothing about the two, and count with 0.

    Parameters
    ----------
    with_call : whether the time of the network's call counts.
    """
    import pandas as pd

    names = [(search, guide), (search, PRIOR)]
    guided, plain = (times(frame, *name, length, rate) for name in names)
    parts = [frame[(frame.search == by) & (frame.guide == of) & (frame.length == length)] for by, of in names]
    solved = pd.concat(parts).groupby("task").answer.count() > 0
    calls = parts[0].set_index("task").call
    both = plain.index.intersection(guided.index)
    found = np.log10(((guided + calls * with_call)[both] / plain[both]).to_numpy(dtype=np.float64))
    return np.where(solved[both].to_numpy(dtype=np.bool_), found, 0.0)
