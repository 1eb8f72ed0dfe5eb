"""Compiled reading of the words of a text as numbers; `bulk.py` says what for."""

from __future__ import annotations

import math

from thesis_cli.base.arrays import Bools, Bytes, Floats, Ints
from thesis_cli.base.compiled import helper, kernel

LOWEST, HIGHEST = -270, 250
"""Exponents of 10 that are read here: no step on the way leaves the range of a double."""

DIGITS = 18
"""Significant digits that are read here; so many fit into 64 bits."""

SPLIT = 2.0**27 + 1
"""Cuts a double into two halves whose products are exact (Veltkamp)."""

DOUBT = 2.0**-95
"""Relative error of the product of a mantissa and a power of 10 before it is rounded, at most."""

CUT = 2.0**-56
"""Relative error of a mantissa that was cut after `DIGITS` digits, at most."""


@helper()
def _rounded(mantissa: int, exponent: int, high: Floats, low: Floats, doubt: float) -> float:
    """The double next to mantissa * 10^exponent; NaN where that is not certain.

    The mantissa and the power are each the sum of two doubles. Their product, a sum of two doubles
    too, is at most `doubt` away from the exact number (T. Dekker, A floating-point technique for
    extending the available precision, 1971). If both ends of that interval round to the same
    double, so does all that lies between them.
    """
    if not LOWEST <= exponent <= HIGHEST:
        return math.nan
    h, p = float(mantissa), high[exponent - LOWEST]
    product = h * p
    a, b = h * SPLIT, p * SPLIT
    a, b = a - (a - h), b - (b - p)
    rest = ((a * b - product) + a * (p - b) + (h - a) * b) + (h - a) * (p - b)
    rest += h * low[exponent - LOWEST] + (mantissa - int(h)) * p
    value = product + rest
    rest -= value - product
    certain = value + (rest - doubt * value) == value and value + (rest + doubt * value) == value
    return value if certain else math.nan


@kernel()
def read_words(text: Bytes, high: Floats, low: Floats, values: Floats, whole: Bools) -> int:
    """Read words as doubles, rounded to nearest, until the end of a text; returns how many.

    Parameters
    ----------
    text : letters.
    high, low : 10^e = high + low for each e from `LOWEST` to `HIGHEST`, to 2^-105 of its size.
    values : the numbers, written here; NaN for a word that is no decimal number, or too large, too
        small or too near to the middle between two doubles to be read here.
    whole : which words are whole numbers of at most 15 digits without a sign, written here.
    """
    count = at = 0
    while at < len(text):
        letter = text[at]
        if letter == 32 or 9 <= letter <= 13 or 28 <= letter <= 31:
            at += 1
            continue
        start, digits, used, mantissa, exponent = at, 0, 0, 0, 0
        point, doubt = False, DOUBT
        while at < len(text):
            letter = text[at]
            if 48 <= letter <= 57:
                digits += 1
                used += used > 0 or letter > 48
                if used <= DIGITS:
                    mantissa = 10 * mantissa + letter - 48
                    exponent -= point
                else:
                    exponent += not point
                    doubt = CUT if letter > 48 else doubt
            elif letter == 46 and not point:
                point = True
            else:
                break
            at += 1
        whole[count] = digits <= 15 and digits == at - start
        good = digits > 0
        if good and at < len(text) and (letter == 69 or letter == 101):  # e or E
            whole[count] = False
            at += 1
            sign = -1 if at < len(text) and text[at] == 45 else 1
            at += at < len(text) and (text[at] == 43 or text[at] == 45)
            power = digits = 0
            while at < len(text) and 48 <= text[at] <= 57 and digits < 4:
                power = 10 * power + text[at] - 48
                digits += 1
                at += 1
            exponent += sign * power
            good = digits > 0
        while at < len(text) and not (text[at] == 32 or 9 <= text[at] <= 13 or 28 <= text[at] <= 31):
            good = whole[count] = False
            at += 1
        if not good:
            values[count] = math.nan
        elif mantissa == 0:
            values[count] = 0
        else:
            values[count] = _rounded(mantissa, exponent, high, low, doubt)
        count += 1
    return count


@kernel()
def group_starts(values: Floats, whole: Bools, start: int, starts: Ints) -> int:
    """Find groups, each a number of words and as many words: positions of those numbers.

    Parameters
    ----------
    values, whole : as `read_words` wrote them.
    start : position of the first group.
    starts : position of each group, written here.

    Returns
    -------
    The position behind the last group; -1 if there are fewer.
    """
    at = start
    for j in range(len(starts)):
        if at >= len(values) or not whole[at] or values[at] >= len(values) - at:
            return -1
        starts[j] = at
        at += 1 + int(values[at])
    return at


@kernel()
def listed_starts(values: Floats, whole: Bools, starts: Ints) -> int:
    """Find the factors of an FG file: positions of the first word of each.

    Parameters
    ----------
    values, whole : as `read_words` wrote them.
    starts : position of each factor, written here.

    Returns
    -------
    The position behind the last factor; -1 if there are fewer.
    """
    at, end = 1, len(values)
    for j in range(len(starts)):
        starts[j] = at
        if at >= end or not whole[at] or values[at] >= end - at:
            return -1
        at += 1 + 2 * int(values[at])
        if at >= end or not whole[at] or values[at] >= end - at:
            return -1
        at += 1 + 2 * int(values[at])
    return at if at <= end else -1


@kernel()
def listed_places(values: Floats, starts: Ints, offsets: Ints, places: Ints) -> bool:
    """Find where the entries of the factors of an FG file belong; False if one is out of range.

    Parameters
    ----------
    values : as `read_words` wrote them.
    starts : as `listed_starts` wrote them.
    offsets : where the table of each factor begins.
    places : for each entry in the order of the file, where it belongs if the last variable of a
        table changes fastest, written here.
    """
    count = 0
    for j in range(len(starts)):
        size = int(values[starts[j]])
        shape = starts[j] + 1 + size
        pairs = shape + size
        for k in range(int(values[pairs])):
            left, place = int(values[pairs + 1 + 2 * k]), 0
            for i in range(size):
                place = place * int(values[shape + i]) + left % int(values[shape + i])
                left //= int(values[shape + i])
            if left > 0:
                return False
            places[count] = offsets[j] + place
            count += 1
    return True
