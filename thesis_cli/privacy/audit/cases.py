"""Kinds of releases whose stages are audited, each with neighbours that a search finds.

Tables of persons begin with the rows of one person, more of them than count, so that the choice of the
rows that count is audited too; all others have one row each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.audit.pairs import vector_pair
from thesis_cli.privacy.audit.scores import public_part
from thesis_cli.privacy.audit.stages import Case, ChoiceStage, LaplaceStage, Stage
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure import quantiles
from thesis_cli.privacy.measure.measure import Plan, measured
from thesis_cli.privacy.mechanisms.mechanism import NOISES, Budget, Calibration, Noise, Noised, NoiseName
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, Unit, total_rho
from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.marginals import Charge, Marginal
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import Algorithm, ReleasePlan, implementation_of, private_record
from thesis_cli.privacy.release.vectors import VectorMethod
from thesis_cli.privacy.tables import table
from thesis_cli.privacy.tables.columns import KINDS
from thesis_cli.privacy.tables.schema import Schema

WIDE = Schema(tuple(column for kind in KINDS.values() for column in kind.examples()))
"""A column of every type, with and without missing values, short and long."""
COUNTED = ("scale", "many", "place", "flag", "day")
"""Columns of a release by marginals, one of each storage."""
SLOW, QUICK = 1 / 20, 30
"""Releases by marginals, and of one short vector, for each that is asked for."""
COUNT, TRIED, FEWER, ROUNDS, OTHERS = 300, 150, 30, 2, 4
"""Rows of a table, rows that a search compares, and those for quantiles; rounds in which it changes single
columns, and values that it tries for each.
"""
ENDS = 1 / 3
"""Share of the numbers of a table that are at the bounds."""
MORE, ADDED = 2, 2
"""Rows of a person beyond those that count; rows that are added or removed where one is replaced."""
QUERIES = (
    "mean(real)",
    "mean(clamp(many, 0, 100))",
    "mean(scale, by=kind)",
    "count(by=[kind, flag])",
    "histogram(place)",
    "prob(flag, by=grade)",
)
QUANTILES = tuple(
    f"quantile({name}, {q})" for name in ("real", "many") for q in (0.3, 0.36, 0.42, 0.48, 0.52, 0.58, 0.64, 0.7)
)
RANKS, AGAIN = 50, 2
"""Rows of a table of quantiles, in scales of a choice: both ends of each interval are then among them. And
times that each choice is made, which measures its scale.
"""
KEY = bytes(32)
"""Public key of the choice of the rows of a person that count."""


class Kept(OpenDPStages):
    """Noise of releases by stages; `held` vectors are returned instead of new ones."""

    def __init__(self, held: Sequence[Stage] = ()) -> None:
        self._held, self.stages, self._sensitivity = held, list[Stage](), math.inf

    def calibrate(self, size: int, l2_sensitivity: float, rho: float) -> tuple[float, float, float]:
        self._sensitivity = l2_sensitivity
        return super().calibrate(size, l2_sensitivity, rho)

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        k = len(self.stages)
        noisy = self._held[k].noisy if self._held else super().add(vector, scale, granularity)
        if len(noisy) != len(vector):
            noisy = np.zeros(len(vector))  # the sizes differ, which is a finding
        self.stages.append(Stage(vector, noisy, scale, granularity, self._sensitivity))
        return noisy


class KeptVector:
    """Noise of a release of one vector, or of the sums of a measurement and its choices, in the same way."""

    def __init__(self, noise: Noise, held: Sequence[Stage] = ()) -> None:
        self._noise, self._held = noise, held
        self._sums, self._choices = list[Stage](), list[tuple[Floats, Ints, float]]()

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        return self._noise.calibrate(size, l2_sensitivity, budget)

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        if self._held:
            noised = Noised(self._held[0].noisy, self.calibrate(vector.size, l2_sensitivity, budget))
        else:
            noised = self._noise.add(vector, l2_sensitivity, budget)
        found = noised.calibration
        kind = LaplaceStage if found.noise == "laplace" else Stage
        self._sums.append(kind(vector, noised.values, found.scale, found.granularity, found.sensitivity))
        return noised

    def choose(self, scores: Floats, scale: float, gaussian: bool) -> int:
        """A `measure.Choose`."""
        if self._held:
            chosen = self._held[-1].noisy[len(self._choices)]
        else:
            chosen = np.array([quantiles.opendp_choose(scores, scale, gaussian) for _ in range(AGAIN)])
        self._choices.append((scores, chosen, scale))
        return int(chosen[0])

    def stages(self, record: str) -> list[Stage]:
        """The vector, and all choices together; choices of one measurement have one scale."""
        found = [replace(stage, record=record) for stage in self._sums]
        if self._choices:
            scores, chosen, scales = zip(*self._choices, strict=True)
            found.append(ChoiceStage(np.stack(scores), np.stack(chosen), scales[0], record=record))
        return found


class KeptCounts:
    """Choice and noise of a release by marginals, in the same way; counts are in units of their noise.

    OpenDP chooses the pairs with noise of its own, so that an audit sees which counts were chosen and not
    how.
    """

    def __init__(self, held: Sequence[Stage] = ()) -> None:
        self._held, self.stages = held, list[Stage]()

    def __call__(
        self, cells: Ints, sizes: dict[str, int], rho: float, algorithm: Algorithm, charge: Charge
    ) -> list[Marginal]:
        found = [marginal for stage in self._held for marginal in stage.marginals]
        found = found or list(marginals.opendp_marginals(cells, sizes, rho, algorithm, charge))
        for several in (False, True):
            own = tuple(m for m in found if (len(m.columns) > 1) == several)
            exact = [marginals.counts_of(m.columns, cells, sizes) / m.deviation for m in own]
            noisy = [np.array(m.counts) / m.deviation for m in own]
            steps = [1 / m.deviation for m in own]
            self.stages.append(
                Stage(
                    np.concatenate(exact),
                    np.concatenate(noisy),
                    1.0,
                    max(steps),
                    ADDED * math.hypot(*steps),
                    tuple(map(len, exact)),
                    own,
                )
            )
        return found


def release_case(name: str, schema: Schema, budget: Budget, unit: Unit) -> Case:
    """The worst neighbours of releases by copula of a schema, for a unit of privacy."""
    plan = ReleasePlan(schema, budget, "copula", unit=unit, entropy=0)
    rng = np.random.default_rng(0)
    rows, far = sample_rows(schema, rng, COUNT), sample_rows(schema, rng, 1)
    pair = _worst(schema, rows, total_rho(budget), rng)
    tables = _neighbours(unit, pair, rows)

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        noise, counted = Kept(held), _counted(unit, rows)
        private_record([counted], None if unit.secret else len(counted), plan, lambda budget, rho: None, noise=noise)
        return noise.stages

    other = Rows.concatenate([far] * (COUNT - 3) + [rows[:3]])
    return Case(name, total_rho(budget), release, tables, other)


def vector_case(name: str, budget: Budget, *, method: str, kind: NoiseName) -> Case:
    """The worst neighbours of a method with one vector, those of `pairs`; Laplace noise spends no delta."""
    budget = Budget(budget.epsilon) if kind == "laplace" else budget
    pair = vector_pair(method, kind, budget)
    one, other = map(pair.plan.schema.encode, pair.tables)

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        noise = KeptVector(NOISES[kind](), held)
        record = private_record([rows], len(rows), pair.plan, lambda budget, rho: None, noise=noise)
        return noise.stages(repr(public_part(record)))

    far, pure = Rows.concatenate([other[-1:]] * len(one)), not budget.delta
    return Case(name, budget.epsilon if pure else total_rho(budget), release, (one, other), far, QUICK, pure)


def measure_case(name: str, budget: Budget, unit: Unit, queries: tuple[str, ...] = QUERIES) -> Case:
    """The worst neighbours of answers of dp-measure, by a search over rows of all types.

    Parameters
    ----------
    name : kind of release.
    budget, unit : budget of each measurement, and difference between neighbours.
    queries : sums, or quantiles of columns with as many candidates.
    """
    plan = Plan(WIDE, budget, queries, unit=unit)
    rng, scale = np.random.default_rng(0), max(map(plan.scale, plan.quantiles), default=0.0)
    rows = sample_rows(WIDE, rng, max(COUNT, math.ceil(RANKS * scale)), 0 if plan.quantiles else ENDS)

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        noise, counted = KeptVector(plan.noise(), held), _counted(unit, rows)
        count = None if unit.secret else len(counted)
        found = measured([counted], count, plan, lambda budget, rho: None, noise=noise, choose=noise.choose)
        return noise.stages(repr(replace(found, vector=(), choices=())))

    noisy = release(rows, ())

    def vector(row: Rows) -> Floats:
        """Sums or scores of a table that has the row."""
        found = release(_neighbours(unit, Rows.concatenate([row, row]), rows)[0], noisy)
        return np.concatenate([stage.vector.ravel() for stage in found])

    tried = sample_rows(WIDE, rng, FEWER) if plan.quantiles else rows[:TRIED]
    pair = _farthest(WIDE, tried, vector, rng)
    far = Rows.concatenate([rows[:1]] * len(rows))
    return Case(name, plan.total, release, _neighbours(unit, pair, rows), far, pure=not plan.gaussian)


def counts_case(name: str, budget: Budget) -> Case:
    """Neighbours of a release by marginals, with columns of several types.

    The record says that two rows may be added or removed, of which a replaced row is a case: then the
    counts of two equal rows move each marginal by 2, as far as OpenDP's noise allows for. (Those of a
    replaced row move it by the root of 2, so that at most 1/2 of rho can be proven.)

    Parameters
    ----------
    name : kind of release.
    budget : budget of each release.
    """
    schema = Schema(tuple(column for column in WIDE.columns if column.name in COUNTED))
    plan = ReleasePlan(schema, budget, "marginals", entropy=0)
    rows = sample_rows(schema, np.random.default_rng(0), COUNT)

    def recorded(rows: Rows, held: Sequence[Stage]) -> tuple[list[Stage], Record]:
        noise = KeptCounts(held)
        return noise.stages, private_record([rows], len(rows), plan, lambda budget, rho: None, choose=noise)

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        stages, record = recorded(rows, held)
        text = replace(record, promise=replace(record.promise, rows=None)).to_json()  # their number is public
        return [replace(stage, record=text) for stage in stages]

    low, *_, high = np.argsort(rows.reals.sum(1))
    tables = Rows.concatenate([rows[high : high + 1]] * ADDED + [rows]), rows
    return Case(name, total_rho(budget), release, tables, Rows.concatenate([rows[low : low + 1]] * COUNT), SLOW)


LAWS: dict[NoiseName, str] = {"gaussian": "vector", "laplace": "Laplace"}
"""Releases of one vector by their noise, in names of cases."""
ROW, PERSON, SECRET = Unit(), Unit("replace", 3), Unit("add-remove")
CASES: dict[str, Callable[[str, Budget], Case]] = {
    "copula, all types": lambda name, budget: release_case(name, WIDE, budget, ROW),
    "copula, persons": lambda name, budget: release_case(name, WIDE, budget, PERSON),
    "copula, secret N": lambda name, budget: release_case(name, WIDE, budget, SECRET),
    **{
        f"{method}, {LAWS[kind]}": partial(vector_case, method=method, kind=kind)
        for method, row in METHODS.items()
        if isinstance(implementation_of(method), VectorMethod)
        for kind in row.noises
    },
    "marginals": counts_case,
    "dp-measure": lambda name, budget: measure_case(name, budget, ROW),
    "dp-measure, Laplace": lambda name, budget: measure_case(name, Budget(budget.epsilon), ROW),
    "dp-measure, quantiles": lambda name, budget: measure_case(name, budget, ROW, QUANTILES),
    "dp-measure, persons": lambda name, budget: measure_case(name, budget, PERSON),
}
"""Kinds of releases that are audited; each begins with the name of its method."""


def _neighbours(unit: Unit, pair: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Tables of either row, or of a person who has many like it, and of others; `_counted` knows whose
    rows are whose.
    """
    own = _own(unit)
    rest = rows[: len(rows) - own]
    one, other = (Rows.concatenate([pair[i : i + 1]] * own + [rest]) for i in range(2))
    return one, rest if unit.neighbours == "add-remove" else other


