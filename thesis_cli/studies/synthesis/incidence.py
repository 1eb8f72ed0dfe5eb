"""Shares of the programs to train on that use each function and lambda: the order of the baseline,
which has no network (Thesis section 5.5.1).

`python -m thesis_cli.studies.synthesis.incidence` writes the table that `incidence` reads: the
share of the programs of each training corpus (`training.corpora`) that use each.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.search.solver import Order
from thesis_cli.synthesis.training.corpora import TRAINED, training_corpus

TABLE = Path(__file__).with_name("incidence.csv")


@cache
def incidence(length: int) -> Order:
    """The order by global incidence in the training corpus of a length.

    Parameters
    ----------
    length : T, one of `TRAINED`.
    """
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = {row["attribute"]: float(row[str(length)]) for row in csv.DictReader(file)}
    return Order(tuple(rows[name] for name in ATTRIBUTES))


def make(lengths: Sequence[int] = tuple(TRAINED), examples: int | None = None) -> str:
    """The table, CSV: a row for each function and lambda, a column for each length.

    Parameters
    ----------
    examples : examples of each program, as for `training_corpus`; fewer take less time, and tell
        less often that a program of several lines has no good ones.
    """
    columns = [training_corpus(length, examples=examples).incidence for length in lengths]
    rows = [[name, *(f"{column[place]:.5f}" for column in columns)] for place, name in enumerate(ATTRIBUTES)]
    return "\n".join(",".join(row) for row in [["attribute", *map(str, lengths)], *rows]) + "\n"


if __name__ == "__main__":
    TABLE.write_text(make(), encoding="utf-8")
