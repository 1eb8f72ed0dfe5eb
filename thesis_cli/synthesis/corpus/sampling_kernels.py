"""Compiled drawing of random programs and of examples for them. Lines are codes: see
`program_codes`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints, Words
from thesis_cli.base.compiled import ONE, ZERO, helper, kernel
from thesis_cli.synthesis.language.dsl import DEEPCODER, MOST_INPUTS
from thesis_cli.synthesis.language.input_range_kernels import arguments_in, code_in, operation_in, propagate
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT, INT_LIST, LIST, LIST_LIST, TAKES, apply
from thesis_cli.synthesis.language.packing import NULL, WIDTH, Bounds, Lanes, row_size
from thesis_cli.synthesis.language.program_codes import MOST_LINES, Codes

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.program_codes import Codes

GROUPS = np.array([(t, g) for t in (LIST, INT_LIST, LIST_LIST) for g in (False, True)])
"""Groups of operations that fit the same variables: what they take, and whether they give a
number."""

MEMBERS = [[o.id for o in DEEPCODER.operations if TAKES[o.id] == t and GIVES_INT[o.id] == bool(g)] for t, g in GROUPS]
SIZES = np.array([len(ids) for ids in MEMBERS])
IDS = np.array([ids + [0] * (len(DEEPCODER.operations) - len(ids)) for ids in MEMBERS])
"""Numbers of operations of the groups, and their ids."""

EVEN = np.ones(len(DEEPCODER.operations), dtype=np.int64)
"""Weights of operations that are all alike."""

EXACT = 2.0**45
"""Totals below it are drawn from as whole numbers; a remainder of 63 random bits is then uniform
enough."""

FREE, FRESH, MOST = 6, 16, 32
"""Attempts at an example: those that draw inputs without regard to ranges, those that refuse
repeated outputs, and all."""

TWO, FOUR, EIGHT = np.int64(2), np.int64(4), np.int64(8)
"""Arguments of helpers."""

_OUTPUT = np.int64(MOST_INPUTS)
_ROW = row_size(1)
_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Completions(NamedTuple):
    """Programs that `sample` draws from, each with the product of the weights of its operations.

    Attributes
    ----------
    ways : [r, i, n, j, k]: total weight of the ways to add r lines to i numbers and n lists, of
        which j and k are unused so far, so that all but the last result are used. Shape (length +
        1, V, V, V, V), V = MOST_INPUTS + MOST_LINES + 1; only those with i + n <= V - 1 - r count.
    sums : running sums of the weights in each group of operations, shape (6, operations).
    """

    ways: Floats
    sums: Floats


class ExampleLimits(NamedTuple):
    """Limits of the examples of a program.

    Attributes
    ----------
    longest : numbers of the longest list.
    repeats : examples whose output may be that of an earlier one.
    empty : examples whose output may be the empty list.
    """

    longest: int
    repeats: int
    empty: int


@helper(cache=True)
def mix(z):
    """The finaliser of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@helper()
def _below(state, n):
    """A random whole number from 0 to n - 1, by splitmix64."""
    state[0] += _GOLDEN
    return np.int64(mix(state[0]) >> np.uint64(1)) % n


@helper()
def _share(state, total):
    """A random part of a total of at least 1, below it; a whole number while the total is small."""
    if total < EXACT:
        return np.float64(_below(state, np.int64(total)))
    state[0] += _GOLDEN
    return np.float64(mix(state[0]) >> np.uint64(11)) * 2.0**-53 * total


