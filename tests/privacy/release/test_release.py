import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tests.privacy.release.test_subspace import Recorder
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding import points
from thesis_cli.privacy.embedding.means import mean_at
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms import stages
from thesis_cli.privacy.mechanisms.mechanism import Budget, Choice, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, Unit
from thesis_cli.privacy.release import vectors
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.release.record import PrivacyGuarantee, rows_text
from thesis_cli.privacy.release.release import ReleasePlan, implementation_of, private_record, synthetic
from thesis_cli.privacy.release.subspace import Subspace
from thesis_cli.privacy.release.vectors import NoisyVector, vector_method
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema
from thesis_cli.privacy.tables.table import Rereadable, encoded_rows, open_table
from thesis_cli.studies.privacy.evaluation import squared_distance

MIXED = Schema((Real("x", 0, 9), Integer("n", 0, 4, missing=True), Category("c", ("a", "b", "d")), Boolean("b")))
SMALL = Schema((Category("c", ("a", "b")), Boolean("b")))
LINE = Schema((Real("x", 0, 1, gamma=30.0),))
BUDGET = Budget(1, 1e-6)
METHODS = ("features", "subspace", "public", "exponential")


def table(schema, count, seed):
    rng = np.random.default_rng(seed)
    return Rows(
        rng.random((count, schema.reals)), rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    )


def request(method, schema=None, size=None, budget=BUDGET, entropy=7, **options):
    schema = schema or (SMALL if method == "exponential" else MIXED)
    if method == "public":
        return ReleasePlan(schema, budget, "subspace", public=table(schema, 12, 1), entropy=entropy, **options)
    return ReleasePlan(
        schema, budget, method, size=size or (2 if method == "exponential" else 20), entropy=entropy, **options
    )


def features(record):
    return implementation_of(record.method).features(record)


def free(budget, rho):
    pass


def fixed(scores, sensitivity, epsilon):
    return Choice(3, 1.0, epsilon, "fixed")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_no_byte_depends_on_the_table_but_through_the_noisy_vector(method, noise):
    asked = request(method, noise=noise)
    answer = np.random.default_rng(0).normal(size=100) / 10
    found = []
    for seed in range(3):
        private, fake = table(asked.schema, 50, seed), Recorder(answer)
        record = private_record([private[:20], private[20:]], 50, asked, free, noise=fake, choose=fixed)
        releases = [synthetic(record, 9, public=asked.public)]
        if method != "exponential":
            vectors = fake.calls[0][0]
            found.append((vectors.tobytes(),))
            releases.append(synthetic(record, 9, "simplex", public=asked.public))
        texts = [rows_text(made, weighted=weighted) for made in releases for weighted in (False, True)]
        found.append((record.to_json(), *texts))
    if method != "exponential":
        assert len(set(found[::2])) == 3  # the tables do differ
        found = found[1::2]
    assert len(set(found)) == 1


def test_rows_are_made_of_what_was_released_alone():
    record = private_record([table(MIXED, 50, 1)], 50, request("features"), free, noise=Recorder())
    again = parse_record(record.to_json())
    assert again == record
    assert rows_text(synthetic(record, 9), weighted=True) == rows_text(synthetic(again, 9), weighted=True)
    changed = replace(record, output=NoisyVector(tuple(-x for x in record.output.vector)))
    assert rows_text(synthetic(changed, 9), weighted=False) != rows_text(synthetic(record, 9), weighted=False)


def corners(schema):
    """Rows at the corners and the middle of a schema's box, for every combination of levels."""
    reals = [*itertools.product([0.0, 1.0], repeat=schema.reals), (0.5,) * schema.reals]
    codes = list(itertools.product(*map(range, schema.cardinalities)))
    pairs = list(itertools.product(reals, codes))
    return Rows(
        np.array([r for r, _ in pairs]).reshape(len(pairs), -1),
        np.array([c for _, c in pairs], np.int64).reshape(len(pairs), -1),
    )


