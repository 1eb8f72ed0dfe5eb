r"""Audit of every noisy vector of releases whose columns have all types.

The noise of each vector is measured: a release of known rows is repeated, and the audit sees the vectors
before and after the noise. Both neighbours are compared given the same noisy vectors of the stages
before, as often as there are releases. Three claims are tested.

1. The noise is not less than the record says, but for a hundredth: a chi-squared bound on its standard
   deviation.
2. Zero-concentrated privacy of rho bounds the relative entropy of the releases of two neighbours by rho
   (Bun and Steinke 2016). For independent Gaussian noise that is the mean over releases of the sum over
   stages of |shift|^2 / (2 sigma^2), here with the measured sigma: a lower bound on it must not exceed
   the rho that the budget allows. It holds at any epsilon, and assumes the law of the noise, unlike the
   bounds of `bounds`; what repeats or correlates is found there.
3. All that a stage decides follows from noisy vectors: tables that have nothing in common, with the
   noisy vectors held, have plans of the same sizes, sensitivities and scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.audit.scores import first_difference
from thesis_cli.privacy.copula.copula import CopulaStages
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure.measure import Plan, measured
from thesis_cli.privacy.mechanisms.mechanism import Budget, Calibration, Noised
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, total_rho
from thesis_cli.privacy.mechanisms.units import Unit
from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.marginals import Charge, Marginal
from thesis_cli.privacy.release.plan import Algorithm, ReleasePlan
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import private_record
from thesis_cli.privacy.tables.columns import KINDS
from thesis_cli.privacy.tables.schema import Schema

WIDE = Schema(tuple(column for kind in KINDS.values() for column in kind.examples()))
"""A column of every type, with and without missing values, short and long."""
COUNTED = ("scale", "many", "place", "flag", "day")
"""Columns of a release by marginals, one of each storage."""
LEAST, SLOW = 4, 20
"""Fewest releases of an audit, and releases that are asked for to make one by marginals."""
BOUNDS = 50
"""Bounds that share the error of an audit."""
LESS = 0.99
"""Noise of less than this part of what the record says is contradicted; more is within rounding."""
COUNT, TRIED, ROUNDS, OTHERS = 300, 150, 2, 4
"""Rows of a table, rows that a search compares, rounds in which it changes single columns, and values that
it tries for each.
"""
QUERIES = (
    "mean(real)",
    "mean(scale, by=kind)",
    "count(by=[kind, flag])",
    "histogram(place)",
    "prob(flag, by=grade)",
)


@dataclass(frozen=True)
class Stage:
    """One vector of a release.

    Attributes
    ----------
    vector, noisy : without noise and with noise.
    scale : scale of the noise in the record.
    marginals : noisy counts that the vector stands for, if they are counts.
    record : text that follows from the noisy vectors, if it is compared.
    """

    vector: Floats
    noisy: Floats
    scale: float
    marginals: tuple[Marginal, ...] = ()
    record: str = ""


class Kept(OpenDPStages):
    """Noise of releases by stages; `held` vectors are returned instead of new ones."""

    def __init__(self, held: Sequence[Stage] = ()) -> None:
        self._held, self.stages = held, list[Stage]()

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        k = len(self.stages)
        noisy = self._held[k].noisy if self._held else super().add(vector, scale, granularity)
        if len(noisy) != len(vector):
            noisy = np.zeros(len(vector))  # the sizes differ, which is a finding
        self.stages.append(Stage(vector, noisy, scale))
        return noisy


class KeptSums:
    """Noise of a measurement, in the same way."""

    def __init__(self, plan: Plan, held: Sequence[Stage] = ()) -> None:
        self._noise, self._held, self.stages = plan.noise(), held, list[Stage]()

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        return self._noise.calibrate(size, l2_sensitivity, budget)

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        if self._held:
            noised = Noised(self._held[0].noisy, self.calibrate(vector.size, l2_sensitivity, budget))
        else:
            noised = self._noise.add(vector, l2_sensitivity, budget)
        self.stages.append(Stage(vector, noised.values, noised.calibration.scale))
        return noised


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
        found = found or marginals.opendp_marginals(cells, sizes, rho, algorithm, charge)
        for several in (False, True):
            own = tuple(m for m in found if (len(m.columns) > 1) == several)
            exact = [marginals.counts_of(m.columns, cells, sizes) / m.deviation for m in own]
            noisy = [np.array(m.counts) / m.deviation for m in own]
            self.stages.append(Stage(np.concatenate(exact), np.concatenate(noisy), 1.0, own))
        return found


Releasing = Callable[[Rows, Sequence[Stage]], list[Stage]]
"""Releases rows, with new noise, or with the noisy vectors of an earlier release."""


@dataclass(frozen=True)
class Case:
    """Two neighbours, and how they are released.

    Attributes
    ----------
    name : kind of release.
    rho : rho that the budget allows.
    release : entry point.
    tables : rows of both neighbours.
    far : rows of a table that has nothing in common with them.
    runs : one release is made for so many that are asked for.
    """

    name: str
    rho: float
    release: Releasing
    tables: tuple[Rows, Rows]
    far: Rows
    runs: int = 1


@dataclass(frozen=True, kw_only=True)
class StageReport:
    """Findings of an audit of the stages of one kind of release.

    Attributes
    ----------
    name, runs : kind of release, and number of releases.
    rho : rho that the budget allows.
    proven : lower bound on the relative entropy of the two neighbours' releases.
    noise : for each stage, upper bound on its noise over the scale in the record.
    depends : what a plan takes from the table and not from noisy vectors; empty if nothing.
    confidence : confidence level of all bounds together.
    """

    name: str
    runs: int
    rho: float
    proven: float
    noise: tuple[float, ...]
    depends: str
    confidence: float

    @property
    def share(self) -> float:
        """Proven part of the claim, in units of the noise: the root of the share of rho."""
        return math.sqrt(max(0.0, self.proven) / self.rho)

    @property
    def contradictions(self) -> list[str]:
        """Claims that the releases disprove."""
        found = [
            f"the noise of vector {k} is at most {bound:.3f} of the scale in the record"
            for k, bound in enumerate(self.noise, 1)
            if bound < LESS
        ]
        if self.proven > self.rho:
            found.append(f"rho is at least {self.proven:.4g}, not {self.rho:.4g}")
        return [*found, self.depends] if self.depends else found

    @property
    def verdict(self) -> Literal["not contradicted", "contradicted"]:
        """Whether the releases contradict a claim."""
        return "contradicted" if self.contradictions else "not contradicted"

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**asdict(self), "share": self.share, "verdict": self.verdict, "contradictions": self.contradictions}


def stage_audit(case: Case, runs: int, confidence: float, tick: Tick | None = None) -> StageReport:
    """Release both neighbours in turn, and test the claims.

    Parameters
    ----------
    case : the neighbours, and how they are released.
    runs : number of releases, divided by that of the case; at least 4.
    confidence : confidence level of all bounds together.

    Raises
    ------
    InputError : what a release raises.
    """
    from scipy.special import chdtri, ndtri

    rhos, squares, sizes = list[Floats](), list[list[float]](), np.zeros(0)
    for run in range(runs if case.runs == 1 else max(LEAST, runs // case.runs)):
        found = case.release(case.tables[run % 2], ())
        other = case.release(case.tables[1 - run % 2], found)
        if len(found) != len(other) or any(len(a.vector) != len(b.vector) for a, b in zip(found, other, strict=False)):
            break  # `_depends` says how
        squares.append([float((((s.noisy - s.vector) / s.scale) ** 2).sum()) for s in found])
        sizes = np.zeros(len(found)) + sizes if len(sizes) else np.zeros(len(found))
        sizes = sizes + [len(s.vector) for s in found]
        shifts = [float(((a.vector - b.vector) ** 2).sum()) / a.scale**2 for a, b in zip(found, other, strict=True)]
        rhos.append(np.array(shifts) / 2)
        if tick:
            tick(1)
    depends, level = _depends(case), (1 - confidence) / BOUNDS
    if not rhos:
        return _report(case, runs, 0.0, (), depends, confidence)
    total = np.array(squares).sum(0)
    # A chi-squared variable of `sizes` degrees of freedom is below this quantile with probability `level`.
    upper = np.sqrt(total / chdtri(sizes, 1 - level))
    noise = np.maximum(upper, 1e-9)
    each = (np.array(rhos) / noise**2).sum(1)
    error = float(each.std(ddof=1)) / math.sqrt(len(each)) if len(each) > 1 else 0.0
    proven = float(each.mean()) + float(ndtri(level)) * error
    return _report(case, len(each), proven, tuple(upper.tolist()), depends, confidence)


def _report(
    case: Case, runs: int, proven: float, noise: tuple[float, ...], depends: str, confidence: float
) -> StageReport:
    return StageReport(
        name=case.name, runs=runs, rho=case.rho, proven=proven, noise=noise, depends=depends, confidence=confidence
    )


def _depends(case: Case) -> str:
    """First difference of the plans of two tables that have nothing in common, given noisy vectors."""
    found = case.release(case.tables[0], ())
    for table in (case.tables[1], case.far):
        other = case.release(table, found)
        for k, (a, b) in enumerate(zip(found, other, strict=False), 1):
            if len(a.vector) != len(b.vector):
                return f"the size of vector {k} depends on the table, not on noisy vectors alone"
            if a.scale != b.scale:
                return f"the scale of vector {k} depends on the table, not on noisy vectors alone"
            if a.record != b.record:
                return f"the record depends on the table: {first_difference(a.record, b.record)}"
        if len(found) != len(other):
            return "the number of vectors depends on the table, not on noisy vectors alone"
    return ""


def release_case(name: str, schema: Schema, budget: Budget, unit: Unit) -> Case:
    """The worst neighbours of releases by copula of a schema, for a unit of privacy."""
    plan = ReleasePlan(schema, budget, "copula", unit=unit, entropy=0)
    rng = np.random.default_rng(0)
    rows, far = sample_rows(schema, rng, COUNT), sample_rows(schema, rng, 1)
    rest = rows[: COUNT - (unit.contribution_bound or 1)]
    pair = _worst(schema, rows, total_rho(budget), rng)
    own = [Rows.concatenate([pair[i : i + 1]] * (unit.contribution_bound or 1)) for i in range(2)]
    tables = [Rows.concatenate([one, rest]) for one in own]
    if unit.neighbours == "add-remove":
        tables[1] = rest

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        noise = Kept(held)
        count = None if unit.secret else len(rows)
        private_record([rows], count, plan, lambda budget, rho: None, noise=noise)
        return noise.stages

    other = Rows.concatenate([far] * (COUNT - 3) + [rows[:3]])
    return Case(name, total_rho(budget), release, (tables[0], tables[1]), other)


def measure_case(name: str, budget: Budget, unit: Unit) -> Case:
    """The worst neighbours of sums of dp-measure, by a search over rows of all types.

    Parameters
    ----------
    name : kind of release.
    budget, unit : budget of each measurement, and difference between neighbours.
    """
    plan = Plan(WIDE, budget, QUERIES, unit=unit)
    rng = np.random.default_rng(0)
    rows, most = sample_rows(WIDE, rng, COUNT), unit.contribution_bound or 1

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        noise = KeptSums(plan, held)
        measured([rows], None if unit.secret else len(rows), plan, lambda budget, rho: None, noise=noise)
        return noise.stages

    noisy = release(rows[:1], ())

    def vector(rows: Rows) -> Floats:
        return release(rows, noisy)[0].vector

    pair = _farthest(WIDE, rows[:TRIED], vector, rng)
    tables = tuple(Rows.concatenate([pair[i : i + 1]] * most + [rows[: COUNT - most]]) for i in range(2))
    return Case(name, plan.total, release, (tables[0], tables[1]), Rows.concatenate([rows[:1]] * COUNT))


def counts_case(name: str, budget: Budget) -> Case:
    """The worst neighbours of a release by marginals, with columns of several types.

    A replaced row changes two counts of each marginal by 1. OpenDP's noise is for twice that square, so that
    at most 1/2 of rho can be proven, and of the square root, the share, 71 %.

    Parameters
    ----------
    name : kind of release.
    budget : budget of each release.
    """
    schema = Schema(tuple(column for column in WIDE.columns if column.name in COUNTED))
    plan = ReleasePlan(schema, budget, "marginals", entropy=0)
    rng = np.random.default_rng(0)
    rows = sample_rows(schema, rng, COUNT)

    def recorded(rows: Rows, held: Sequence[Stage]) -> tuple[list[Stage], Record]:
        noise = KeptCounts(held)
        return noise.stages, private_record([rows], len(rows), plan, lambda budget, rho: None, choose=noise)

    def release(rows: Rows, held: Sequence[Stage]) -> list[Stage]:
        stages, record = recorded(rows, held)
        return [replace(stage, record=record.to_json()) for stage in stages]

    noisy, _ = recorded(rows, ())

    def vector(row: Rows) -> Floats:
        return np.concatenate([stage.vector for stage in recorded(row, noisy)[0]])

    pair = _farthest(schema, rows[:TRIED], vector, rng)
    tables = tuple(Rows.concatenate([pair[i : i + 1], rows[: COUNT - 1]]) for i in range(2))
    far = Rows.concatenate([rows[:1]] * COUNT)
    return Case(name, total_rho(budget), release, (tables[0], tables[1]), far, SLOW)


ROW, PERSON, SECRET = Unit(), Unit("replace", 3), Unit("add-remove")
CASES: dict[str, Callable[[Budget], Case]] = {
    "copula, all types": lambda budget: release_case("copula, all types", WIDE, budget, ROW),
    "copula, persons": lambda budget: release_case("copula, persons", WIDE, budget, PERSON),
    "copula, secret N": lambda budget: release_case("copula, secret N", WIDE, budget, SECRET),
    "marginals": lambda budget: counts_case("marginals", budget),
    "dp-measure": lambda budget: measure_case("dp-measure", budget, ROW),
    "dp-measure, persons": lambda budget: measure_case("dp-measure, persons", budget, PERSON),
}
"""Kinds of releases that are audited; each begins with the name of its method."""


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


def sample_rows(schema: Schema, rng: np.random.Generator, count: int) -> Rows:
    """Rows of the schema, a third of their numbers at the bounds, as a table that holds them is encoded."""
    reals = rng.random((count, schema.reals))
    ends = rng.random(reals.shape) < 1 / 3
    reals[ends] = np.rint(reals[ends])
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return schema.encode(schema.decode(Rows(reals, codes)))
