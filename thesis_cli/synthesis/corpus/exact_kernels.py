"""Compiled behaviour of programs on whole numbers of up to 60 bits. Lines are codes: see
`program_codes`.

The operations here are plain loops over one value at a time, without regard to the range of the
language. A number beyond 60 bits makes a value unknown; Python then computes it
(`exact_behaviours`).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.synthesis.corpus.sampling_kernels import mix
from thesis_cli.synthesis.language.dsl import DEEPCODER, check_rules
from thesis_cli.synthesis.language.input_range_kernels import BY, arguments_in, operation_in
from thesis_cli.synthesis.language.lanes import by_operation, inlined
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT, NUMBERS
from thesis_cli.synthesis.language.packing import Bounds

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.program_codes import Codes

States = npt.NDArray[np.int8]

MOST = 2**60
"""Largest magnitude of a number that is known."""

NULL, UNKNOWN = np.int64(-1), np.int64(-2)
"""Sizes of what is no value, and of a value that Python is to compute."""

ABSENT, WITHIN, BEYOND, OPEN = range(4)
"""States of an output: NULL; reached within the range; reached beyond it; left to Python."""


class ExactRoom(NamedTuple):
    """Memory for the variables of a program, for A arrangements of the inputs and M probes.

    Attributes
    ----------
    values : shape (A, M, V, L); those of inputs are set.
    sizes : their lengths, `NULL` or `UNKNOWN`, shape (A, M, V).
    within : whether a variable and all above it that it needs are in the range, shape (A, M, V).
    """

    values: Ints
    sizes: Ints
    within: Bools


# Operations: (compiled functions of numbers,) id, values, sizes, x, y, out, floor -> whether the
# result is known. They read rows x and y, which have values, and write row `out` and its size.


@inlined
def _affine(id, v, floor):
    return NUMBERS[0, id, 0] * v + NUMBERS[0, id, 1]


@inlined
def _divide(id, v, floor):
    k = BY[id]
    return v // k if floor or v >= 0 else -(-v // k)


@inlined
def _times(v, w):
    """The product, or more than is known."""
    return v * w if abs(np.float64(v) * np.float64(w)) <= MOST else np.int64(2 * MOST)


@inlined
def _square(id, v, floor):
    return _times(v, v)


@inlined
def _plus(v, w):
    return v + w


@inlined
def _minus(v, w):
    return v - w


@inlined
def _min(v, w):
    return min(v, w)


@inlined
def _max(v, w):
    return max(v, w)


@inlined
def _map(f, id, values, sizes, x, y, out, floor):
    sizes[out] = sizes[y]
    known = True
    for i in range(sizes[y]):
        z = f(id, values[y, i], floor)
        known &= abs(z) <= MOST
        values[out, i] = z
    return known


@inlined
def _zip(f, id, values, sizes, x, y, out, floor):
    sizes[out] = min(sizes[x], sizes[y])
    known = True
    for i in range(sizes[out]):
        z = f(values[x, i], values[y, i])
        known &= abs(z) <= MOST
        values[out, i] = z
    return known


@inlined
def _scan(f, id, values, sizes, x, y, out, floor):
    sizes[out] = sizes[y]
    for i in range(sizes[y]):
        z = values[y, i] if i == 0 else f(values[out, i - 1], values[y, i])
        if abs(z) > MOST:
            return False
        values[out, i] = z
    return True


@inlined
def _sum(id, values, sizes, x, y, out, floor):
    total = np.int64(0)
    for i in range(sizes[y]):
        total += values[y, i]
        if abs(total) > MOST:
            return False
    values[out, 0], sizes[out] = total, 1
    return True


@inlined
def _filter(id, values, sizes, x, y, out, floor):
    n = np.int64(0)
    for i in range(sizes[y]):
        v = values[y, i]
        values[out, n] = v
        n += NUMBERS[0, id, 0] * v > 0 or v & 1 == NUMBERS[0, id, 1]
    sizes[out] = n
    return True


@inlined
def _count(id, values, sizes, x, y, out, floor):
    _filter(id, values, sizes, x, y, out, floor)
    values[out, 0], sizes[out] = sizes[out], 1
    return True


@inlined
def _extreme(id, values, sizes, x, y, out, floor):
    """MINIMUM and MAXIMUM."""
    twin = np.int64(NUMBERS[0, id, 0])
    sizes[out] = 1 if sizes[y] else NULL
    for i in range(sizes[y]):
        v = twin ^ values[y, i]
        values[out, 0] = v if i == 0 else max(values[out, 0], v)
    values[out, 0] ^= twin
    return True


@inlined
def _item(id, values, sizes, x, y, out, floor):
    """HEAD, LAST and ACCESS."""
    p, q = NUMBERS[0, id, 0], NUMBERS[0, id, 1]
    at = (values[x, 0] if p else ZERO) + q * (sizes[y] - 1)
    there = 0 <= at < sizes[y]
    values[out, 0] = values[y, at if there else ZERO]
    sizes[out] = 1 if there else NULL
    return True


@inlined
def _part(id, values, sizes, x, y, out, floor):
    """TAKE and DROP."""
    n, at = sizes[y], values[x, 0]
    at = min(max(at + n if at < 0 else at, ZERO), n)
    first, last = (at, n) if NUMBERS[0, id, 0] else (ZERO, at)
    for i in range(first, last):
        values[out, i - first] = values[y, i]
    sizes[out] = last - first
    return True


@inlined
def _reverse(id, values, sizes, x, y, out, floor):
    n = sizes[out] = sizes[y]
    for i in range(n):
        values[out, i] = values[y, n - 1 - i]
    return True


@inlined
def _sort(id, values, sizes, x, y, out, floor):
    sizes[out] = sizes[y]
    for i in range(sizes[y]):
        v, at = values[y, i], i
        while at > 0 and values[out, at - 1] > v:
            values[out, at] = values[out, at - 1]
            at -= 1
        values[out, at] = v
    return True


@inlined
def _python(id, values, sizes, x, y, out, floor):
    """An operation without a kernel here, which Python computes."""
    return False


KERNELS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("head", "last", "access"), (_item,)),
    **dict.fromkeys(("take", "drop"), (_part,)),
    **dict.fromkeys(("minimum", "maximum"), (_extreme,)),
    "reverse": (_reverse,),
    "sort": (_sort,),
    "sum": (_sum,),
    "filter": (_filter,),
    "count": (_count,),
    **dict.fromkeys(("map shift", "map scale", "map negate"), (_map, _affine)),
    "map divide": (_map, _divide),
    "map square": (_map, _square),
}
for _name, _function in {"plus": _plus, "minus": _minus, "times": _times, "min": _min, "max": _max}.items():
    KERNELS[f"zipwith {_name}"] = _zip, _function
    KERNELS[f"scanl1 {_name}"] = _scan, _function
_names = [o.rule(o.function.kernel) for o in DEEPCODER.operations]
check_rules("exact kernels", KERNELS.keys() & _names, KERNELS)

_calls = {id: KERNELS.get(name, (_python,)) for id, name in enumerate(_names)}
_apply: Any = helper()(by_operation("_apply", "values, sizes, x, y, out, floor", _calls, globals()))


@helper()
def _run(code, out, values, sizes, within, bounds):
    """Run a line on one probe."""
    x, y = arguments_in(np.int64(code))
    sizes[out] = min(sizes[x], sizes[y])
    within[out] = within[x] and within[y]
    if sizes[out] < 0:
        return
    if not _apply(operation_in(np.int64(code)), values, sizes, x, y, out, bounds.floor):
        sizes[out] = UNKNOWN
    for i in range(sizes[out]):
        within[out] = within[out] and bounds.low <= values[out, i] <= bounds.high


@kernel()
def exact_hashes(codes: Codes, inputs: int, room: ExactRoom, bounds: Bounds, hashes: Words, states: States) -> None:
    """Hashes of the outputs of programs on all probes.

    Parameters
    ----------
    codes : lines, shape (P, T). Neighbours that begin with the same lines share their values.
    inputs : their number.
    room : room for values.
    bounds : range of numbers, and rounding.
    hashes : hashes of the outputs that are known, shape (P, A, M); written. 0 for NULL.
    states : states of the outputs, shape (P, A, M); written.
    """
    last = inputs + codes.shape[1] - 1
    for p in range(codes.shape[0]):
        first = ZERO
        while p > 0 and first < codes.shape[1] - 1 and codes[p, first] == codes[p - 1, first]:
            first += 1
        for a, m in np.ndindex(hashes.shape[1:]):
            values, sizes, within = room.values[a, m], room.sizes[a, m], room.within[a, m]
            for d in range(first, codes.shape[1]):
                _run(codes[p, d], inputs + d, values, sizes, within, bounds)
            hashes[p, a, m] = 0
            n = sizes[last]
            states[p, a, m] = OPEN if n == UNKNOWN else ABSENT if n == NULL else WITHIN if within[last] else BEYOND
            if n >= 0:
                h = mix(np.uint64(2 * n + GIVES_INT[operation_in(codes[p, -1])]) + np.uint64(1))
                for i in range(n):
                    h = mix(h ^ np.uint64(values[last, i]))
                hashes[p, a, m] = h
