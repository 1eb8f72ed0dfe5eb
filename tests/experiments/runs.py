"""Shipped experiments at sizes that a test chooses, in milliseconds."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd

from tests.conftest import ROOT
from thesis_cli.reproduction.experiment import Checkout, Experiment, Measurement, load

SIGMAS = 5.0


def experiment(name: str) -> Experiment:
    return load(Checkout(ROOT).files()[name])


def run(name: str, /, **parameters: Any) -> pd.DataFrame:
    """The result of one task."""
    return _read(name, [experiment(name).run(np.random.SeedSequence(0), **parameters)])


def whole(name: str, /, **sizes: Any) -> pd.DataFrame:
    """The result of all tasks of the quick preset with some settings in the place of its own.

    Every claim must be able to read it.
    """
    found = experiment(name)
    tasks = found.tasks({**found.presets["quick"], **sizes})
    frame = _read(name, [found.run(np.random.SeedSequence(seed), **task) for seed, task in enumerate(tasks)])
    measured = {claim.id: claim.measure(frame) for claim in found.claims}
    assert all(isinstance(number, Measurement | None) for number in measured.values())
    assert any(measured.values()) or not measured
    return frame


def _read(name: str, frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Merged frames as claims and figures get them, from a CSV that has the columns of the shipped one."""
    frame = pd.read_csv(io.StringIO(pd.concat(frames).to_csv(index=False)))
    assert list(frame.columns) == list(pd.read_csv(ROOT / "results" / f"{name}.csv", nrows=0).columns)
    return frame


def rows(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows that have some values in some columns; there must be one."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame), where
    return frame.reset_index(drop=True)


def one(frame: pd.DataFrame, **where: Any) -> pd.Series[Any]:
    """The only row that has some values in some columns."""
    (found,) = rows(frame, **where).iloc
    return found


def assert_near(values: Any, errors: Any, expected: Any, rounding: float = 0.0) -> None:
    """Every number is within five of its standard errors of what is expected."""
    values, errors, expected = np.broadcast_arrays(*(np.asarray(x, float) for x in (values, errors, expected)))
    missed = np.abs(values - expected)
    at = np.unravel_index(np.argmax(missed - SIGMAS * errors), missed.shape)
    assert np.all(missed <= SIGMAS * errors + rounding), (values[at], errors[at], expected[at])
