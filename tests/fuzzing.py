"""Damage files as disks, editors and careless scripts do."""

from __future__ import annotations

import re

import numpy as np

NUMBERS = ["0", "-1", "1e308", "-1e308", "1e-320", "1e400", "nan", "inf", "-inf", "2147483648", "9" * 25, "1_0"]
NUMBERS += ["-0.0", "0x10", "", "1,5", "true", "9" * 5000, "00", "1e", "\u0663", "null", "99999999"]
WORDS = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    '"',
    "'",
    "#",
    ",",
    ";",
    "|",
    "=",
    "\\",
    "\0",
    "\n\n",
    "\t",
    "\ufeff",
    "\U0001f600",
    "[[",
    "//",
    "/*",
]


def damaged(data: bytes, rng: np.random.Generator, text: bool) -> bytes:
    """The content of a file after one to three accidents.

    Parameters
    ----------
    text : whether lines and numbers are among what is damaged.
    """
    for _ in range(rng.integers(1, 4)):
        kinds = [_truncate, _flip, _overwrite, _insert, _delete, _repeat]
        kinds += [_number, _number, _word, _lines] if text else []
        data = kinds[rng.integers(len(kinds))](data, rng)
    return data


def _span(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.integers(1, rng.choice([3, 30, 1000]))))


def _truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data) + 1)]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    for _ in range(rng.integers(1, 4) if data else 0):
        # The heads of archives and arrays, at both ends, are hit as often as the rest.
        at = int(rng.integers(len(data)))
        edge = int(rng.integers(min(len(data), 150)))
        found[[at, edge, len(data) - 1 - edge][rng.integers(3)]] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.bytes(end - start) + data[end:]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data) + 1))
    return data[:start] + rng.bytes(int(rng.integers(1, 20))) + data[start:]


def _delete(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:]


def _number(data: bytes, rng: np.random.Generator) -> bytes:
    found = list(re.finditer(rb"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?", data))
    if not found:
        return data
    match = found[rng.integers(len(found))]
    return data[: match.start()] + str(rng.choice(NUMBERS)).encode() + data[match.end() :]


def _word(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + str(rng.choice(WORDS)).encode() + data[at:]


def _lines(data: bytes, rng: np.random.Generator) -> bytes:
    """Swap, drop, join or repeat lines."""
    lines = data.split(b"\n")
    a, b = (int(k) for k in rng.integers(0, len(lines), 2))
    kind = rng.integers(4)
    if kind == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 1:
        del lines[min(a, b) : min(a, b) + int(rng.integers(1, 4))]
    elif kind == 2:
        lines.insert(b, lines[a])
    else:
        lines[a : a + 2] = [b" ".join(lines[a : a + 2])]
    return b"\n".join(lines)
