"""What a network that was trained on programs of one length saves searches for programs of another
(Thesis section 5.5.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, orders, tasks_of, until_share
from thesis_cli.studies.synthesis.speedups import needed, speedup


def needed_for_share(search: str, trained: int, length: int, count: int, share: float, nodes: int) -> dict[str, Any]:
    """Programs that a search examines for each task until it has solved a share of them, with the
    prior and with the network of one training corpus.

    Parameters
    ----------
    search : name of a depth-first search, as `guided_searches.solver` takes it.
    trained : length T of the programs of the training corpus.
    length : T of the tasks.
    count : held-out tasks.
    nodes : programs of a task after which the search stops.

    Returns
    -------
    Values by column: the parameters, the programs needed (`exact`: 1, or 0 for a lower bound), and
    the speedup with its relation, `?` if neither search solves the share.
    """
    tasks = tasks_of(length, 0, count - 1)
    row: dict[str, Any] = {"search": search, "trained": trained, "length": length, "tasks": len(tasks)}
    found = []
    for guide in (PRIOR, NETWORK):
        given, _ = orders(guide, f"lines-{trained}", trained, tasks)
        solutions = until_share(search, given, tasks, length, share, nodes)
        costs = np.array([float(solution.nodes) for solution in solutions])
        solved = np.array([bool(solution.program) for solution in solutions])
        limit = needed(costs, solved, share)
        row |= {guide: int(limit.low), f"{guide}_exact": int(limit.exact)}
        found.append((costs, solved))
    gained = speedup(*found[0], *found[1], share)
    log10, error, relation = (gained.log10, gained.standard_error, gained.relation) if gained else (np.nan, np.nan, "?")
    return {**row, "relation": relation, "log10": log10, "standard_error": error}
