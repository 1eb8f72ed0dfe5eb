"""Statistics of a private table, measured directly with noise.

`measured` reads the table and draws the noise; the `Measurement` that it returns is public, and
`answers` computes values and intervals from it alone. With a delta, all sums get one vector of
Gaussian noise and quantiles are chosen by the exponential mechanism, and rhos of zero-concentrated
privacy add up; without, the noise is Laplace noise and epsilons add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure.intervals import Law
from thesis_cli.privacy.measure.parts import ONE, MeasuredRow, Part
from thesis_cli.privacy.measure.plan import parts_of, sample_of
from thesis_cli.privacy.measure.quantiles import CHOICES, Quantile, choice_cost, choice_scale, opendp_choose
from thesis_cli.privacy.mechanisms.mechanism import (
    Budget,
    Calibration,
    Noise,
    OpenDPGaussian,
    OpenDPLaplace,
    zcdp_epsilon,
)
from thesis_cli.privacy.mechanisms.units import LARGEST, ROWS, Unit, blocks_within, counted_blocks
from thesis_cli.privacy.release.record import PrivacyGuarantee
from thesis_cli.privacy.tables.schema import Schema

SLACK = 1e-6
"""Share of the budget that pays for rounding when it is divided."""

Choose = Callable[[Floats, float, bool], int]
"""Chooses the index of a high score: scores, scale, and whether the budget has a delta."""
Spend = Callable[[Budget, float | None], None]


@dataclass(frozen=True)
class Plan:
    """Queries and budget of a measurement, all of it public.

    Attributes
    ----------
    schema : columns of the table.
    budget : budget of all queries together.
    queries : texts of the queries.
    define : definitions of further columns, `name = expression`.
    unit : difference between neighbours. A person has at most K rows that count, and moves sums and
        scores at most K times as far as a row: with s >= s' rows in the two tables, s' pairs of rows are
        a replaced row each, and s - s' single ones move them less than a replaced row does.
    """

    schema: Schema
    budget: Budget
    queries: tuple[str, ...]
    define: tuple[str, ...] = ()
    unit: Unit = ROWS

    @cached_property
    def parts(self) -> list[Part]:
        """The queries, in order.

        Raises
        ------
        InputError : a query cannot be read, or has no public bounds.
        """
        return parts_of(self.schema, self.queries, self.define, self.norm, self.unit.secret)

    @property
    def gaussian(self) -> bool:
        """Whether the budget has a delta."""
        return self.budget.delta > 0

    @property
    def norm(self) -> int:
        """Norm of the sensitivity: 2 with Gaussian noise, 1 with Laplace noise."""
        return 2 if self.gaussian else 1

    @property
    def sums(self) -> list[Part]:
        """Queries whose sums get noise."""
        return [part for part in self.parts if not isinstance(part, Quantile)]

    @property
    def quantiles(self) -> list[Quantile]:
        """Queries that are answered by choices."""
        return [part for part in self.parts if isinstance(part, Quantile)]

    @cached_property
    def total(self) -> float:
        """Budget that is divided among the queries: rho with a delta, epsilon without."""
        if not self.gaussian:
            return self.budget.epsilon * (1 - SLACK)
        rho = OpenDPGaussian().calibrate(1, 1.0, self.budget).rho
        assert rho is not None
        return rho * (1 - SLACK)

    def cost(self, parts: Sequence[Part]) -> float:
        """Share of `total` of some queries, by their weights."""
        return self.total * math.fsum(p.weight for p in parts) / math.fsum(p.weight for p in self.parts)

    @property
    def sums_budget(self) -> Budget:
        """Budget of the noise on all sums."""
        cost = self.cost(self.sums)
        return Budget(zcdp_epsilon(cost, self.budget.delta), self.budget.delta) if self.gaussian else Budget(cost)

    @cached_property
    def factors(self) -> Floats:
        """Factors of all sums, shape (F,): each query's sums times these move by at most its
        share of 1.
        """
        weights = np.array([part.weight for part in self.sums])
        shares = weights / weights.sum()
        if self.gaussian:
            shares = np.sqrt(shares)
        found = [s * p.factors / (p.sensitivity(self.norm) * self.most) for s, p in zip(shares, self.sums, strict=True)]
        return np.concatenate(found)

    @property
    def most(self) -> int:
        """Largest number K of rows of a unit that count."""
        return self.unit.contribution_bound or 1

    def sensitivity(self, rows: int | None) -> float:
        """Sensitivity of the multiplied sums of N rows in `norm`: 1, and what rounding adds."""
        rows = LARGEST if rows is None else rows
        size = len(self.factors)
        count = math.sqrt(size) if self.gaussian else size
        return 1 + 2**-40 + 2**-50 * rows * float(self.factors.max()) * count

    def scale(self, part: Quantile) -> float:
        """Scale of each choice of a quantile."""
        return choice_scale(self.cost([part]) / (len(CHOICES) * part.touched * self.most**self.norm), self.gaussian)

    def noise(self) -> Noise:
        """OpenDP's noise for the sums."""
        return OpenDPGaussian() if self.gaussian else OpenDPLaplace()

    def noise_of(self, rows: int | None) -> tuple[int, float, Budget]:
        """Size F, sensitivity and budget for `Noise.calibrate`; Laplace noise multiplies this
        sensitivity by sqrt(F).
        """
        found, size = self.sensitivity(rows), len(self.factors)
        return size, found if self.gaussian else found / math.sqrt(size), self.sums_budget


