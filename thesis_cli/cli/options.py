"""Options that all commands share, and what they do: messages and progress bars."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from thesis_cli.base.progress import Progress, bars, silent
from thesis_cli.base.wording import censored

FURTHER = "Further options"
"""Heading of the options that `--help-all` shows for every method."""

SHOW_ALL = "thesis_cli.help_all"
"""Key of a context's `meta` that is set while `--help-all` prints."""


def _help_all(context: typer.Context, asked: bool) -> None:
    if asked:
        context.meta[SHOW_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


Json = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no messages and no progress bars.", rich_help_panel=FURTHER)
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show more messages.", rich_help_panel=FURTHER)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=FURTHER)]
HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        help="Show all options and examples; after --method NAME those of NAME.",
        is_eager=True,
        callback=_help_all,
    ),
]

logger = logging.getLogger("thesis_cli")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        return prefix + censored(super().format(record))


def set_messages(quiet: bool, verbose: bool) -> None:
    """Send the messages of the library to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)


def bars_unless(quiet: bool) -> Progress:
    """Progress bars; `silent` if standard error is no terminal, or under --quiet.

    Even a hidden bar would create a lock, which a killed process leaves behind.
    """
    return silent if quiet or not sys.stderr.isatty() else bars
