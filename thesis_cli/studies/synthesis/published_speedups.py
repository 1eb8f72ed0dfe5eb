"""Published seconds of searches with and without the predictions of a network, and the sizes of the
experiments that repeat them; and goals of this project for longer programs. Experiments on the same
tasks have the same sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from thesis_cli.studies.synthesis.guided_searches import NETWORK, PRIOR, SOURCE
from thesis_cli.studies.synthesis.timing import SHARES


class Cell(NamedTuple):
    """A share of the tasks that a search solves.

    Attributes
    ----------
    search : name of the source's search.
    share : share of the tasks.
    prior, network : seconds for each task by which the share is solved.
    speedup : their ratio, as printed.
    bound : whether `prior` and `speedup` are lower bounds.
    """

    search: str
    share: float
    prior: float
    network: float
    speedup: float
    bound: bool = False


def _cells(
    search: str, prior: tuple[float, ...], network: tuple[float, ...], speedup: tuple[float, ...], bounds: int = 0
) -> list[Cell]:
    """Cells of a search; the last `bounds` of them are bounds."""
    exact = len(prior) - bounds
    rows = zip(SHARES, prior, network, speedup, strict=False)
    return [Cell(search, *row, place >= exact) for place, row in enumerate(rows)]


TABLE_5_1 = {
    "dfs, source": _cells("DFS", (0.041, 0.126, 0.314), (0.0027, 0.033, 0.110), (15.2, 3.9, 2.9)),
    "sort-and-add, source": _cells("Sort and add", (0.080, 0.335, 0.861), (0.0013, 0.0061, 0.027), (62.2, 54.6, 31.5)),
    "deductive": _cells("lambda^2", (18.9, 49.6, 84.2), (0.23, 0.52, 13.5), (80.4, 94.6, 6.2)),
    "smt": _cells("Sketch", (1000.0, 1000.0), (2.13, 455.0), (467.0, 2.2), 2),
    "beam": _cells("Beam", (1000.0,), (292.0,), (3.4,), 1),
}
"""Thesis Table 5.1: T = 3."""

FIGURE_5_3A = {
    "dfs, source": _cells("DFS", (163.0, 2887.0, 6832.0), (24.0, 514.0, 2654.0), (6.8, 5.6, 2.6)),
    "sort-and-add, source": _cells("Sort and add", (8181.0, 1e4, 1e4), (9.0, 264.0, 4640.0), (907.0, 37.0, 2.0), 2),
    "deductive": _cells("lambda^2", (463.0,), (48.0,), (9.6,)),
}
"""Thesis Figure 5.3a: T = 5, trained on T = 4. Its table is lost in the text of the thesis that this
project has. These are the numbers of the paper that first published it (Balog et al., DeepCoder:
Learning to Write Programs, ICLR 2017, arXiv:1611.01989, Figure 3a), as the text of that paper has
them in github.com/nassersala/arabic-abstracts, full_papers/1611.01989/paper.txt, at commit
9e8a6f8842a9fe797f95466f917e7f9fb8741aa0; its Table 1 there is Table 5.1, cell by cell. Figure 5.3b
prints no numbers."""


Searches = list[list[Any]]


def _both(search: str, count: int, batch: int, nodes: int | None, timeout: float | None = None) -> Searches:
    return [[search, guide, count, batch, nodes, timeout] for guide in (PRIOR, NETWORK)]


def _sizes(length: int, trained: int, quick: Searches, paper: Searches, **more: bool) -> dict[str, dict[str, Any]]:
    both = {"trained": trained, "length": length, **more}
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
    trainings=True,
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


PUBLISHED = {
    name: (tuple(cell.prior for cell in cells), tuple(cell.network for cell in cells))
    for name, cells in ((search.removesuffix(", source"), cells) for search, cells in TABLE_5_1.items())
    if name != "beam"
}
"""Seconds of Thesis Table 5.1, with the prior and with the network, by the solvers that stand for its own."""

GOALS = {5: (0.03, 0.98), 6: (0.1, 0.9), 7: (1.0, 0.8)}
"""By length T: median of the seconds to a program, and share of the random tasks that are solved in
10 s."""

TOWARD_GOALS = ("auto", "join")
"""Solvers that the goals are about; the first is the one that decides."""


def published(name: str) -> list[tuple[str, bool, list[tuple[float, float]]]]:
    """Rows of Table 5.1 for what a solver replaces: a name, whether the network guides it, and
    seconds by shares."""
    known = {"dfs": "DFS", "sort-and-add": "Sort and add", "deductive": r"$\lambda^2$", "smt": "Sketch"}
    rows = zip(("prior", "network"), (False, True), PUBLISHED[name], strict=True)
    return [
        (f"Table 5.1: {known.get(name, name)}, {what}", guided, list(zip(seconds, SHARES, strict=False)))
        for what, guided, seconds in rows
    ]