@pytest.mark.parametrize("method", ["features", "subspace", "public"])
@pytest.mark.parametrize("schema", [MIXED, SMALL, LINE], ids=["mixed", "small", "line"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_sensitivity_that_the_noise_is_given_covers_every_neighbour(method, schema, count):
    asked, rest = request(method, schema), table(schema, count - 1, 3)
    every = corners(schema)
    vectors, sensitivities = [], set()
    for i in range(len(every)):
        fake = Recorder()
        private_record([Rows.concatenate([every[i : i + 1], rest])], count, asked, free, noise=fake)
        ((vector, sensitivity, budget),) = fake.calls
        vectors.append(vector)
        sensitivities.add(sensitivity)
        assert budget == BUDGET
    (sensitivity,) = sensitivities
    worst = max(math.dist(a, b) for a, b in itertools.combinations(vectors, 2))
    assert worst <= sensitivity
    assert sensitivity < 2 / count * (1 + 1e-6)


def test_the_sensitivities_are_reached():
    """Opposite features reach it, and two distant rows that are public points."""
    features = request("features", Schema((Real("x", 0, 1),)), 2)
    frequency = vector_method(features.method).embedding(features).frequencies[0, 0]
    assert abs(frequency) < math.pi  # so that the ends of the box are the worst case
    ends = Rows.of_reals(np.array([[0.0], [1.0]]))
    public = ReleasePlan(LINE, BUDGET, "subspace", public=ends)
    for asked, wanted in ((features, 2 * abs(math.sin(frequency / 2))), (public, math.sqrt(2))):
        calls = []
        for i in (0, 1):
            fake = Recorder()
            private_record([ends[i : i + 1]], 1, asked, free, noise=fake)
            calls += fake.calls
        assert math.dist(calls[0][0], calls[1][0]) == pytest.approx(wanted, rel=1e-9)
        assert calls[0][1] == pytest.approx(2 if asked is features else math.sqrt(2), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_spent_once_after_the_table_is_read_and_before_the_noise_is_drawn(method):
    order = []

    def blocks():
        yield table(request(method).schema, 5, 0)
        order.append("read")

    class Noise(Recorder):
        def add(self, *arguments):
            order.append("noise")
            return super().add(*arguments)

    def choose(*arguments):
        order.append("noise")
        return fixed(*arguments)

    spent = []

    def spend(budget, rho):
        order.append("spent")
        spent.append((budget, rho))

    private_record(blocks(), 5, request(method), spend, noise=Noise(), choose=choose)
    assert order == ["read", "spent", "noise"]
    assert spent == [(Budget(1) if method == "exponential" else BUDGET, None)]


def test_what_refuses_the_budget_stops_the_release():
    def refuse(budget, rho):
        raise InputError("no more", "less")

    fake = Recorder()
    with pytest.raises(InputError, match="no more"):
        private_record([table(MIXED, 5, 0)], 5, request("features"), refuse, noise=fake)
    assert fake.calls == []


@pytest.mark.parametrize("method", ["features", "subspace"])
def test_the_rho_of_gaussian_noise_is_spent(method):
    spent = []
    record = private_record([table(MIXED, 50, 0)], 50, request(method), lambda *given: spent.append(given))
    assert spent == [(BUDGET, record.mechanism.rho)]
    assert 0 < spent[0][1] < 1


def test_the_record_describes_the_release():
    record = private_record([table(MIXED, 50, 0)], 50, request("features"), free)
    assert record.promise == PrivacyGuarantee(1, 1e-6, "tables of the same number of rows that differ in one row", 50)
    assert "OpenDP" in record.mechanism.mechanism
    assert record.mechanism.sensitivity == pytest.approx(2 / 50, rel=1e-9)
    assert list(record.kernel.gamma) == MIXED.kernel().gamma.tolist()
    assert record.schema == MIXED
    assert len(record.output.vector) == 20
    laplace = private_record([table(MIXED, 50, 0)], 50, request("features", noise="laplace"), free)
    assert laplace.promise.delta == 0
    assert laplace.mechanism.sensitivity == pytest.approx(math.sqrt(20) * 2 / 50, rel=1e-9)
    assert isinstance(vectors.NOISES["gaussian"](), OpenDPGaussian)
    assert isinstance(vectors.NOISES["laplace"](), OpenDPLaplace)


def test_noise_has_no_seed_and_public_draws_have():
    private = table(MIXED, 50, 0)
    first, second = (private_record([private], 50, request("features"), free) for _ in range(2))
    assert first.output.vector != second.output.vector
    np.testing.assert_array_equal(
        features(first).frequencies,
        features(second).frequencies,
    )
    assert ReleasePlan(MIXED, BUDGET).entropy != ReleasePlan(MIXED, BUDGET).entropy


# Rows from a record


def far_less_noise(method, schema, private, **options):
    asked = request(method, schema, **options)
    return asked, private_record([private], len(private), asked, free, noise=Recorder())


def test_without_noise_features_give_the_table_back(monkeypatch):
    monkeypatch.setattr(points, "ROUNDS", 8)  # noise ends most searches sooner
    private = table(MIXED, 400, 5)
    _, record = far_less_noise("features", MIXED, private, size=600)
    record = replace(record, mechanism=replace(record.mechanism, scale=0.0))
    made = synthetic(record, 200)
    kernel = MIXED.kernel()
    random = table(MIXED, 200, 9)
    equal = np.full(200, 1 / 200), np.full(400, 1 / 400)
    found = squared_distance(kernel, made.points, equal[0], private, equal[1])
    assert found < 0.05 * squared_distance(kernel, random, equal[0], private, equal[1])
    np.testing.assert_array_equal(made.weights, equal[0])
    assert made.record.objective < 1e-3
    weighted = synthetic(record, 5, "simplex")
    missed = weighted.weights @ features(record).embed(weighted.points) - record.output.vector
    assert weighted.record.objective == pytest.approx(missed @ missed, rel=1e-6)


def test_without_noise_a_subspace_gives_the_projection():
    private = table(MIXED, 400, 5)
    asked, record = far_less_noise("public", MIXED, private)
    made = synthetic(record, weights="raw", public=asked.public)
    kernel = MIXED.kernel()
    space = Subspace.of(kernel, asked.public)
    values = mean_at(kernel, [private], asked.public)
    np.testing.assert_allclose(kernel.matrix(asked.public, made.points) @ made.weights, values, atol=1e-8)
    assert space.count == len(record.output.vector)
    simplex = synthetic(record, weights="simplex", public=asked.public)
    assert (simplex.weights >= 0).all()
    assert simplex.weights.sum() == pytest.approx(1)
    bounded = synthetic(record, weights="l1", weight_bound=1.5, public=asked.public)
    assert np.abs(bounded.weights).sum() <= 1.5 + 1e-9
    rows = synthetic(record, 1000, public=asked.public)  # each point as often as its share, up to one
    share = (rows.points.reals[:, :1] == asked.public.reals[:, 0]).mean(0)
    np.testing.assert_allclose(share, simplex.weights, atol=1e-3)


def test_the_exponential_mechanism_gives_the_nearest_small_table_at_a_large_epsilon():
    levels = Rows(np.zeros((10, 0)), np.array([[0, 0]] * 5 + [[1, 1]] * 5))
    record = private_record([levels], 10, request("exponential", budget=Budget(1e6)), free)
    made = synthetic(record)
    assert made.columns["c"].tolist() == ["a", "b"]
    assert made.columns["b"].tolist() == [False, True]
    assert record.promise.delta == 0


BAD = [
    (lambda: private_record([], 0, request("features"), free), "the table has 0 rows"),
    (lambda: private_record([table(MIXED, 3, 0)], 4, request("features"), free), "3 rows and not 4"),
    (
        lambda: private_record([table(MIXED, 3, 0)], 3, request("features", size=3), free),
        "features is 3; it must be even",
    ),
    (lambda: private_record([table(MIXED, 3, 0)], 3, request("features", budget=Budget(1)), free), "delta is 0 with"),
    (lambda: private_record([table(MIXED, 3, 0)], 3, request("exponential", MIXED), free), "'x'"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_bad_settings_of_rows():
    weight = Schema((Boolean("weight"),))
    _, named = far_less_noise("features", weight, table(weight, 5, 0))
    with pytest.raises(InputError, match="column 'weight'"):
        synthetic(named, weights="simplex")
    _, features = far_less_noise("features", MIXED, table(MIXED, 5, 0))
    with pytest.raises(InputError, match="no raw weights"):
        synthetic(features, weights="raw")
    asked, record = far_less_noise("public", MIXED, table(MIXED, 5, 0))
    with pytest.raises(InputError, match="--public"):
        synthetic(record)
    with pytest.raises(InputError, match="not the public rows of the release"):
        synthetic(record, public=asked.public[:-1])


class HeldStages(OpenDPStages):
    """Noisy vectors that do not depend on the table."""

    def __init__(self):
        self.vectors = []

    def add(self, vector, scale, granularity):
        self.vectors.append(vector.tobytes())
        return np.random.default_rng(len(self.vectors)).normal(size=vector.size) * scale + 1 / vector.size


def test_no_byte_of_a_copula_release_depends_on_the_table_but_through_its_stages():
    found, vectors = set(), set()
    for seed in range(2):
        private, held = table(MIXED, 300, seed), HeldStages()
        record = private_record([private[:99], private[99:]], 300, request("copula"), free, noise=held, jobs=1 + seed)
        found.add((record.to_json(), rows_text(synthetic(record, 40), weighted=False)))
        vectors.add(tuple(held.vectors))
    assert len(vectors) == 2
    assert len(found) == 1
    again = parse_record(record.to_json())
    assert rows_text(synthetic(again, 40), weighted=False) == next(iter(found))[1]


class SeededStages(OpenDPStages):
    """Noise of a seed; `after` is called when some was drawn."""

    def __init__(self, after=lambda: None):
        self.rng, self.after, self.draws = np.random.default_rng(0), after, 0

    def add(self, vector, scale, granularity):
        self.after()
        self.draws += 1
        return vector + scale * self.rng.standard_normal(vector.size)


def written(path, seed):
    rng = np.random.default_rng(seed)
    lines = [f"{x},{'ab'[c]},{'01'[b]}" for x, c, b in zip(rng.random(300), *rng.integers(0, 2, (2, 300)), strict=True)]
    path.write_text("\n".join(["x,c,b", *lines]) + "\n")


FILE = Schema((Real("x", 0, 1), Category("c", ("a", "b")), Boolean("b")))


def of_file(path, noise):
    """Record of a release of a file, which is read in parts of 99 rows."""
    table = open_table(path)
    blocks = Rereadable(lambda: encoded_rows(table, FILE, 99))
    return private_record(blocks, table.count(), request("copula", FILE), free, noise=noise)


def test_a_table_that_is_read_once_a_stage_is_released_as_one_that_is_held(tmp_path, monkeypatch):
    path, records = tmp_path / "t.csv", set()
    written(path, 0)
    for held in (2**28, 0):
        monkeypatch.setattr(stages, "HELD", held)
        records.add(of_file(path, SeededStages()).to_json())
    assert len(records) == 1


def test_a_file_that_changes_between_two_stages_ends_the_release(tmp_path, monkeypatch):
    """It has as many rows as before; the stage that saw the change draws no noise."""
    path = tmp_path / "t.csv"
    for held, draws in ((2**28, None), (0, 1)):
        monkeypatch.setattr(stages, "HELD", held)
        written(path, 0)
        noise = SeededStages(after=lambda: written(path, 1))
        if draws is None:
            assert of_file(path, noise).promise.rows == 300  # the file was read before
        else:
            with pytest.raises(InputError, match="the table changed while it was read"):
                of_file(path, noise)
            assert noise.draws == draws


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove")], ids=str)
def test_a_release_holds_bytes_and_not_numbers(unit):
    """A packed row of MIXED has two bytes for each of 4 columns; an encoded one has 5 numbers."""

    def blocks():
        return (table(MIXED, 8192, seed) for seed in range(120))

    asked, count = request("copula", unit=unit), 120 * 8192
    private_record(list(itertools.islice(blocks(), 2)), None if unit.secret else 16384, asked, free)
    tracemalloc.start()
    private_record(blocks(), None if unit.secret else count, asked, free)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * count * 4 * 2 < count * (2 + 3) * 8


def test_a_copula_release_charges_its_whole_budget_and_keeps_its_margins():
    spent, private = [], table(MIXED, 3000, 4)
    private.codes[:, 1] = 0
    record = private_record([private], 3000, request("copula"), lambda *given: spent.append(given))
    assert spent == [(BUDGET, record.mechanism.total)]
    assert sum(stage.rho for stage in record.output.stages) <= record.mechanism.total
    made = synthetic(record)
    assert len(made.points) == 3000
    assert (made.columns["c"] == "a").mean() > 0.9
