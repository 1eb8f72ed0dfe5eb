"""What an experiment declares in its file in `experiments/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Parameters = Mapping[str, Any]
"""JSON values by name: a task apart from its seed."""


@dataclass(frozen=True)
class Measurement:
    """A number that a result gives.

    Attributes
    ----------
    value : the number.
    standard_error : standard error of the number; 0 if it is exact.
    """

    value: float
    standard_error: float = 0.0


@dataclass(frozen=True)
class Claim:
    """A statement of a source that a result can confirm or contradict.

    Attributes
    ----------
    id : name of the claim, unique within the experiment.
    source : section, equation, table or figure that makes the statement.
    statement : the statement in one line.
    published : the number that the statement gives.
    relation : whether the measured number is equal to it, above it or below it.
    measure : result -> measurement; None if this preset has no such row.
    rounding : half a unit of the last digit that the source prints.
    finding : heading of docs/errata.md with the evidence, if the statement does not hold.
    """

    id: str
    source: str
    statement: str
    published: float
    relation: Literal["=", ">", "<"]
    measure: Callable[[pd.DataFrame], Measurement | None]
    rounding: float = 0.0
    finding: str = ""


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes
    ----------
    id : name on the command line and of the files.
    title : one line.
    source : section and figure or table.
    version : raise it if a change of code changes results; stored results then no longer count.
    presets : settings by name; `quick` takes seconds, `paper` has the sizes of the source.
    tasks : settings -> parameters of each task, in the order of the rows of the result.
    run : (seed, **parameters) -> tidy frame; a pure function that takes seconds to minutes.
    plot : result -> figure.
    claims : statements to check against the result.
    """

    id: str
    title: str
    source: str
    version: int
    presets: Mapping[str, Parameters]
    tasks: Callable[[Parameters], Sequence[Parameters]]
    run: Callable[..., pd.DataFrame]
    plot: Callable[[pd.DataFrame], Figure]
    claims: Sequence[Claim] = field(default=())

    def settings(self, preset: str) -> Parameters:
        """The settings of a preset.

        Raises
        ------
        InputError : there is no such preset.
        """
        if preset not in self.presets:
            raise InputError(f"{self.id} has no preset {preset}", f"it has {', '.join(self.presets)}")
        return self.presets[preset]
