"""Shorthand for claims about numbers that `studies` compute, and about times as a source prints them."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import TYPE_CHECKING, Any

from thesis_cli.reproduction.experiment import Claim, Measurement

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[["pd.DataFrame"], Measurement | None]

FACTOR = 2.0
"""A printed number is told from ones that are so many times smaller or larger."""


def measured(function: Callable[..., tuple[float, float] | None], *what: Any) -> Measure:
    """The measurement of a function that gives a number and its standard error, or None, for a result
    and `what`."""

    def measure(frame: pd.DataFrame) -> Measurement | None:
        found = function(frame, *what)
        return None if found is None else Measurement(*found)

    return measure


def printed(
    name: str, source: str, statement: str, number: float, unit: float, measure: Measure, finding: str = ""
) -> Claim:
    """The claim that a time or a ratio is as printed.

    Parameters
    ----------
    name : id of the claim.
    number : as printed.
    unit : of its last digit.
    measure : measures its log10.
    """
    return Claim(
        id=name,
        source=source,
        statement=statement,
        published=log10(number),
        relation="=",
        measure=measure,
        rounding=log10(1 + unit / 2 / number),
        scale=log10(FACTOR),
        kind="published",
        finding=finding,
    )
