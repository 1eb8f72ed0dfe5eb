"""Scores of the real table with the fewest rows, and of made-up moments."""

import itertools

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.schema import Schema
from thesis_cli.studies.privacy.evaluation import squared_distance
from thesis_cli.studies.privacy.utility import FEATURES, SCORES, SOURCES, Moments, RealTable, ReleaseJudge, table

SCHEMA = """
[columns.size]
type = "real"
low = 0
high = 1
missing = true

[columns.grade]
type = "category"
levels = ["low", "middle", "high"]
ordered = true

[columns.place]
type = "category"
levels = ["a", "b", "c"]

[columns.Class]
type = "category"
levels = ["bad", "good"]
"""


def made_up(count, rng):
    """Size and class go together; every tenth size is missing."""
    good = rng.integers(0, 2, count)
    size = np.where(np.arange(count) % 10 == 0, 0.5, (good + rng.random(count)) / 2)
    reals = np.stack([size, rng.integers(0, 3, count) / 2], 1)
    codes = np.stack([np.arange(count) % 10 == 0, rng.integers(0, 3, count), good], 1)
    return Rows(reals, codes.astype(np.int64))


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(3)
    source = SOURCES["lending-club"]
    split = RealTable("made up", source, Schema.parse(SCHEMA), made_up(1500, rng), made_up(500, rng))
    return split, ReleaseJudge(split)


def test_the_table_itself_has_no_errors(judged):
    split, judge = judged
    found = judge.scores(split.private)
    assert found.keys() == SCORES.keys()
    assert all(found[name] == pytest.approx(0, abs=1e-12) for name in SCORES if name not in ("logistic", "boosting"))
    assert found["logistic"] > 0.9 < found["boosting"]


def test_marginals_are_compared_cell_by_cell(judged):
    """Compared with loops over rows; the deciles of the table are the cuts."""
    split, judge = judged
    parts = split.private, split.private[:40]
    columns = [split.schema.decode(part) for part in parts]
    numbers = {"size": columns[0]["size"], "grade": 2 * split.private.reals[:, 1]}
    cuts = {name: np.unique(np.nanquantile(x, np.arange(1, 10) / 10)) for name, x in numbers.items()}

    def cell(rows, name, n):
        value = rows[name][n]
        if name == "grade":
            value = ("low", "middle", "high").index(value)
        if name in cuts:
            return "missing" if np.isnan(value) else sum(cut <= value for cut in cuts[name])
        return value

    def variation(names):
        mass = {}
        for rows, sign in zip(columns, (1, -1), strict=True):
            for n in range(count := len(rows["size"])):
                key = tuple(cell(rows, name, n) for name in names)
                mass[key] = mass.get(key, 0) + sign / count
        return sum(map(abs, mass.values())) / 2

    found = judge.scores(parts[1])
    assert found["one_way"] == pytest.approx(np.mean([variation([name]) for name in columns[0]]))
    assert found["two_way"] == pytest.approx(np.mean([variation(p) for p in itertools.combinations(columns[0], 2)]))


def test_the_distance_is_near_that_of_the_embeddings(judged):
    """To five standard errors of a mean over features, which come in dependent pairs."""
    split, judge = judged
    kernel, moved = split.schema.kernel(), Rows(split.private.reals[:60] ** 2, split.private.codes[:60])
    other = split.schema.encode(split.schema.decode(moved))
    weights = (np.full(len(of), 1 / len(of)) for of in (split.private, other))
    exact = squared_distance(kernel, split.private, next(weights), other, next(weights))
    features = draw_features(kernel, split.schema.cardinalities, FEATURES, np.random.default_rng(1))
    terms = FEATURES * (features.mean([split.private]) - features.mean([other])) ** 2
    error = 5 * terms.std() * (2 / FEATURES) ** 0.5
    assert judge.scores(other)["distance"] ** 2 == pytest.approx(exact, abs=error)
    assert error < exact


def test_each_score_sees_what_is_wrong(judged):
    split, judge = judged
    reals, codes = split.private.reals.copy(), split.private.codes.copy()
    half = judge.scores(split.private[:750])
    apart = judge.scores(Rows(np.roll(reals, 7, 0), codes))  # columns as they are, pairs broken
    assert apart["one_way"] == pytest.approx(half["one_way"], abs=0.05)
    assert apart["two_way"] > 3 * half["two_way"]
    assert apart["correlations"] > 3 * half["correlations"]
    assert apart["boosting_loss"] > 0.2 < apart["logistic_loss"]
    moved = judge.scores(Rows(np.minimum(reals + 0.25 * (codes[:, :1] == 0), 1), codes))
    assert moved["means"] > 0.2
    assert moved["distance"] > 3 * half["distance"]
    assert moved["ranges"] > 3 * half["ranges"]
    constant = judge.scores(Rows(reals, np.concatenate([codes[:, :2], np.ones((len(reals), 1), np.int64)], 1)))
    assert constant["logistic"] == constant["boosting"] == 0.5


def test_a_level_of_missing_values_counts(judged):
    split, judge = judged
    codes = split.private.codes.copy()
    codes[:, 0] = 0
    found = judge.scores(Rows(split.private.reals, codes))
    assert found["one_way"] == pytest.approx(0.1 / 4, abs=1e-12)  # a tenth of one column in four


def test_moments_leave_out_missing_values():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    values[:, 3] = 2.0
    found = Moments.of(values)
    assert np.allclose(found.means, values.mean(0), rtol=1e-12, atol=1e-12)
    assert np.allclose(found.correlations[:3, :3], np.corrcoef(values[:, :3].T), rtol=1e-10)
    assert not found.correlations[3, :3].any()
    some = values.copy()
    some[:20, 0] = np.nan
    assert np.allclose(Moments.of(some).means[0], values[20:, 0].mean(), rtol=1e-12)
    both = Moments.of(np.concatenate([values, np.full((5, 4), np.nan)]))
    assert all(value == pytest.approx(0, abs=1e-12) for value in found.errors(both).values())


def test_a_split_keeps_each_persons_rows_together():
    split = table("lending-club")
    assert len(split.private) + len(split.held_out) == 9857
    assert len(split.held_out) == round(0.2 * 9857)
    assert table("randhie").held_out.reals.shape[1] + len(split.schema.names) > 30
    with pytest.raises(InputError, match="unknown table 'lending'"):
        table("lending")
