"""Goals for searches: the times of the thesis for T = 3, and those of this project for longer
programs.
"""

from __future__ import annotations

from thesis_cli.studies.synthesis.timing import SHARES

PUBLISHED = {
    "dfs": ((0.041, 0.126, 0.314), (0.0027, 0.033, 0.110)),
    "sort-and-add": ((0.080, 0.335, 0.861), (0.0013, 0.0061, 0.027)),
    "deductive": ((18.9, 49.6, 84.2), (0.23, 0.52, 13.5)),
    "smt": ((1000.0, 1000.0), (2.13, 455.0)),
}
"""Thesis Table 5.1: seconds by which `timing.SHARES` of the tasks of T = 3 are solved, with the prior
and with the network. lambda^2 and Sketch stand beside the solvers that replace them here; those of
Sketch with the prior are lower bounds."""

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
