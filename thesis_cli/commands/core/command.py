"""Commands: which there are, what each declares, and the Python function that it is.

Each file of `thesis_cli/commands/` is one, whose first sentence reads "`thesis-cli NAME`: what it does.",
where NAME is a word, or a group and a word. Listing the commands reads these sentences and imports nothing.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.progress import Progress, Stopwatch, announced, bars, silent
from thesis_cli.commands.core.fields import OptionField, Request, aliases_of, fields_of
from thesis_cli.commands.core.result import NAMED, Result, Summary

FOLDER = Path(__file__).resolve().parents[1]
HEAD = 400
"""Characters of a file in which its first sentence ends."""
HEADINGS = {
    "A model": ("estimate-z", "bound", "marginals", "map", "sample", "renyi", "spin-glass", "posterior", "race"),
    "A private table": ("dp-release", "dp-measure", "dp-query", "dp-test", "dp-ledger", "dp-audit"),
    "Programs from examples": ("synthesize", "explain", "run-program", "make-corpus", "train-guide"),
    "Structures, images, expressions": (
        *("structured ln-z", "structured sample", "structured train", "structured predict"),
        *("train-denoiser", "denoise", "kernel-eval"),
    ),
    "Files": ("example",),
}
"""Commands in the order of the help, by the heading there."""
CLASSES = {"StructuredPredictor": "thesis_cli.structured.estimator"}
"""Classes of Python that do what commands do, by their modules."""
OTHER = "Other"
"""The heading of commands that are under none."""


class CommandEntry(NamedTuple):
    """A command by its names, the shell's, of one word or two, and Python's; and where the help lists it."""

    shell: str
    function: str
    help: str
    heading: str


@cache
def entries() -> dict[str, CommandEntry]:
    """All commands by their names in the shell, in the order of the help."""
    places = {name: heading for heading, names in HEADINGS.items() for name in names}
    order = list(places)
    found = []
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        with open(file, encoding="utf-8") as text:
            head = " ".join(text.read(HEAD).split())
        match = re.match(rf'"""{NAMED}: (.+?\.)["\s]', head)
        if match is None:
            raise InputError("the file begins with no sentence that names its command", source=file)
        help = match[2][0].upper() + match[2][1:]
        found.append(CommandEntry(match[1], file.stem, help, places.get(match[1], OTHER)))
    found.sort(key=lambda e: order.index(e.shell) if e.shell in places else len(order))
    return {entry.shell: entry for entry in found}


@dataclass(frozen=True)
class Definition:
    """The definition that all kinds of commands share.

    Attributes
    ----------
    request : its request's class; the docstring is the help of the command.
    run : (request, progress) -> what it returns.
    examples : command lines that run as they stand in a checkout, each after `thesis-cli `.
    notes : further paragraphs of the help.
    """

    request: type[Request]
    run: Callable[[Any, Progress], Summary]
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, OptionField]:
        return fields_of(self.request)

    @property
    def result(self) -> type[Summary]:
        """Class of what it returns."""
        found = get_type_hints(self.run)["return"]
        assert isinstance(found, type)
        assert issubclass(found, Summary)
        return found

    def execute(self, request: Request, progress: Progress = silent) -> Summary:
        """Carry out a request."""
        return self.run(request, progress)


@dataclass(frozen=True)
class Command(Definition):
    """A command that computes something, as its file declares it.

    Attributes
    ----------
    saves : whether there is a file, by default under results/runs. The shell calls `Result.save`;
        if the request has a field `out`, it fills in the name, and the command writes the file
        itself.
    suffix : of that file.
    default_out : the file that a command which does not save writes itself if `--out` is not given.
    not_swept : why the command cannot be swept; empty if it can.
    """

    run: Callable[[Any, Progress], Result]
    saves: bool = True
    suffix: str = ".csv"
    default_out: Callable[[Any], Path | None] | None = None
    not_swept: str = ""

    @property
    def draws(self) -> bool:
        """Whether its result may have a figure."""
        return issubclass(self.result, Result) and self.result.draw is not Result.draw

    @property
    def file(self) -> Path:
        return Path(inspect.getfile(self.run))

    def execute(self, request: Request, progress: Progress = silent) -> Result:
        """Carry out a request; log it if code is compiled meanwhile. A result may have times of its
        own, such as those without the import of what compiles."""
        watch = Stopwatch()
        with announced():
            result = self.run(request, progress)
        seconds, compilation = result.seconds or watch.seconds, result.compilation or watch.compilation
        return dataclasses.replace(result, seconds=seconds, compilation=compilation)


@cache
def command_named(name: str) -> Command:
    """A command of `thesis_cli/commands/` by its name in the shell.

    Raises
    ------
    InputError : there is none; the message names the nearest.
    """
    known = entries()
    if name not in known:
        raise InputError(f"no command {name!r}", nearest(name, known))
    command = importlib.import_module(f"thesis_cli.commands.{known[name].function}").COMMAND
    assert isinstance(command, Command)
    return command


def python_function(name: str, command: Definition) -> Callable[..., Summary]:
    """The command as a function of Python: arguments of the command line come first, all else by
    name.
    """
    kinds = inspect.Parameter
    parameters = [
        kinds(
            field.name,
            kinds.POSITIONAL_OR_KEYWORD if field.about.positional else kinds.KEYWORD_ONLY,
            default=kinds.empty if field.required else field.default,
            annotation=field.annotation,
        )
        for field in command.fields.values()
    ]
    parameters.sort(key=lambda p: p.kind)
    parameters.append(kinds("progress", kinds.KEYWORD_ONLY, default=False, annotation=bool))
    signature = inspect.Signature(parameters, return_annotation=command.result)

    aliases = aliases_of(command.fields)

    def call(*args: Any, **kwargs: Any) -> Summary:
        for alias in aliases.keys() & kwargs.keys() - {a for a, own in aliases.items() if own in kwargs}:
            kwargs[aliases[alias]] = kwargs.pop(alias)
        for unknown in (argument for argument in kwargs if argument not in signature.parameters):
            known = nearest(unknown, signature.parameters, "its arguments are")
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}; {known}")
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        progress = bars if bound.pop("progress", False) else silent
        return command.execute(command.request(**bound), progress)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "thesis_cli"
    call.__doc__ = documentation(command)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def documentation(command: Definition) -> str:
    """A docstring of the command as a function."""
    lines = [inspect.getdoc(command.request) or "", *command.notes, "", "Parameters", "----------"]
    for field in command.fields.values():
        lines.append(f"{field.name} : {field.about.help}{default_text(field)}")
    lines.append("progress : show progress bars on standard error.")
    return "\n".join(lines)


def default_text(field: OptionField) -> str:
    """` [default: 100]`, or nothing for a flag that is off and for what must be given."""
    if field.about.default_text:
        return f" [default: {field.about.default_text}]"
    if field.required or field.default is None or field.default is False or field.default == ():
        return ""
    if field.default is True:
        return " [default: on]"
    values = field.default if isinstance(field.default, tuple) else (field.default,)
    return f" [default: {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in values)}]"
