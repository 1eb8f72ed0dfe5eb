"""Two folders of results side by side, and the page of `thesis-cli report --compare FOLDER`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.figures import difference
from thesis_cli.base.files import check_no_url
from thesis_cli.reproduction.claims import VERDICTS, judge
from thesis_cli.reproduction.comparison import DIFFERS, EQUAL, IDENTICAL, Cell, Comparison, NoTable, compare, parse
from thesis_cli.reproduction.coverage import Coverage
from thesis_cli.reproduction.experiment import Checkout, Experiment, load
from thesis_cli.reproduction.report.files import ExperimentFiles, Sections, read_claims, read_files
from thesis_cli.reproduction.report.page import data_uri, number, rendered, size

NOT_COMPARED = "not compared"
OUTCOMES = (IDENTICAL, EQUAL, DIFFERS, NOT_COMPARED)
"""Outcomes of a pair of tables, in the order in which they are counted."""
LARGEST = 2**28
"""Bytes of a table that is read."""
SHOWN = ("preset", "settings", "version", "seed", "tasks", "code", "python", "versions", "machine", "git_commit")
"""Fields of records that are held against each other."""
NONE = "none"
"""Stands for the verdict on a claim that one folder does not have."""


@dataclass(frozen=True)
class FolderVerdict:
    """Verdict on a claim in one folder."""

    statement: str
    source: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Change:
    """A claim with another verdict in each folder."""

    experiment: str
    claim: str
    old: FolderVerdict
    new: FolderVerdict

    @property
    def is_comparable(self) -> bool:
        """Whether both folders have a verdict."""
        return self.old.verdict in VERDICTS and self.new.verdict in VERDICTS

    @property
    def known(self) -> FolderVerdict:
        """The one that has the words of the claim."""
        return self.old if self.old.statement else self.new


@dataclass(frozen=True)
class ExperimentPair:
    """An experiment in both folders.

    Attributes
    ----------
    outcome : one of `OUTCOMES`.
    text : the same in words: what differs, by which tolerance they are equal, or what is missing.
    largest : the cell that differs most, and by which share of the number; None if none does.
    seen : visible difference between the two figures in words; empty if there is none.
    records : fields of the records that differ, with both values.
    changes : claims with another verdict.
    single : claims with a verdict in one of the folders only.
    faults : missing and inconsistent parts, one line each.
    """

    id: str
    title: str
    outcome: str
    text: str
    largest: tuple[Cell, float] | None
    figures: tuple[Path | None, Path | None]
    seen: str
    records: tuple[tuple[str, str, str], ...]
    changes: tuple[Change, ...]
    single: tuple[Change, ...]
    faults: tuple[str, ...]

    @property
    def shows_figures(self) -> bool:
        """Whether the two figures are worth a look."""
        return bool(self.seen) or (self.outcome == DIFFERS and any(self.figures))


@dataclass(frozen=True)
class Compared:
    """Both folders, by the experiments of the checkout.

    Attributes
    ----------
    names : names of the two folders.
    claims : number of claims that both folders have.
    absent : experiments that neither folder has.
    """

    names: tuple[str, str]
    pairs: tuple[ExperimentPair, ...]
    claims: int
    absent: tuple[str, ...]
    general: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Pairs by their outcome."""
        found = Counter(pair.outcome for pair in self.pairs)
        return {outcome: found[outcome] for outcome in OUTCOMES}

    @property
    def changes(self) -> list[Change]:
        """All claims with another verdict."""
        return [change for pair in self.pairs for change in pair.changes]

    @property
    def single(self) -> list[Change]:
        """All claims with a verdict in one of the folders only."""
        return [change for pair in self.pairs for change in pair.single]

    @property
    def faults(self) -> list[str]:
        """All that is missing or does not fit, apart from tables that only one folder has."""
        return [*self.general, *(fault for pair in self.pairs for fault in pair.faults)]


Verdicts = Mapping[str, Mapping[str, FolderVerdict]]
"""Experiment -> claim -> verdict."""


