"""The query of marginal MAP: a UAI query file."""

from __future__ import annotations

from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.models import uai
from thesis_cli.models.evidence import MAX_BYTES
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.tokens import decode, read_whole, unreadable

FORMS = "give the name of a UAI query file: a count, then the numbers of the query variables"


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
        raise unreadable(error, name, FORMS) from error
    except InputError as error:
        raise error.at(name) from error
