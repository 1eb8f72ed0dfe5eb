"""The release method `marginals`: OpenDP's MST and AIM (McKenna et al. 2021, 2022).

OpenDP chooses pairs of columns and measures their counts with noise, from its `opendp.extras.mbi`.
The noisy counts are the release. `network` fits a graphical model to them by the package `mbi`, and
`draw` makes rows from that model; both are post-processing.

OpenDP's neighbours differ by adding or removing rows. A table whose row is replaced lacks the old
row and has the new one: that is a distance of 2 `contributions`, for which OpenDP takes an L2
sensitivity of 2 of every marginal. (Noise for the true one, sqrt(2), would spend half as much rho;
but then no map of OpenDP's would prove the choice of the marginals.)
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.base.modules import extra
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula.cells import Cells, cells_of, schema_cells
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, check_gaussian, opendp_name, zcdp_epsilon
from thesis_cli.privacy.mechanisms.stages import counted_blocks, total_rho
from thesis_cli.privacy.release.record import Record, Release, uniform_weights
from thesis_cli.privacy.release.release import (
    Algorithm,
    Errors,
    ExpectedStage,
    Implementation,
    NoisyMean,
    PrivateRows,
    Released,
    ReleasePlan,
    RowSettings,
    Spend,
    check_size,
    linear_errors,
    sample,
)
from thesis_cli.privacy.tables.schema import Schema

WHOLE, LINE = 32, 23
"""Largest number of whole numbers that have cells of their own, and cells of any other number, apart
from one for its lower bound.
"""
REPLACED = 2
"""Rows in which two tables differ, by adding or removing, if one row is replaced."""
ROUNDS, FINAL = 200, 2000
"""Steps of mirror descent after each choice of AIM, and for the last fit."""


@dataclass(frozen=True)
class MarginalsNoise:
    """Measurement of marginals by OpenDP.

    Attributes
    ----------
    mechanism, algorithm : source of the noise, and choice of the marginals.
    contributions : rows in which neighbours differ by adding or removing; a replaced row is two.
    rho : rho of zero-concentrated differential privacy of the choice and the noise together.
    epsilon, delta : privacy of that rho, by OpenDP's conversion.
    """

    mechanism: str
    algorithm: Algorithm
    contributions: int
    rho: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Marginal:
    """Noisy counts of the cells of one or two columns, or of more.

    Attributes
    ----------
    columns : names of the columns.
    deviation : standard deviation of the noise on each count.
    counts : counts, of the cells of the last column fastest.
    """

    columns: tuple[str, ...]
    deviation: float
    counts: tuple[float, ...]


@dataclass(frozen=True)
class Marginals:
    """Noisy counts of all marginals that were measured."""

    marginals: tuple[Marginal, ...]


Charge = Callable[[], None]
Measure = Callable[[Ints, dict[str, int], float, Algorithm, Charge], Sequence[Marginal]]
"""Function from cells of the rows, shape (N, columns), their numbers by name of column, rho, the
algorithm, and what is called before any noise is drawn, to the noisy counts.
"""


@dataclass(frozen=True)
class Conditional:
    """Distribution of a column given the columns before it that it depends on.

    Attributes
    ----------
    column, parents : places of the columns.
    shares : shares of the rows, shape (cells of each parent..., cells of the column).
    """

    column: int
    parents: tuple[int, ...]
    shares: Floats


def marginal_cells(schema: Schema) -> tuple[Cells, ...]:
    """Cells of each column."""
    return schema_cells(schema, WHOLE, LINE)


def sizes_of(schema: Schema) -> dict[str, int]:
    """Number of cells of each column."""
    return {name: cells.count for name, cells in zip(schema.names_read, marginal_cells(schema), strict=True)}


def private_marginals(
    blocks: Iterable[Rows],
    schema: Schema,
    budget: Budget,
    algorithm: Algorithm,
    spend: Spend,
    measure: Measure | None = None,
    progress: Tick | None = None,
) -> tuple[MarginalsNoise, tuple[Marginal, ...]]:
    """Noisy marginals of a private table.

    Parameters
    ----------
    spend : called after the table was read and before noise is drawn.
    measure : source of the noisy counts; OpenDP by default.

    Raises
    ------
    InputError : delta is 0, the schema has a single column, or a package is not installed.
    """
    check_gaussian(budget)
    if len(schema.encoded) < 2:
        raise InputError("the schema has one column", "--method marginals must have two or more")
    if measure is None:
        extra_packages()
    cells, found = marginal_cells(schema), []
    for block in blocks:
        found.append(cells_of(cells, block).astype(np.int32))
        if progress:
            progress(len(block))
    rho = total_rho(budget)
    counts = (measure or opendp_marginals)(
        np.concatenate(found), sizes_of(schema), rho, algorithm, lambda: spend(budget, rho)
    )
    name = f"{opendp_name()} make_contingency_table, {algorithm.upper()}, make_zCDP_to_approxDP"
    epsilon = zcdp_epsilon(rho, budget.delta)
    return MarginalsNoise(name, algorithm, REPLACED, rho, epsilon, budget.delta), tuple(counts)


def opendp_marginals(
    cells: Ints, sizes: dict[str, int], rho: float, algorithm: Algorithm, charge: Charge
) -> list[Marginal]:
    """Noisy counts by OpenDP; no count has the cell for missing keys that OpenDP adds, since every
    row has a cell.

    Parameters
    ----------
    cells : cells of the rows, shape (N, columns).
    sizes : number of cells of each column, by name.
    rho : rho of the choice and the noise together.
    charge : called before any noise is drawn.
    """
    pl, mbi = extra_packages()
    # MST of OpenDP 0.16 gives each choice of a pair the double below its share. The sum of the
    # shares, rounded up, exceeds the whole by some last digits, and the release stops midway.
    mst: Any = importlib.import_module("opendp.extras.mbi._mst")
    mst.prior = lambda rho: rho * (1 - 2.0**-40)
    dp, names = extra("opendp.prelude"), list(sizes)
    dp.enable_features("contrib")
    columns = [f"c{i}" for i in range(len(names))]

    def fit(domain: Any, loss: Any, *, potentials: Any = None) -> Any:
        return mbi.estimation.mirror_descent(domain, loss, potentials=potentials, iters=ROUNDS)

    context = dp.Context.compositor(
        data=pl.LazyFrame(cells, schema=columns),
        privacy_unit=dp.unit_of(contributions=REPLACED),
        privacy_loss=dp.loss_of(rho=rho),
    )
    query = (
        context.query(rho=rho)
        .select(*columns)
        .contingency_table(
            keys={c: list(range(size)) for c, size in zip(columns, sizes.values(), strict=True)},
            algorithm=dp.mbi.AIM(queries=2, estimator=fit) if algorithm == "aim" else dp.mbi.MST(estimator=fit),
        )
    )
    charge()
    table = query.release()
    found = []
    for measurement in table.marginals.flatten():
        clique = [columns.index(c) for c in measurement.clique]
        if not clique:
            continue  # the number of rows is public
        keys = [table.keys[columns[i]].to_list() for i in clique]
        counts = np.asarray(measurement.noisy_measurement, np.float64).reshape([len(k) for k in keys])
        counts = counts[np.ix_(*([k.index(cell) for cell in range(len(k) - 1)] for k in keys))]
        of = tuple(names[i] for i in clique)
        found.append(Marginal(of, float(measurement.stddev), tuple(counts.reshape(-1).tolist())))
    return found


def counts_of(columns: Sequence[str], cells: Ints, sizes: Mapping[str, int]) -> Floats:
    """Numbers of rows of each combination of cells of some columns, that of the last column fastest.

    Parameters
    ----------
    cells : cells of the rows, shape (N, columns).
    sizes : number of cells of each column, by name.
    """
    places = [list(sizes).index(name) for name in columns]
    shape = tuple(sizes[name] for name in columns)
    of = np.ravel_multi_index(tuple(cells[:, places].T), shape)
    return np.bincount(of, minlength=math.prod(shape)).astype(np.float64)


def network(sizes: dict[str, int], marginals: Sequence[Marginal], count: int) -> tuple[Conditional, ...]:
    """Graphical model of N = `count` rows, fitted to noisy counts by `mbi`; each column after those
    that it depends on.
    """
    _, mbi = extra_packages()
    names = list(sizes)
    places = {name: i for i, name in enumerate(names)}
    columns = [f"c{i}" for i in range(len(names))]
    domain = mbi.Domain(columns, list(sizes.values()))
    measured = [
        mbi.LinearMeasurement(
            np.array(m.counts, np.float32), tuple(columns[places[name]] for name in m.columns), stddev=m.deviation
        )
        for m in marginals
    ]
    model = mbi.estimation.mirror_descent(domain, measured, known_total=float(count), iters=FINAL)
    tree, order = mbi.junction_tree.make_junction_tree(domain, [set(clique) for clique in model.cliques])
    joint = mbi.marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)), float(count))
    found, used = list[Conditional](), list[str]()
    for column in order[::-1]:
        beside = {c for clique in tree.nodes if column in clique for c in clique}
        parents = tuple(c for c in used if c in beside)
        shares = np.asarray(joint.project((*parents, column)).datavector(flatten=False), np.float64)
        found.append(Conditional(columns.index(column), tuple(map(columns.index, parents)), shares))
        used.append(column)
    return tuple(found)


def draw(model: Sequence[Conditional], count: int, rng: np.random.Generator) -> Ints:
    """Cells of `count` rows, shape (count, columns).

    Among the rows with one combination of parents, each cell occurs as often as its share, up to
    rounding, in random order.
    """
    found = np.zeros((count, len(model)), np.int64)
    for part in model:
        shape = part.shares.shape
        flat = np.maximum(part.shares, 0).reshape(-1, shape[-1])
        overall = flat.sum(0) + 1e-300
        keys = np.zeros(count, np.int64)
        for parent, size in zip(part.parents, shape[:-1], strict=True):
            keys = keys * size + found[:, parent]
        for key in np.unique(keys):
            rows = np.flatnonzero(keys == key)
            shares = flat[key] if flat[key].sum() > 0 else overall
            ends = np.cumsum(shares) / shares.sum()
            ranks = (np.arange(len(rows)) + rng.random()) / len(rows)
            cells = np.minimum(np.searchsorted(ends, ranks, side="right"), shape[-1] - 1)
            found[rows, part.column] = rng.permutation(cells)
    return found


def placed_rows(schema: Schema, cells: Ints, rng: np.random.Generator) -> Rows:
    """Encoded rows at random places within their cells, shape (N, columns)."""
    count = len(cells)
    rows = Rows(np.zeros((count, schema.reals)), np.zeros((count, len(schema.cardinalities)), np.int64))
    for i, column in enumerate(marginal_cells(schema)):
        column.write(cells[:, i], rows, rng.random(count))
    return rows


def extra_packages() -> tuple[Any, Any]:
    """Packages `polars` and `mbi`, which the extra `marginals` installs.

    Raises
    ------
    InputError : one of them is not installed.
    """
    names = ("opendp.extras.mbi", "mbi.estimation", "mbi.junction_tree", "mbi.marginal_oracles", "mbi", "polars")
    found = [extra(name) for name in names]
    return found[-1], found[-2]


class MarginalsMethod(Implementation):
    """Counts of the marginals that MST or AIM chooses."""

    proof = MarginalsNoise
    output = Marginals

    def release(self, plan: ReleasePlan, private: PrivateRows) -> Released:
        """Noisy counts; `choose` is a `Measure`."""
        blocks = counted_blocks(private.blocks, private.public_count)
        measure = cast("Measure | None", private.choose)
        proof, counts = private_marginals(
            blocks, plan.schema, plan.budget, plan.algorithm, private.spend, measure, private.progress
        )
        return Released(proof, Marginals(counts), sum(len(m.counts) for m in counts))

    def expected(self, plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
        """Half of rho is for the counts of single columns, and these are known; which pairs are counted
        is not.
        """
        rho = total_rho(plan.budget)
        sizes = sizes_of(plan.schema).values()
        sensitivity = REPLACED / count
        scale = sensitivity * math.sqrt(len(sizes) / rho)
        noise, bound = scale * math.sqrt(sum(sizes)), math.sqrt(len(sizes))
        stage = ExpectedStage("columns", sum(sizes), sensitivity, scale, noise, bound)

        def errors() -> tuple[float, float | None]:
            rows = sample(plan)
            cells = cells_of(marginal_cells(plan.schema), rows)
            products = (cells[:, None] == cells[None]).sum(2).astype(np.float64)
            return linear_errors(plan.schema, rows, products, scale)

        return (stage,), errors

    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """Rows drawn from a graphical model of the noisy counts."""
        schema, count = record.schema, record.promise.rows
        assert count is not None
        model = network(sizes_of(schema), noisy_marginals(record), count)
        points = placed_rows(schema, draw(model, settings.count, rng), rng)
        return Release(schema, points, uniform_weights(points), record)

    def check(self, record: Record) -> None:
        """Columns and number of counts of each marginal."""
        sizes = sizes_of(record.schema)
        for i, marginal in enumerate(noisy_marginals(record)):
            if unknown := [name for name in marginal.columns if name not in sizes]:
                raise InputError(f"marginals[{i}].columns has {unknown[0]!r}", "the schema has no such column")
            if len(set(marginal.columns)) < max(1, len(marginal.columns)):
                raise InputError(f"marginals[{i}].columns has no column, or one twice", "each must be there once")
            expected = math.prod(sizes[name] for name in marginal.columns)
            check_size(f"marginals[{i}].counts", len(marginal.counts), expected)

    def means(self, plan: ReleasePlan, record: Record) -> list[NoisyMean]:
        """Shares of the cells of each marginal."""
        count, sizes = record.count.rows, sizes_of(plan.schema)

        def mean_of(marginal: Marginal) -> Callable[[Iterable[Rows]], Floats]:
            def mean(blocks: Iterable[Rows]) -> Floats:
                cells = cells_of(marginal_cells(plan.schema), Rows.concatenate(list(blocks)))
                return counts_of(marginal.columns, cells, sizes) / len(cells)

            return mean

        return [
            NoisyMean(mean_of(marginal), np.array(marginal.counts) / count, marginal.deviation / count)
            for marginal in noisy_marginals(record)
        ]

    @presentation
    def noise_lines(self, record: Record) -> list[tuple[str, str]]:
        """See `Implementation.noise_lines`."""
        deviations = [m.deviation for m in noisy_marginals(record)]
        scale = f"{min(deviations):.4g} to {max(deviations):.4g} on each count"
        return [("noise", f"deviation {scale} of {len(deviations)} marginals")]

    def versions(self) -> Mapping[str, str]:
        """Versions of the packages of the extra, if they are installed."""
        found = {}
        for name in ("mbi", "jax", "polars"):
            with suppress(PackageNotFoundError):
                found[name] = version(name)
        return found


def noisy_marginals(record: Record) -> tuple[Marginal, ...]:
    """Noisy counts of a release by marginals."""
    assert isinstance(record.output, Marginals)
    return record.output.marginals


METHOD = MarginalsMethod()
