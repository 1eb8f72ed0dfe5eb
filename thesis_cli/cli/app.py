"""The program: its commands, and how an error ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from thesis_cli import __version__
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.cli import (
    dp_audit,
    dp_query,
    dp_release,
    dp_test,
    estimate_z,
    experiments,
    make_corpus,
    map_state,
    output,
    renyi,
    sample,
    spin_glass,
    status,
    sweep,
    synthesize,
)

app = typer.Typer(
    name="thesis-cli",
    help="Hard problems turned into optimisation problems: partition functions and entropies by perturb-and-MAP,"
    " private releases of tables by kernel mean embeddings, programs from examples.",
    epilog="Exit status: 0 done, 1 the work failed or a claim did not hold, 2 bad usage or bad input, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("estimate-z", epilog=estimate_z.EXAMPLES)(estimate_z.estimate_z)
app.command("renyi", epilog=renyi.EXAMPLES)(renyi.renyi)
app.command("map", epilog=map_state.EXAMPLES)(map_state.map_state)
app.command("sample", epilog=sample.EXAMPLES)(sample.sample)
app.command("spin-glass", epilog=spin_glass.EXAMPLES)(spin_glass.spin_glass)
app.command("dp-release", epilog=dp_release.EXAMPLES)(dp_release.dp_release)
app.command("dp-query", epilog=dp_query.EXAMPLES)(dp_query.dp_query)
app.command("dp-test", epilog=dp_test.EXAMPLES)(dp_test.dp_test)
app.command("dp-audit", epilog=dp_audit.EXAMPLES)(dp_audit.dp_audit)
app.command("synthesize", epilog=synthesize.EXAMPLES)(synthesize.synthesize)
app.command("make-corpus", epilog=make_corpus.EXAMPLES)(make_corpus.make_corpus)
app.command("sweep", epilog=sweep.SWEEP_EXAMPLES)(sweep.sweep)
app.command("status", epilog=status.EXAMPLES)(status.status)
app.command("collect", epilog=sweep.COLLECT_EXAMPLES)(sweep.collect)
app.command("run-task", epilog=sweep.RUN_TASK_EXAMPLES)(sweep.run_task)
app.command("reproduce", epilog=experiments.REPRODUCE_EXAMPLES)(experiments.reproduce)
app.command("plot", epilog=experiments.PLOT_EXAMPLES)(experiments.plot)
app.command("claims", epilog=experiments.CLAIMS_EXAMPLES)(experiments.claims)
app.command("list", epilog=experiments.LIST_EXAMPLES)(experiments.list_experiments)


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of every complaint about usage; newer releases of Typer carry a click of their own."""


INTERRUPTED, BROKEN_PIPE = 130, 141


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


@cache
def command() -> Any:
    """The program as click knows it; made once, for a process may run it thousands of times."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status. An error is one line on standard error."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stdout is None:  # the caller closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        status = command()(arguments, prog_name="thesis-cli", standalone_mode=False)
        sys.stdout.flush()
        if status == INTERRUPTED:  # some releases of Typer turn Ctrl-C into this status without a word
            raise KeyboardInterrupt
    except UsageError as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "thesis-cli")
        complaint = error.format_message().rstrip(".").replace("Value error, ", "")  # type: ignore[attr-defined]
        return _fail(f"{complaint}; see {where} --help", 2)
    except (KeyboardInterrupt, typer.Abort):
        resumed = "; the same command goes on from here" * (arguments[0] in ("reproduce", "sweep"))
        return _fail(f"interrupted{resumed}", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # some releases of Typer turn the first into the second
        # The reader of a pipe has gone: nothing is left to say, and no traceback at shutdown either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (InputError, WorkFailed, OSError, MemoryError) as error:
        if "--debug" in arguments:
            raise
        return _fail(output.describe(error), 2 if isinstance(error, InputError) else 1)
    return int(status or 0)


def _fail(message: str, status: int) -> int:
    """Print one line, without what a terminal would obey."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))
    print(f"error: {line}", file=sys.stderr)  # noqa: T201
    return status
