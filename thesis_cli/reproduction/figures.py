"""Figures of experiments, from their CSV files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.figures import save
from thesis_cli.reproduction.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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


def draw(experiment: Experiment, folder: Path) -> list[Path]:
    """Draw an experiment's figure from its CSV in `folder`; returns the PDF and the PNG.

    Raises
    ------
    InputError : there is no CSV.
    WorkFailed : the experiment's `plot` raised.
    """
    frame = read_result(folder / f"{experiment.id}.csv")

    def plot() -> Figure:
        try:
            return experiment.plot(frame)
        except Exception as error:
            raise WorkFailed(stale(f"the figure of {experiment.id}", error)) from error

    return save(plot, folder / experiment.id)


def stale(what: str, error: Exception) -> str:
    """The message if an experiment cannot read its own result."""
    return (
        f"{what} failed ({type(error).__name__}: {error}); its CSV is damaged or comes from older code: "
        "run thesis-cli reproduce --refresh"
    )
