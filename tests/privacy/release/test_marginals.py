import importlib

import numpy as np
import pytest

from tests.privacy.release.test_release import BUDGET, MIXED, free, table
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, zcdp_epsilon
from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.release.marginals import (
    Conditional,
    Marginal,
    MarginalsNoise,
    cells_of,
    draw,
    marginal_cells,
    placed_rows,
    sizes_of,
)
from thesis_cli.privacy.release.record import rows_text
from thesis_cli.privacy.release.release import ReleasePlan, private_record, synthetic
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema

ASKED = ReleasePlan(MIXED, BUDGET, "marginals", entropy=7)


class Counter:
    """In the place of OpenDP: counts of single columns, or of no rows at all."""

    def __init__(self, held=False):
        self.held, self.order, self.given = held, [], None

    def __call__(self, cells, sizes, rho, algorithm, charge):
        self.given = cells, rho, algorithm
        charge()
        self.order.append("noise")
        columns = zip(sizes.items(), cells.T * (not self.held), strict=True)
        return [Marginal((n,), 2.5, tuple(np.bincount(c, minlength=s).astype(float).tolist())) for (n, s), c in columns]


def independent(sizes, found, count):
    """In the place of `mbi`: independent columns."""
    assert count == 50
    names = list(sizes)
    return [Conditional(names.index(m.columns[0]), (), np.array(m.counts)) for m in found]


def release(rows, measure, spend=free, asked=ASKED):
    return private_record([rows[:20], rows[20:]], len(rows), asked, spend, choose=measure)


def test_no_byte_depends_on_the_table_but_through_the_noisy_counts(monkeypatch):
    monkeypatch.setattr(marginals, "network", independent)
    texts, cells = set(), set()
    for seed in range(3):
        counter = Counter(held=True)
        record = release(table(MIXED, 50, seed), counter)
        texts.add((record.to_json(), rows_text(synthetic(record, 30), weighted=False)))
        cells.add(counter.given[0].tobytes())
    assert len(cells) == 3
    assert len(texts) == 1


def test_the_budget_is_spent_before_the_noise_and_what_refuses_it_stops_the_release():
    counter, spent = Counter(), []

    def spend(budget, rho):
        counter.order.append("spent")
        spent.append((budget, rho))

    record = release(table(MIXED, 50, 0), counter, spend)
    assert counter.order == ["spent", "noise"]
    assert spent == [(BUDGET, record.mechanism.rho)]
    assert counter.given[1] == record.mechanism.rho
    assert zcdp_epsilon(record.mechanism.rho, BUDGET.delta) == record.mechanism.epsilon <= BUDGET.epsilon

    def refuse(budget, rho):
        raise InputError("no more", "less")

    counter = Counter()
    with pytest.raises(InputError, match="no more"):
        release(table(MIXED, 50, 0), counter, refuse)
    assert counter.order == []


def test_rows_are_made_of_the_record_alone(monkeypatch):
    monkeypatch.setattr(marginals, "network", independent)
    private = table(MIXED, 50, 1)
    record = release(private, Counter())
    assert isinstance(record.mechanism, MarginalsNoise)
    assert record.mechanism.contributions == 2  # a replaced row is removed, and another one added
    again = parse_record(record.to_json())
    assert again == record
    made = synthetic(again)
    assert len(made.points) == 50
    cells = marginal_cells(MIXED)
    for ours, theirs in zip(cells_of(cells, made.points).T, cells_of(cells, private).T, strict=True):
        np.testing.assert_array_equal(np.sort(ours), np.sort(theirs))  # 50 rows hold the exact counts


CELLS = Schema(
    (Real("x", 0, 1), Real("y", 1, 10, missing=True, log=True), Integer("n", 0, 31), Integer("m", 0, 32),
     Category("c", ("a", "b")), Category("o", ("a", "b", "c"), ordered=True, missing=True), Boolean("b", missing=True))
)  # fmt: skip


