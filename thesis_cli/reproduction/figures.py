"""Figures of experiments, from their CSV files alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.figures import difference, render
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.reproduction.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NEW, CHANGED, UNCHANGED = "new", "changed", "unchanged"


def read_result(csv: Path) -> pd.DataFrame:
    """Read a merged result.

    Raises
    ------
    InputError : there is none, or the file is no table.
    """
    import pandas as pd

    try:
        return pd.read_csv(csv)
    except FileNotFoundError:
        raise InputError("no such result", f"run thesis-cli reproduce {csv.stem}", source=csv) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"not a table ({error})", f"run thesis-cli reproduce {csv.stem}", source=csv) from error


def picture(experiment: Experiment, frame: pd.DataFrame, kinds: Sequence[str] = ("png", "pdf")) -> dict[str, bytes]:
    """The figure of a result; returns the file of each kind.

    Raises
    ------
    WorkFailed : the experiment's `plot` raised.
    """

    def plot() -> Figure:
        try:
            return experiment.plot(frame)
        except Exception as error:
            raise WorkFailed(stale(f"the figure of {experiment.id}", error)) from error

    return render(plot, kinds)


def draw(experiment: Experiment, folder: Path) -> dict[Path, str]:
    """Draw an experiment's figure from its CSV in `folder`, as PDF and PNG.

    A PNG that looks the same is not replaced, because processors may round differently. The caption, and
    the table if the figure is one, go into the record of the result.

    Returns
    -------
    changes : "new", "unchanged", or "changed" with the difference, for each file.

    Raises
    ------
    InputError : there is no CSV.
    WorkFailed : the experiment's `plot` raised.
    """
    frame = read_result(folder / f"{experiment.id}.csv")
    found = {}
    for kind, data in sorted(picture(experiment, frame).items()):
        path = folder / f"{experiment.id}.{kind}"
        found[path] = _change(path, data)
        if found[path] != UNCHANGED:
            write_atomic({path: data})
    _describe(experiment, frame, folder / f"{experiment.id}.json")
    return found


def _describe(experiment: Experiment, frame: pd.DataFrame, record: Path) -> None:
    """Put the caption, and the table, into the record of a result, if there is a readable one."""
    try:
        values = json.loads(record.read_text())
    except (OSError, ValueError):
        return
    if not isinstance(values, dict):
        return
    new = {name: value for name, value in values.items() if name != "cells"} | {"caption": experiment.caption}
    if experiment.cells:
        new["cells"] = asdict(experiment.cells(frame))
    if (text := to_json(new)) != to_json(values):
        write_atomic({record: text})


def _change(path: Path, data: bytes) -> str:
    if not path.is_file():
        return NEW
    old = path.read_bytes()
    if path.suffix == ".png":
        words = difference(old, data)
        return f"{CHANGED}: {words}" if words else UNCHANGED
    return UNCHANGED if old == data else CHANGED


def stale(what: str, error: Exception) -> str:
    """The message if an experiment cannot read its own result."""
    return (
        f"{what} failed ({type(error).__name__}: {error}); its CSV is damaged or comes from older code: "
        "run thesis-cli reproduce --refresh"
    )
