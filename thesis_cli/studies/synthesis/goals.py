"""Goals for searches: the times of the thesis for T = 3, and those of this project for longer
programs.
"""

from __future__ import annotations

from thesis_cli.studies.synthesis.published_speedups import TABLE_5_1
from thesis_cli.studies.synthesis.timing import SHARES

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
