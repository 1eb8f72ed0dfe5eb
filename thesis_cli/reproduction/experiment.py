"""Declaration of an experiment, as its file in `experiments/` makes it, and the experiments of a checkout,
found by folder.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.modules import spec_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from thesis_cli.base.figures import Cells


Parameters = Mapping[str, Any]
"""JSON values by name: a task apart from its seed."""


@dataclass(frozen=True)
class Measurement:
    """A number that a result gives.

    Attributes
    ----------
    value : the number.
    standard_error : standard error of the number; 0 if no random numbers enter it.
    error : bound of its numerical error (rounding, quadrature, truncation), in the unit of `value`.
    weakest : largest standard error of the numbers of which this one is the worst, if there are
        several; a deviation of any of them that is larger than its errors would have been seen.
    sources : standard error of the source's own number, where its sample is known.
    """

    value: float
    standard_error: float = 0.0
    error: float = 0.0
    weakest: float = 0.0
    sources: float = 0.0

    def __post_init__(self) -> None:
        for name in ("value", "standard_error", "error", "weakest", "sources"):
            number = getattr(self, name)  # of NumPy, perhaps, which JSON cannot hold
            object.__setattr__(self, name, int(number) if isinstance(number, Integral) else float(number))


Tag = Literal["", "slip", "reading", "substantive"]
"""Gravity of a finding, the least first."""

Measure = Callable[["pd.DataFrame"], Measurement | None]
"""Result -> measurement; None if this preset has no row that bears on the statement."""


@dataclass(frozen=True)
class Reading:
    """Meaning that vague words of a statement ("roughly", "comparable") are given.

    Attributes
    ----------
    words : the meaning in words, such as `roughly: within a fifth`.
    width : how far from the published number they reach, in its unit.
    """

    words: str
    width: float


@dataclass(frozen=True)
class Sample:
    """Sample that a source's own number is taken from.

    Attributes
    ----------
    size : how many there are.
    unit : what they are, such as `tasks`.
    """

    size: int
    unit: str


OWN = "this project", "beyond", "beside", "goal"
"""Beginnings of the `source` of claims that judge no statement of a source."""


def is_own(source: str) -> bool:
    """Whether the `source` of a claim says that it judges no statement of a source."""
    return source.lower().startswith(OWN)


@dataclass(frozen=True)
class Claim:
    """A statement of a source that a result can confirm or contradict.

    Attributes
    ----------
    id : name of the claim, unique within the experiment; it stays, since the row is cited by it.
    source : section, equation, table or figure that makes the statement; begins with one of `OWN` if none does.
    kind : `identity` (an equality that is proven), `bound` (an inequality that is proven),
        `comparison` (an observation of what is larger, better, or tends to what), or `published` (a
        number that a source prints or plots).
    relation : whether the measured number is equal to the published one, above it or below it.
    published : the number that the statement gives.
    measure : result -> measurement; None if this preset has no such row.
    statement : the statement in one line.
    rounding : half a unit of the last digit that the source prints.
    finding : heading of docs/errata.md with the evidence, if the statement does not hold.
    scale : deviation that the statement must tell from none. None for a tenth of `published` in an
        equality; an inequality then holds only if it is strict.
    reading : meaning that vague words are given, if there are any.
    printed : the number as the source prints it, if `published` is another form of it.
    not_comparable : why the statement cannot be judged here, a sentence: it is about data, a network, an
        implementation or a machine that the source does not give.
    sample : what the source's own number is taken from; `not decidable` if that is too few.
    tag : gravity of a finding: `slip` (a sign, an index), `substantive` (a statement or proof fails), `reading` (it
        depends on the meaning of a word).
    weight : place of a finding among those with its tag, the largest first.
    headline : a finding in one sentence, for those that come first.
    """

    id: str
    source: str
    kind: Literal["identity", "bound", "comparison", "published"]
    relation: Literal["=", ">", "<"]
    published: float
    measure: Measure
    statement: str
    _: KW_ONLY
    rounding: float = 0.0
    finding: str = ""
    scale: float | None = None
    reading: Reading | None = None
    printed: str = ""
    not_comparable: str = ""
    sample: Sample | None = None
    tag: Tag = ""
    weight: int = 0
    headline: str = ""

    @property
    def allowance(self) -> float:
        """Distance from the published number that the source's rounding and words leave open."""
        return self.rounding + (self.reading.width if self.reading else 0.0)

    @property
    def distinguishes(self) -> float:
        """The deviation that the statement must tell from none; nan for a strict inequality."""
        if self.scale is not None:
            return self.scale
        return abs(self.published) / 10 if self.relation == "=" else math.nan


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of a column's numbers between two runs, on any processor.

    Attributes
    ----------
    relative : share of the larger of two numbers.
    absolute : bound in the unit of the column. Numbers within half of it are rounding noise about 0, and
        are written as 0.
    """

    relative: float = 1e-9
    absolute: float = 0.0

    def __str__(self) -> str:
        if self.relative == math.inf:
            return "not repeatable"
        absolute = f" or {self.absolute:g} absolute" if self.absolute else ""
        return f"to {self.relative:g}{absolute}".replace("e-0", "e-")


NOT_REPEATABLE = Tolerance(relative=math.inf)
"""A column that no second run repeats, such as seconds."""


def _as_columns(row: Mapping[str, str]) -> Tolerance | None:
    return None


@dataclass(frozen=True, eq=False)
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
    tolerances : tolerance of each named column; numbers of other columns may differ by 1e-9 of themselves. Words, and
        integers of columns that are not named here, must be the same.
    rows : cells by column -> tolerance of all cells of a row, where it is wider than those of its
        columns, such as `NOT_REPEATABLE` if a time limit ended the work; None for other rows.
    caption : content of the figure, that of the source's figure, and how they differ.
    cells : result -> the table that its figure draws; the report shows it in place of the picture.
    shares : id of another experiment whose tasks these are, if any: they are run once for both. The
        two have the same presets, tasks, run and version.
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
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    rows: Callable[[Mapping[str, str]], Tolerance | None] = _as_columns
    caption: str = ""
    cells: Callable[[pd.DataFrame], Cells] | None = None
    shares: str = ""

    def settings(self, preset: str) -> Parameters:
        """The settings of a preset.

        Raises
        ------
        InputError : there is no such preset.
        """
        if preset not in self.presets:
            raise InputError(f"{self.id} has no preset {preset}", f"it has {', '.join(self.presets)}")
        return self.presets[preset]


@dataclass(frozen=True)
class Checkout:
    """A clone of the project: the experiments and their results."""

    root: Path

    @property
    def is_here(self) -> bool:
        """Whether the working folder is in it: only then do commands write into it."""
        return Path.cwd().resolve().is_relative_to(self.root)

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    def results(self, preset: str) -> Path:
        """Folder of results; those of the paper preset are committed, others are scratch."""
        return self.root / "results" if preset == "paper" else self.root / "results" / preset

    @property
    def store(self) -> Path:
        return self.root / "results" / ".store"

    def files(self) -> dict[str, Path]:
        """The file of each experiment by its id, in the order of the ids."""
        found = {path.stem.replace("_", "-"): path for path in self.experiments.glob("[a-z]*.py")}
        return dict(sorted(found.items()))

    def select(self, ids: list[str]) -> dict[str, Path]:
        """The files of some experiments; of all if none is named.

        Raises
        ------
        InputError : no experiment has that id.
        """
        files = self.files()
        for name in ids:
            if name not in files:
                raise InputError(f"no experiment {name!r}", nearest(name, files))
        return {name: files[name] for name in ids or files}


def find_checkout(start: Path | None = None) -> Checkout:
    """The checkout that contains the working folder, or else the one that this package comes from.

    Raises
    ------
    InputError : there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if (folder / "experiments").is_dir() and (folder / "thesis_cli").is_dir():
            return Checkout(folder)
    raise InputError("there are no experiments here", "run this in a checkout of the project")


def checkout_here() -> Checkout:
    """The checkout that contains the working folder, for commands that write into it.

    Raises
    ------
    InputError : there is none; names the one that this package comes from.
    """
    found = find_checkout()
    if not found.is_here:
        raise InputError("this folder is in no checkout of the project", f"run the command in {found.root}")
    return found


@lru_cache
def load(path: Path) -> Experiment:
    """Import an experiment's file.

    Raises
    ------
    InputError : the file cannot be imported, or declares no EXPERIMENT with the id of its name.
    """
    name = f"thesis_cli_experiment_{path.stem}"
    spec = spec_of(name, path)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), None
        )
        line = error.lineno if isinstance(error, SyntaxError) else line
        raise InputError(
            f"cannot be imported ({type(error).__name__}: {error})", "correct the file", source=path, line=line
        ) from error
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise InputError("declares no EXPERIMENT", "docs/adding-an-experiment.md shows how", source=path)
    name = path.stem.replace("_", "-")
    if experiment.id != name:
        raise InputError(f"declares the id {experiment.id}", f"in this file it must be {name}", source=path)
    return experiment
