"""The option `--uai`: a result file in the format of the UAI inference competitions."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.commands.core.fields import files_named, option

logger = logging.getLogger("thesis_cli")


def uai_option(task: str) -> Any:
    """File for the result; its type is `Path | None`.

    Parameters
    ----------
    task : PR, MAR or MPE.
    """
    return option(
        None,
        f"File for the result in the format of the UAI competitions, such as asia.uai.{task}.",
        names="output",
        not_swept="the tasks of a sweep would overwrite each other's file",
    )


def check_uai(path: Path | None, request: object) -> None:
    """Refuse, before the work, a file that cannot be written or that the request reads.

    Raises
    ------
    InputError : naming the file.
    """
    if path is None:
        return
    check_writable("--uai", path)
    if any(Path(text).resolve() == path.resolve() for text in files_named(request)):
        raise InputError(f"--uai {path} would overwrite the input", "give another --uai")


def write_uai(path: Path | None, text: str) -> None:
    """Write the text of `models.uai_results`, if a file was given."""
    if path is not None:
        write_atomic({path: text})
        logger.info("wrote %s", path)
