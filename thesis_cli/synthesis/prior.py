"""How often programs use each function and lambda, the order of a search that knows nothing else (section 5.5.1).

`python -m thesis_cli.synthesis.prior` writes the table that `load` reads: the part of random distinct programs of
length 4 (`corpus`) that uses each.
"""

from __future__ import annotations

import csv
import io
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from thesis_cli.synthesis.dsl import ATTRIBUTES
from thesis_cli.synthesis.solver import Order

LENGTH, PROGRAMS, SEED = 4, 100_000, 0
"""The programs that are counted: a standard error is at most 0.0016."""

_TABLE = files("thesis_cli.synthesis") / "prior.csv"


@cache
def load() -> Order:
    """The order that the table gives."""
    rows = csv.DictReader(io.StringIO(_TABLE.read_text(encoding="utf-8")))
    found = {row["attribute"]: float(row["probability"]) for row in rows}
    return Order(tuple(found[name] for name in ATTRIBUTES))


def make(programs: int = PROGRAMS) -> str:
    """The table, CSV."""
    import numpy as np

    from thesis_cli.synthesis.corpus import make_corpus

    corpus = make_corpus(LENGTH, programs, np.random.default_rng(SEED))
    rows = [f"{name},{part:.4f}" for name, part in zip(ATTRIBUTES, corpus.incidence, strict=True)]
    return "\n".join(["attribute,probability", *rows]) + "\n"


if __name__ == "__main__":
    with as_file(_TABLE) as path:
        Path(path).write_text(make(), encoding="utf-8")
