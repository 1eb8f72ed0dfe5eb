"""Experiments on private releases (Thesis chapter 4), against distances that are known without a release."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.privacy.embedding.means import distance, mean_at, mean_of_matrix
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian, classical_scale
from thesis_cli.privacy.query.query import ask
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.studies.privacy.consistency import errors
from thesis_cli.studies.privacy.published import (
    DELTA,
    EPSILONS,
    MEAN_OF_MATRIX,
    ROWS,
    kernel,
    mixture,
    private_table,
    public_points,
    wide_points,
)
from thesis_cli.studies.privacy.real_releases import released
from thesis_cli.studies.privacy.real_tables import questions
from thesis_cli.studies.privacy.real_tables import table as real_table
from thesis_cli.studies.privacy.seeded import SeededGaussian, subspace_release
from thesis_cli.studies.privacy.utility import ReleaseJudge
from thesis_cli.studies.privacy.utility import table as judged_table

MOST = 8


@pytest.fixture(scope="module")
def private():
    return private_table(2)


@pytest.mark.parametrize(("name", "kind"), [("fig-4-1", "leak"), ("fig-4-2", "random")])
def test_algorithm_2_has_the_distances_of_few_points(private, name, kind):
    """The excess of a squared distance over that of the projection is noise of a known scale."""
    given = {"dimension": 2, "most": MOST, "draws": 8, "constrained": [4]}
    found = run(name, **given) if name == "fig-4-1" else run(name, algorithm=2, **given)
    assert (found.dimension == 2).all()
    k, points = kernel(2), public_points(2, kind, private)[0][:MOST]
    values = mean_at(k, [private], points)
    gram, squared = k.matrix(points, points), MEAN_OF_MATRIX[2]
    for m in (1, 4, MOST):
        best = np.linalg.solve(gram[:m, :m], values[:m])
        exact = {"projection": squared - best @ values[:m]}
        equal = np.full(m, 1 / m)
        exact["baseline"] = squared - 2 * equal @ values[:m] + equal @ gram[:m, :m] @ equal
        for curve, value in exact.items():
            assert one(found, curve=curve, points=m).distance ** 2 == pytest.approx(value, rel=1e-6)
        for epsilon in EPSILONS:
            free = rows(found, curve="Algorithm 2", points=m, epsilon=epsilon)
            scale = classical_scale(2 / ROWS, Budget(epsilon, DELTA))
            excess = (rows(free, noise="published").distance ** 2 - exact["projection"]) / (m * scale**2)
            assert_near(excess.mean(), math.sqrt(2 / m / 8), 1, rounding=1e-10 / scale**2)
    least, held = (rows(found, curve=c, points=4).distance for c in ("projection", "simplex"))
    assert (held >= least[0] * (1 - 1e-9)).all()


def test_algorithm_3_comes_near_the_best_point(private):
    """One point of weight 1: with little noise it is the best one."""
    found = run("fig-4-2", algorithm=3, dimension=2, features=100, points=[1], noise="published", draw=0)
    assert found.epsilon.tolist() == list(EPSILONS)
    steps = np.linspace(-400, 600, 41)
    grid = Rows.of_reals(np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2))
    values = mean_at(kernel(2), [private[:2000]], grid)
    least = math.sqrt(MEAN_OF_MATRIX[2] - 2 * values.max() + 1)
    assert (found.distance > least - 0.02).all()
    assert found.distance.iloc[-1] < least + 0.05
    assert (found.assign(points=1, draw=0, noise="published", curve="Algorithm 3") == found).all(axis=None)


def test_algorithm_3_as_published_has_the_distances_of_the_published_run():
    """The first run starts afresh, and all runs begin with the published random numbers only in draw 0."""
    given = {"algorithm": 3, "dimension": 2, "features": 100, "most": 3}
    first, again, other = (run("fig-4-2-algorithm-3", **given, draw=draw) for draw in (0, 0, 1))
    assert first.equals(again)
    assert (other.distance != first.distance).all()
    chained, fresh = (first[first.curve == curve] for curve in ("published code", "fresh starts"))
    same = chained.distance.to_numpy() == fresh.distance.to_numpy()
    np.testing.assert_array_equal(same, chained.epsilon == EPSILONS[0])
    assert first.distance.between(0.2, 0.6).all()


def fresh_release(n, rng, constraint, epsilon, sample):
    """Norm of the weights and distances of Algorithm 2 on a new table, by the one call of the library."""
    population, k, line = mixture(2), kernel(2), kernel(1)
    table, points = population.draw(n, rng), wide_points(2, math.isqrt(n), rng)
    noise = SeededGaussian(rng, "analytic")
    w = subspace_release(k, points, [table], n, noise, Budget(epsilon, DELTA), *constraint).weights
    numbers = [np.abs(w).sum(), distance(k, points, w, population.embedding(k, points), population.squared_norm(k))]
    others = population.draw(sample, rng).reals
    for f in (lambda x: x[:, :1] * x[:, 1:] / 100, lambda x: x.max(1, keepdims=True)):
        at, images = (Rows.of_reals(f(x)) for x in (points.reals, others))
        numbers.append(distance(line, at, w, mean_at(line, [images], at), mean_of_matrix(line, images)))
    return numbers


def test_theorem_13_has_the_norms_and_distances_of_the_library():
    frame = whole("theorem-13", rows=[100, 400], draws=10, sample=300)
    constraints = {"raw": ("raw", 1.0), "C = 2": ("l1", 2.0), "C = 1": ("l1", 1.0), "simplex": ("simplex", 1.0)}
    rng = np.random.default_rng(1)
    assert (rows(frame, rows=400).points == 20).all()
    for name, constraint in constraints.items():
        found = rows(frame, rows=400, weights=name, epsilon=1.0)[["norm", "distance", "product", "maximum"]]
        fresh = np.array([fresh_release(400, rng, constraint, 1.0, 300) for _ in range(10)])
        errors = np.hypot(found.std() / math.sqrt(10), fresh.std(axis=0, ddof=1) / math.sqrt(10))
        assert_near(found.mean(), errors, fresh.mean(axis=0), rounding=1e-6)
    pushed = rows(frame, weights="C = 2", epsilon=0.01)  # noise takes the weights to the bound
    np.testing.assert_allclose(pushed.norm, 2, rtol=0.01)
    held = frame[frame.weights != "raw"]
    assert (held.norm <= held.weights.map({"C = 2": 2.0, "C = 1": 1.0, "simplex": 1.0}) + 1e-9).all()


def test_rates_have_the_sampling_error_and_the_noise_of_their_tables():
    """Squared distances are |mu|^2 short of 1, over N, for a table, plus that of the noise for a release."""

    def spread(release):
        """Standard error of the mean square of the noise in its coordinates."""
        return math.sqrt(2 / release.coordinates.sum())

    found, n = run("rates", part="public", dimension=2, rows=100, repetitions=4), 100
    squares = {c: of.distance.to_numpy() ** 2 for c, of in found.groupby("curve")}
    table, public = squares["the table itself"] * n, squares["public rows, equal weights"] * n / 10
    assert_near(table.mean(), math.hypot(table.std(), public.std()) / 2, public.mean())
    assert 0.1 < table.mean() < 1
    release = rows(found, curve="Algorithm 2, public rows")
    assert (release["size"] == 10).all()
    assert (release.coordinates <= 10).all()
    scale = OpenDPGaussian().calibrate(1, math.sqrt(2) / n, Budget(1.0, 1e-6)).scale
    excess = squares["Algorithm 2, public rows"] - squares["projection of the population"] - table / n
    units = excess / (release.coordinates * scale**2)
    assert_near(units.mean(), math.hypot(units.std() / 2, spread(release)), 1)
    found = run("rates", part="rough", dimension=3, rows=316, repetitions=200)
    release, missed = (rows(found, curve=c) for c in ("Algorithm 2, random points", "projection of the table"))
    assert (release["size"] == round(316 ** (2 - 4 / 8.5) / 256)).all()
    scale = classical_scale(2 / 316, Budget(1.0, 1e-6))
    units = (release.distance**2 - missed.distance**2) / (release["size"] * scale**2)
    # Beside the noise there is the sampling error of the table, at most 1/N squared.
    sampling = 1 / 316 / (26 * scale**2)
    assert_near(units.mean(), units.std() / math.sqrt(200), 1, rounding=sampling)
    found = run("rates", part="delta", dimension=1, rows=400, repetitions=4)
    release, missed = (rows(found, curve=c) for c in ("Algorithm 2, random points", "projection of the table"))
    unit = classical_scale(2 / 400, Budget(1.0, math.exp(-20))) ** 2
    units = (release.distance**2 - missed.distance**2) / (release.coordinates * unit)
    assert (release["size"] == 50).all()
    assert_near(units.mean(), spread(release), 1, rounding=1 / 400 / (50 * unit))
    assert missed.distance.between(0.001, 0.2).all()
    found = run("rates", part="features", dimension=1, rows=64, repetitions=2)
    assert (found["size"] == 256).all()
    assert (found.distance < 1).all()


def test_real_tables_are_judged_release_by_release():
    private, method = 300, "rows of the table"
    frame = run(
        "real-table", method=method, name="cps1988", epsilon=None, draws=2, private=private, rows=50, features=9
    )
    assert frame[["table", "method", "draw", "rows"]].to_numpy().tolist() == [
        ["cps1988", method, draw, count] for draw in (0, 1) for count in (private, 50)
    ]
    assert frame.epsilon.isna().all()
    found = judged_table("cps1988")
    found = type(found)(**{**vars(found), "private": found.private[:private]})
    child = np.random.SeedSequence(0).spawn(2)[1]
    parts = released(method, found, Budget(1.0, 1e-6), 50, 9, np.random.default_rng(child))
    scores = pd.DataFrame([ReleaseJudge(found).scores(part) for part in parts])
    pd.testing.assert_frame_equal(frame[frame.draw == 1][[*scores]].reset_index(drop=True), scores, rtol=1e-5)


def test_intervals_are_counted_for_every_question():
    frame = run("query-intervals", name="cps1988", epsilon=1.0, draws=2, each=1, simulated=3, rows=300)
    source = real_table("cps1988")
    asked = dict(reversed(pair) for pair in questions(source, 1, np.random.default_rng(19)))
    truth = WeightedSample.of_rows(source.schema, source.private)
    about_the_release = ("R^2 in the release", "RMSE in the release", "directions not determined")
    count = dict.fromkeys(asked.values(), 0)
    for text, family in asked.items():
        known = [row for row in ask(truth, text, 1.0).rows if row.statistic not in about_the_release]
        count[family] += sum(not math.isnan(row.value) for row in known)
    assert frame.draw.tolist() == [0] * len(count) + [1] * len(count)
    np.testing.assert_array_equal(frame.numbers + frame.without, frame.family.map(count))
    assert (frame.covered <= frame.numbers).all()
    assert frame.covered.sum() > 0.6 * frame.numbers.sum()


def test_sides_of_the_statements_on_embeddings():
    """Each inequality is right where it is proven; the features that the thesis prints are too long."""
    found = run("embeddings", part="bounds", dimension=2, size=0, repetitions=10)
    proven = found[~(found.epsilon > 1) & ~found.statement.isin(["printed features", "eq. C.6"])]
    assert (proven.left <= proven.right * (1 + 1e-6)).all()
    assert (proven.left > 0).any()
    for statement in ("Lemma 6", "eq. C.20", "eq. C.28"):
        np.testing.assert_allclose(rows(found, statement=statement).right, 2 / 60, rtol=1e-7)
    for statement in ("Proposition 10", "Proposition 14", "printed features", "exponential mechanism"):
        assert (rows(found, statement=statement).right == 1).all()
    assert (rows(found, statement="printed features").left > 1).all()
    noise = rows(found, statement="eq. C.6")
    scale = classical_scale(2 / 60, Budget(1.0, 0.01))
    coordinates = noise.right / scale**2
    np.testing.assert_allclose(coordinates, coordinates.round(), rtol=1e-6)
    ratio = noise.left.sum() / noise.right.sum()
    assert_near(ratio, math.sqrt(2 / coordinates.sum()), 1)
    sample = run("embeddings", part="sample", dimension=2, size=30, repetitions=40)
    ratio = sample.left / sample.right
    assert_near(ratio.mean(), ratio.std() / math.sqrt(40), 1)
    assert sample.right.between(0.1 / 30, 1 / 30).all()


def test_consistency_and_proxies_are_those_of_the_library():
    child = np.random.SeedSequence(0).spawn(1)[0]
    found = run("embeddings", part="consistency", dimension=2, size=100, repetitions=1).set_index("statement").left
    exact = errors(100, np.random.default_rng(child))
    assert found.to_dict() == pytest.approx(exact, rel=1e-7)
    assert found["Algorithm 2: mean of h"] <= found["Algorithm 2: X"]  # each h has norm 1
    proxy = run("embeddings", part="proxy", dimension=2, size=20, repetitions=1)
    off = one(proxy, statement="the table itself").left
    of = rows(proxy, statement="proxy")
    assert of.epsilon.tolist() == list(EPSILONS)
    assert ((of.left - of.right).abs() <= off * (1 + 1e-6)).all()
    assert off == pytest.approx(math.sqrt((1 - mixture(2).squared_norm(kernel(2))) / ROWS), rel=0.9)
