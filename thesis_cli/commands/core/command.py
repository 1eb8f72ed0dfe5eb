"""A command: its request, its work, and the Python function that it is."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from thesis_cli.base.compilation import Stopwatch, announced
from thesis_cli.base.progress import Progress, bars, silent
from thesis_cli.commands.core.fields import OptionField, fields_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result


@dataclass(frozen=True)
class Command:
    """One command, as its file declares it.

    Attributes
    ----------
    request : its request's class; the docstring is the help of the command.
    run : (request, progress) -> result.
    examples : command lines that run as they stand in a checkout, each after `thesis-cli `.
    notes : further paragraphs of the help.
    saves : whether there is a file, by default under results/runs. The shell calls `Result.save`;
        if the request has a field `out`, it fills in the name, and the command writes the file
        itself.
    suffix : of that file.
    default_out : the file that a command which does not save writes itself if `--out` is not given.
    not_swept : why the command cannot be swept; empty if it can.
    """

    request: type[Request]
    run: Callable[[Any, Progress], Result]
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    saves: bool = True
    suffix: str = ".csv"
    default_out: Callable[[Any], Path | None] | None = None
    not_swept: str = ""

    @property
    def fields(self) -> dict[str, OptionField]:
        return fields_of(self.request)

    @property
    def result(self) -> type[Result]:
        """Class of what it returns."""
        found = get_type_hints(self.run)["return"]
        assert isinstance(found, type)
        assert issubclass(found, Result)
        return found

    @property
    def draws(self) -> bool:
        """Whether its result may have a figure."""
        return self.result.draw is not Result.draw

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


def python_function(name: str, command: Command) -> Callable[..., Result]:
    """The command as a function of Python: arguments of the command line come first, all else by
    name.
    """
    kinds = inspect.Parameter
    parameters = [
        kinds(
            field.name,
            kinds.POSITIONAL_OR_KEYWORD if field.about.positional else kinds.KEYWORD_ONLY,
            default=kinds.empty if field.required else field.default,
            annotation=hint,
        )
        for field, hint in ((field, get_type_hints(command.request)[name]) for name, field in command.fields.items())
    ]
    parameters.sort(key=lambda p: p.kind)
    parameters.append(kinds("progress", kinds.KEYWORD_ONLY, default=False, annotation=bool))
    signature = inspect.Signature(parameters, return_annotation=command.result)

    def call(*args: Any, **kwargs: Any) -> Result:
        bound = signature.bind(*args, **kwargs).arguments
        progress = bars if bound.pop("progress", False) else silent
        return command.execute(command.request(**bound), progress)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = documentation(command)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def documentation(command: Command) -> str:
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