def compare_folders(checkout: Checkout, preset: str, other: Path) -> Compared:
    """Hold another folder of results against that of the checkout, with each experiment's tolerances.

    Raises
    ------
    InputError : `other` is no folder, or the checkout's own; one of the two has no tables.
    """
    own = checkout.results(preset)
    _check(own, other, checkout, preset)
    folders = (own, other)
    names = (_named(own, checkout.root), str(other))
    tables = [_verdicts(folder) for folder in folders]
    general = [f"{name}: {fault}" for name, (_, faults) in zip(names, tables, strict=True) for fault in faults]
    pairs, absent, claims = list[ExperimentPair](), list[str](), 0
    for name, path in checkout.files().items():
        files = [read_files(folder, name) for folder in folders]
        if not any(each.table for each in files):
            absent.append(name)
            continue
        comparison, largest, text = _compare(path, names, files)
        both = all(each.table for each in files)
        faults = [f"{label}: {f}" for label, each in zip(names, files, strict=True) if each.table for f in each.faults]
        judged = list[Mapping[str, FolderVerdict]]()
        for label, folder, (known, _) in zip(names, folders, tables, strict=True) if both else ():
            verdicts, problem = (known.get(name, {}), "") if known is not None else _judge(path, folder)
            judged.append(verdicts)
            faults += [f"{label}: {problem}"] * bool(problem)
        changes = list(_changes(name, *judged)) if both else []
        claims += len(judged[0].keys() & judged[1].keys()) if both else 0
        pairs.append(
            ExperimentPair(
                id=name,
                title=next((str(each.record["title"]) for each in files if each.record.get("title")), name),
                outcome=comparison.verdict if comparison else NOT_COMPARED,
                text=text,
                largest=largest,
                figures=(files[0].figure, files[1].figure),
                seen=_seen(files) if both else "",
                records=tuple(_records(files[0].record, files[1].record)) if both else (),
                changes=tuple(change for change in changes if change.is_comparable),
                single=tuple(change for change in changes if not change.is_comparable),
                faults=tuple(faults),
            )
        )
    return Compared(names, tuple(pairs), claims, tuple(absent), tuple(general))


def _named(folder: Path, root: Path) -> str:
    return folder.relative_to(root).as_posix()


def _check(own: Path, other: Path, checkout: Checkout, preset: str) -> None:
    check_no_url("--compare", other)
    if not other.is_dir():
        problem = "is no folder" if other.exists() else "does not exist"
        raise InputError(f"--compare {other} {problem}", "give a folder of results")
    if other.resolve() == own.resolve():
        raise InputError(f"--compare {other} is the folder of the results itself", "give that of another run")
    if not _has_tables(other, checkout):
        inner = other / "results"
        remedy = f"give {inner}" if _has_tables(inner, checkout) else "give a folder of results"
        raise InputError(f"--compare {other} has no table of an experiment", remedy)
    if not _has_tables(own, checkout):
        problem = f"{_named(own, checkout.root)} has no table to compare with"
        raise InputError(problem, f"run thesis-cli reproduce --preset {preset}")


def _has_tables(folder: Path, checkout: Checkout) -> bool:
    return any((folder / f"{name}.csv").is_file() for name in checkout.files())


def _compare(
    path: Path, names: Sequence[str], files: Sequence[ExperimentFiles]
) -> tuple[Comparison | None, tuple[Cell, float] | None, str]:
    """Comparison of two tables, the largest difference, and both in words."""
    texts = list[str]()
    for name, each in zip(names, files, strict=True):
        if each.table is None:
            return None, None, f"not in {name}"
        try:
            texts.append(_text(each.table))
        except NoTable as error:
            return None, None, f"{name}: the table is damaged: {error}"
    old, new = texts
    if old == new:
        return Comparison(IDENTICAL), None, IDENTICAL
    experiment = load(path)
    found = compare(old, new, experiment.tolerances, experiment.rows)
    if found.largest:
        return found, (found.largest, share(found.largest)), str(found)
    return found, None if found.shape else _largest(experiment, old, new), str(found)


def _text(table: Path) -> str:
    if table.stat().st_size > LARGEST:
        raise NoTable("it is too large")
    try:
        text = table.read_bytes().decode()
    except UnicodeDecodeError:
        raise NoTable("it is no text") from None
    parse(text)
    return text


def share(cell: Cell) -> float:
    """Difference of a cell's numbers as a share of the larger; inf if they are no finite numbers."""
    try:
        x, y = float(cell.old), float(cell.new)
    except ValueError:
        return math.inf
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.inf
    size = max(abs(x), abs(y))
    return abs(x / size - y / size)