@dataclass(frozen=True)
class ChoiceRecord:
    """One choice of a quantile.

    Attributes
    ----------
    query, group, choice : what was chosen.
    candidate : number of the chosen cell of the grid.
    candidates : number of cells.
    scale : scale of the mechanism.
    """

    query: str
    group: str
    choice: str
    candidate: int
    candidates: int
    scale: float


@dataclass(frozen=True)
class Measurement:
    """Everything that a measurement makes public.

    Attributes
    ----------
    promise : differential privacy of all answers together.
    rho : rho of all mechanisms together; None without delta.
    mechanism : noise on the sums; None if all queries are quantiles.
    vector : noisy sums times `Plan.factors`.
    choices : choices of the quantiles.
    versions : versions of this program and of its libraries.
    """

    promise: PrivacyGuarantee
    rho: float | None
    mechanism: Calibration | None
    vector: tuple[float, ...]
    choices: tuple[ChoiceRecord, ...]
    versions: dict[str, str]


def measured(
    blocks: Iterable[Rows],
    count: int | None,
    plan: Plan,
    spend: Spend,
    *,
    noise: Noise | None = None,
    choose: Choose | None = None,
    progress: Tick | None = None,
) -> Measurement:
    """Read the table, spend the budget and draw the noise.

    Parameters
    ----------
    blocks, count : private table, or the rows of it that count, and its number N of rows; None if the
        unit keeps it secret.
    spend : called after the table has been read and before noise is drawn.
    noise, choose : sources of noise and of choices; OpenDP by default.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, or a budget that does not fit.
    """
    if plan.unit.secret != (count is None):
        raise ValueError("the number of rows must be None if the unit keeps it secret, and only then")
    if count is not None and count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    noise = noise or plan.noise()
    calibration = noise.calibrate(*plan.noise_of(count)) if plan.sums else None
    scales = [plan.scale(part) for part in plan.quantiles]
    rho = _rho(plan, calibration, scales)
    sums = _sums(blocks_within(blocks) if count is None else counted_blocks(blocks, count), plan, progress)
    spend(plan.budget, rho)
    vector: tuple[float, ...] = ()
    if calibration is not None:
        pairs = zip(plan.parts, sums, strict=True)
        exact = np.concatenate([found for part, found in pairs if not isinstance(part, Quantile)])
        noised = noise.add(np.array([x / ONE for x in exact]) * plan.factors, *plan.noise_of(count)[1:])
        calibration, vector = noised.calibration, tuple(noised.values.tolist())
    counts = [found for part, found in zip(plan.parts, sums, strict=True) if isinstance(part, Quantile)]
    choices = [
        choice
        for part, found, scale in zip(plan.quantiles, counts, scales, strict=True)
        for choice in _choices(part, found.astype(np.float64), scale, plan.gaussian, choose or opendp_choose)
    ]
    promise = PrivacyGuarantee(plan.budget.epsilon, plan.budget.delta, plan.unit.text, count)
    versions = {name: version(name) for name in ("thesis-cli", "opendp", "numpy")}
    return Measurement(promise, rho, calibration, vector, tuple(choices), versions)


