"""Read small files whole, with one-line errors."""

from __future__ import annotations

from pathlib import Path

from thesis_cli.base.errors import InputError


def read_whole(path: str | Path, most: int, remedy: str) -> bytes:
    """The bytes of a file.

    Raises
    ------
    InputError : it has more than `most` bytes.
    OSError : it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise too_large(str(path), most, remedy)
    return data


def too_large(name: str, most: int, remedy: str) -> InputError:
    """An error for a file that is larger than `most` bytes."""
    return InputError(f"the file is larger than {most >> 20} MiB", remedy, source=name)


def decode(data: bytes, name: str) -> str:
    """Bytes as text.

    Raises
    ------
    InputError : they are not UTF-8; the message gives the line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not text", "a UAI, FG, BIF, CNF or CSV file is text", source=name, line=line) from error


def unreadable(error: OSError, name: str, remedy: str) -> InputError:
    """An error for a file that the system cannot read."""
    return InputError(f"cannot be read ({(error.strerror or str(error)).lower()})", remedy, source=name)
