"""Variables that are named apart from a model: evidence, by name, by number, or in a UAI evidence file, and the
query of marginal MAP, in a UAI query file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import FactorGraph, index_of
from thesis_cli.models.tokens import decode, read_whole, unreadable

MAX_BYTES = 2**24
"""Size of the largest evidence file that is read."""

FORMS = "give NAME=STATE, several with commas between them, or the name of a UAI evidence file"
QUERY_FORMS = "give the name of a UAI query file: a count, then the numbers of the query variables"


def condition(graph: FactorGraph, entries: Sequence[str | Path]) -> FactorGraph:
    """The model given some observations.

    Parameters
    ----------
    entries : each is `NAME=STATE`, with names or numbers (`xray=yes`, `6=0`), several of these with
        commas between them, or a UAI evidence file, whose variables and states are numbers.

    Raises
    ------
    InputError : there is no such variable, state or file, a variable is observed twice, or a factor
        forbids the evidence.
    """
    observed: dict[int, int] = {}
    for entry in chain.from_iterable(_parts(graph, whole) for whole in entries):
        for i, state in _observations(graph, entry).items():
            if i in observed or i in graph.observed:
                raise InputError(
                    f"evidence {entry}: variable {graph.variable_name(i)} is observed already",
                    "give one state for each variable",
                )
            observed[i] = state
    return graph.condition(observed)


def _parts(graph: FactorGraph, entry: str | Path) -> Sequence[str | Path]:
    """The entries that stand between the commas of one; itself if it is an observation or a file, since
    names may hold commas."""
    parts = str(entry).split(",")
    if len(parts) == 1 or not all("=" in part for part in parts):
        return [entry]
    try:
        _observations(graph, entry)
    except InputError:
        return parts
    return [entry]


def _observations(graph: FactorGraph, entry: str | Path) -> dict[int, int]:
    """The observed variables and their states that one entry gives."""
    if entry == "":
        raise InputError("the evidence is empty", FORMS)
    splits = [] if isinstance(entry, Path) else _splits(entry)
    known = graph.names.variables if graph.names else ()
    for name, state in sorted(splits, key=lambda split: (split[0] not in known, -len(split[0]))):
        if name in known or not Path(entry).is_file():
            return _observation(graph, str(entry), name, state)
    return _read(graph, entry)


def _splits(entry: str) -> list[tuple[str, str]]:
    """Every NAME=STATE that an entry may be: names may hold an equals sign."""
    places = [at for at, letter in enumerate(entry) if letter == "="]
    return [(entry[:at].strip(), entry[at + 1 :].strip()) for at in places]


def _observation(graph: FactorGraph, entry: str, name: str, state: str) -> dict[int, int]:
    names = graph.names
    try:
        i = index_of(name, names.variables if names else (), len(graph.cardinalities), "variable")
        if i in graph.observed:
            return {i: 0}  # `condition` refuses it
        known = names.states[i] if names and names.states else ()
        return {i: index_of(state, known, graph.cardinalities[i], f"state of {graph.variable_name(i)}")}
    except InputError as error:
        raise InputError(f"evidence {entry}: {error.problem}", error.remedy) from None


def _read(graph: FactorGraph, path: str | Path) -> dict[int, int]:
    """The observations of a UAI evidence file."""
    name = str(path)
    try:
        text = decode(read_whole(path, MAX_BYTES, "give a UAI evidence file, which is small"), name)
        return uai.parse_evidence(text, graph.cardinalities, name)
    except OSError as error:
        raise unreadable(error, name, FORMS) from error
    except InputError as error:
        raise error.at(name) from error


def read_query(graph: FactorGraph, path: str | Path) -> tuple[int, ...]:
    """The query variables of a UAI query file.

    Raises
    ------
    InputError : the file cannot be read, departs from the grammar, or names a variable that is not there.
    """
    name = str(path)
    try:
        text = decode(read_whole(path, MAX_BYTES, "give a UAI query file, which is small"), name)
        return uai.parse_query(text, len(graph.cardinalities), name)
    except OSError as error:
        raise unreadable(error, name, QUERY_FORMS) from error
    except InputError as error:
        raise error.at(name) from error
