"""The program: its commands, and how an error ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from thesis_cli import __version__
from thesis_cli.cli import estimate_z, experiments
from thesis_cli.errors import InputError, WorkFailed

app = typer.Typer(
    name="thesis-cli",
    help="Hard problems turned into optimisation problems: partition functions by perturb-and-MAP.",
    epilog="Exit status: 0 done, 1 the work failed or a claim did not hold, 2 bad usage or bad input.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("estimate-z", epilog=estimate_z.EXAMPLES)(estimate_z.estimate_z)
app.command("reproduce", epilog=experiments.REPRODUCE_EXAMPLES)(experiments.reproduce)
app.command("plot", epilog=experiments.PLOT_EXAMPLES)(experiments.plot)
app.command("claims", epilog=experiments.CLAIMS_EXAMPLES)(experiments.claims)
app.command("list", epilog=experiments.LIST_EXAMPLES)(experiments.list_experiments)


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of every complaint about usage; newer releases of Typer carry a click of their own."""


INTERRUPTED = 130


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thesis-cli {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status. An error is one line on standard error."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        status = typer.main.get_command(app)(arguments, prog_name="thesis-cli", standalone_mode=False)
        sys.stdout.flush()
        if status == INTERRUPTED:  # some releases of Typer turn Ctrl-C into this status without a word
            raise KeyboardInterrupt
    except UsageError as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "thesis-cli")
        return _fail(f"{_one_line(error.format_message()).rstrip('.')}; see {where} --help", 2)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; what was finished is kept", INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing is left to say, and no traceback at shutdown either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (InputError, WorkFailed, OSError, MemoryError) as error:
        if "--debug" in arguments:
            raise
        return _fail(_describe(error), 2 if isinstance(error, InputError) else 1)
    return int(status or 0)


def _fail(message: str, status: int) -> int:
    print(f"error: {message}", file=sys.stderr)  # noqa: T201
    return status


def _describe(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror.lower()
    return _one_line(str(error))


def _one_line(text: str) -> str:
    return " ".join(text.split())