def count_completions(length: int, weights: Ints = EVEN, outputs: tuple[int, int] = (1, 1)) -> Completions:
    """Number of ways to complete a program, by what it has so far; with weights, their total
    weight.

    There are more programs of 9 lines than 64 bits count, so these are floats: exact below 2^53, and
    otherwise right to some 15 digits.

    Parameters
    ----------
    length : lines to add, at most.
    weights : whole numbers from 1, by operation.
    outputs : the same for programs whose output is a list, and for those where it is a number.
    """
    members = [weights[ids] for ids in MEMBERS]
    size = MOST_INPUTS + MOST_LINES + 1
    ways = np.zeros((length + 1, *(size,) * 4))
    ways[0, :, :, 0, 1], ways[0, :, :, 1, 0] = outputs
    i, n = np.ogrid[:size, :size]
    for r, (j, k) in product(range(1, length + 1), np.ndindex(size, size)):
        if j + k > r + 1:  # a line leaves at most one fewer unused
            continue
        for (takes, number), group in zip(GROUPS, members, strict=True):
            a_list = 1 - number
            for a, b in np.ndindex(2 if takes == INT_LIST else 1, 3 if takes == LIST_LIST else 2):
                if a <= j and b <= k:
                    later = np.zeros((size, size))
                    left = ways[r - 1, number:, a_list:, j - a + number, k - b + a_list]
                    later[: size - number, : size - a_list] = left
                    ways[r, :, :, j, k] += group.sum() * _fits(takes, i, n, j, k, a, b) * later
    sums = np.array([np.cumsum(np.pad(group, (0, len(weights) - len(group)))) for group in members])
    return Completions(ways, sums.astype(np.float64))


def _fits(takes, i, n, j, k, a, b):
    """Choices of arguments that use a of the j unused among i numbers, and b of the k unused among
    n lists."""
    if takes == LIST_LIST:
        return (n - k) ** 2 if b == 0 else k + 2 * k * (n - k) if b == 1 else k * (k - 1)
    lists = k if b else n - k
    return lists if takes == LIST else lists * (j if a else i - j)


@kernel()
def sample(completions: Completions, kinds: Bools, state: Words, codes: Codes) -> None:
    """Draw programs without unused variables, by weight, each of as many lines as `codes` has
    columns.

    Parameters
    ----------
    completions : table of `count_completions` for at least that length.
    kinds : whether an input is a number, shape (inputs,).
    state : state of the random numbers, shape (1,); updated.
    codes : lines, shape (P, T); written.
    """
    ways, sums = completions
    inputs, length = kinds.size, codes.shape[1]
    number = np.zeros(inputs + length, dtype=np.bool_)
    used = np.zeros(inputs + length, dtype=np.bool_)
    for v in range(inputs):
        number[v] = kinds[v]
    for p in range(codes.shape[0]):
        used[:] = False
        for depth in range(length):
            line = inputs + depth
            i, j, k = 0, 0, 0
            for v in range(line):
                i += number[v]
                j += number[v] and not used[v]
                k += not number[v] and not used[v]
            left = length - depth - 1
            draw = _share(state, ways[left + 1, i, line - i, j, k])
            for g in range(SIZES.size):
                takes, gives = GROUPS[g]
                for x in range(line):
                    if number[x] != (takes == INT_LIST):
                        continue
                    for y in range(x if takes == LIST else 0, x + 1 if takes == LIST else line):
                        if number[y] or draw < 0:
                            continue
                        a = np.int64(number[x] and not used[x])
                        b = np.int64(not used[y]) + np.int64(x != y and not number[x] and not used[x])
                        each = ways[left, i + gives, line - i + 1 - gives, j - a + gives, k - b + 1 - gives]
                        if each > 0:  # the last one that is reached, whatever the rounding
                            place = 0
                            while place < SIZES[g] - 1 and draw >= sums[g, place] * each:
                                place += 1
                            codes[p, depth] = code_in(IDS[g, place], x, y)
                        draw -= sums[g, -1] * each
            x, y = arguments_in(codes[p, depth])
            used[x] = used[y] = True
            number[line] = GIVES_INT[operation_in(codes[p, depth])]


