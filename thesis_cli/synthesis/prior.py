"""Shares of programs that use each function and lambda: the order of a search without a guide
(section 5.5.1).

`python -m thesis_cli.synthesis.prior` writes the tables that `load` reads: the share of random
distinct programs of length 4 that use each.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEEPCODER, EXTENDED, Language, Semantics
from thesis_cli.synthesis.language.equivalence import Kept, probes
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.solver import Order

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
    from thesis_cli.synthesis.search.execution import start, step
    from thesis_cli.synthesis.search.moves import moves

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