def test_rows_are_placed_within_their_cells():
    assert list(sizes_of(CELLS).values()) == [24, 25, 32, 24, 2, 4, 3]
    rng = np.random.default_rng(0)
    found = rng.integers(0, list(sizes_of(CELLS).values()), (300, 7))
    placed = placed_rows(CELLS, found, rng)
    np.testing.assert_array_equal(cells_of(marginal_cells(CELLS), placed), found)
    decoded = CELLS.encode(CELLS.decode(placed))  # each cell of a whole number has one
    np.testing.assert_array_equal(cells_of(marginal_cells(CELLS), decoded)[:, [2, 4, 5, 6]], found[:, [2, 4, 5, 6]])


def test_drawn_cells_have_the_shares_of_the_model():
    rng = np.random.default_rng(1)
    first, joint = np.array([1.0, 3.0]), np.array([[0.5, 0.5, 0.0], [0.6, 0.0, 2.4]])
    third = rng.random((3, 2, 2))
    model = [Conditional(2, (), first), Conditional(0, (2,), joint), Conditional(1, (0, 2), third)]
    found = draw(model, 4000, rng)
    pairs = np.array([[(found[:, 2] == i) & (found[:, 0] == j) for j in range(3)] for i in range(2)]).mean(2)
    np.testing.assert_allclose(pairs, joint / 4, atol=2 / 4000)
    for i in range(2):
        for j in range(3):
            inside = found[(found[:, 2] == i) & (found[:, 0] == j), 1]
            if len(inside):
                assert inside.mean() == pytest.approx(third[j, i, 1] / third[j, i].sum(), abs=2 / len(inside))
    # Columns that are independent given their parents are so in the rows: 5 standard errors.
    apart = draw([Conditional(0, (), np.ones(2)), Conditional(1, (), np.ones(2))], 4000, rng)
    assert abs(np.corrcoef(apart.T)[0, 1]) < 5 / np.sqrt(4000)


def test_cells_of_negative_shares_are_never_drawn():
    found = draw(
        [Conditional(0, (), np.array([1.0, -5.0, 1.0])), Conditional(1, (0,), np.zeros((3, 2)))],
        10,
        np.random.default_rng(0),
    )
    assert set(found[:, 0]) == {0, 2}


def test_a_missing_package_is_one_line_that_says_what_to_install(monkeypatch):
    real = importlib.import_module

    def missing(name, *given, **options):
        if name.startswith("thesis_cli."):
            return real(name)
        raise ImportError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    spent = []
    with pytest.raises(InputError, match=r"is not installed; run pip install 'opendp"):
        private_record([table(MIXED, 5, 0)], 5, ASKED, lambda *given: spent.append(given))
    assert spent == []


def test_bad_settings():
    with pytest.raises(InputError, match="delta is 0"):
        release(table(MIXED, 50, 0), Counter(), asked=ReleasePlan(MIXED, Budget(1), "marginals"))
    one = Schema((Boolean("b"),))
    with pytest.raises(InputError, match="one column"):
        private_record([table(one, 5, 0)], 5, ReleasePlan(one, BUDGET, "marginals"), free)
    with pytest.raises(InputError, match="no simplex weights"):
        synthetic(release(table(MIXED, 50, 0), Counter()), weights="simplex")


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["mst", "aim"])
def test_opendp_measures_marginals_that_give_the_table_back(algorithm):
    pytest.importorskip("mbi")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (3000, 1)) ^ (rng.random((3000, 3)) < 0.1)
    schema = Schema((Boolean("a"), Boolean("b"), Boolean("c")))
    private = Rows(np.zeros((3000, 0)), codes.astype(np.int64))
    record = private_record(
        [private], 3000, ReleasePlan(schema, Budget(5, 1e-6), "marginals", algorithm=algorithm), free
    )
    assert {len(m.columns) for m in record.output.marginals} == {1, 2}
    for m in record.output.marginals:
        places = [schema.names.index(name) for name in m.columns]
        exact = np.bincount(codes[:, places] @ [2, 1][-len(places) :], minlength=2 ** len(places))
        assert np.abs(np.array(m.counts) - exact).max() < 6 * m.deviation
    made = synthetic(record, 2000)
    theirs, ours = np.corrcoef(codes.T), np.corrcoef(made.points.codes.T)
    for m in record.output.marginals:  # MST measures two of the three pairs
        at = tuple(schema.names.index(name) for name in (m.columns[0], m.columns[-1]))
        assert ours[at] == pytest.approx(theirs[at], abs=0.1)