@helper()
def _draw_inputs(pool, kinds, state, bounds, longest, ranges, free):
    """Write random inputs, each number within the ranges or, if free, within a random magnitude."""
    low, high = bounds.low, bounds.high
    least, most = ranges
    size = 1 + _below(state, longest)
    bound = 2 << max(_below(state, EIGHT), _below(state, EIGHT))
    bottom = 0 if _below(state, FOUR) == 0 else -bound
    for v in range(kinds.size):
        n = size if _below(state, TWO) == 0 else 1 + _below(state, longest)
        first, last = least[v], most[v]
        if kinds[v]:
            n = 1
            if _below(state, FOUR):
                first, last = max(first, 0), min(last, size)
        elif free:
            first, last = bottom, bound
        first, last = max(first, low), min(last, high)
        if first > last:
            first, last = low, high
        for i in range(WIDTH):
            pool[v, i] = first + _below(state, last - first + 1) if i < n else NULL
        pool[v, WIDTH] = n


@helper(inline="always")
def _run(codes, inputs, pool, bounds):
    """Whether all lines give values in range, on one example."""
    for d in range(codes.size):
        code = np.int64(codes[d])
        x, y = arguments_in(code)
        if not apply(operation_in(code), pool, x, y, inputs + d, (ZERO, ONE), bounds):
            return False
    return True


@helper()
def _same(numbers, m, v, other, w):
    """Whether two values are the same, of one example or of two."""
    differs = NULL ^ NULL
    for i in range(numbers.shape[2]):
        differs |= numbers[m, v, i] ^ numbers[other, w, i]
    return differs == 0


@helper(inline="always")
def _find_examples(codes, kinds, pool, state, bounds, limits, ranges, numbers):
    """Write examples for one program; whether there are enough within the limits."""
    inputs, examples, longest = kinds.size, numbers.shape[0], limits.longest
    repeated, empties = 0, 0
    for m in range(examples):
        found = False
        for attempt in range(MOST):
            _draw_inputs(pool, kinds, state, bounds, longest, ranges, attempt < FREE)
            if not _run(codes, inputs, pool, bounds):
                continue
            for i in range(longest):
                for v in range(inputs):
                    numbers[m, v, i] = pool[v, i]
                numbers[m, _OUTPUT, i] = pool[inputs + codes.size - 1, i]
            known, repeats = False, False
            for other in range(m):
                alike = True
                for v in range(inputs):
                    alike &= _same(numbers, m, v, other, v)
                known |= alike
                repeats |= _same(numbers, m, _OUTPUT, other, _OUTPUT)
            empty = numbers[m, _OUTPUT, 0] == NULL
            fits = not repeats or (attempt >= FRESH and repeated < limits.repeats)
            if fits and not known and empties + empty <= limits.empty:
                repeated += repeats
                empties += empty
                found = True
                break
        if not found:
            return False
    varied = True
    for v in range(inputs):
        alike = kinds[v] == GIVES_INT[operation_in(codes[-1])]
        for m in range(examples):
            alike &= _same(numbers, m, v, m, _OUTPUT)
        varied &= not alike
    return varied


@kernel()
def draw_examples(
    codes: Codes, kinds: Bools, seeds: Words, bounds: Bounds, limits: ExampleLimits, numbers: Lanes, done: Bools
) -> None:
    """Draw examples for programs; `corpus_maker` describes them.

    Parameters
    ----------
    codes : lines, shape (P, T).
    kinds : whether an input is a number, shape (inputs,).
    seeds : a number for each program, shape (P,).
    bounds, limits : range of values, and limits of examples.
    numbers : inputs, from 0, and output, last, of the examples, shape (P, M, 4, longest); NULL at
        first; written.
    done : whether the program has all its examples, shape (P,); written.
    """
    variables = kinds.size + codes.shape[1]
    pool = np.full((variables, _ROW), NULL)
    least, most = np.zeros(variables, dtype=np.int64), np.zeros(variables, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for p in range(codes.shape[0]):
        state[0] = mix(seeds[p])
        done[p] = propagate(codes[p], kinds.size, limits.longest, bounds, least, most) and _find_examples(
            codes[p], kinds, pool, state, bounds, limits, (least, most), numbers[p]
        )
