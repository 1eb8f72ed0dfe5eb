"""Compiled states to learn from: some lines of a program stand, and some of the others can be
next."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel
from thesis_cli.synthesis.language.operation_kernels import LIST, TAKES

Array = npt.NDArray[np.float32]


@kernel()
def draw_states(
    programs: Ints, inputs: Ints, chosen: Ints, standing: Ints, uniforms: Floats, places: Ints, lines: Ints,
    right: Ints,
) -> int:  # fmt: skip
    """Let some lines of programs stand, in random order, and list the lines that can be next.

    A line can stand if it takes inputs and results of lines that stand. Of those that can, the next
    one is drawn uniformly.

    Parameters
    ----------
    programs : operation and arguments of each line, -1 after the last, shape (P, T, 3).
    inputs : number of inputs of each program, shape (P,).
    chosen : the program of each state, shape (S,).
    standing : number of lines that stand, less than the program has, shape (S,).
    uniforms : numbers from 0 to 1, shape (S, T).
    places : variables of the program by variable of the state, -1 where there is none, shape (S,
        V), written.
    lines : operation and arguments of each line of the state, as variables of the state, -1 where
        there is none yet, shape (S, R, 3), written.
    right : place of the state, operation and arguments of each line that can be next, as variables
        of the program, shape (., 4), written.

    Returns
    -------
    Number of lines that can be next.
    """
    total = 0
    most = programs.shape[1]
    for s in range(chosen.size):
        p = chosen[s]
        first = inputs[p]
        for v in range(places.shape[1]):
            places[s, v] = v if v < first else -1
        for t in range(lines.shape[1]):
            for i in range(3):
                lines[s, t, i] = -1
        for depth in range(standing[s] + 1):
            count = 0
            for wanted in range(2):
                pick = int(uniforms[s, depth] * count)
                seen = 0
                for t in range(most):
                    if programs[p, t, 0] < 0:
                        break
                    here = False
                    one = two = -1
                    for v in range(first + depth):
                        here |= places[s, v] == first + t
                        if places[s, v] == programs[p, t, 1]:
                            one = v
                        if places[s, v] == programs[p, t, 2]:
                            two = v
                    if here or one < 0 or two < 0:
                        continue
                    if wanted == 1 and depth == standing[s]:
                        right[total, 0] = s
                        for i in range(3):
                            right[total, i + 1] = programs[p, t, i]
                        total += 1
                    elif wanted == 1 and seen == pick:
                        lines[s, depth, 0] = programs[p, t, 0]
                        lines[s, depth, 1] = one
                        lines[s, depth, 2] = two
                        places[s, first + depth] = first + t
                        break
                    seen += 1
                count = seen
    return total


@kernel()
def mark_used(lines: Ints, places: Ints, flags: Array) -> None:
    """Mark the variables of programs that the lines of a state take; in column 0 of `flags`, of shape (S, V, .)."""
    for s in range(lines.shape[0]):
        for t in range(lines.shape[1]):
            if lines[s, t, 0] >= 0:
                flags[s, places[s, lines[s, t, 2]], 0] = 1
                if TAKES[lines[s, t, 0]] != LIST:
                    flags[s, places[s, lines[s, t, 1]], 0] = 1


def prepare() -> None:
    """Compile what draws states, or load it."""
    rows = np.zeros((1, 1, 3), dtype=np.int64)
    one, places = np.ones(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    none = np.zeros(1, dtype=np.int64)
    draw_states(rows, one, none, none, np.zeros((1, 1)), places, rows.copy(), np.zeros((1, 4), dtype=np.int64))
    mark_used(rows, places, np.zeros((1, 2, 2), dtype=np.float32))
