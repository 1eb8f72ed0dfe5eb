"""Statistics of an expansion, as in `mean, quantile(0.9), prob(> 2)`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Bools
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.conditioning import monotone
from thesis_cli.semantics.parser import Token, tokens

ROUNDING = 1e-14
"""A mean that is smaller, in units of the largest point, is 0."""
SLACK = 1e-12
"""Share of the weight by which its sums may be off by rounding."""
TAIL, DOUBLINGS = 32, 2.0 ** np.arange(4)
"""Number of points beyond the least share that tells how heavy tails are, and the shares, in units of it."""
STATISTICS = ("mean", "var", "sd", "median", "quantile", "prob")
RELATIONS: dict[str, Callable[..., Bools]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Query:
    """A statistic.

    Attributes
    ----------
    text : how it is printed.
    statistic : one of `STATISTICS`.
    argument : share of a quantile, or number that values are compared with; NaN for others.
    relation : one of `RELATIONS` for `prob`; empty for others.
    """

    text: str
    statistic: str
    argument: float = math.nan
    relation: str = ""

    def of(self, expansion: Expansion) -> float:
        """The statistic of an expansion.

        Means and probabilities use the weights as they are. For all else, an expansion with negative
        weights is replaced by the distribution whose distribution function is nearest.
        """
        if self.statistic == "mean":
            found, rounding = expansion.mean(), ROUNDING * float(np.abs(expansion.points).max())
            return found if abs(found) > rounding else 0.0
        if self.statistic == "prob":
            return expansion.probability(RELATIONS[self.relation](expansion.points[:, 0], self.argument))
        negative = (expansion.weights < 0).any() and expansion.total > 0
        nearby = monotone(expansion.merged()) if negative else expansion
        if self.statistic in ("var", "sd"):
            found = nearby.var()
            return math.sqrt(found) if self.statistic == "sd" else found
        return quantile(nearby, self.share)

    @property
    def share(self) -> float:
        """Share of a quantile."""
        return 0.5 if self.statistic == "median" else self.argument


def quantile(expansion: Expansion, share: float) -> float:
    """Least point with at least a share of the weight, up to rounding, at or below it."""
    points, weights = expansion.points[:, 0], expansion.weights
    if (points[1:] < points[:-1]).any():
        order = np.argsort(points)
        points, weights = points[order], weights[order]
    sums = np.cumsum(weights)
    at = np.searchsorted(sums, (share - SLACK) * sums[-1])
    return float(points[min(at, len(points) - 1)])


def tail_index(expansion: Expansion) -> float:
    """About how fast the distances from the median that a share p of the weight exceeds grow: as p^-k.

    Moments of order 1 / k and above are infinite, as the mean of a Cauchy law, whose k is 1. Where k falls with p only
    slowly, as for a very wide log-normal law, they are finite, but depend on values too rare to be among the points.

    Parameters
    ----------
    expansion : points in increasing order with their weights, of which more than `TAIL` must lie beyond a share.
    """
    away = np.abs(expansion.points[:, 0] - quantile(expansion, 0.5))
    order = np.argsort(away)[::-1]
    away, beyond = away[order], np.cumsum(np.abs(expansion.weights[order]))
    at = np.searchsorted(beyond, beyond[min(TAIL, len(away) - 1)] * DOUBLINGS)
    if at[-1] >= len(away) or beyond[at[-1]] > beyond[-1] / 3 or not away[at[-1]] > 0 or (np.diff(at) == 0).any():
        return 0.0
    slopes = np.log(away[at[:-1]] / away[at[1:]]) / np.log(beyond[at[1:]] / beyond[at[:-1]])
    return float(slopes.mean()) if slopes.min() > slopes.mean() / 4 else 0.0


def parse_queries(text: str) -> list[Query]:
    """The statistics of a text, separated by commas. Raises InputError for an unknown statistic or
    a wrong argument; the error names line and column."""
    words = tokens(text, "--query") if text.strip() else []
    if not words:
        raise InputError("no query is given", f"the queries are {', '.join(STATISTICS)}")
    found, at = [], 0
    while True:
        query, at = _query(words, at)
        found.append(query)
        if words[at].kind == "end":
            return found
        if words[at].text != ",":
            raise words[at].place.wrong(f"{words[at].shown} stands between queries", "separate them by commas")
        at += 1


def _query(words: list[Token], at: int) -> tuple[Query, int]:
    """A statistic that begins at a word, and the word after it."""
    token = words[at]
    if token.kind != "name" or token.text not in STATISTICS:
        raise token.place.wrong(f"{token.shown} is no query", nearest(token.text, STATISTICS, "the queries are"))
    if token.text not in ("quantile", "prob"):
        return Query(token.text, token.text), at + 1
    usage = "write quantile(0.9)" if token.text == "quantile" else "write prob(> 2)"
    at = _expected(words, at + 1, "(", usage)
    relation = ""
    if token.text == "prob":
        relation = words[at].text
        if relation not in RELATIONS:
            raise words[at].place.wrong(f"{words[at].shown} is no comparison", usage)
        at += 1
    sign = -1.0 if words[at].text == "-" else 1.0
    at += words[at].text == "-"
    if words[at].kind != "number":
        raise words[at].place.wrong(f"{words[at].shown} stands where a number must be", usage)
    number = sign * float(words[at].text)
    if token.text == "quantile" and not 0 <= number <= 1:
        raise words[at].place.wrong(f"the share of the quantile is {number:g}", "it must be from 0 to 1")
    if math.isinf(number):
        raise words[at].place.wrong("the number is too large", "give one below 1e300")
    shown = f"{relation} {number:g}".strip()
    at = _expected(words, at + 1, ")", usage)
    return Query(f"{token.text}({shown})", token.text, number, relation), at


def _expected(words: list[Token], at: int, text: str, usage: str) -> int:
    """The place after a symbol that must be at a place."""
    if words[at].text != text:
        raise words[at].place.wrong(f"{words[at].shown} stands where {text!r} must be", usage)
    return at + 1
