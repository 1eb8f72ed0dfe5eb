"""Compiled backward propagation of ranges (Thesis section 5.4.2): from bounds on results to bounds
on inputs.

A range is a pair (least, most) of bounds on all numbers of a value; it is empty if least > most.
Each rule is sufficient: arguments within the ranges that it returns give a result within the range
of the result, or NULL. The rules for lambdas of one number are also necessary. Rules for several
numbers at once share a bound evenly among them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.synthesis.language.dsl import DEEPCODER, check_rules
from thesis_cli.synthesis.language.lanes import by_operation, inlined
from thesis_cli.synthesis.language.operation_kernels import INT_LIST, TAKES
from thesis_cli.synthesis.language.packing import Bounds
from thesis_cli.synthesis.language.program_codes import arguments_of, code_of, operation_of

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.program_codes import Codes

BY = np.array([o.f.by if o.f else 0 for o in DEEPCODER.operations])
"""Constants of the lambdas of all operations."""

code_in = inlined(code_of)
operation_in = inlined(operation_of)
arguments_in = inlined(arguments_of)
"""Compiled packing of codes."""

TWO = np.int64(2)
EMPTY = (np.int64(1), np.int64(0))


@helper()
def _ceil(x, k):
    return -(-x // k)


@helper()
def _power(bound, n):
    """The largest r with r^n <= bound, for a bound of at least 0; -1 for one below 0."""
    r = -1
    while (r + 1) ** n <= bound:
        r += 1
    return r


# Rules: id, range (lo, hi) of the result within the bounds, length of the longest list, bounds ->
# ranges of the first list and of the second.


@inlined
def _both(x):
    """The same range for the first list and for the second, if there is one."""
    return x, x


@inlined
def _unknown(id, lo, hi, longest, bounds):
    return _both((np.int64(bounds.low), np.int64(bounds.high)))


@inlined
def _same(id, lo, hi, longest, bounds):
    return _both((lo, hi))


@inlined
def _shift(id, lo, hi, longest, bounds):
    return _both((lo - BY[id], hi - BY[id]))


@inlined
def _scale(id, lo, hi, longest, bounds):
    return _both((_ceil(lo, BY[id]), hi // BY[id]))


@inlined
def _negate(id, lo, hi, longest, bounds):
    return _both((-hi, -lo))


@inlined
def _divide(id, lo, hi, longest, bounds):
    k, floor = BY[id], bounds.floor
    least = lo * k if floor or lo > 0 else lo * k - k + 1
    return _both((least, hi * k + k - 1 if floor or hi >= 0 else hi * k))


@inlined
def _square(id, lo, hi, longest, bounds):
    root = _power(hi, TWO)
    least = _power(lo - 1, TWO) + 1 if lo > 0 else -root
    return _both((least, root) if hi >= 0 else EMPTY)


@inlined
def _positive(id, lo, hi, longest, bounds):
    """FILTER drops what is not positive."""
    return _both((np.int64(bounds.low) if lo <= 1 else lo, hi))


@inlined
def _negative(id, lo, hi, longest, bounds):
    return _both((lo, np.int64(bounds.high) if hi >= -1 else hi))


@inlined
def _count(id, lo, hi, longest, bounds):
    return _both((np.int64(bounds.low), np.int64(bounds.high)) if lo <= 0 and longest <= hi else EMPTY)


@inlined
def _sum(id, lo, hi, longest, bounds):
    return _both((_ceil(lo, longest), hi // longest) if lo <= 0 <= hi else EMPTY)


@inlined
def _plus(id, lo, hi, longest, bounds):
    return _both((_ceil(lo, TWO), hi // 2))


@inlined
def _minus(id, lo, hi, longest, bounds):
    share = (hi - lo) // 4
    return (lo + share, hi - share), (-share, share)


@inlined
def _times(id, lo, hi, longest, bounds):
    root = _power(min(-lo, hi), TWO)
    return _both((-root, root) if lo <= 0 <= hi else EMPTY)


@inlined
def _scan_plus(id, lo, hi, longest, bounds):
    return _both((_ceil(lo, longest) if lo <= 0 else lo, hi // longest if hi >= 0 else hi))


@inlined
def _scan_minus(id, lo, hi, longest, bounds):
    share = min(-lo, hi) // longest
    return _both((-share, share) if lo <= 0 <= hi else EMPTY)


@inlined
def _scan_times(id, lo, hi, longest, bounds):
    root = _power(min(-lo, hi), longest)
    return _both((-root, root) if lo <= 0 <= hi else EMPTY)


RULES: dict[str, Any] = {
    "unknown": _unknown,
    "same": _same,
    "map shift": _shift,
    "map scale": _scale,
    "map negate": _negate,
    "map divide": _divide,
    "map square": _square,
    "filter positive": _positive,
    "filter negative": _negative,
    "filter parity": _same,
    "count": _count,
    "sum": _sum,
    "zipwith plus": _plus,
    "zipwith minus": _minus,
    "zipwith times": _times,
    "zipwith min": _same,
    "zipwith max": _same,
    "scanl1 plus": _scan_plus,
    "scanl1 minus": _scan_minus,
    "scanl1 times": _scan_times,
    "scanl1 min": _same,
    "scanl1 max": _same,
}
"""Rules by name. `unknown` restricts nothing, so that such an operation may leave the range."""
check_rules("ranges", (o.rule(o.function.ranges) for o in DEEPCODER.operations), RULES)

_calls = {o.id: (RULES[o.rule(o.function.ranges)],) for o in DEEPCODER.operations}
_before: Any = helper()(by_operation("_before", "lo, hi, longest, bounds", _calls, globals()))


@kernel()
def propagate(codes: Codes, inputs: int, longest: int, bounds: Bounds, least: Ints, most: Ints) -> bool:
    """Ranges of the variables of a program under which no number leaves the bounds.

    Parameters
    ----------
    codes : its lines, as `sampling_kernels` has them, shape (T,).
    inputs : their number.
    longest : length of the longest list.
    bounds : range of numbers, and rounding.
    least, most : ranges, shape (at least inputs + T,); written.

    Returns
    -------
    Whether none is empty.
    """
    least[:], most[:] = bounds.low, bounds.high
    for line in range(inputs + codes.size - 1, inputs - 1, -1):
        if least[line] > most[line]:
            return False
        code = np.int64(codes[line - inputs])
        id, (x, y) = operation_in(code), arguments_in(code)
        first, second = _before(id, least[line], most[line], longest, bounds)
        if TAKES[id] != INT_LIST:  # the number that goes with a list may be any
            least[x], most[x] = max(least[x], first[0]), min(most[x], first[1])
        least[y], most[y] = max(least[y], second[0]), min(most[y], second[1])
    some = True
    for v in range(inputs):
        some &= least[v] <= most[v]
    return some
