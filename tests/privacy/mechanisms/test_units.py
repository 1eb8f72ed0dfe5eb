import itertools
import math

import numpy as np
import pytest

from tests.privacy.release.test_release import LINE, MIXED, corners, free, request, table
from tests.privacy.release.test_subspace import Recorder
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms import stages
from thesis_cli.privacy.mechanisms.stages import Counted, Totals, Unit
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.release.record import PrivacyGuarantee, rows_text
from thesis_cli.privacy.release.release import expected, private_record, synthetic
from thesis_cli.privacy.release.subspace import Subspace
from thesis_cli.privacy.release.vectors import noisy_vector, vector_method

UNITS = [Unit("add-remove"), *(Unit(neighbours, most) for neighbours in ("replace", "add-remove") for most in (1, 3))]


def noised(vector):
    return Recorder().add(vector, 1, None)


def embeddings(schema):
    features = draw_features(schema.kernel(), schema.cardinalities, 8, np.random.default_rng(1))
    return (features, 2.0), (Subspace.of(schema.kernel(), corners(schema)), math.sqrt(2))


def tables(unit, every, rest):
    """The rest with every set of at most K rows of one unit: of one kind, or of two kinds."""
    most = unit.contribution_bound or 1
    for s in range(most + 1):
        for first, second in itertools.product(range(0, len(every), 2), range(1, len(every), 3)):
            for split in {0, s // 2, s}:
                own = [*[every[first : first + 1]] * split, *[every[second : second + 1]] * (s - split)]
                yield s, Rows.concatenate([*own, rest])


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("schema", [MIXED, LINE], ids=["mixed", "line"])
def test_no_searched_neighbour_is_farther_away_than_the_sensitivity(schema, unit):
    every, rest = corners(schema), table(schema, 2, 3)
    for embedding, diameter in embeddings(schema):
        totals = Totals(embedding, unit, diameter)
        found = [(s, totals.vector([private])) for s, private in tables(unit, every[:12], rest)]
        if unit.neighbours == "replace":  # a person without rows is covered as well
            vectors = np.array([vector for _, vector in found])
            apart = max(float(np.linalg.norm(vectors - vector, axis=1).max()) for vector in vectors)
        else:
            apart = max(math.dist(vector, totals.vector([rest])) for _, vector in found)
        assert apart <= totals.l2_sensitivity()
        if unit.neighbours == "add-remove":  # all rows of the unit alike
            assert apart > 0.99 * totals.l2_sensitivity()


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_opposite_features_reach_the_sensitivity(unit):
    """Rows half a turn apart are at distance 2, and rows alike have the longest sum."""
    totals = Totals(Features(np.full((4, 1), math.pi), ()), unit)
    most, found = unit.contribution_bound or 1, []
    for s in range(most + 1):
        found += [totals.vector([Rows.of_reals(np.full((s, 1), x))]) for x in (0.0, 1.0)]
    pairs = itertools.combinations(found, 2) if unit.neighbours == "replace" else ((found[0], x) for x in found)
    assert max(math.dist(a, b) for a, b in pairs) == pytest.approx(totals.l2_sensitivity(), rel=1e-6)


@pytest.mark.parametrize("diameter", [math.sqrt(2), 2.0])
@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_larger_weight_of_the_count_is_not_free(diameter, most):
    unit = Unit("replace", most)
    free = unit.count_weight(100, diameter)
    assert unit.factor(free, diameter) == pytest.approx(diameter * most, rel=1e-12)
    assert unit.factor(1.01 * free, diameter) > unit.factor(free, diameter) * 1.001


@pytest.mark.parametrize("size", [10, 1000])
def test_the_weight_of_the_count_has_the_least_error(size):
    """The scale of the noise, times the error of the sum and of the count per unit of scale."""
    unit = Unit("add-remove")

    def error(c):
        return unit.factor(c) * math.sqrt(size + 1 / c**2)

    best = unit.count_weight(size)
    assert error(best) < min(error(best / 1.05), error(1.05 * best))
    assert error(best) ** 2 / size == pytest.approx((1 + 1 / math.sqrt(size)) ** 2)


def test_totals_are_the_mean_and_the_number_of_rows():
    (features, _), _ = embeddings(MIXED)
    private = table(MIXED, 300, 5)
    totals = Totals(features, Unit("add-remove"))
    vector = totals.vector(iter([private[:0], private[:100], private[100:]]))
    found, counted = totals.means(noised(vector))
    assert vector.size == totals.count == 9
    assert counted.rows == pytest.approx(300, rel=1e-15)
    np.testing.assert_allclose(found.values, features.mean([private]), rtol=0, atol=1e-15)
    shuffled = private[np.random.default_rng(0).permutation(300)]
    assert totals.vector([shuffled]).tobytes() == vector.tobytes()
    assert not totals.vector(iter([])).any()
    assert totals.means(noised(totals.vector([private[:0]])))[1].rows == 1


def test_rounding_is_bounded_for_public_numbers_of_rows_only(monkeypatch):
    (features, _), _ = embeddings(LINE)
    monkeypatch.setattr(stages, "LARGEST", 10)
    totals = Totals(features, Unit("add-remove"))
    assert totals.vector([table(LINE, 10, 0)]).size == 9
    with pytest.raises(InputError, match="more than 10 rows"):
        totals.vector([table(LINE, 6, 0), table(LINE, 5, 0)])


def test_only_replaced_rows_have_a_public_number():
    assert not Unit().secret
    assert all(unit.secret for unit in UNITS)
    assert len({unit.text for unit in (Unit(), *UNITS)}) == 6
    with pytest.raises(InputError, match="at least 1"):
        Unit("replace", 0)


# Releases


@pytest.mark.parametrize("method", ["features", "subspace", "public"])
@pytest.mark.parametrize("unit", UNITS[1:4], ids=str)
def test_no_byte_depends_on_the_number_of_rows_but_through_the_noise(method, unit):
    asked = request(method, unit=unit)
    answer = 50 * np.random.default_rng(0).random(100)
    found, vectors = set(), set()
    for count, seed in ((50, 0), (51, 0), (7, 1), (0, 2)):
        fake, spent = Recorder(answer), []
        private = table(asked.schema, count, seed)
        record = private_record([private], None, asked, lambda *given, to=spent: to.append(given), noise=fake)
        ((vector, sensitivity, budget),) = fake.calls
        made = synthetic(record, 9, public=asked.public)
        texts = [rows_text(made, weighted=weighted) for weighted in (False, True)]
        found.add((record.to_json(), *texts, sensitivity, budget, *spent))
        vectors.add(vector.tobytes())
    assert len(vectors) == 4
    assert len(found) == 1
    assert record.promise == PrivacyGuarantee(1, 1e-6, record.promise.neighbours, None)
    assert record.promise.neighbours.startswith(unit.text)
    assert not [text for text in record.public if "number of rows of the table" in text]
    assert parse_record(record.to_json()) == record


def test_the_noise_of_a_secret_number_is_that_of_its_totals():
    asked, fake = request("features", unit=Unit("replace", 2)), Recorder()
    private = table(MIXED, 50, 0)
    record = private_record([private], None, asked, free, noise=fake)
    totals = Totals(vector_method(asked.method).embedding(asked), asked.unit)
    assert fake.calls[0][1] == totals.l2_sensitivity() == pytest.approx(4, rel=1e-6)
    assert fake.calls[0][0].tobytes() == totals.vector([private]).tobytes()
    vector, noise = noisy_vector(record)
    np.testing.assert_allclose(vector, vector_method(asked.method).embedding(asked).mean([private]), rtol=0, atol=1e-15)
    assert noise.scale == pytest.approx(1 / 50)  # that of the recorder is 1
    assert record.count == Counted(pytest.approx(50), pytest.approx(1 / math.sqrt(3)), 2, 25)
    assert expected(asked, 50).stages == expected(request("features"), 25).stages
    public = private_record([private], 50, request("features"), free, noise=Recorder())
    assert public.count == Counted(50, 0, 1, 50)


def test_the_noisy_number_of_rows_has_its_error():
    asked = request("features", unit=Unit("add-remove"))
    private = table(MIXED, 50, 0)
    found = [private_record([private], None, asked, free).count for _ in range(60)]
    z = np.array([(count.rows - 50) / count.deviation for count in found])
    kept = z[[count.rows > 1 for count in found]]  # at least 1, by post-processing
    assert len(kept) > 40
    assert abs(kept.mean()) < 5 / math.sqrt(len(kept))
    assert abs(kept.std() - 1) < 5 / math.sqrt(2 * len(kept))


def test_a_number_of_rows_is_given_if_and_only_if_it_is_public():
    private = table(MIXED, 5, 0)
    for count, unit in ((5, Unit("add-remove")), (None, Unit())):
        with pytest.raises(ValueError, match="only then"):
            private_record([private], count, request("features", unit=unit), free)
