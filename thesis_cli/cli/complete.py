"""Words that the shell offers while a command is typed: experiments, and names from the files already on the line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError, WorkFailed

WORDS, PLACE = "COMP_WORDS", "COMP_CWORD"
"""Variables of the environment in which bash gives the words of the line and the place of the one that is typed."""


def answer(command: Any) -> int:
    """Print the words that a shell asks for through the environment, or its script; returns the exit status."""
    if WORDS in os.environ:
        join_words(os.environ)
    try:
        command([], prog_name="thesis-cli")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def join_words(environ: MutableMapping[str, str]) -> None:
    """Put NAME=STATE together again in the variables of bash."""
    try:
        typed = shlex.split(environ[WORDS])
    except ValueError:  # a quotation that has not ended has no "=" that bash splits
        return
    at = int(environ[PLACE])
    joined: list[str] = []
    for place, word in enumerate(typed[: at + 1]):
        if joined and "=" in (word, typed[place - 1]):
            joined[-1] += word
        else:
            joined.append(word)
    environ[WORDS] = shlex.join(joined)
    environ[PLACE] = str(len(joined) - (at < len(typed)))


def words(metavar: str, ctx: Any, incomplete: str) -> list[str]:
    """The words that can stand where the help shows `metavar`, a key of `SOURCES`.

    Parameters
    ----------
    ctx : click's context, with the parameters that the line gives already.
    incomplete : what is typed of the word.
    """
    given = {name: value for name, value in ctx.params.items() if value}
    # click leaves arguments aside where the option before the word has no value yet
    arguments = [each.name for each in ctx.command.params if each.param_type_name == "argument"]
    given = dict(zip(arguments, ctx.args, strict=False)) | given
    try:
        return list(SOURCES[metavar](given, incomplete))
    except (InputError, WorkFailed, OSError, KeyError, UnicodeDecodeError):  # no such file, or not of that kind
        return []


def _experiments(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    from thesis_cli.reproduction.experiment import find_checkout

    return (name for name in find_checkout().files() if name.startswith(incomplete))


def _variables(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Names after the last comma of a list."""
    listed, comma, last = incomplete.rpartition(",")
    chosen = listed.split(",")
    return (listed + comma + name for name in _states(given) if name.startswith(last) and name not in chosen)


def _evidence(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Pairs NAME=STATE after the last comma; names while several begin so."""
    listed, comma, last = incomplete.rpartition(",")
    states = _states(given)
    names = [name for name in states if f"{name}=".startswith(last) or last.startswith(f"{name}=")]
    pairs = [f"{name}=" for name in names] if len(names) > 1 else [f"{n}={state}" for n in names for state in states[n]]
    return (listed + comma + pair for pair in pairs if pair.startswith(last))


def _states(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    from thesis_cli.commands.core.common import open_model
    from thesis_cli.commands.outputs.variables import state_names
    from thesis_cli.models.factor_graph import FactorGraph

    model = open_model(given["model"], given.get("format"))
    return state_names(model) if isinstance(model, FactorGraph) else {}


def _columns(given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Names of columns in the place of the last name, as in mean(AGE; of the schema, if one is given."""
    last = re.split(r"\W", incomplete)[-1]
    before = incomplete.removesuffix(last)
    if "schema" in given:
        from thesis_cli.privacy.tables.schema import Schema

        names: Iterable[str] = Schema.load(given["schema"]).names
    else:
        table = given.get("release") or given.get("table") or given["names"]
        with Path(table if isinstance(table, str) else table[0]).open(encoding="utf-8") as file:
            names = file.readline().strip().split(",")
    return (before + name for name in names if name.startswith(last))


SOURCES: Mapping[str, Callable[[Mapping[str, Any], str], Iterable[str]]] = {
    "ID": _experiments,
    "ID|RUN.csv": _experiments,
    "VARIABLES": _variables,
    "NAME=STATE|FILE": _evidence,
    "QUERY": _columns,
    "COLUMN": _columns,
}
"""Where words come from, by what the help shows in their place: from the parameters that the line gives and the
word that is typed."""
