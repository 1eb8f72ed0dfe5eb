"""Files of pages: which may be replaced, and when they are."""

from __future__ import annotations

from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, write_atomic

MARK = b"<title>thesis-cli"
"""What each page has within its first `HEAD` bytes."""

HEAD = 1000


def check_page(path: Path) -> None:
    """Refuse to replace a file that is no page of this program.

    Raises
    ------
    InputError : as above, or nothing can be written there.
    """
    check_writable("--out", path, ".html")
    if path.is_file() and (content := path.read_bytes()[:HEAD]) and MARK not in content:
        raise InputError(f"--out {path} exists, and is no page of report", "give another name")


def write_page(path: Path, page: str) -> int:
    """Write a page, unless it is there already; returns its number of bytes.

    A page that differs from the one that stands only in how its pictures are compressed is there.
    """
    from thesis_cli.reproduction.report.same_page import page_change

    data = page.encode()
    if not path.is_file() or page_change(path.read_bytes().decode(errors="replace"), page):
        write_atomic({path: data})
    return len(data)
