"""The factor graph format of libDAI, read.

Grammar: the number of factors, then for each factor the number of its variables, their labels,
their cardinalities, the number of entries that are listed, and those entries, `index value`. Values
are not logarithms; entries that are not listed are 0. In an index the **first** variable of the
factor changes fastest, the opposite of UAI. White space and line ends mean the same; `#` starts a
comment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models import tokens
from thesis_cli.models.factor_graph import Factor, FactorGraph, Names
from thesis_cli.models.tokens import Irregular, Tokens, log_entries
from thesis_cli.models.uai import MOST_STATES, MOST_VARIABLES, distinct

MOST_ENTRIES = 2**27
"""Largest number of entries in all tables, listed or not: as many as a UAI file can hold."""


@dataclass(frozen=True)
class _Listed:
    """A factor as the file lists it.

    Attributes
    ----------
    labels, cardinalities : its variables, in the order of the file.
    places : positions of the words of its entries, `index value index value ...`.
    indices : indices of its entries, distinct.
    """

    labels: tuple[int, ...]
    cardinalities: tuple[int, ...]
    places: range
    indices: list[int]


def parse(text: str, source: str = "") -> FactorGraph:
    """Read a model; its variables are numbered from 0 in the order of their labels.

    Labels other than 0, 1, ..., n - 1 become the names of the variables.

    Raises
    ------
    InputError : the text departs from the grammar, a variable has two cardinalities, an index is
        out of range or repeated, a value is NaN, infinite or negative, a factor has no positive
        value, or the tables have more than `MOST_ENTRIES` entries; the message gives the line.
    """
    if len(text) >= tokens.LONG:
        try:
            return parse_at_once(text)
        except Irregular:
            pass  # the words one by one show why
    words = Tokens(text, source)
    count = words.whole("the number of factors", 0)
    words.promise(4 * count, f"{count} factors are promised")
    found: dict[int, int] = {}
    listed = []
    left = MOST_ENTRIES
    for j in range(count):
        listed.append(_factor(words, j, found, left))
        left -= math.prod(listed[-1].cardinalities)
    if not found:
        raise words.error("no factor has a variable", "at least one must")
    entries = log_entries(words, [factor.places[1::2] for factor in listed])
    words.finish("the model")
    number = {label: i for i, label in enumerate(sorted(found))}
    factors = [
        Factor(tuple([number[label] for label in factor.labels]), _table(factor, values))
        for factor, values in zip(listed, entries, strict=True)
    ]
    return FactorGraph([found[label] for label in number], factors, names=_names(list(number)))


def parse_at_once(text: str) -> FactorGraph:
    """Read a long model in a fraction of the time.

    Raises
    ------
    Irregular : `parse` must read it word by word.
    """
    from thesis_cli.models import bulk

    numbers = bulk.Numbers(text)
    starts, end = numbers.listed(numbers.at(0))
    if end < numbers.count:
        raise Irregular
    sizes = numbers.wholes(starts, 0, MOST_VARIABLES)
    places = bulk.ranges(starts + 1, sizes)
    labels, variables = np.unique(numbers.wholes(places, 0, math.inf), return_inverse=True)
    shapes = numbers.wholes(places + np.repeat(sizes, sizes), 1, MOST_STATES)
    cardinalities = np.zeros(labels.size, np.int64)
    cardinalities[variables] = shapes
    products = bulk.products(shapes, sizes)
    if not labels.size or (cardinalities[variables] != shapes).any() or products.sum() > MOST_ENTRIES:
        raise Irregular
    entries = products.astype(np.int64)
    factors = bulk.factors(cardinalities, variables, sizes, entries, numbers.listed_logs(starts, sizes, entries))
    return FactorGraph.unchecked(tuple(cardinalities.tolist()), factors, names=_names(labels.tolist()))


def _names(labels: list[int]) -> Names | None:
    """Names of the variables if their labels, in order, are not 0, 1, ..."""
    return Names(tuple(map(str, labels))) if labels[-1] >= len(labels) else None


def _factor(words: Tokens, j: int, found: dict[int, int], most: int) -> _Listed:
    """Read the next factor, of at most `most` entries, and add its cardinalities to `found`."""
    size = words.whole(f"the number of variables of factor {j}", 0, MOST_VARIABLES)
    places = words.many(size, f"factor {j} has {size} variables")
    labels = distinct(words, words.wholes(places, f"a variable of factor {j}", 0), j)
    places = words.many(size, f"factor {j} has {size} variables")
    cardinalities = tuple(words.wholes(places, f"a cardinality in factor {j}", 1, MOST_STATES))
    for label, cardinality, place in zip(labels, cardinalities, places, strict=True):
        if found.setdefault(label, cardinality) != cardinality:
            raise words.error(
                f"variable {label} has {cardinality} states in factor {j}, {found[label]} before",
                "it must have one cardinality",
                place,
            )
    entries = math.prod(cardinalities)
    if entries > most:
        raise words.error(
            f"factor {j} has {entries} entries, over {size} variable{'s' * (size != 1)}",
            f"all tables together may have {MOST_ENTRIES}, listed or not",
        )
    nonzero = words.whole(f"the number of nonzero entries of factor {j}", 1, entries)
    places = words.many(2 * nonzero, f"factor {j} has {nonzero} nonzero entries")
    indices = words.wholes(places[::2], f"an index of factor {j}", 0, entries - 1)
    if len(set(indices)) < nonzero:
        first = set(np.unique(indices, return_index=True)[1].tolist())
        again = next(k for k in range(nonzero) if k not in first)
        raise words.error(f"factor {j} lists entry {indices[again]} twice", "list each entry once", places[2 * again])
    return _Listed(labels, cardinalities, places, indices)


def _table(factor: _Listed, values: Floats) -> Floats:
    """The whole table, made from the entries that are listed."""
    table = np.full(math.prod(factor.cardinalities), -np.inf)
    table[factor.indices] = values
    return table.reshape(factor.cardinalities, order="F")
