"""Compiled comparison of programs by what they do to probes. Lines are codes: see `program_codes`.

Variables hold values on all probes, as rows of a pool (`lanes`), computed without regard to the
range of the language; bit m of a mask stands for probe m. A behaviour has two hashes: one of all
these values, and one of those of the probes on which the program keeps to the range. So two
programs count as the same if they agree wherever both can be run, even if one leaves the range
earlier, and also if they differ only where they cannot be run. Some pairs that do the same pass
for different, because one leaves 16 bits earlier: `exact_behaviours` finds these.

Hashes are kept in tables of words with open addressing, 0 where there is no entry. An entry is a key, whose 4
lowest bits hold the number of lines of a program instead.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import ONE, ZERO, helper, kernel
from thesis_cli.synthesis.corpus.sampling_kernels import mix
from thesis_cli.synthesis.language.dsl import DEEPCODER, WIDEST
from thesis_cli.synthesis.language.input_range_kernels import arguments_in, code_in, operation_in
from thesis_cli.synthesis.language.operation_kernels import COMMUTES, GIVES_INT, INT_LIST, LIST, TAKES, apply
from thesis_cli.synthesis.language.packing import NULL, WIDTH, Bounds, Lanes
from thesis_cli.synthesis.language.program_codes import Codes

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.program_codes import Codes

LENGTH = np.uint64(15)
"""Bits of an entry that hold the number of lines."""


@helper(cache=True)
def place_of(table, key):
    """Place in the table where a key stands, or belongs."""
    mask = table.size - 1
    place = np.int64(key >> np.uint64(5)) & mask
    while table[place] and (table[place] ^ key) > LENGTH:
        place = (place + 1) & mask
    return place


@helper(cache=True)
def enter(table, key, length):
    """Enter a key with the length of the program; returns whether it is new."""
    place = place_of(table, key)
    if table[place]:
        return False
    table[place] = key & ~LENGTH | np.uint64(length)
    return True


@helper(cache=True)
def shorten(table, key, length):
    """Note that a program of so many lines has a key, which is in the table."""
    place = place_of(table, key)
    if np.int64(table[place] & LENGTH) > length:
        table[place] = key & ~LENGTH | np.uint64(length)


@kernel()
def enter_keys(table: Words, keys: Words, length: int, new: Bools) -> int:
    """Enter keys as those of programs of so many lines, into a table that has room; the number of
    new ones.

    `new`, shape (P,), is written: whether a key is neither in the table nor above it.
    """
    entries = 0
    for i in range(keys.size):
        new[i] = enter(table, keys[i], length)
        entries += new[i]
    return entries


@kernel()
def lengths_of(table: Words, keys: Words, lengths: Ints) -> None:
    """Write the lines that the table has for each key."""
    for i in range(keys.size):
        lengths[i] = table[place_of(table, keys[i])] & LENGTH


@kernel()
def rehash(old: Words, table: Words) -> None:
    """Enter all keys of a table into an empty larger one."""
    for key in old:
        if key:
            table[place_of(table, key)] = key


IDS = len(DEEPCODER.operations)

PROBES = 32
"""Inputs on which programs are compared; at most 63."""

FEWEST_VALID = 8
"""Probes on which a program must keep to the range and give no NULL."""

WORDS = WIDTH // 4
"""64-bit words of a value on one probe."""

MULTIPLIERS = np.random.default_rng(0).integers(2**64, size=PROBES * WORDS, dtype=np.uint64) | np.uint64(1)
"""Odd, for hashes of values: the same in every process."""

ALIVE, VALID, KEY = range(3)
"""Marks of a variable: probes on which it has a value; on which nothing has left the range; hash of
its values."""

_ALL = np.uint64(2**PROBES - 1)


@helper()
def _hash(words, row, is_int, alive, valid):
    """Hashes of a behaviour: of the values in the widest range, and of those in the range."""
    wide, narrow = np.uint64(0), np.uint64(0)
    for m in range(PROBES):
        h = np.uint64(0)
        for i in range(m * WORDS, (m + 1) * WORDS):
            w = words[row, i]
            h += (w ^ (w >> np.uint64(29))) * MULTIPLIERS[i]
        if alive >> np.uint64(m) & np.uint64(1):
            wide += h
        if valid >> np.uint64(m) & np.uint64(1):
            narrow += h
    kind = np.uint64(is_int) << np.uint64(62)
    wide = mix(mix(wide) ^ alive ^ kind)
    narrow = mix(mix(narrow + np.uint64(1)) ^ valid ^ kind)
    return wide, narrow


@helper(inline="always")
def _run(code, line, pool, words, marks, bounds):
    """Run a line on all probes and mark its result; the hash of what is in range."""
    wide = Bounds(np.int16(-WIDEST), np.int16(WIDEST), bounds.floor)
    id, (x, y) = operation_in(np.int64(code)), arguments_in(np.int64(code))
    both = marks[ALIVE, x] & marks[ALIVE, y]
    alive = np.uint64(0)
    m, step = np.int64(0), np.int64(PROBES if both == _ALL else 1)
    while m < PROBES:
        if step > 1 or both >> np.uint64(m) & np.uint64(1):
            ok = apply(id, pool, x, y, line, (m, m + step), wide)
            if ok:
                alive |= _ALL if step > 1 else np.uint64(1) << np.uint64(m)
            elif step > 1:  # at least one probe has no value
                step = 1
                continue
        m += step
    valid = marks[VALID, x] & marks[VALID, y] & alive
    for m in range(PROBES):
        beyond = False
        for i in range(m * WIDTH, (m + 1) * WIDTH):
            v = pool[line, i]
            beyond |= (v != NULL) & ((v < bounds.low) | (v > bounds.high))
        if beyond:
            valid &= ~(np.uint64(1) << np.uint64(m))
    key, narrow = _hash(words, line, GIVES_INT[id], alive, valid)
    marks[ALIVE, line], marks[VALID, line], marks[KEY, line] = alive, valid, key
    return narrow


@helper()
def _list_lines(state, number, depth):
    """List the codes that the line at `depth` can have: no line may stay unused, and neighbours are
    in order."""
    _, cursor, sizes, uses, choices = state
    inputs = number.size - sizes.size
    line, after = inputs + depth, sizes.size - depth - 1
    need = -after
    for v in range(inputs, line):
        need += uses[v] == 0
    n = 0
    for id in range(IDS):
        takes = TAKES[id]
        for x in range(line):
            if number[x] != (takes == INT_LIST):
                continue
            start = x if takes == LIST or COMMUTES[id] else 0
            for y in range(start, x + 1 if takes == LIST else line):
                if number[y]:
                    continue
                taken = np.int64(x >= inputs and uses[x] == 0) + np.int64(y != x and y >= inputs and uses[y] == 0)
                code = code_in(id, x, y)
                follows = depth == 0 or x == line - 1 or y == line - 1
                if taken >= need and (follows or code > choices[depth - 1, cursor[depth - 1] - 1]):
                    choices[depth, n] = code
                    n += 1
    sizes[depth] = n


@kernel()
def enter_inputs(words: Words, kinds: Bools, table: Words, marks: Words) -> int:
    """Mark the inputs, of which `words` has the probes, and enter them as programs of no line;
    entries in use."""
    keys = 0
    for v in range(kinds.size):
        wide, narrow = _hash(words, v, kinds[v], _ALL, _ALL)
        marks[ALIVE, v], marks[VALID, v], marks[KEY, v] = _ALL, _ALL, wide
        keys += enter(table, wide, ZERO) + enter(table, narrow, ZERO)
    return keys


class ProbeRoom(NamedTuple):
    """Memory for the variables of a program.

    Attributes
    ----------
    pool : probes of the inputs, and room for T lines, shape (inputs + T, `row_size(PROBES)`).
    words : the same memory.
    kinds : whether a variable is a number, shape (inputs + T,); those of lines are written.
    marks : shape (3, inputs + T); updated. Those of inputs are set.
    bounds : range of numbers, and rounding.
    """

    pool: Lanes
    words: Words
    kinds: Bools
    marks: Words
    bounds: Bounds


class EnumerationState(NamedTuple):
    """Position of the enumeration; all is updated.

    Attributes
    ----------
    counts : depth, programs examined, programs found. All 0 at first.
    cursor, sizes : choice that comes next, and number of choices, shape (T,). sizes[0] is -1 at
        first.
    uses : how often a variable is taken, shape (inputs + T,). All 0 at first.
    choices : room for codes, shape (T, .).
    """

    counts: Ints
    cursor: Ints
    sizes: Ints
    uses: Ints
    choices: Codes


@kernel()
def enumerate_behaviours(
    room: ProbeRoom, state: EnumerationState, table: Words, keys: int, found: Codes, budget: int, add: bool
) -> int:
    """Enter the behaviours of all programs of one length T without unused lines; go on from the
    last call.

    It leaves out programs in which a line repeats a variable or has no value on any probe, programs
    with swapped arguments of a commutative operation, and all but one of the programs that differ
    in the order of two lines.

    Parameters
    ----------
    room, state : values, and the position of the enumeration.
    table : hashes of behaviours; updated.
    keys : entries of the table in use.
    found : lines of the first program of each new behaviour that uses all inputs, shape (., T);
        written.
    budget : programs to examine in this call.
    add : whether behaviours are entered. If not, entries of programs of more lines learn that fewer
        lines do.

    Returns
    -------
    Entries of the table in use. It is done when sizes[0] is -2; otherwise the table or `found`
    needs more room, or the budget is spent.
    """
    pool, words, kinds, marks, bounds = room
    counts, cursor, sizes, uses, choices = state
    length = sizes.size
    inputs = kinds.size - length
    depth, stop = counts[0], counts[1] + budget
    while 2 * (keys + 2) < table.size and counts[2] < found.shape[0] and counts[1] < stop:
        if sizes[depth] == -1:
            cursor[depth] = 0
            _list_lines(state, kinds, depth)
        if cursor[depth] == sizes[depth]:
            if depth == 0:
                sizes[0] = -2
                break
            sizes[depth] = -1
            depth -= 1
            _take(uses, choices[depth, cursor[depth] - 1], -ONE)
            continue
        code = choices[depth, cursor[depth]]
        cursor[depth] += 1
        line = inputs + depth
        narrow = _run(code, line, pool, words, marks, bounds)
        kinds[line] = GIVES_INT[operation_in(code)]
        last = depth == length - 1
        counts[1] += last
        if not marks[ALIVE, line] or (not last and _repeats(marks, ZERO, line)):
            continue
        if last and not add:
            shorten(table, marks[KEY, line], length)
            shorten(table, narrow, length)
            continue
        _take(uses, code, ONE)
        if not last:
            depth += 1
            sizes[depth] = -1
            continue
        new, differs = enter(table, marks[KEY, line], length), enter(table, narrow, length)
        keys += new + differs
        if new and differs and np.all(uses[:inputs] > 0):
            for d in range(length):
                found[counts[2], d] = choices[d, cursor[d] - 1]
            counts[2] += 1
        _take(uses, code, -ONE)
    counts[0] = depth
    return keys


@helper()
def _repeats(marks, first, line):
    """Whether a variable has the value of one from `first` to the one above it."""
    found = False
    for v in range(first, line):
        found |= marks[KEY, v] == marks[KEY, line]
    return found


@helper()
def _take(uses, code, times):
    x, y = arguments_in(code)
    uses[x] += times
    uses[y] += times


@helper()
def _serving(codes, inputs, line):
    """Number of lines that the output needs for the result of one alone, which is one of them."""
    needed = np.zeros(inputs + codes.size, dtype=np.bool_)
    needed[-1] = True
    rest = 0
    for v in range(needed.size - 1, inputs - 1, -1):
        if needed[v] and v != line:
            rest += 1
            x, y = arguments_in(codes[v - inputs])
            needed[x] = needed[y] = True
    return codes.size - rest


@kernel()
def select(rooms: ProbeRoom, table: Words, fresh: bool, codes: Codes, hashes: Words, good: Bools) -> int:
    """Find the programs worth having, as `Behaviours.select` defines them.

    Parameters
    ----------
    rooms : several at once, in pools of shape (1 + inputs, inputs + T, `row_size(PROBES)`): with
        the probes as they are and, for each input, with the values of that input moved on by one
        probe. Kinds are those of inputs.
    table : table of behaviours, which takes 2 more for each program; updated if the programs are
        fresh.
    fresh : whether behaviours are to be new to the table.
    codes : lines, shape (P, T).
    hashes : both of the behaviour, shape (P, 2); written.
    good : shape (P,); written.

    Returns
    -------
    New entries of the table.
    """
    pools, words, kinds, marks, bounds = rooms
    inputs, length = kinds.size, codes.shape[1]
    last = inputs + length - 1
    keys = 0
    for p in range(codes.shape[0]):
        good[p] = True
        valid = np.uint64(0)
        for variant in range(inputs + 1):
            narrow = np.uint64(0)
            for line in range(inputs, last + 1):
                narrow = _run(codes[p, line - inputs], line, pools[variant], words[variant], marks, bounds)
                if variant == 0 and line < last:
                    entry = table[place_of(table, marks[KEY, line])]
                    shorter = entry and np.int64(entry & LENGTH) < _serving(codes[p], inputs, line)
                    good[p] = good[p] and not shorter and not _repeats(marks, inputs, line)
            if variant == 0:
                valid = marks[VALID, last]
                hashes[p, 0], hashes[p, 1] = marks[KEY, last], narrow
                if fresh and good[p]:
                    new, differs = enter(table, marks[KEY, last], length), enter(table, narrow, length)
                    keys += new + differs
                    good[p] = new and differs
                good[p] = good[p] and _count_bits(valid) >= FEWEST_VALID
            else:
                good[p] = _differ(pools[variant], pools[0], last, valid & marks[VALID, last])
            if not good[p]:
                break
    return keys


@helper()
def _count_bits(mask):
    count = 0
    for m in range(PROBES):
        count += np.int64(mask >> np.uint64(m) & np.uint64(1))
    return count


@helper()
def _differ(pool, other, row, mask):
    """Whether values of two pools differ on one of the probes of a mask."""
    differs = np.int16(0)
    for m in range(PROBES):
        if mask >> np.uint64(m) & np.uint64(1):
            for i in range(m * WIDTH, (m + 1) * WIDTH):
                differs |= pool[row, i] ^ other[row, i]
    return differs != 0
