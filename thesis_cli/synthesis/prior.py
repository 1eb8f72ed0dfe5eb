"""Shares of programs that use each function and lambda: the order of a search without a guide
(section 5.5.1).

`python -m thesis_cli.synthesis.prior` writes the table that `load` reads: the share of random
distinct programs of length 4 (`corpus_maker`) that use each.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.search.solver import Order

LENGTH, PROGRAMS, SEED = 4, 100_000, 0
"""The programs that are counted; standard errors are at most 0.0016."""

_TABLE = files("thesis_cli.synthesis") / "prior.csv"


@cache
def load() -> Order:
    """The order that the table gives."""
    with as_file(_TABLE) as path:
        return read(path)


def read(path: Path) -> Order:
    """Probabilities of all functions and lambdas from a CSV file, with the heading
    `attribute,probability` or without. Raises InputError if it cannot be read, or does not give
    each one a probability; names the line."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except OSError as error:
        remedy = "it must be corpus, uniform, or a CSV file"
        raise InputError(f"--prior {path} cannot be read ({error.strerror})", remedy) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("it is not CSV in UTF-8", "its lines must look like SORT,0.1", source=path) from None
    found: dict[str, float] = {}
    if rows and rows[0][1] == ["attribute", "probability"]:
        del rows[0]
    for number, row in rows:
        try:
            name, probability = row[0].strip(), float(row[1])
        except (IndexError, ValueError):
            name = ""
        if name not in ATTRIBUTES or name in found or len(row) != 2 or not 0 <= probability <= 1:
            problem = f"{','.join(row)[:60]!r} is not a probability of another function or lambda"
            remedy = "write one line for each, such as SORT,0.1 or (*2),0.3"
            raise InputError(problem, remedy, source=path, line=number)
        found[name] = probability
    missing = [name for name in ATTRIBUTES if name not in found]
    if missing:
        raise InputError(f"no probability of {', '.join(missing)}", "give one from 0 to 1", source=path)
    return Order(tuple(found[name] for name in ATTRIBUTES))


def from_mapping(probabilities: Mapping[str, float]) -> Order:
    """Probabilities of all functions and lambdas by name. Raises InputError if one is missing,
    unknown or not from 0 to 1."""
    unknown = [name for name in probabilities if name not in ATTRIBUTES]
    missing = [name for name in ATTRIBUTES if name not in probabilities]
    if unknown or missing:
        problem = f"--prior has the unknown {', '.join(unknown)}" if unknown else f"--prior lacks {', '.join(missing)}"
        raise InputError(problem, "give a probability from 0 to 1 for each function and lambda")
    return Order(tuple(float(probabilities[name]) for name in ATTRIBUTES))


def make(programs: int = PROGRAMS) -> str:
    """The table, CSV."""
    import numpy as np

    from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus

    corpus = make_corpus(CorpusPlan(LENGTH, programs), np.random.default_rng(SEED))
    rows = [f"{name},{part:.4f}" for name, part in zip(ATTRIBUTES, corpus.incidence, strict=True)]
    return "\n".join(["attribute,probability", *rows]) + "\n"


if __name__ == "__main__":
    with as_file(_TABLE) as path:
        path.write_text(make(), encoding="utf-8")
