"""Compiled maximum flows on grids: push and relabel in the order of the memory, with exact
distances by sets of 64 sites; tests compare them with a plain reference.

A site has four arcs: right, left, down, up. The reverse of arc k is arc k ^ 1 of the neighbour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel

if TYPE_CHECKING:
    from thesis_cli.inference.graph_cut.flow_arrays import Grid, Sheet, Shorts, Words

NEVER: Any = np.int64(2**30)
"""Distance of a site from which the sink cannot be reached."""
EMPTY, ONE, TWO, FOUR, TOP = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(63)
PAIRS, FOURS, EIGHTS, BYTES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)
SEQUENCE, SHIFT = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
"""A de Bruijn sequence: its products with the powers of 2 differ in their first six bits."""
PLACES = np.zeros(64, np.int64)
PLACES[[(2**k * int(SEQUENCE) % 2**64) >> int(SHIFT) for k in range(64)]] = range(64)
SHARE = 0.3
"""Discharges for each site between two exact distances, both of which take about as long."""
ROW_OF_WORDS = 16
"""Words without excess that take as long as a discharge."""


@helper()
def count(word: np.uint64) -> int:
    """Number of elements of a set."""
    x = word - ((word >> ONE) & PAIRS)
    x = (x & FOURS) + ((x >> TWO) & FOURS)
    x = (x + (x >> FOUR)) & EIGHTS
    return int((x * BYTES) >> np.uint64(56))


@helper()
def paint(heights: Shorts, a: int, word: np.uint64, height: int) -> None:
    """Give the sites of a set their height."""
    while word != EMPTY:
        bit = word & (~word + ONE)
        word ^= bit
        heights[64 * a + PLACES[(bit * SEQUENCE) >> SHIFT]] = height


@helper()
def push_along(g: Grid, s: Sheet) -> None:
    """A first flow: each site gives its right and lower neighbours what it has or needs; then each
    in reverse order takes back what they have not used.
    """
    base, residual, excess = g.base, s.residual, s.excess
    columns, stride = g.columns, g.stride
    for r in range(g.rows):
        for i in range(r * stride, r * stride + columns):
            j, left, room = i + 1, excess[i], base[i, 0]
            pushed = max(min(left, room), -base[j, 1])
            residual[i, 0], residual[j, 1] = room - pushed, base[j, 1] + pushed
            excess[j] += pushed
            left -= pushed
            j, room = i + stride, base[i, 2]
            pushed = max(min(left, room), -base[j, 3])
            residual[i, 2], residual[j, 3] = room - pushed, base[j, 3] + pushed
            excess[j] += pushed
            excess[i] = left - pushed
    for r in range(g.rows - 1, -1, -1):
        for i in range(r * stride + columns - 1, r * stride - 1, -1):
            left = excess[i]
            j, pushed = i + stride, base[i, 2] - residual[i, 2]
            unused = min(max(pushed, 0.0), max(excess[j], 0.0)) + max(min(pushed, 0.0), min(excess[j], 0.0))
            residual[i, 2] += unused
            residual[j, 3] -= unused
            excess[j] -= unused
            left += unused
            j, pushed = i + 1, base[i, 0] - residual[i, 0]
            unused = min(max(pushed, 0.0), max(excess[j], 0.0)) + max(min(pushed, 0.0), min(excess[j], 0.0))
            residual[i, 0] += unused
            residual[j, 1] -= unused
            excess[j] -= unused
            excess[i] = left + unused


@helper()
def collect(g: Grid, s: Sheet) -> None:
    """The sets of arcs that are not saturated and of sites with excess."""
    residual, excess, opened, active, lost = s.residual, s.excess, s.open, s.active, s.lost
    for a in range(g.rows * g.words):
        right = left = down = up = some = inside = EMPTY
        for i in range(64 * a + min(64, g.columns - 64 * (a % g.words)) - 1, 64 * a - 1, -1):
            inside = (inside << ONE) | ONE
            right = (right << ONE) | np.uint64(residual[i, 0] > 0)
            left = (left << ONE) | np.uint64(residual[i, 1] > 0)
            down = (down << ONE) | np.uint64(residual[i, 2] > 0)
            up = (up << ONE) | np.uint64(residual[i, 3] > 0)
            some = (some << ONE) | np.uint64(excess[i] > 0)
        opened[a, 0], opened[a, 1], opened[a, 2], opened[a, 3] = right, left, down, up
        # The padding is lost from the start: no search paints it.
        active[a], lost[a] = some, ~inside


@helper()
def seed(g: Grid, s: Sheet, front: Words, ahead: Words) -> None:
    """Start a search from the sites that the sink can take more from."""
    excess, heights, seen, lost, busy = s.excess, s.heights, s.seen, s.lost, s.busy
    for r in range(g.rows):
        some = EMPTY
        for a in range(r * g.words, (r + 1) * g.words):
            needy = EMPTY
            for i in range(64 * a + min(64, g.columns - 64 * (a - r * g.words)) - 1, 64 * a - 1, -1):
                needy = (needy << ONE) | np.uint64(excess[i] < 0)
            front[a], ahead[a], seen[a] = needy, EMPTY, needy | lost[a]
            some |= needy
            paint(heights, a, needy, ZERO)
        busy[0, r], busy[1, r] = some != EMPTY, False


@helper()
def search(g: Grid, s: Sheet, active: int) -> int:
    """Exact heights, that is, distances to the sink, by breadth-first search.

    It ends once it has met so many active sites; what is farther gets a height that it has at
    least. Otherwise what was not met is lost for good: no site is ever joined to the sink again.

    Returns
    -------
    Number of active sites that were met.
    """
    # Taken out of the tuples once: each time changes a count of references.
    rows, words, busy, seen, opened, heights = g.rows, g.words, s.busy, s.seen, s.open, s.heights
    front, ahead, wanted = s.front, s.ahead, s.active
    seed(g, s, front, ahead)
    now, height, met = 0, 0, 0
    more = True
    while more and met != active:
        height, more = height + 1, False
        for r in range(rows):
            first, end = r * words, (r + 1) * words
            if busy[now, r] or (r > 0 and busy[now, r - 1]) or (r + 1 < rows and busy[now, r + 1]):
                some = EMPTY
                for a in range(first, end):
                    right, left = front[a] >> ONE, front[a] << ONE
                    if a + 1 < end:
                        right |= front[a + 1] << TOP
                    if a > first:
                        left |= front[a - 1] >> TOP
                    found = (right & opened[a, 0]) | (left & opened[a, 1])
                    if r + 1 < rows:
                        found |= front[a + words] & opened[a, 2]
                    if r > 0:
                        found |= front[a - words] & opened[a, 3]
                    found &= ~seen[a]
                    ahead[a] = found
                    if found != EMPTY:
                        seen[a] |= found
                        some |= found
                        paint(heights, a, found, height)
                        met += count(found & wanted[a])
                busy[1 - now, r] = some != EMPTY
                more = more or some != EMPTY
            elif busy[1 - now, r]:
                busy[1 - now, r] = False
                for a in range(first, end):
                    ahead[a] = EMPTY
        front, ahead, now = ahead, front, 1 - now
    lost = s.lost
    for a in range(rows * words):
        unseen = ~seen[a]
        if unseen != EMPTY:
            paint(heights, a, unseen, height + 1 if more else NEVER)
            if not more:
                lost[a] |= unseen
                wanted[a] &= ~unseen
    return met


@helper()
def first_of(word: np.uint64, down: bool) -> np.uint64:
    """The lowest element of a set alone, or the highest."""
    if down:
        return word & (~word + ONE)
    bits = word | (word >> ONE)
    bits |= bits >> TWO
    bits |= bits >> FOUR
    bits |= bits >> np.uint64(8)
    bits |= bits >> np.uint64(16)
    bits |= bits >> np.uint64(32)
    return bits ^ (bits >> ONE)


@helper()
def sweep(g: Grid, s: Sheet, count: int) -> int:
    """Discharge active sites, down and up the rows in turns, until that has taken as long as a
    search; returns the number of those that are active then.

    A site pushes its excess to its lower neighbours; if some is left, the site is lifted. What has
    become active ahead is discharged in the same pass.
    """
    residual, excess, heights, opened, active, lost = s.residual, s.excess, s.heights, s.open, s.active, s.lost
    steps, words = (1, -1, g.stride, -g.stride), g.rows * g.words
    budget, work, down = SHARE * g.rows * g.columns + 32, 0, False
    while work <= budget and count > 0:
        down = not down
        work += 1 + words // ROW_OF_WORDS
        for q in range(words):
            a = q if down else words - 1 - q
            waiting = active[a]
            while waiting != EMPTY:
                bit = first_of(waiting, down)
                i = 64 * a + PLACES[(bit * SEQUENCE) >> SHIFT]
                work += 1
                left, own, lowest = excess[i], heights[i], NEVER
                for k in range(4):
                    room = residual[i, k]
                    if room > 0:
                        j = i + steps[k]
                        below = heights[j]
                        if below < own:
                            amount = min(left, room)
                            room -= amount
                            residual[i, k] = room
                            residual[j, k ^ 1] += amount
                            if room <= 0:
                                opened[a, k] &= ~bit
                            other, before = ONE << np.uint64(j & 63), excess[j]
                            opened[j >> 6, k ^ 1] |= other
                            excess[j] = before + amount
                            left -= amount
                            if before <= 0 and before + amount > 0:
                                count += 1
                                active[j >> 6] |= other
                            if left <= 0:
                                break
                        if room > 0:
                            lowest = min(lowest, below)
                excess[i] = left
                if left > 0:
                    heights[i] = min(lowest + 1, NEVER)
                if left <= 0 or lowest >= NEVER:
                    count -= 1
                    active[a] &= ~bit
                    if left > 0:
                        lost[a] |= bit
                waiting = active[a] & (~(bit | (bit - ONE)) if down else bit - ONE)
    return count


@kernel()
def minimum_cuts_of_grids(g: Grid, s: Sheet, excess: Floats, labels: Ints) -> None:
    """Minimum cuts by the first stage of push and relabel (Goldberg and Tarjan, 1988), which ends
    when no excess can reach the sink.

    Parameters
    ----------
    excess : capacity from the source, to the sink if negative, shape (batch, nodes).
    labels : 1 where the sink can be reached in the end, 0 elsewhere; as `excess`.
    """
    sites, spread, heights = g.sites, s.excess, s.heights
    for row in range(len(excess)):
        for i in range(spread.size):
            spread[i] = 0.0
        for v in range(sites.size):
            spread[sites[v]] = excess[row, v]
        push_along(g, s)
        collect(g, s)
        met = search(g, s, -1)
        while met > 0:
            active = sweep(g, s, met)
            # No count of active sites is -1: the last search is complete.
            met = search(g, s, active if active > 0 else -1)
        for v in range(sites.size):
            labels[row, v] = heights[sites[v]] < NEVER
