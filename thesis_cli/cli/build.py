"""Commands of the shell, made from `thesis_cli/commands/`: their options, the files that they write,
messages and progress bars on standard error, and the summary on standard output.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from thesis_cli.base.errors import InputError, censored, without_secrets
from thesis_cli.base.files import check_writable, finite
from thesis_cli.base.progress import Progress, bars, silent
from thesis_cli.cli import complete
from thesis_cli.commands.core.command import Command, Definition, default_text
from thesis_cli.commands.core.common import RUNS
from thesis_cli.commands.core.fields import OptionField, Request, aliases_of, fields_of, files_named, settings_of
from thesis_cli.commands.core.result import (
    FOLDERS,
    Result,
    aligned,
    check_overwritten,
    command_of,
    holds_release,
    mark,
    record_of,
    written_by,
)
from thesis_cli.commands.inputs.trained import SUFFIX as TRAINED
from thesis_cli.reproduction.commands import OwnCommand

FURTHER = "Further options"
"""Heading of the options that `--help-all` shows for every method."""

SHOW_ALL = "thesis_cli.help_all"
"""Key of a context's `meta` that is set while `--help-all` prints."""

METHOD = "thesis_cli.method"
"""Key of a context's `meta` with the method that the line names, or None."""


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

_KEYWORD = inspect.Parameter.KEYWORD_ONLY

NO_OUT = typer.Option("--no-out", help="Write no file.", rich_help_panel=FURTHER)
OVERWRITE = typer.Option(
    "--overwrite",
    help="Replace files that this command did not write with these settings.",
    rich_help_panel=FURTHER,
)
FIGURE = typer.Option(help="File for the figure, .png; a .pdf goes beside it.", metavar="FILE", show_default=False)


