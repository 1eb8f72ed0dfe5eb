"""`thesis-cli example`: copy the files that the examples of the help use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, counted, nearest
from thesis_cli.base.files import write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request, argument, option, settings_of
from thesis_cli.commands.core.result import Result, presentation

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = (PACKAGE / "examples", PACKAGE.parent / "data")
"""Where the files are: in an installed package, and in a checkout."""


@dataclass(frozen=True, kw_only=True)
class ExampleRequest(Request):
    """Copy example files to data/ below the working folder, so that the examples of --help run as they stand.

    Without names it lists them.
    """

    names: tuple[str, ...] = argument("Files or folders, such as asia.bif or images/test.", default=())
    all: bool = option(False, "Copy all of them.")
    overwrite: bool = option(False, "Replace files that differ.")

    def check(self) -> None:
        if self.all and self.names:
            raise InputError("--all does not go with names", "leave one of them out")


@dataclass(frozen=True, kw_only=True, repr=False)
class ExampleResult(Result):
    """Files that were copied, or that there are.

    Attributes
    ----------
    table : a row for each file: its path and its size in bytes.
    paths : the files, relative to the working folder.
    copied : whether they were copied.
    """

    paths: Sequence[Path]
    copied: bool

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The files; of all of them the number."""
        if self.copied and len(self.paths) > 10:
            return [("copied", f"{counted(len(self.paths), 'file')} to data/")]
        return [("copied" if self.copied else "", str(path)) for path in self.paths]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The files, and whether they were copied."""
        return {"copied": self.copied, "files": [str(path) for path in self.paths]}


def run(request: ExampleRequest, progress: Progress) -> ExampleResult:
    """List the files, or copy those that were named."""
    folder = next((source for source in SOURCES if source.is_dir()), None)
    if folder is None:
        raise InputError("this installation has no example files", "install the package from its wheel")
    known = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    chosen = known if request.all else [path for name in request.names for path in _named(name, known)]
    contents = {Path("data") / path: (folder / path).read_bytes() for path in chosen}
    for target, content in contents.items():
        if not request.overwrite and target.exists() and not (target.is_file() and target.read_bytes() == content):
            raise InputError(f"{target} exists and differs", "--overwrite replaces it")
    if contents:
        for target in contents:
            target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(contents)
    shown = list(contents) or [Path("data") / path for path in known]
    sizes = [(folder / path.relative_to("data")).stat().st_size for path in shown]
    return ExampleResult(
        columns=Columns({"file": [str(path) for path in shown], "bytes": sizes}),
        request=request,
        settings=settings_of(request),
        paths=shown,
        copied=bool(contents),
    )


def _named(name: str, known: Sequence[Path]) -> list[Path]:
    """The file or the files of the folder that a name stands for: the end of their path.

    Raises
    ------
    InputError : it stands for none, or for several that are in different folders.
    """
    wanted = Path(name.removeprefix("data/")).parts
    found = [path for path in known if path.parts[-max(1, len(wanted)) :] == wanted]
    if len(found) > 1:
        raise InputError(f"{name} is {' and '.join(map(str, found))}", "name the folder, too")
    found = found or [path for path in known if wanted and path.parts[: len(wanted)] == wanted]
    if not found:
        names = [path.name for path in known]
        raise InputError(f"there is no example file {name}", nearest(name, names, "the files are"))
    return found


COMMAND = Command(
    ExampleRequest,
    run,
    examples=("example", "example asia.bif", "example --all"),
    saves=False,
    not_swept="it copies files, and computes nothing",
)
