"""The program: its commands, and how an error ends it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thesis_cli.base import VERSION
from thesis_cli.base.errors import InputError, WorkFailed, censored, describe, nearest
from thesis_cli.cli import complete
from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.reproduction.commands import OWN


class Commands(TyperGroup):
    """The commands by name; a command is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*entries(), *OWN]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.list_commands(ctx):
            return _command(cmd_name)
        return _group(cmd_name) if _members(cmd_name) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names; says which is nearest if there is none."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            where = f"{self.name} " if isinstance(self, Group) else ""
            raise InputError(f"no command {where}{name}", nearest(name, self.list_commands(ctx), "the commands are"))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for entry in entries().values():
            sections.setdefault(entry.heading, []).append((entry.shell, entry.help))
        sections["Experiments and sweeps"] = [(name, own.help) for name, own in OWN.items()]
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


app = typer.Typer(
    name="thesis-cli",
    cls=Commands,
    help="Hard problems turned into optimisation problems: partition functions and entropies by perturb-and-MAP,"
    " private releases of tables by kernel mean embeddings, programs from examples.",
    epilog="Exit status: 0 done, 1 the work failed or a claim did not hold, 2 bad usage or bad input, 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Group(Commands):
    """The commands whose names begin with the same word."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_members(str(self.name)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(f"{self.name} {cmd_name}") if cmd_name in self.list_commands(ctx) else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_members(str(self.name)).items()))


def _members(group: str) -> dict[str, str]:
    """Second words of the commands of a group, with their lines of help."""
    named = ((*entry.shell.partition(" "), entry.help) for entry in entries().values())
    return {second: help for first, _, second, help in named if second and first == group}


@cache
def _group(name: str) -> Any:
    """A group of commands as click knows it."""
    return Group(name=name, help=f"Commands that begin with {name}.", rich_markup_mode=None)


@cache
def _command(name: str) -> Any:
    """A command as Typer makes it."""
    from thesis_cli.cli.build import Documented, epilog, own_command, shell_command

    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    own = OWN[name].command(name) if name in OWN else None
    definition = own or command_named(name)
    call = own_command(name, own) if own else shell_command(name, command_named(name))
    alone.command(name, cls=Documented, epilog=epilog(definition, 3))(call)
    made = typer.main.get_command(alone)
    assert isinstance(made, Documented)
    made.all_examples = epilog(definition)
    made.methods = {name: field.about.methods for name, field in definition.fields.items() if field.about.methods}
    for parameter in made.params:
        if parameter.metavar in complete.SOURCES:
            _leave_out_what_bash_has(parameter)
        if parameter.param_type_name == "argument":  # recent releases of Typer show its type, text
            parameter.display_type = lambda ctx: None  # type: ignore[attr-defined]
    return _taking_text(made)


def _leave_out_what_bash_has(parameter: Any) -> None:
    """Let a parameter of click offer only what follows "=" in bash, which replaces no more than that."""
    offered = parameter.shell_complete

    def shell_complete(ctx: Any, incomplete: str) -> Any:
        items = offered(ctx, incomplete)
        if complete.WORDS in os.environ and "=" in incomplete:
            for item in items:
                item.value = item.value.removeprefix(incomplete.rpartition("=")[0] + "=")
        return items

    parameter.shell_complete = shell_complete


def _taking_text(made: Any) -> Any:
    """Let a command hand on the words as they are; requests parse them.

    Recent releases of Typer convert words with pydantic, which costs more than the rest of the help.
    """
    listed = made.get_params

    def get_params(ctx: Any) -> list[Any]:
        found: list[Any] = listed(ctx)
        for parameter in found:
            if hasattr(parameter, "get_runtime_param"):
                parameter.get_runtime_param = _Text
        return found

    made.get_params = get_params
    return made


class _Text:
    """Takes the place of Typer's conversion."""

    def coerce(self, value: Any, param: Any, **context: Any) -> Any:
        return () if value is None and (param.multiple or param.nargs == -1) else value


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of every complaint about usage; newer releases of Typer carry a click of their own."""


INTERRUPTED, BROKEN_PIPE = 130, 141

RESUMED = ("reproduce", "sweep", "compile", "train-guide", "train-denoiser")
"""Commands that go on where they were interrupted."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"thesis-cli {VERSION}")
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
    """The program as click knows it."""
    return _taking_text(typer.main.get_command(app))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status. An error is one line on standard error."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if len(arguments) == 1 and _members(arguments[0]):
        arguments.append("--help")
    debug = "--debug" in arguments[: arguments.index("--")] if "--" in arguments else "--debug" in arguments
    if sys.stdout is None:  # the caller closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        if "_THESIS_CLI_COMPLETE" in os.environ:
            return complete.answer(command())
        status = command()(arguments, prog_name="thesis-cli", standalone_mode=False)
        sys.stdout.flush()
        if status == INTERRUPTED:  # some releases of Typer return this status for Ctrl-C
            raise KeyboardInterrupt
    except UsageError as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "thesis-cli")
        complaint = error.format_message().rstrip(".").replace("Value error, ", "")  # type: ignore[attr-defined]
        return _fail(f"{complaint}; see {where} --help", 2, debug)
    except (KeyboardInterrupt, typer.Abort):
        resumed = "; the same command continues from here" * (arguments[0] in RESUMED)
        return _fail(f"interrupted{resumed}", INTERRUPTED, debug)
    except (BrokenPipeError, SystemExit):  # some releases of Typer turn the first into the second
        # The reader of a pipe has gone: print nothing more, and no traceback at shutdown either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (InputError, WorkFailed, OSError, MemoryError) as error:
        return _fail(describe(error), 2 if isinstance(error, InputError) else 1, debug)
    return int(status or 0)


def _fail(message: str, status: int, debug: bool) -> int:
    """Print one line without control characters and passwords; under --debug after the traceback."""
    if debug:
        print(censored(traceback.format_exc()), end="", file=sys.stderr)  # noqa: T201
    line = "".join(c if c.isprintable() else "?" for c in " ".join(censored(message).split()))
    print(f"error: {line}", file=sys.stderr)  # noqa: T201
    return status
