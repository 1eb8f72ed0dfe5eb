"""Commands that only the shell has, such as `sweep`: their options are fields too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thesis_cli.commands.core.fields import OptionField, fields_of
from thesis_cli.commands.core.request import Request


@dataclass(frozen=True)
class Shared:
    """The options that all commands share."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False


@dataclass(frozen=True)
class OwnCommand:
    """A command that is no function of Python.

    Attributes
    ----------
    request : its request's class; the docstring is the help of the command.
    call : (request, shared) -> None; prints what it finds.
    examples : command lines that run as they stand in a checkout, each after `thesis-cli `.
    more : further examples, with a heading.
    json : whether it prints a summary, which `--json` changes.
    """

    request: type[Request]
    call: Callable[[Any, Shared], None]
    examples: tuple[str, ...]
    more: str = ""
    json: bool = True
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, OptionField]:
        return fields_of(self.request)
