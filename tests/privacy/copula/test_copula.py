import itertools
import math

import numpy as np
import pytest

from thesis_cli.privacy.copula import rows as copula_rows
from thesis_cli.privacy.copula.cells import (
    BinFunctions,
    _centre,
    cells_of,
    packed,
    packed_bytes,
    schema_cells,
    squared_diameter,
)
from thesis_cli.privacy.copula.kernels import sweep
from thesis_cli.privacy.copula.relations import least_sum
from thesis_cli.privacy.copula.vectors import all_pairs, bins_of
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import release_stages
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.tables.columns import Boolean, Category, Integer, Real
from thesis_cli.privacy.tables.schema import Schema

SCHEMA = Schema(
    (
        Real("income", 1, 1000, missing=True, log=True),
        Integer("age", 18, 90),
        Category("region", ("n", "s", "e", "w"), missing=True),
        Category("school", ("low", "middle", "high"), ordered=True),
        Boolean("smokes"),
    )
)


def table(count, seed=1):
    """Rows of SCHEMA in which all columns depend on one number."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=count)
    noisy = [1 / (1 + np.exp(-(z + rng.normal(size=count)))) for _ in range(5)]
    gaps = rng.random(count) < 0.1
    reals = [np.where(gaps, 0.5, noisy[0]), np.rint(noisy[1] * 72) / 72, np.rint(noisy[3] * 2) / 2]
    codes = [gaps, np.floor(noisy[2] * 5), noisy[4] > 0.7]
    return Rows(np.stack(reals, 1), np.stack(codes, 1).astype(np.int64))


def stages_of(plan, rows, seed=None):
    """Stages of a release and their vectors; noise of a seed, or none."""
    stages, vectors = [], []
    while (stage := plan.stage(vectors)) is not None:
        noise = 0 if seed is None else plan.noise(stage) * np.random.default_rng(seed).standard_normal(stage.count)
        stages.append(stage)
        vectors.append(stage.mean([rows]) + noise)
    return stages, vectors


@pytest.fixture(scope="module")
def released():
    rows = table(3000)
    plan = CopulaStages(SCHEMA, 3000, math.inf)
    return rows, plan, *stages_of(plan, rows)


def test_shares_of_the_stages_add_up(released):
    _, _, stages, _ = released
    assert sum(stage.share for stage in stages) == pytest.approx(1)
    assert all(stage.mean([table(50)]).shape == (stage.count,) for stage in stages)


def test_neighbours_are_within_the_sensitivity_and_reach_it(released):
    """Two tables of one row each are the farthest apart: the search finds the worst pair of rows."""
    rows, _, stages, _ = released
    for stage in stages:
        vectors = np.array([stage.mean([rows[n : n + 1]]) for n in range(50)])
        apart = np.sqrt(((vectors[:, None] - vectors[None]) ** 2).sum(-1))
        assert apart.max() <= stage.l2_sensitivity(1)
        assert apart.max() >= 0.9 * stage.l2_sensitivity(1)
        assert np.linalg.norm(vectors, axis=1).max() <= stage.l2_sensitivity(1) / math.sqrt(2)


def test_order_and_blocks_of_the_rows_change_no_bit(released):
    rows, _, stages, vectors = released
    shuffled = rows[np.random.default_rng(2).permutation(len(rows))]
    for stage, vector in zip(stages, vectors, strict=True):
        assert np.array_equal(stage.mean([shuffled[:7], shuffled[7:]], jobs=2), vector)


def test_without_noise_rows_have_the_tables_of_pairs(released):
    rows, plan, stages, vectors = released
    made = plan.fit(vectors, 3000, np.random.default_rng(3))
    true, found = (bins_of(stages[1].cells, stages[1].trees, x) for x in (rows, made))
    for i, j in itertools.combinations(range(5), 2):
        a, b = (np.bincount(x[:, i] * 16 + x[:, j], minlength=256) / 3000 for x in (true, found))
        assert np.abs(a - b).sum() / 2 < 0.08  # of 256 pairs of bins, and 12 rows in each


def test_fit_repeats(released):
    _, plan, _, vectors = released
    a, b = (plan.fit(vectors, 100, np.random.default_rng(4), jobs) for jobs in (1, 2))
    assert np.array_equal(a.reals, b.reals)
    assert np.array_equal(a.codes, b.codes)


def test_levels_are_kept():
    """Each of 50 levels has 1.6 deviations of the noise or more."""
    levels = tuple(f"level {i}" for i in range(50))
    schema = Schema((Category("code", levels), Boolean("yes")))
    codes = np.random.default_rng(5).integers(0, [50, 2], (20_000, 2))
    plan = CopulaStages(schema, 20_000, 0.0243)
    _, vectors = stages_of(plan, Rows(np.zeros((20_000, 0)), codes), seed=6)
    made = plan.fit(vectors, 20_000, np.random.default_rng(7))
    assert len(np.unique(made.codes[:, 0])) == 50


def test_a_correlation_is_its_posterior_mean(released, monkeypatch):
    """Under a prior that is even over correlations, by another quadrature than the one over their tanh."""
    monkeypatch.setattr(copula_rows, "SPREADS", np.array([1e6]))
    _, plan, _, vectors = released
    two = slice(1, 4, 2)  # age and school
    cells, trees = plan.cells[two], plan._marginals(vectors[0]).trees[two]
    one, other = (copula_rows.hermite_means(c, t) for c, t in zip(cells, trees, strict=True))
    powers = np.arange(1, copula_rows.TERMS + 1)
    width = max(len(one), len(other))
    found, variances = np.zeros((1, width, width)), np.full((1, width, width), np.inf)
    found[0, : len(one), : len(other)] = (one * 0.6**powers) @ other.T
    variances[0, : len(one), : len(other)] = 0.02
    grid = np.linspace(-0.97, 0.97, 4001)
    guesses = (one * grid[:, None, None] ** powers) @ other.T
    squares = (guesses - found[0, : len(one), : len(other)]) ** 2
    expected = np.average(grid, weights=np.exp(-squares.sum(axis=(1, 2)) / 0.04))
    _, (correlation,) = copula_rows.normal_guess(cells, trees, np.array([[0, 1]]), found, variances)
    assert correlation == pytest.approx(expected)


def test_correlations_of_many_columns_are_kept():
    """The noise on each of 120 correlations is 0.01, and all are 0.3."""
    rng = np.random.default_rng(8)
    z = math.sqrt(0.3) * rng.normal(size=(5000, 1)) + math.sqrt(0.7) * rng.normal(size=(5000, 16))
    schema = Schema(tuple(Real(f"x{i}", -4, 4) for i in range(16)))
    rows = Rows.of_reals(np.clip((z + 4) / 8, 0, 1))
    plan = CopulaStages(schema, 5000, 0.1)
    _, vectors = stages_of(plan, rows, seed=9)
    made = plan.fit(vectors, 1000, np.random.default_rng(10))
    found, true = (np.corrcoef(x.reals.T)[np.triu_indices(16, 1)] for x in (made, rows))
    assert found.mean() == pytest.approx(true.mean(), abs=0.03)
    assert np.abs(found - true).mean() < 0.06


def test_bound_of_the_diameter_holds_for_all_signs():
    """The bound on sum n n + n' n' - 2 k k against the worst corner of all k, for a complete graph,
    a path and a star.
    """
    graphs = [all_pairs(6), np.array([[i, i + 1] for i in range(5)]), np.array([[0, i] for i in range(1, 6)])]
    least = [-1.0, -1 / 3, -0.6, -0.2, -0.9, -0.5]
    found = [BinFunctions(np.zeros((2, 1)), np.ones(1), np.zeros(1), m) for m in least]
    for pairs in graphs:
        corners = np.array(list(itertools.product(*((m, 1.0) for m in least))))
        worst = (2 - 2 * corners[:, pairs[:, 0]] * corners[:, pairs[:, 1]]).sum(1).max()
        assert worst <= squared_diameter(found, pairs) * (1 + 1e-12)
        assert squared_diameter(found, pairs) < 1.3 * worst


def test_kernel_of_bins_is_summed_and_lowered():
    """`sweep` keeps its sums, and each change lowers the squared distance."""
    rng = np.random.default_rng(11)
    bins = rng.integers(0, 4, (60, 3))
    alike = np.stack([0.5 * np.eye(4) + 0.25 * np.kron(np.eye(2), np.ones((2, 2))) + 0.25] * 3)
    target = {(i, j): rng.dirichlet(np.ones(16)).reshape(4, 4) for i, j in itertools.combinations(range(3), 2)}

    def residuals():
        for (i, j), table in target.items():
            yield i, j, np.bincount(bins[:, i] * 4 + bins[:, j], minlength=16).reshape(4, 4) / 60 - table

    triples, groups = np.array([[0, 1, 2]]), np.repeat(np.arange(2), 2)[None].repeat(3, 0)
    triple = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)

    def lacking():
        keys = np.ravel_multi_index((bins // 2).T, (2, 2, 2))
        return np.bincount(keys, minlength=8).reshape(2, 2, 2) / 60 - triple

    beyond = lacking()[None]

    def squared():
        return sum((r * (alike[i] @ r @ alike[j])).sum() for i, j, r in residuals()) + (lacking() ** 2).sum()

    excess = np.zeros((3, 3, 4, 4))
    for i, j, residual in residuals():
        excess[j, i] = alike[i] @ residual @ alike[j]
        excess[i, j] = excess[j, i].T
    before = squared()
    assert sweep(bins, np.full(3, 4), alike, excess, np.arange(3), triples, groups, beyond) > 0
    assert squared() < before
    assert beyond[0] == pytest.approx(lacking(), abs=1e-12)
    for i, j, residual in residuals():
        assert excess[j, i] == pytest.approx(alike[i] @ residual @ alike[j], abs=1e-12)
        assert excess[i, j] == pytest.approx((alike[i] @ residual @ alike[j]).T, abs=1e-12)


def test_round_numbers_come_back():
    column = Real("x", -1, 5.3)
    values = np.array([-1.0, -0.07, 0.0, 0.3, 1.1, 5.3])
    (cells,) = schema_cells(Schema((column,)))
    rows = Rows.of_reals(np.zeros((6, 1)))
    cells.write(cells.of(Rows.of_reals(column.read(values)[:, None])), rows)
    assert np.array_equal(rows.reals[:, 0], column.read(values))


@pytest.mark.parametrize("rho", [1e-9, math.inf])
@pytest.mark.parametrize("columns", [(0,), (2,), (4, 5), (0, 1, 2, 3, 4, 5)])
def test_small_and_constant_tables_have_rows(columns, rho):
    """One column, columns of one value, levels that are rare, a table of three rows."""
    given = (*SCHEMA.columns[:4], Category("code", tuple("abcdefg"), missing=True), Integer("rare", -(10**15), 10**15))
    schema = Schema(tuple(given[c] for c in columns))
    rows = Rows(np.full((3, schema.reals), 0.25), np.zeros((3, len(schema.cardinalities)), np.int64))
    plan = CopulaStages(schema, 3, rho)
    _, vectors = stages_of(plan, rows, seed=12)
    made = plan.fit(vectors, 5, np.random.default_rng(13))
    assert len(made) == 5
    assert ((made.reals >= 0) & (made.reals <= 1)).all()
    assert (made.codes < np.array(schema.cardinalities)).all()


def test_the_centre_of_numbers_is_that_of_points_on_a_line_to_the_last_bit():
    rng = np.random.default_rng(0)
    for count in (2, 3, 7):
        line = rng.normal(size=(count, 1))
        assert _centre(line)[0] == _centre(np.hstack([line, np.zeros((count, 1))]))[0]


ATOMS = Schema(
    (
        Real("spent", 1, 1e6, log=True, atoms=(0,), missing=True),
        Real("weight", 40, 150, atoms=(70, 999)),
        Integer("hours", 0, 80, atoms=(40, 99)),
        Boolean("yes"),
    )
)


def spending(count):
    """Values of ATOMS: a third of each number is an atom."""
    rng = np.random.default_rng(11)
    yes, atom = rng.random(count) < 0.4, rng.random(count) < 1 / 3
    spent = np.where(atom, 0.0, np.exp(rng.normal(5, 1.5, count)))
    spent[:5] = np.nan
    return {
        "spent": spent,
        "weight": np.where(atom, rng.choice([70.0, 999.0], count), rng.normal(80, 9, count).round(1)),
        "hours": np.where(atom ^ yes, rng.choice([40, 99], count), rng.integers(30, 50, count)),
        "yes": yes,
    }


def test_atoms_have_their_own_cells_and_keep_their_shares():
    values = spending(2000)
    rows = ATOMS.encode(values)
    cells = schema_cells(ATOMS)
    for column in cells:
        found = column.of(rows)
        again = Rows(np.zeros_like(rows.reals), np.zeros_like(rows.codes))
        column.write(found, again)
        assert np.array_equal(column.of(again), found)
    plan = CopulaStages(ATOMS, 2000, math.inf)
    stages, vectors = stages_of(plan, rows)
    made = ATOMS.decode(plan.fit(vectors, 2000, np.random.default_rng(12)))
    for name, atoms in {"spent": (0,), "weight": (70, 999), "hours": (40, 99)}.items():
        for atom in atoms:
            assert np.mean(made[name] == atom) == pytest.approx(np.mean(values[name] == atom), abs=2 / 2000)
    assert np.nanmin(np.where(made["spent"] == 0, np.nan, made["spent"])) >= 1
    for stage in stages:
        each = np.array([stage.mean([rows[n : n + 1]]) for n in range(80)])
        apart = np.sqrt(((each[:, None] - each[None]) ** 2).sum(-1))
        assert apart.max() <= stage.l2_sensitivity(1)
        assert np.linalg.norm(each, axis=1).max() <= stage.l2_sensitivity(1) / math.sqrt(2)


RELATED = Schema(
    (
        Category("code", tuple(f"p{i}" for i in range(60))),
        Category("district", tuple("abcdef")),
        Real("x", 0, 1),
        Real("y", 0, 1),
        Boolean("odd"),
    )
)
DISTRICTS = np.random.default_rng(13).permutation(60) % 6


def related(count, seed=14):
    """A code that determines a district, and a truth value by x and y together."""
    rng = np.random.default_rng(seed)
    code, (x, y) = rng.integers(0, 60, count), rng.random((2, count))
    odd = (rng.random(count) < 0.9) == ((x > 0.5) ^ (y > 0.5))
    codes = np.stack([code, DISTRICTS[code], odd], 1).astype(np.int64)
    return Rows(np.stack([x, y], 1), codes)


def test_determined_columns_and_triples_are_kept_at_epsilon_1():
    """rho 0.024 is epsilon = 1 at delta = 1e-6."""
    rows = related(20_000)
    stages, made = {}, {}
    for favour in ("balance", "relations"):
        plan = CopulaStages(RELATED, 20_000, 0.024, favour)
        stages[favour], vectors = stages_of(plan, rows, seed=15)
        made[favour] = plan.fit(vectors, 20_000, np.random.default_rng(16))
    assert [stage.name for stage in stages["relations"]] == ["columns", "pairs", "triples", "cells of pairs"]
    assert sum(stage.share for stage in stages["relations"]) == pytest.approx(1)
    right = {f: np.mean(DISTRICTS[m.codes[:, 0]] == m.codes[:, 1]) for f, m in made.items()}
    odd = {f: np.mean(((m.reals > 0.5).sum(1) == 1) == m.codes[:, 2]) for f, m in made.items()}
    assert right["relations"] > 0.95 > 0.7 > right["balance"]
    assert odd["relations"] > 0.8 > 0.6 > odd["balance"]


def test_neighbours_in_triples_and_cells_are_within_the_sensitivity_and_reach_it():
    """The worst pairs of rows among 80, as of tables of one row each."""
    rows = related(3000)
    stages, _ = stages_of(CopulaStages(RELATED, 3000, 1.0, "relations"), rows, seed=17)
    for stage in stages[2:]:
        each = np.array([stage.mean([rows[n : n + 1]]) for n in range(80)])
        apart = np.sqrt(((each[:, None] - each[None]) ** 2).sum(-1))
        assert apart.max() <= stage.l2_sensitivity(1)
        assert apart.max() >= 0.85 * stage.l2_sensitivity(1)
        assert np.linalg.norm(each, axis=1).max() <= stage.l2_sensitivity(1) / math.sqrt(2)


@pytest.mark.parametrize("schema", [SCHEMA, ATOMS, RELATED])
def test_packed_rows_have_the_same_vectors_to_the_last_bit(schema):
    rows = {SCHEMA: table, ATOMS: lambda n: ATOMS.encode(spending(n)), RELATED: related}[schema](5000)
    stages, _ = stages_of(CopulaStages(schema, 5000, 50.0, "relations"), rows, seed=25)
    held = packed(schema_cells(schema), rows)
    assert np.array_equal(cells_of(schema_cells(schema), held), cells_of(schema_cells(schema), rows))
    for stage in stages:
        assert np.array_equal(stage.mean([held[:4999], held[4999:]], jobs=2), stage.mean([rows]))


def test_packed_rows_take_the_smallest_type_and_cannot_be_changed():
    small, large = (Schema((Integer("x", 0, high), Boolean("b"))) for high in (255, 256))
    for schema, width in ((small, 1), (large, 2)):
        held = packed(schema_cells(schema), Rows(np.full((3, 1), 1.0), np.ones((3, 1), np.int64)))
        assert held.codes.nbytes / 3 == packed_bytes(schema_cells(schema)) == 2 * width
        assert held.codes[0, 0] == schema_cells(schema)[0].count - 1
        assert type(held[1:]) is type(held)
        with pytest.raises(ValueError, match="read-only"):
            held[1:].codes[:] = 0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("levels", [2, 127, 255, 256, 257, 65535, 65536, 65537])
def test_every_level_keeps_a_cell_of_its_own_when_rows_are_packed(levels, missing):
    names = tuple(f"l{i}" for i in range(levels))
    schema = Schema((Category("c", names, missing=missing), Category("o", names, missing=missing, ordered=True)))
    values = np.array([*names, *[None] * missing], object)
    rows, cells = schema.encode({"c": values, "o": values}), schema_cells(schema)
    held = packed(cells, rows)
    assert held.codes.itemsize == (1 if levels + missing <= 256 else 2 if levels + missing <= 65536 else 4)
    assert np.array_equal(cells_of(cells, held), cells_of(cells, rows))
    assert cells_of(cells, held).tolist() == [[i, i] for i in range(len(values))]


def test_bound_on_the_sum_over_triples_is_its_least_value():
    """A box of more columns than have all corners, too."""
    rng = np.random.default_rng(22)
    for d in (3, 6, 14):
        least = np.append(rng.uniform(0.1, 0.8, d - 1), 0.8)
        k = np.where(
            rng.random((4000, d)) < 0.5,
            rng.uniform(-least, 1, (4000, d)),
            np.where(rng.random((4000, d)) < 0.5, -least, 1),
        )
        sums = sum(k[:, i] * k[:, j] * k[:, h] for i, j, h in itertools.combinations(range(d), 3))
        assert sums.min() >= least_sum(least)
        assert d > 12 or sums.min() <= 0.9 * least_sum(least)


class Fixed:
    """Noise that makes the noisy vectors those given, whatever the table."""

    def __init__(self, vectors):
        self.vectors = iter(vectors)

    def calibrate(self, size, l2_sensitivity, rho):
        return l2_sensitivity, 1.0, rho

    def add(self, vector, scale, granularity):
        found = next(self.vectors)
        assert len(found) == len(vector)
        return found


@pytest.mark.parametrize("schema", [RELATED, ATOMS])
def test_tables_reach_a_release_through_noisy_vectors_alone(schema):
    """With the noisy vectors given, any two tables have the same stages, scales and rows."""
    rng = np.random.default_rng(18)
    tables = [related(400), related(400, 19)] if schema is RELATED else [schema.encode(spending(400))] * 2
    if schema is ATOMS:
        tables[1] = tables[0][rng.permutation(400)[np.zeros(400, np.int64)]]
    plan = CopulaStages(schema, 400, 50.0, "relations")
    _, vectors = stages_of(plan, tables[0], seed=20)
    found = []
    for table in tables:
        _, stages = release_stages(
            lambda _: plan,
            [table],
            400,
            Budget(10.0, 1e-6),
            lambda *_: None,
            Fixed(vectors),
            lambda stage, blocks: stage.mean(blocks),
        )
        made = plan.fit([np.array(s.vector) for s in stages], 100, np.random.default_rng(21))
        found.append((stages, made.reals.tobytes(), made.codes.tobytes()))
    assert len(found[0][0]) == plan.stages
    assert found[0] == found[1]


@pytest.mark.parametrize("constant", [0, 1, 2])
def test_a_column_of_one_value_leaves_its_stage_to_the_pairs(constant):
    schema = Schema((Category("code", tuple("abcdefghijklmnopqrstuvwxyz")), Boolean("high"), Boolean("coin")))
    rng = np.random.default_rng(23)
    codes = rng.integers(0, [26, 2, 2], (5000, 3))
    codes[:, 1] = codes[:, 0] > 12
    codes[:, constant] = 0
    rows = Rows(np.zeros((5000, 0)), codes)
    plan = CopulaStages(schema, 5000, 1.0, "relations")
    stages, vectors = stages_of(plan, rows, seed=24)
    last = "cells of pairs" if constant == 2 else "pairs, again"
    assert [stage.name for stage in stages] == ["columns", "pairs", "pairs, again", last]
    made = plan.fit(vectors, 5000, rng)
    assert np.mean(made.codes[:, constant] == 0) > 0.98
    assert constant != 2 or np.mean((made.codes[:, 0] > 12) == made.codes[:, 1]) > 0.98


@pytest.mark.parametrize("favour", ["balance", "relations"])
def test_rows_that_keep_their_last_columns_have_the_tables_of_pairs(favour):
    rows = table(3000)
    plan = CopulaStages(SCHEMA, 3000, math.inf, favour)
    stages, vectors = stages_of(plan, rows)
    last = Rows(rows.reals[:, 2:], rows.codes[:, 2:])  # school and smokes
    made = plan.fit(vectors, 3000, np.random.default_rng(3), last=last)
    assert np.array_equal(made.reals[:, 2:], last.reals)
    assert np.array_equal(made.codes[:, 2:], last.codes)
    true, found = (bins_of(stages[1].cells, stages[1].trees, x) for x in (rows, made))
    for i, j in itertools.combinations(range(5), 2):
        a, b = (np.bincount(x[:, i] * 16 + x[:, j], minlength=256) / 3000 for x in (true, found))
        assert np.abs(a - b).sum() / 2 < 0.08


def test_normal_scores_given_those_of_some_columns_have_the_correlations():
    """Five standard errors of a correlation of 20,000 rows."""
    pairs, correlations, rng = all_pairs(3), np.array([0.6, 0.3, -0.2]), np.random.default_rng(5)
    given = rng.multivariate_normal([0, 0], [[1, -0.2], [-0.2, 1]], 20_000)
    known = {1: given[:, 0], 2: given[:, 1]}
    found = copula_rows.normal_scores(3, pairs, correlations, 20_000, rng, known)
    assert np.allclose(found[:, 1:], given, rtol=0, atol=1e-12)
    for (i, j), rho in zip(pairs, correlations, strict=True):
        assert np.corrcoef(found[:, i], found[:, j])[0, 1] == pytest.approx(rho, abs=5 * (1 - rho**2) / 20_000**0.5)


def test_a_column_that_one_that_is_kept_determines_has_its_cell():
    """A district that a postal code of 100 determines, whose codes are kept."""
    schema = Schema((Category("district", tuple("abcdefghijklmnopqrst")), Integer("code", 0, 99)))
    codes = np.random.default_rng(8).integers(0, 100, 20_000)
    rows = Rows(codes[:, None] / 99, (codes // 5)[:, None])
    plan = CopulaStages(schema, 20_000, math.inf, "relations")
    stages, vectors = stages_of(plan, rows)
    assert stages[-1].name == "cells of pairs"
    made = plan.fit(vectors, 20_000, np.random.default_rng(9), last=Rows(rows.reals, rows.codes[:, :0]))
    assert np.array_equal(made.reals, rows.reals)
    assert (made.codes == rows.codes).mean() > 0.99
