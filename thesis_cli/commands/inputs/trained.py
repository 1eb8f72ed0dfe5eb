"""The files of what was learnt: parameters in safetensors, their record and the trace of the training."""

from __future__ import annotations

from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.commands.core.result import Result

SUFFIX = ".safetensors"


def save_trained(result: Result, path: str | Path, parameters: bytes) -> list[Path]:
    """Write the parameters, and beside them the record and the table of the result: all or none.

    Raises
    ------
    InputError : the name does not end in .safetensors.
    OSError : naming the file that could not be written.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise InputError(f"{path} does not end in {SUFFIX}", f"give a name that ends in {SUFFIX}")
    files: dict[Path, str | bytes] = {
        path: parameters,
        path.with_suffix(".json"): to_json(result.sidecar()),
        path.with_suffix(".csv"): result.columns.csv(),
    }
    write_atomic(files)
    return list(files)