class Documented(TyperCommand):
    """A command with two helps: `--help` shows the usual options, `--help-all` those of each method too.

    After `--method NAME`, help and completion leave out the options that only other methods take.

    Attributes
    ----------
    all_examples : the last paragraph of `--help-all`; `epilog` is that of `--help`.
    methods : by parameter, the methods that take it; a parameter that all take is not in it.
    """

    all_examples = ""
    methods: Mapping[str, tuple[str, ...]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = [after for word, after in pairwise([*args, ""]) if word == "--method"]
        named += [word.removeprefix("--method=") for word in args if word.startswith("--method=")]
        ctx.meta[METHOD] = named[-1] if named else None
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        other = {option for each in self.params if not self._taken(ctx, each) for option in each.opts}
        return [item for item in super().shell_complete(ctx, incomplete) if item.value not in other]

    def _taken(self, ctx: Any, parameter: Any) -> bool:
        """Whether the method that is named takes a parameter."""
        takers = self.methods.get(parameter.name, ())
        named = ctx.meta[METHOD]
        return not takers or named in takers or all(named not in each for each in self.methods.values())

    def format_options(self, ctx: Any, formatter: Any) -> None:
        usual = ("Arguments", "Options")
        sections: dict[str, list[tuple[str, str]]] = {}
        parameters: list[Any] = self.get_params(ctx)
        for parameter in parameters:
            if self._taken(ctx, parameter) and (record := parameter.get_help_record(ctx)):
                heading = usual[0] if parameter.param_type_name == "argument" else parameter.rich_help_panel
                sections.setdefault(heading or usual[1], []).append(record)
        everything = ctx.meta.get(SHOW_ALL)
        for heading in [*usual, *([h for h in sections if h not in usual] if everything else [])]:
            if heading in sections:
                with formatter.section(heading):
                    formatter.write_dl(sections[heading])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        usual = self.epilog
        self.epilog = self.all_examples if ctx.meta.get(SHOW_ALL) else usual
        try:
            super().format_epilog(ctx, formatter)
        finally:
            self.epilog = usual


def shell_command(name: str, command: Command) -> Callable[..., None]:
    """A function whose signature Typer turns into the options of a command."""
    own, files = _parameters(command.fields), []
    writes = command.saves and "out" in command.fields
    if command.saves:
        files = [_flag("no_out", Annotated[bool, NO_OUT])]
        if not writes:
            about = f"File for the result, {command.suffix}; the record goes beside it, .json."
            files.insert(0, _optional("out", typer.Option(help=about, metavar="FILE", show_default=False)))
    if command.draws and "figure" not in command.fields:
        files.append(_optional("figure", FIGURE))
    if (command.saves or command.draws) and "overwrite" not in command.fields:
        files.append(_flag("overwrite", Annotated[bool, OVERWRITE]))

    def call(**values: Any) -> None:
        set_messages(values["quiet"], values["verbose"])
        request = command.request(**_set(command.fields, values))
        if command.default_out and values["out"] is None:
            request = dataclasses.replace(request, **{"out": command.default_out(request)})
        table: Path | None = None
        figure: Path | None = None
        overwrite = bool(values.get("overwrite"))
        if command.saves:
            table = choose(values["out"], request, values["no_out"], command.suffix, overwrite)
            if writes:
                request = dataclasses.replace(request, **{"out": table})
        if (text := values.get("figure")) and "figure" not in command.fields:
            figure = Path(text)
        check_others(request, table, figure, overwrite)
        announce_folders([table, figure, *_outputs(request)])
        result = command.execute(request, bars_unless(values["quiet"]))
        if values.get("ask"):
            result = converse(result)
        if not command.saves:  # its work stands, whatever becomes of the figure
            show(result, table, values["as_json"])
        drawn = result.save_figure(figure) if figure else []
        if command.saves:
            show(result, table, values["as_json"])
        if table and not writes:
            result.save(table)
        for path in [*filter(None, [table]), *drawn]:
            logger.info("wrote %s", path)
        if result.status:
            raise typer.Exit(result.status)

    return _with_signature(call, name, command, [*own, *files, *_shared(json=True)])


def own_command(name: str, own: OwnCommand) -> Callable[..., None]:
    """The same for a command that runs, judges or shows experiments and sweeps."""

    def call(**values: Any) -> None:
        set_messages(values["quiet"], values["verbose"])
        request = own.request(**_set(own.fields, values))
        announce_folders(_outputs(request))
        found = own.execute(request, bars_unless(values["quiet"]))
        if values.get("as_json"):
            print_json(found.to_dict())
        elif text := found.summary(values["debug"]):
            typer.echo(text)
        for failure in found.failures(values["debug"]):
            logger.error("error: %s", failure)
        if found.status:
            raise typer.Exit(found.status)

    return _with_signature(call, name, own, [*_parameters(own.fields), *_shared(own.json)])


def _parameters(fields: Mapping[str, OptionField]) -> list[inspect.Parameter]:
    """The fields of a request, and their other names."""
    others = [_hidden(alias, fields[name]) for alias, name in aliases_of(fields).items()]
    return [*map(_parameter, fields.values()), *others]


def _outputs(request: Request) -> list[Path | None]:
    """The files to write that a request names."""
    return [getattr(request, name) for name, field in fields_of(type(request)).items() if field.about.names == "output"]


def _with_signature(
    call: Callable[..., None], name: str, command: Definition, parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """A function with the name, help and signature that Typer reads."""
    call.__name__ = name.replace("-", "_").replace(" ", "_")
    call.__doc__ = "\n\n".join([inspect.getdoc(command.request) or "", *command.notes])
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def _shared(json: bool) -> list[inspect.Parameter]:
    """The options that all commands share."""
    flags = [("as_json", Json)] * json
    flags += [("quiet", Quiet), ("verbose", Verbose), ("debug", Debug)]
    flags += [("help_all", HelpAll)]
    return [_flag(name, hint) for name, hint in flags]


def epilog(command: Definition, most: int | None = None) -> str:
    """The examples as the help shows them: the first `most`, or all, with further ones if it has any."""
    lines = [
        "Examples, in a checkout or after thesis-cli example --all:",
        *(f"  thesis-cli {line}" for line in command.examples[:most]),
    ]
    more = command.more if isinstance(command, OwnCommand) and most is None else ""
    return "\b\n" + "\n".join([*lines, more] if more else lines)


def _set(fields: Mapping[str, OptionField], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields that the command line sets.

    Raises
    ------
    InputError : an argument is missing.
    """
    found = {}
    for field in fields.values():
        value = values[field.name]
        former = values[field.about.alias] if field.about.alias else None
        if None not in (value, former) and not field.flag:
            raise InputError(f"{field.shell_name} is given twice", f"{_shell(field.about.alias)} is another name of it")
        value = value if former is None else former
        if value is None or (isinstance(value, list | tuple) and not value):
            if field.required:
                raise InputError(f"{field.shell_name} is missing", "see --help")
            continue
        found[field.name] = value
    return found


def _parameter(field: OptionField) -> inspect.Parameter:
    """A field as a parameter of text, which `OptionField.coerce` parses, as for sweeps."""
    if field.flag:
        name = field.shell_name
        both = f"{name}/--no-{name[2:]}" if field.default else name
        hint: Any = Annotated[
            bool, typer.Option(both, help=_help(field), show_default=False, rich_help_panel=_heading(field))
        ]
        return inspect.Parameter(field.name, _KEYWORD, default=field.default, annotation=hint)
    kind: Any = str | None
    if field.many == 0:
        kind = list[str] | None
    elif field.many > 1:
        kind = types.GenericAlias(tuple, (str,) * field.many) | None
    about: dict[str, Any] = {
        "help": _help(field),
        "metavar": field.metavar,
        "show_default": False,
        "rich_help_panel": _heading(field),
    }
    if field.choices:
        about["autocompletion"] = lambda incomplete: [c for c in field.choices if c.startswith(incomplete)]
    elif field.metavar in complete.SOURCES:
        about["autocompletion"] = lambda ctx, incomplete: complete.words(field.metavar, ctx, incomplete)
    info = typer.Argument(**about) if field.about.positional else typer.Option(field.shell_name, **about)
    return inspect.Parameter(field.name, _KEYWORD, default=None, annotation=Annotated[kind, info])


def _heading(field: OptionField) -> str | None:
    """The heading under which `--help-all` shows an option; None for those of `--help`."""
    if field.usual:
        return None
    return f"Options of --method {', '.join(field.about.methods)}" if field.about.methods else FURTHER


def _hidden(alias: str, field: OptionField) -> inspect.Parameter:
    """Another name of an option, which no help shows."""
    info, kind = typer.Option(_shell(alias), hidden=True), bool if field.flag else str
    return inspect.Parameter(alias, _KEYWORD, default=None, annotation=Annotated[kind | None, info])


def _shell(alias: str) -> str:
    return f"--{alias.replace('_', '-')}"


def _help(field: OptionField) -> str:
    more = f" (for --method {', '.join(field.about.methods)})" if field.about.methods and field.usual else ""
    repeated = " (repeatable)" if field.many == 0 and not field.about.positional else ""
    return f"{field.about.help}{repeated}{more}{default_text(field)}"


def _optional(name: str, info: Any) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, default=None, annotation=Annotated[str | None, info])


def _flag(name: str, hint: Any) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, default=False, annotation=hint)


logger = logging.getLogger("thesis_cli")

CHECKED = ("out", "init_schema", "model_out")
"""Fields whose files the commands check, or keep and add to."""


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


def print_json(summary: Mapping[str, object]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(finite(summary), ensure_ascii=False))


def choose(
    given: str | None, request: Request, no_out: bool, suffix: str = ".csv", overwrite: bool = False
) -> Path | None:
    """The file for the result; None under --no-out.

    The default name, under results/runs, has the names of the command, the input and the method. If
    it is taken, and not by a result of the same settings, it gets a number.

    Raises
    ------
    InputError : the file cannot be written, would overwrite an input, or exists and was not written
        with the same settings.
    """
    if no_out:
        if given is not None:
            raise InputError("--out does not go with --no-out", "give one of them")
        return None
    inputs = [Path(text) for text in files_named(request)]
    if given is not None:
        path = Path(given)
        check_writable("--out", path, suffix, suffix in FOLDERS)
        traces = [path.with_suffix(".csv")] if suffix == TRAINED else []
        if {i.resolve() for i in inputs} & {each.resolve() for each in (path, record_of(path), *traces)}:
            raise InputError(f"--out {path} would overwrite the input", "give another --out")
        if not written_by(record_of(path), request):
            check_overwritten("--out", path, overwrite)
            check_overwritten("", record_of(path), overwrite)
        return path
    method = str(settings_of(request).get("method") or "auto")
    parts = [command_of(request).replace(" ", "-"), _stem(inputs), "" if method == "auto" else method]
    base = "-".join(part for part in parts if part)
    for number in count(1):
        path = RUNS / (f"{base}{suffix}" if number == 1 else f"{base}-{number}{suffix}")
        record = record_of(path)
        taken = path.exists() or record.exists()
        if not taken or written_by(record, request) or (overwrite and not holds_release(record)):
            check_writable("--out", path, suffix, suffix in FOLDERS)
            return path
    raise AssertionError


def check_others(request: Request, table: Path | None, figure: Path | None, overwrite: bool) -> None:
    """Refuse to overwrite a figure of other settings, or another file that the request names.

    Raises
    ------
    InputError : naming the file.
    """
    if figure:
        check_writable("--figure", figure, ".png")
        known = mark(request).encode()
        for path in (figure, figure.with_suffix(".pdf")):
            if path.is_file() and known not in path.read_bytes():
                check_overwritten("--figure", path, overwrite)
    if not (table and written_by(record_of(table), request)):
        for name, field in fields_of(type(request)).items():
            path = getattr(request, name)
            if field.about.names == "output" and name not in CHECKED and path is not None:
                if any(Path(text).resolve() == path.resolve() for text in files_named(request)):
                    raise InputError(f"{field.shell_name} {path} would overwrite the input", "give another name")
                check_overwritten(field.shell_name, path, overwrite)


def announce_folders(paths: Iterable[Path | None]) -> None:
    """Say which folders will be made for results, but for the one of results without a name."""
    for folder in dict.fromkeys(path.parent for path in paths if path is not None):
        if folder != RUNS and not folder.exists():
            logger.info("making the folder %s", folder)


def _stem(inputs: Sequence[Path]) -> str:
    """Name of the first input, without folder, suffix, and parameters of a URL."""
    first = next((without_secrets(str(path)).partition("?")[0] for path in inputs), "")
    return "stdin" if first == "-" else Path(first).stem


def converse(result: Any) -> Any:
    """Ask the user what a result asks, on standard error, until it asks nothing more, an empty line or the end
    of the input; nothing is asked if nobody is there.

    Parameters
    ----------
    result : a result with `question` and `answer`.

    Returns
    -------
    The result with all answers.
    """
    while sys.stdin is not None and sys.stdin.isatty() and (inputs := result.question()) is not None:
        typer.echo(f"{result.summary()}\nfor {json.dumps(inputs)[1:-1]}, the output is: ", nl=False, err=True)
        text = sys.stdin.readline()
        if not text.strip():
            break
        try:
            result = result.answer(text)
        except InputError as error:
            logger.error("%s", error)
    return result


def show(result: Result, out: Path | None, as_json: bool) -> None:
    """Print a summary, as text or as JSON."""
    if as_json:
        where = {"out": str(out)} if out else {}
        typer.echo(json.dumps({**result.to_dict(), **where}, ensure_ascii=False))
    else:
        cost = f"{result.seconds:.3f} s"
        if result.compilation:
            cost += f", compilation {result.compilation:.1f} s"
        seed = result.settings.get("seed")
        lines = [*result.lines(), ("cost", f"seed {seed}, {cost}" if seed is not None else cost)]
        typer.echo(aligned(lines))