def answers(plan: Plan, found: Measurement) -> list[MeasuredRow]:
    """Values and intervals, from what is public alone."""
    count = math.inf if found.promise.rows is None else found.promise.rows
    scale = found.mechanism.scale if found.mechanism else 0.0
    choices = iter(found.choices)
    rows: list[MeasuredRow] = []
    at = 0
    for part in plan.parts:
        if isinstance(part, Quantile):
            cells = [next(choices).candidate for _ in range(len(CHOICES) * len(part.groups.labels))]
            rows += part.answers(np.array(cells, np.float64), Law(plan.norm, 0.0), count)
            continue
        size = len(part.factors)
        factor = float(plan.factors[at] / part.factors[0])
        noisy = np.array(found.vector[at : at + size]) / factor
        rows += part.answers(noisy, Law(plan.norm, scale / factor), count)
        at += size
    return rows


def _rho(plan: Plan, calibration: Calibration | None, scales: Sequence[float]) -> float | None:
    """Rho of all mechanisms together, or None without delta.

    Raises
    ------
    InputError : the mechanisms exceed the budget, which is a defect.
    """
    times = len(CHOICES) * plan.most**plan.norm
    costs = [times * p.touched * choice_cost(s, plan.gaussian) for p, s in zip(plan.quantiles, scales, strict=True)]
    if calibration is not None:
        costs.append((calibration.rho or 0.0) if plan.gaussian else calibration.epsilon)
    total = math.fsum(costs)
    epsilon = zcdp_epsilon(total, plan.budget.delta) if plan.gaussian else total
    if not epsilon <= plan.budget.epsilon:
        raise InputError(f"the queries need epsilon {epsilon:.9g}", f"the budget is {plan.budget.epsilon:.9g}")
    return total if plan.gaussian else None


def _sums(blocks: Iterable[Rows], plan: Plan, progress: Tick | None) -> list[np.ndarray]:
    """Exact sums of each query, of Python's integers."""
    found = [np.zeros(len(part.factors), object) for part in plan.parts]
    for rows in blocks:
        if not len(rows):
            continue
        sample = sample_of(plan.schema, rows, plan.define)
        with np.errstate(all="ignore"):
            for i, part in enumerate(plan.parts):
                found[i] = found[i] + part.sums(sample).astype(object)
        if progress:
            progress(len(rows))
    return found


def _choices(part: Quantile, counts: Floats, scale: float, gaussian: bool, choose: Choose) -> list[ChoiceRecord]:
    found = []
    for label, inside in zip(part.groups.labels, counts.reshape(-1, part.candidates), strict=True):
        for choice in CHOICES:
            candidate = choose(part.scores(inside, choice, scale), scale, gaussian)
            found.append(ChoiceRecord(part.query.text, label, choice, candidate, part.candidates, scale))
    return found


@dataclass(frozen=True)
class Expected:
    """Error of a query before it is measured.

    Attributes
    ----------
    query, statistic : what is measured.
    error : half the width of the interval: of a group of N / G rows, and of a ratio in the middle
        of its bounds. Of a quantile, the share of the ranks on either side.
    unit : what the error counts.
    """

    query: str
    statistic: str
    error: float
    unit: str


def expected(plan: Plan, count: int) -> list[Expected]:
    """Errors that N = `count` rows lead to, from public numbers alone."""
    scale = plan.noise().calibrate(*plan.noise_of(None if plan.unit.secret else count)).scale if plan.sums else 0.0
    found, at = [], 0
    for part in plan.parts:
        if isinstance(part, Quantile):
            law = Law(plan.norm, plan.scale(part))
        else:
            law = Law(plan.norm, scale * float(part.factors[0] / plan.factors[at]))
            at += len(part.factors)
        found.append(Expected(part.query.text, *part.expected(law, count / len(part.groups.labels))))
    return found
