"""Release of two linked tables (`tables.linked`): two records under one budget, and rows that a fresh key
links.

The households are released first, with the size of each, then the persons with the columns of their
household; the rho of both (zero-concentrated differential privacy) adds up to that of the budget. The
second release is planned from the record of the first: the columns of households have the distributions
that they have among the persons of its synthetic households, and are not measured again.

Synthetic rows come from both records alone: households, then for each as many persons as its size says,
whose own columns are drawn given those of the household. Persons of one household are independent given
its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import schema_cells
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, zcdp_epsilon
from thesis_cli.privacy.mechanisms.stages import StagedNoise, Unit, total_rho
from thesis_cli.privacy.release.copula import noisy_stages, recorded_stages
from thesis_cli.privacy.release.record import PrivacyGuarantee, Record, Release
from thesis_cli.privacy.release.release import ReleasePlan, generator, private_record, synthetic
from thesis_cli.privacy.tables.linked import SIZE, Link
from thesis_cli.privacy.tables.schema import Schema, obey

SHARE = 0.25
"""Share of the households in the rho of the budget."""
ROUNDING = 1e-9
"""Relative part of rho that is not spent: epsilons of both shares are rounded."""


def linked_plans(plan: ReleasePlan, link: Link) -> tuple[ReleasePlan, ReleasePlan]:
    """Plans of the households and of the persons, from that of both, whose schema and unit do not count.

    The columns of households are taken to have uniform distributions, until their record is there.

    Raises
    ------
    InputError : the budget has no delta.
    """
    total, delta = total_rho(plan.budget), plan.budget.delta
    found = []
    for schema, most, share in ((link.sized, 1, SHARE), (link.joined, link.most, 1 - SHARE)):
        budget = Budget(zcdp_epsilon(share * total * (1 - ROUNDING), delta), delta)
        unit = Unit(plan.unit.neighbours, most)
        found.append(replace(plan, schema=schema, budget=budget, unit=unit, pair=linked_text(unit, link)))
    if sum(Fraction(total_rho(each.budget)) for each in found) > Fraction(total):
        raise ValueError("the budgets of both tables must add up to at most that of the release")
    households, persons = found
    return households, replace(persons, known=_uniform(link.sized))


def linked_records(
    plan: ReleasePlan,
    link: Link,
    rows: tuple[Rows, Rows],
    spend: Callable[[Budget, float | None], None],
    *,
    noise: object = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> tuple[Record, Record]:
    """Records of the households and of the persons.

    Parameters
    ----------
    plan : as for `linked_plans`.
    rows : private rows of both (`Link.rows`).
    spend : called once, with the whole budget, before any noise is drawn.
    noise, jobs, progress : as for `private_record`.

    Raises
    ------
    InputError : as for `private_record`.
    """

    def spend_whole(budget: Budget, rho: float | None) -> None:
        spend(plan.budget, total_rho(plan.budget))

    def spend_nothing(budget: Budget, rho: float | None) -> None:
        """The whole is spent already."""

    whole = f"the budget of both linked tables, ({plan.budget.epsilon:.6g}, {plan.budget.delta:.6g})"

    def record_of(part: ReleasePlan, own: Rows, pay: Callable[[Budget, float | None], None]) -> Record:
        record = private_record([own], None, part, pay, noise=noise, jobs=jobs, progress=progress)
        return replace(record, link=link.key, public=(*record.public, whole))

    first, second = linked_plans(plan, link)
    households = record_of(first, rows[0], spend_whole)
    return households, record_of(replace(second, known=_known(households)), rows[1], spend_nothing)


def _known(households: Record) -> tuple[tuple[float, ...], ...]:
    """Distributions of the columns of synthetic households over their cells, each counted by its size."""
    made = synthetic(households)
    cells = schema_cells(made.schema)
    sizes = made.columns[SIZE].astype(np.float64)
    if not sizes.any():
        return _uniform(made.schema)
    counts = [np.bincount(own.of(made.points), sizes, own.count) for own in cells]
    return tuple(tuple((count / sizes.sum()).tolist()) for count in counts)


def _uniform(schema: Schema) -> tuple[tuple[float, ...], ...]:
    return tuple((1 / cells.count,) * cells.count for cells in schema_cells(schema))


def linked_text(unit: Unit, link: Link) -> str:
    """Neighbouring pairs of tables, in words."""
    differ = "of which one lacks" if unit.neighbours == "add-remove" else "that differ in"
    return f"pairs of tables {differ} one {link.key}, its row and its persons; at most {link.most} of these count"


def linked_guarantee(households: Record, persons: Record) -> tuple[PrivacyGuarantee, float]:
    """Privacy guarantee of both records together, and its rho."""
    assert isinstance(households.mechanism, StagedNoise)
    assert isinstance(persons.mechanism, StagedNoise)
    rho, promise = households.mechanism.rho + persons.mechanism.rho, persons.promise
    return replace(promise, epsilon=zcdp_epsilon(rho, promise.delta)), rho


def linked_releases(
    households: Record, persons: Record, count: int | None = None, jobs: int = 1
) -> tuple[Release, Release]:
    """Households and persons made from both records, with keys 1, 2, ... of the households.

    Parameters
    ----------
    count : number of households; by default as for `synthetic`.

    Raises
    ------
    InputError : the records are not those of one release.
    """
    own = households.schema.encoded
    same = (households.link, households.entropy, own) == (
        *(persons.link, persons.entropy, persons.schema.encoded[-len(own) :]),
    )
    if not same or households.link is None or own[-1].name != SIZE:
        raise InputError("the records are not those of two linked tables", "give both records of one release")
    first = synthetic(households, count, jobs=jobs)
    sizes = first.columns[SIZE].astype(np.int64)
    place = np.repeat(np.arange(len(sizes)), sizes)
    points = _persons(persons, first.points[place], jobs)
    second = Release(persons.schema, points, np.full(len(points), 1 / max(1, len(points))), persons)
    return replace(first, keys=np.arange(len(sizes)) + 1), replace(second, keys=place + 1)


def _persons(record: Record, attached: Rows, jobs: int) -> Rows:
    """Encoded persons with the given columns of their households."""
    if not len(attached):
        width = len(record.schema.cardinalities)
        return Rows(np.zeros((0, record.schema.reals)), np.zeros((0, width), np.int64))
    vectors = [np.array(stage.vector) for stage in noisy_stages(record)]
    rng = generator(record.entropy, "persons")
    return obey(record.schema, recorded_stages(record).fit(vectors, len(attached), rng, jobs, attached))
