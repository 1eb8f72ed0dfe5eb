"""Guides, which tell a search, task by task, which operations to try first, and the simplest, the prior.

A guide sees a batch of tasks at once and gives an order for each, as a neural network would. The prior
gives every task the same order: by the shares of programs that use each function and lambda (section
5.5.1).

`python -m thesis_cli.synthesis.prior` writes the tables that `load` reads: the share of random
distinct programs of length 4 that use each.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEEPCODER, EXTENDED, Language, Semantics
from thesis_cli.synthesis.language.program import Kept, probes
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.solver import Order

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.task import Task


@runtime_checkable
class Guide(Protocol):
    """A source of orders."""

    @property
    def identity(self) -> str:
        """Name and version, or a digest: guides of one identity give a task the same order.
        Journals and records keep it."""

    def orders(self, tasks: Sequence[Task]) -> Sequence[Order | None]:
        """The order for each task, in the order of the tasks; None where the prior is to decide.
        Deterministic."""


@dataclass(frozen=True)
class Fixed:
    """The guide that gives every task the same order: a prior."""

    order: Order

    @property
    def identity(self) -> str:
        """`fixed` and a digest of the order."""
        return f"fixed {digest(self.order)}"

    def orders(self, tasks: Sequence[Task]) -> list[Order]:
        """The order, once for each task."""
        return [self.order] * len(tasks)


def orders_of(guide: Guide, tasks: Sequence[Task], prior: Order | None = None) -> list[Order]:
    """Orders that a guide gives for tasks. Raises InputError if it does not give an `Order` for each; only
    with a prior may it give None.

    Parameters
    ----------
    prior : the order of tasks for which the guide has none.
    """
    given = list(guide.orders(tasks))
    found = [prior if order is None else order for order in given]
    if len(found) != len(tasks) or not all(isinstance(order, Order) for order in found):
        kinds = ", ".join(sorted({type(order).__name__ for order in given})) or "nothing"
        problem = f"the guide {guide.identity} gives {len(found):,} orders ({kinds}) for {len(tasks):,} tasks"
        raise InputError(problem, "it must give one Order for each task")
    return [order for order in found if order is not None]


def digest(order: Order) -> str:
    """A short name of the probabilities of an order."""
    return _hash([float(p) for p in order.probabilities])


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


LENGTH, PROGRAMS, SEED = 4, 100_000, 0
DRAWN = 20_000
"""The programs that are counted, and those of `EXTENDED`; standard errors are at most 0.0016 and 0.0036."""

_TABLES = {
    language: files("thesis_cli.synthesis") / name
    for language, name in ((DEEPCODER, "prior.csv"), (EXTENDED, "prior-extended.csv"))
}


@cache
def load(language: Language = DEEPCODER) -> Order:
    """The order that the table of a language gives."""
    with as_file(_TABLES[language]) as path:
        return read(path, language)


def read(path: Path, language: Language = DEEPCODER) -> Order:
    """Probabilities of all functions and lambdas of a language from a CSV file, with the heading
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
        if name not in language.attributes or name in found or len(row) != 2 or not 0 <= probability <= 1:
            problem = f"{','.join(row)[:60]!r} is not a probability of another function or lambda"
            remedy = "write one line for each, such as SORT,0.1 or (*2),0.3"
            raise InputError(problem, remedy, source=path, line=number)
        found[name] = probability
    missing = [name for name in language.attributes if name not in found]
    if missing:
        raise InputError(f"no probability of {', '.join(missing)}", "give one from 0 to 1", source=path)
    return Order(tuple(found[name] for name in language.attributes))


def from_mapping(probabilities: Mapping[str, float], language: Language = DEEPCODER) -> Order:
    """Probabilities of all functions and lambdas of a language by name. Raises InputError if one is missing,
    unknown or not from 0 to 1."""
    unknown = [name for name in probabilities if name not in language.attributes]
    missing = [name for name in language.attributes if name not in probabilities]
    if unknown or missing:
        problem = f"--prior has the unknown {', '.join(unknown)}" if unknown else f"--prior lacks {', '.join(missing)}"
        raise InputError(problem, "give a probability from 0 to 1 for each function and lambda")
    return Order(tuple(float(probabilities[name]) for name in language.attributes))


def make(programs: int = PROGRAMS, language: Language = DEEPCODER) -> str:
    """The table of a language, CSV. `corpus_maker` draws programs of `DEEPCODER`; others are drawn line by
    line, have a value on a random input, and none does what an earlier one does on the probes."""
    shares = _corpus_shares(programs) if language is DEEPCODER else _drawn_shares(language, programs)
    rows = [f"{name},{part:.4f}" for name, part in zip(language.attributes, shares, strict=True)]
    return "\n".join(["attribute,probability", *rows]) + "\n"


def _corpus_shares(programs: int) -> Floats:
    import numpy as np

    from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus

    corpus = make_corpus(CorpusPlan(LENGTH, programs), np.random.default_rng(SEED))
    return corpus.incidence


def _drawn_shares(language: Language, programs: int) -> Floats:
    import numpy as np

    from thesis_cli.synthesis.search.depth_first import Pruning
    from thesis_cli.synthesis.search.execution import moves, start, step

    rng = np.random.default_rng(SEED)
    semantics = Semantics(dsl=language.name)
    operations = [operation.id for operation in language.operations]
    kept = {inputs: Kept(inputs, semantics, distinct=True) for inputs in SIGNATURES}
    tasks = [Task("any", (Example(row, 0),)) for inputs in SIGNATURES for row in probes(inputs)]
    while sum(len(found.programs) for found in kept.values()) < programs:
        pool = start(tasks, LENGTH, semantics)
        for _ in range(LENGTH):
            found = moves(pool, operations, Pruning.UNUSED)
            chosen = np.flatnonzero(np.bincount(found.parents, minlength=len(pool)))
            sizes = np.bincount(found.parents, minlength=len(pool))[chosen]
            places = np.searchsorted(found.parents, chosen) + (rng.random(len(chosen)) * sizes).astype(np.int64)
            pool = step(pool, found.lines[places], chosen)
        for program in map(pool.program, np.flatnonzero(pool.valid).tolist()):
            if not program.unused:
                kept[program.inputs].add(program)
    uses = np.zeros(len(language.attributes))
    drawn = [program for found in kept.values() for program in found.programs]
    for program in drawn:
        uses[list(program.attributes)] += 1
    return np.asarray(uses / len(drawn))


if __name__ == "__main__":
    for one, count in ((DEEPCODER, PROGRAMS), (EXTENDED, DRAWN)):
        with as_file(_TABLES[one]) as path:
            path.write_text(make(count, one), encoding="utf-8")
