"""Compiled backward propagation of ranges (Thesis section 5.4.2): from bounds on results to bounds on inputs.

A range is a pair (least, most) that all numbers of a value keep to; it is empty where least > most. Each rule is
sufficient: arguments within what it gives make a result within what it was given, or NULL. Rules for division and for
(+1) and its like are also necessary; those for several numbers at once share a bound evenly among them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.operation_kernels import (
    ADD_1,
    COUNT,
    FILTER,
    HALF,
    LESS_1,
    NEGATE,
    QUARTER,
    SCAN_MINUS,
    SCAN_PLUS,
    SCAN_TIMES,
    SQUARE,
    SUM,
    THIRD,
    TIMES_2,
    TIMES_3,
    TIMES_4,
    ZIP_MINUS,
    ZIP_PLUS,
    ZIP_TIMES,
)
from thesis_cli.synthesis.search_kernels import INT_LIST, TAKES

Codes = npt.NDArray[np.int32]

EMPTY = (1, 0)
TIMES = np.zeros(QUARTER + 1, dtype=np.int64)
TIMES[[TIMES_2, TIMES_3, TIMES_4]] = 2, 3, 4
"""Factors of MAP (*2), (*3), (*4); 0 elsewhere."""


@njit
def _ceil(x, k):
    return -(-x // k)


@njit
def _power(bound, n):
    """The largest r with r^n <= bound, for a bound of at least 0."""
    r = 0
    while (r + 1) ** n <= bound:
        r += 1
    return r


@njit
def before(id, lo, hi, longest, low, high, floor):
    """Ranges of the arguments of an operation under which its result is within a range, or NULL.

    Parameters
    ----------
    id : of the operation.
    lo, hi : range of the result, within `low` to `high`.
    longest : length of the longest list.
    low, high, floor : semantics.

    Returns
    -------
    Least and most of the first argument, then of the second (which repeat the first where there is one).
    """
    zero = lo <= 0 <= hi
    x, y = (lo, hi), (lo, hi)
    if TAKES[id] == INT_LIST:
        x = low, high
    elif id in (ADD_1, LESS_1):
        shift = 1 if id == ADD_1 else -1
        x = lo - shift, hi - shift
    elif id <= QUARTER and TIMES[id]:
        x = _ceil(lo, TIMES[id]), hi // TIMES[id]
    elif id == NEGATE:
        x = -hi, -lo
    elif id in (HALF, THIRD, QUARTER):
        k = 2 if id == HALF else 3 if id == THIRD else 4
        x = lo * k if floor or lo > 0 else lo * k - k + 1, hi * k + k - 1 if floor or hi >= 0 else hi * k
    elif id == SQUARE:
        root = _power(hi, 2) if hi >= 0 else -1
        least = -root
        if lo > 0:
            least = _power(lo - 1, 2) + 1
        x = (least, root) if hi >= 0 else EMPTY
    elif id == FILTER:
        x = low if lo <= 1 else lo, hi
    elif id == FILTER + 1:
        x = lo, high if hi >= -1 else hi
    elif COUNT <= id < COUNT + 4:
        x = (low, high) if lo <= 0 and longest <= hi else EMPTY
    elif id == SUM:
        x = (_ceil(lo, longest), hi // longest) if zero else EMPTY
    elif id == ZIP_PLUS:
        x = _ceil(lo, 2), hi // 2
    elif id == ZIP_MINUS:
        share = (hi - lo) // 4
        return lo + share, hi - share, -share, share
    elif id == ZIP_TIMES:
        root = _power(min(-lo, hi), 2) if zero else -1
        x = (-root, root) if zero else EMPTY
    elif id == SCAN_PLUS:
        x = _ceil(lo, longest) if lo <= 0 else lo, hi // longest if hi >= 0 else hi
    elif id == SCAN_MINUS:
        share = min(-lo, hi) // longest
        x = (-share, share) if zero else EMPTY
    elif id == SCAN_TIMES:
        root = _power(min(-lo, hi), longest) if zero else -1
        x = (-root, root) if zero else EMPTY
    if TAKES[id] != INT_LIST:
        y = x
    return x[0], x[1], y[0], y[1]


@njit(cache=True, nogil=True)
def propagate(
    codes: Codes, inputs: int, longest: int, low: np.int16, high: np.int16, floor: bool, least: Ints, most: Ints
) -> bool:
    """Ranges of the variables of a program under which no number leaves `low` to `high`.

    Parameters
    ----------
    codes : its lines, as `corpus_kernels` has them, shape (T,).
    inputs : their number.
    longest, low, high, floor : semantics.
    least, most : ranges, shape (at least inputs + T,); written.

    Returns
    -------
    Whether none is empty.
    """
    least[:], most[:] = low, high
    for line in range(inputs + codes.size - 1, inputs - 1, -1):
        if least[line] > most[line]:
            return False
        code = np.int64(codes[line - inputs])
        x, y = code >> 3 & 7, code & 7
        a, b, c, d = before(code >> 6, least[line], most[line], longest, low, high, floor)
        least[x], most[x] = max(least[x], a), min(most[x], b)
        least[y], most[y] = max(least[y], c), min(most[y], d)
    return bool(np.all(least[:inputs] <= most[:inputs]))