def _largest(experiment: Experiment, old: str, new: str) -> tuple[Cell, float] | None:
    """The largest share by which a cell of two equal tables differs, without what no run repeats."""
    (heading, before), (_, after) = parse(old), parse(new)
    free = {name for name, tolerance in experiment.tolerances.items() if tolerance.relative == math.inf}
    found: tuple[Cell, float] | None = None
    for row_number, (a, b) in enumerate(zip(before, after, strict=True), 1):
        if a == b or any(_is_free(experiment, dict(zip(heading, row, strict=True))) for row in (a, b)):
            continue
        for name, x, y in zip(heading, a, b, strict=True):
            if x != y and name not in free:
                cell = Cell(name, row_number, x, y)
                if share(cell) > (found[1] if found else 0.0):
                    found = cell, share(cell)
    return found


def _is_free(experiment: Experiment, row: Mapping[str, str]) -> bool:
    tolerance = experiment.rows(row)
    return tolerance is not None and tolerance.relative == math.inf


def _seen(files: Sequence[ExperimentFiles]) -> str:
    """Visible difference between two figures in words; empty if there is none."""
    old, new = (each.figure for each in files)
    if old is None or new is None:
        return "" if old is new else "only one of the folders has it"
    return difference(old.read_bytes(), new.read_bytes())


def _records(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Fields that differ, those of `settings`, `versions` and `machine` one by one."""
    for field in SHOWN:
        a, b = old.get(field), new.get(field)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            others = [name for name in {**a, **b} if a.get(name) != b.get(name)]
            yield from ((str(name), _word(a.get(name)), _word(b.get(name))) for name in others)
        elif a != b:
            yield field.replace("_", " "), _word(a), _word(b)


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_word(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_word, value))
    return "" if value is None else str(value)


def _verdicts(folder: Path) -> tuple[Verdicts | None, tuple[str, ...]]:
    """The verdicts that stand in a folder, and what does not fit; None if they cannot be read."""
    try:
        table = read_claims(folder / "claims.csv", Sections(Coverage(folder, {}, (), ())))
    except InputError as error:
        return None, (f"claims.csv: {error.problem}; its claims are judged anew",)
    found: dict[str, dict[str, FolderVerdict]] = {}
    for row in table.rows:
        judged = FolderVerdict(row.statement, row.source, row.measured, row.verdict)
        found.setdefault(row.experiment, {})[row.claim] = judged
    return found, table.faults


def _judge(path: Path, folder: Path) -> tuple[Mapping[str, FolderVerdict], str]:
    """The verdicts by a table itself; none, and why, if it has not got what the claims read."""
    try:
        found = judge(load(path), folder)
    except (InputError, WorkFailed) as error:
        return {}, str(error).partition("; its CSV")[0]
    return {v.claim: FolderVerdict(v.statement, v.source, f"{v.measured:.6g}", v.verdict) for v in found}, ""


def _changes(name: str, old: Mapping[str, FolderVerdict], new: Mapping[str, FolderVerdict]) -> Iterable[Change]:
    nothing = FolderVerdict("", "", "nan", NONE)
    for claim in {**old, **new}:
        a, b = old.get(claim, nothing), new.get(claim, nothing)
        if a.verdict != b.verdict:
            yield Change(name, claim, a, b)


OUTCOME_COLOURS = {IDENTICAL: "holds", EQUAL: "consistent", DIFFERS: "does-not-hold", NOT_COMPARED: "not-decided"}
"""Outcomes in the colours of verdicts."""
ORDER = (DIFFERS, NOT_COMPARED, EQUAL, IDENTICAL)
"""Outcomes by what a reader looks for first."""


def comparison_page(compared: Compared) -> str:
    """The page, with both figures wherever a reader could see a difference."""
    old, new = compared.names
    text = rendered(
        "compare.html.j2",
        compared=compared,
        pairs=sorted(compared.pairs, key=lambda p: (not p.changes, ORDER.index(p.outcome), not p.seen)),
        detailed={pair.id for pair in compared.pairs if _is_detailed(pair)},
        alike=[pair.id for pair in compared.pairs if pair.outcome == IDENTICAL and not _is_detailed(pair)],
        old=old,
        new=new,
        classes=OUTCOME_COLOURS,
        picture=data_uri,
        size=size,
        number=number,
    )
    return text.lstrip()


def _is_detailed(pair: ExperimentPair) -> bool:
    return bool(pair.shows_figures or pair.changes or pair.single or pair.faults or pair.outcome == DIFFERS)
