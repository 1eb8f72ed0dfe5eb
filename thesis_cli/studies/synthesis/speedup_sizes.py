"""Sizes of the experiments that compare searches with and without a network, by preset: as
`guided_searches.plan` takes them. Experiments on the same tasks have the same sizes."""

from __future__ import annotations

from typing import Any

from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, SOURCE

Searches = list[list[Any]]


def _both(search: str, count: int, batch: int, nodes: int | None, timeout: float | None = None) -> Searches:
    return [[search, guide, count, batch, nodes, timeout] for guide in (PRIOR, NETWORK)]


def _sizes(length: int, trained: int, quick: Searches, paper: Searches) -> dict[str, dict[str, Any]]:
    both = {"trained": trained, "length": length}
    return {"quick": {**both, "searches": quick}, "paper": {**both, "searches": paper}}


COMPILED = (*SOURCE, *SOURCE.values())
"""The searches that are compiled: the source's, and today's."""

LENGTH_3 = _sizes(
    3,
    3,
    [row for search in COMPILED for row in _both(search, 40, 40, None)],
    [
        *(row for search in COMPILED for row in _both(search, 500, 100, None)),
        *_both("deductive", 40, 20, None, 10.0),
        *_both("smt", 20, 5, None, 20.0),
        *_both("beam", 60, 20, None, 5.0),
    ],
)
"""Table 5.1: T = 3."""

MOST = {
    "dfs, source": 300_000_000,
    "sort-and-add, source": 300_000_000,
    "dfs": 100_000_000,
    "sort-and-add": 20_000_000,
}
"""Programs of a task after which a search of T = 5 stops."""

LENGTH_5 = _sizes(
    5,
    4,
    [row for search in COMPILED for row in _both(search, 10, 10, 1_000_000)],
    [row for search, nodes in MOST.items() for row in _both(search, 100, 10, nodes)],
)
"""Figure 5.3a: T = 5, trained on T = 4."""
