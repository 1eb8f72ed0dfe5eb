"""Open what a command takes as a private release: its CSV file, or an object of Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import argument

if TYPE_CHECKING:
    from thesis_cli.commands.core.result import Result
    from thesis_cli.privacy.release.record import Release

    ReleaseSource = str | Path | Release | Result
    """The CSV file of a release, its record beside it; a release; or what `dp_release` returns."""
else:
    ReleaseSource = str


def release_argument() -> Any:
    """A private release; its type is `ReleaseSource`."""
    return argument("Release: the CSV file that dp-release wrote, its record beside it.", names="release", objects=True)


def open_release(source: ReleaseSource) -> Release:
    """The release that a source stands for.

    Raises
    ------
    InputError : the file or its record cannot be read, or the object is no release.
    """
    from thesis_cli.privacy.release.files import read_release
    from thesis_cli.privacy.release.record import Release

    if isinstance(source, str | Path):
        return read_release(source)
    release = getattr(source, "release", source)
    if not isinstance(release, Release):
        name = f"<{type(source).__name__}>"
        raise InputError(f"{name} is no release", "give the CSV file of one, or what dp_release returns")
    return release


def release_of(source: object) -> Release | None:
    """The release that a source stands for: a CSV file with a record beside it, or an object. None for any other."""
    from thesis_cli.privacy.release.files import read_release, record_path
    from thesis_cli.privacy.release.record import Release

    if isinstance(source, str | Path):
        return read_release(source) if record_path(source).is_file() else None
    release = getattr(source, "release", source)
    return release if isinstance(release, Release) else None
