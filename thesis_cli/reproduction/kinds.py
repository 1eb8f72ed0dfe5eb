"""Claims of one kind each, with their fields in the order in which a statement is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pandas as pd

from thesis_cli.reproduction.experiment import Claim, Measurement

Measure = Callable[[pd.DataFrame], Measurement | None]
Relation = Literal["=", ">", "<"]


def identity(id: str, source: str, statement: str, published: float, measure: Measure, **more: Any) -> Claim:
    """An equality that is proven."""
    return Claim(id, source, statement, published, "=", measure, kind="identity", **more)


def bound(
    id: str, source: str, statement: str, relation: Relation, published: float, measure: Measure, **more: Any
) -> Claim:
    """An inequality that is proven."""
    return Claim(id, source, statement, published, relation, measure, kind="bound", **more)


def observed(
    id: str, source: str, statement: str, relation: Relation, published: float, measure: Measure, **more: Any
) -> Claim:
    """An observation of what is larger, better, or tends to what."""
    return Claim(id, source, statement, published, relation, measure, kind="comparison", **more)
