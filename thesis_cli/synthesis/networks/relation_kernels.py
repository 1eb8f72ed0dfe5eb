"""Features of a value and the output of its example, as numbers for a network.

One value and one output give `FEATURES` numbers: some on each of the two alone, and some on the two
together, such as the share of places where the output is twice the value. No range is assumed:
numbers enter by sign and logarithm, by remainders, and in comparisons.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.synthesis.language.packing import WIDTH, Lanes

Features = npt.NDArray[np.float32]

ALONE = 44
"""Numbers on one value."""

TOGETHER = 83
"""Numbers on a value and an output."""

FEATURES = 2 * ALONE + TOGETHER

LOGARITHMS: Features = (np.log2(1.0 + np.arange(2**16)) / 8).astype(np.float32)
"""By magnitude; 1 stands for 255."""


@helper()
def _signed(logarithms, x):
    """Sign and logarithm of a number."""
    size = logarithms[min(abs(x), np.int64(65535))]
    return size if x >= 0 else -size


@helper()
def _alone(xs, n, is_list, logarithms, out):
    """Numbers on one value: its length, five of its numbers, and shares."""
    out[0] = is_list
    out[1] = n == 0
    out[2] = n == 1
    out[3] = n / np.float32(20)
    out[4] = logarithms[n] * 2
    for i in range(5, ALONE):
        out[i] = 0
    if n == 0:
        return
    for place in range(5):
        at = place if place < 3 else n - 5 + place
        if 0 <= at < n:
            x = np.int64(xs[at])
            out[5 + 3 * place] = _signed(logarithms, x)
            out[6 + 3 * place] = min(max(x / 16, -1.0), 1.0)
            out[7 + 3 * place] = x & 1
    least, most, total = np.int64(xs[0]), np.int64(xs[0]), np.int64(0)
    below = zero = odd = thirds = fourths = large = up = down = equal = distinct = small = 0
    for i in range(n):
        x = np.int64(xs[i])
        least, most = min(least, x), max(most, x)
        total += x
        below += x < 0
        zero += x == 0
        odd += x & 1
        thirds += x % 3 == 0
        fourths += x & 3 == 0
        large += abs(x) > 127
        small += abs(x) < 4
        if i > 0:
            last = np.int64(xs[i - 1])
            up += last < x
            down += last > x
            equal += last == x
    for i in range(n):
        new = True
        for j in range(i):
            new &= xs[i] != xs[j]
        distinct += new
    share = np.float32(1) / n
    out[20] = _signed(logarithms, least)
    out[21] = _signed(logarithms, most)
    out[22] = _signed(logarithms, total) / 2
    out[23] = below * share
    out[24] = zero * share
    out[25] = odd * share
    out[26] = thirds * share
    out[27] = fourths * share
    out[28] = large * share
    out[29] = small * share
    out[30] = distinct * share
    if n > 1:
        steps = np.float32(1) / (n - 1)
        out[31] = up * steps
        out[32] = down * steps
        out[33] = equal * steps
        out[34] = down == 0
        out[35] = up == 0
    out[36] = below == 0
    out[37] = below + zero == n
    out[38] = below + zero == 0
    out[39] = odd == 0
    out[40] = odd == n
    out[41] = thirds == n
    out[42] = fourths == n
    out[43] = below == n


@helper()
def _whole(xs, n, ys, k, logarithms, out):
    """Lengths, and numbers on all of a value and all of an output."""
    out[0] = n == k
    out[1] = n > k
    out[2] = min(max((n - k) / 8, -1.0), 1.0)
    out[3] = k / (n + k + 1)
    out[4] = n == 1 and k == np.int64(xs[0])
    out[5] = n == 1 and k <= np.int64(xs[0])
    least = most = sum_x = np.int64(0)
    above = below = odd = 0
    for i in range(n):
        x = np.int64(xs[i])
        least = x if i == 0 else min(least, x)
        most = x if i == 0 else max(most, x)
        sum_x += x
        above += x > 0
        below += x < 0
        odd += x & 1
    out[6] = k == above
    out[7] = k == below
    out[8] = k == odd
    out[9] = k == n - odd
    if k == 0 or n == 0:
        return
    first = np.int64(ys[0])
    sum_y, least_y, most_y = np.int64(0), first, first
    for i in range(k):
        y = np.int64(ys[i])
        sum_y += y
        least_y, most_y = min(least_y, y), max(most_y, y)
    out[10] = first == xs[0]
    out[11] = ys[k - 1] == xs[n - 1]
    out[12] = first == xs[n - 1]
    out[13] = least_y == least
    out[14] = most_y == most
    out[15] = first == least
    out[16] = first == most
    out[17] = first == sum_x
    out[18] = first == above
    out[19] = first == below
    out[20] = first == odd
    out[21] = first == n - odd
    out[22] = sum_x == sum_y
    out[23] = _signed(logarithms, sum_y - sum_x) / 2
    out[24] = least_y >= least
    out[25] = most_y <= most


@helper()
def _by_place(xs, n, ys, k, logarithms, out):
    """Relations between a value and an output place by place."""
    first = np.int64(ys[0])
    both = min(n, k)
    share = np.float32(1) / both
    equal = one = less_one = two = three = four = minus = square = 0
    half = third = fourth = at_most = at_least = parity = signs = divides = divided = smaller = 0
    backward = mirrored = shifted = 0
    low = high = np.int64(0)
    total = np.float32(0)
    constant = multiple = True
    d0 = first - np.int64(xs[0])
    x0 = np.int64(xs[0])
    for i in range(both):
        x, y = np.int64(xs[i]), np.int64(ys[i])
        d = y - x
        equal += d == 0
        one += d == 1
        less_one += d == -1
        two += y == 2 * x
        three += y == 3 * x
        four += y == 4 * x
        minus += y == -x
        square += y == x * x
        size = abs(x)
        sign = np.int64(1) if x >= 0 else np.int64(-1)
        half += y == sign * (size >> 1)
        third += y == sign * (size // 3)
        fourth += y == sign * (size >> 2)
        at_most += d <= 0
        at_least += d >= 0
        parity += d & 1 == 0
        signs += (x > 0) == (y > 0) and (x < 0) == (y < 0)
        divides += x != 0 and y % x == 0
        divided += y != 0 and x % y == 0
        smaller += abs(y) <= size
        low = d if i == 0 else min(low, d)
        high = d if i == 0 else max(high, d)
        total += _signed(logarithms, d)
        constant &= d == d0
        multiple &= y * x0 == first * x
        backward += xs[n - 1 - i] == ys[k - 1 - i]
        mirrored += xs[n - 1 - i] == ys[i]
        shifted += i + 1 < n and xs[(i + 1) % n] == ys[i]
    counts = (equal, one, less_one, two, three, four, minus, square, half, third, fourth)
    at = 26
    for count in counts:
        out[at] = count * share
        at += 1
    counts_2 = (at_most, at_least, parity, signs, divides, divided, smaller, backward, mirrored, shifted)
    for count in counts_2:
        out[at] = count * share
        at += 1
    out[47] = equal == both
    out[48] = at_most == both
    out[49] = at_least == both
    out[50] = divides == both
    out[51] = divided == both
    out[52] = constant
    out[53] = multiple
    out[54] = _signed(logarithms, low)
    out[55] = _signed(logarithms, high)
    out[56] = total * share
    for place in range(3):
        if place < both:
            x, y = np.int64(xs[place]), np.int64(ys[place])
            out[57 + 3 * place] = _signed(logarithms, y - x)
            out[58 + 3 * place] = min(max((y - x) / 16, -1.0), 1.0)
            if x != 0 and y % x == 0:
                out[59 + 3 * place] = _signed(logarithms, y // x)


@helper()
def _by_step(xs, ys, both, out):
    """How an output goes on from place to place, where a value does."""
    plus = less = times = lows = highs = slopes = ups = 0
    for i in range(1, both):
        x, y = np.int64(xs[i]), np.int64(ys[i])
        before, back = np.int64(ys[i - 1]), np.int64(xs[i - 1])
        plus += y - before == x
        less += before - y == x
        times += y == before * x
        lows += y == min(before, x)
        highs += y == max(before, x)
        slopes += y - before == x - back
        ups += (y > before) == (x > back) and (y < before) == (x < back)
    if both > 1:
        steps = np.float32(1) / (both - 1)
        counts_3 = (plus, less, times, lows, highs, slopes, ups)
        at = 66
        for count in counts_3:
            out[at] = count * steps
            at += 1


@helper()
def _by_member(xs, n, ys, k, order, out):
    """Numbers that a value and an output share; `order` is room for the sorted value."""
    both = min(n, k)
    found = taken = 0
    for i in range(k):
        here = False
        for j in range(n):
            here |= xs[j] == ys[i]
        found += here
    for j in range(n):
        here = False
        for i in range(k):
            here |= xs[j] == ys[i]
        taken += here
    matched = 0
    for j in range(n):
        if matched < k and xs[j] == ys[matched]:
            matched += 1
    for i in range(n):
        x, j = xs[i], i
        while j > 0 and order[j - 1] > x:
            order[j] = order[j - 1]
            j -= 1
        order[j] = x
    ranked = 0
    for i in range(both):
        ranked += order[i] == ys[i]
    out[73] = found / np.float32(k)
    out[74] = taken / np.float32(n)
    out[75] = matched / np.float32(k)
    out[76] = ranked * (np.float32(1) / both)
    out[77] = found == k
    out[78] = taken == n
    out[79] = matched == k
    out[80] = ranked == k
    prefix = suffix = 0
    while prefix < both and xs[prefix] == ys[prefix]:
        prefix += 1
    while suffix < both and xs[n - 1 - suffix] == ys[k - 1 - suffix]:
        suffix += 1
    out[81] = prefix / np.float32(k)
    out[82] = suffix / np.float32(k)


@helper()
def _together(xs, n, ys, k, logarithms, order, out):
    """Numbers on a value and an output."""
    for i in range(TOGETHER):
        out[i] = 0
    _whole(xs, n, ys, k, logarithms, out)
    if k > 0 and n > 0:
        _by_place(xs, n, ys, k, logarithms, out)
        _by_step(xs, ys, min(n, k), out)
        _by_member(xs, n, ys, k, order, out)


@kernel()
def relate(
    values: Lanes, lists: Bools, rows: Ints, targets: Lanes, outputs: Ints, target_lists: Bools, logarithms: Features,
    out: Features,
) -> None:  # fmt: skip
    """Compute the features of K values.

    Parameters
    ----------
    values : values in lanes, shape (R, .).
    lists : whether a value is a list, shape (R,).
    rows : places of the K values, shape (K,).
    targets : outputs of tasks, in lanes, shape (tasks, .).
    outputs : places of the outputs, shape (K,).
    target_lists : whether they are lists, shape (tasks,).
    logarithms : `LOGARITHMS`.
    out : shape (K, M, FEATURES), written.
    """
    examples = out.shape[1]
    order = np.zeros(WIDTH, dtype=np.int16)
    for j in range(rows.size):
        row, task = rows[j], outputs[j]
        for m in range(examples):
            xs = values[row, m * WIDTH : (m + 1) * WIDTH]
            ys = targets[task, m * WIDTH : (m + 1) * WIDTH]
            n = np.int64(values[row, examples * WIDTH + m])
            k = np.int64(targets[task, examples * WIDTH + m])
            _alone(xs, n, lists[row], logarithms, out[j, m, :ALONE])
            _alone(ys, k, target_lists[task], logarithms, out[j, m, ALONE : 2 * ALONE])
            _together(xs, n, ys, k, logarithms, order, out[j, m, 2 * ALONE :])