def _counted(unit: Unit, rows: Rows) -> Rows:
    """The rows that count."""
    if unit.contribution_bound is None:
        return rows
    others = COUNT - _own(unit)
    names = [f"own {max(0, i - len(rows) + others + 1)}" for i in range(len(rows))]
    return Rows.concatenate(list(table.bounded_rows([(names, rows)], unit.contribution_bound, KEY)))


def _own(unit: Unit) -> int:
    """Rows in which neighbours differ, whether or not they count."""
    return 1 if unit.contribution_bound is None else unit.contribution_bound + MORE


def _worst(schema: Schema, rows: Rows, rho: float, rng: np.random.Generator) -> Rows:
    """Two rows whose vectors are farthest apart over all stages, given noisy vectors of a table."""
    plan = CopulaStages(schema, len(rows), rho)
    stages, noisy = [], list[Floats]()
    while (stage := plan.stage(noisy)) is not None:
        stages.append(stage)
        mean = stage.mean([rows])
        noisy.append(mean + plan.noise(stage) * rng.normal(size=mean.size))

    def vector(row: Rows) -> Floats:
        return np.concatenate([stage.mean([row]) / plan.noise(stage) for stage in stages])

    return _farthest(schema, rows[:TRIED], vector, rng)


def _farthest(schema: Schema, rows: Rows, vector: Callable[[Rows], Floats], rng: np.random.Generator) -> Rows:
    """Two rows, first of these, then with single columns of others in them."""
    vectors = np.stack([vector(rows[i : i + 1]) for i in range(len(rows))])
    squared = (vectors**2).sum(1)
    apart = squared[:, None] + squared[None] - 2 * vectors @ vectors.T
    i, j = np.unravel_index(int(apart.argmax()), apart.shape)
    pair, best, ends = rows[np.array([i, j])], float(apart.max()), [vectors[i], vectors[j]]
    for _ in range(ROUNDS):
        for side, column in np.ndindex(2, len(schema.columns)):
            for other in rng.choice(len(rows), OTHERS, replace=False):
                tried = _with_column(schema, pair, side, rows[other : other + 1], column)
                moved = vector(tried[side : side + 1])
                found = float(((moved - ends[1 - side]) ** 2).sum())
                if found > best:
                    pair, best, ends[side] = tried, found, moved
    return pair


def _with_column(schema: Schema, pair: Rows, side: int, other: Rows, column: int) -> Rows:
    """The pair, one side of which has a column of another row."""
    reals = sum(c.on_line for c in schema.columns[:column])
    codes = sum(bool(c.cardinality) for c in schema.columns[:column])
    found = Rows(pair.reals.copy(), pair.codes.copy())
    if schema.columns[column].on_line:
        found.reals[side, reals] = other.reals[0, reals]
    if schema.columns[column].cardinality:
        found.codes[side, codes] = other.codes[0, codes]
    return found


def sample_rows(schema: Schema, rng: np.random.Generator, count: int, at_ends: float = ENDS) -> Rows:
    """Rows of the schema, a share of their numbers at the bounds, as a table that holds them is encoded."""
    reals = rng.random((count, schema.reals))
    ends = rng.random(reals.shape) < at_ends
    reals[ends] = np.rint(reals[ends])
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return schema.encode(schema.decode(Rows(reals, codes)))
