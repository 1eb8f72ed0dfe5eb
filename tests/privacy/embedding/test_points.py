import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.simplex import simplex_weights
from thesis_cli.privacy.embedding import atoms, points
from thesis_cli.privacy.embedding.atoms import Atoms, Fit, descend
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.embedding.points import WIDTHS, Effort, synthesise
from thesis_cli.privacy.embedding.points_kernels import LevelTurns, choose_levels
from thesis_cli.privacy.kernels import RowKernel, Rows

CARDINALITIES = (3, 2)
BOX = np.array([[-1.0, 2.0], [10.0, 14.0]])


def mixed(count=300, seed=0):
    """Features of two reals and two categories."""
    kernel = RowKernel(np.array([1.0, 0.5]), np.array([0.3, 0.2]))
    return draw_features(kernel, CARDINALITIES, count, np.random.default_rng(seed))


def reals(count=400, dimension=2, seed=0):
    kernel = RowKernel(np.full(dimension, 0.5), np.zeros(0))
    return draw_features(kernel, (), count, np.random.default_rng(seed))


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(n, size=count) for n in CARDINALITIES], 1)
    return Rows(rng.uniform(BOX[:, 0], BOX[:, 1], (count, 2)), codes)


def noisy(features, sigma, seed=0, count=400):
    """Mean feature of three clusters in [-5, 5]^D with noise, and without."""
    rng = np.random.default_rng(seed)
    dimension = features.frequencies.shape[1]
    centres = rng.uniform(-4, 4, (3, dimension))
    table = centres[rng.integers(3, size=count)] + 0.3 * rng.standard_normal((count, dimension))
    mean = features.embed(Rows.of_reals(np.clip(table, -5, 5))).mean(0)
    return mean + sigma * rng.standard_normal(mean.shape), mean


def box(dimension=2):
    return np.tile([-5.0, 5.0], (dimension, 1))


def fewer_steps(monkeypatch, steps):
    """Limit the steps of the points and of Frank-Wolfe."""
    monkeypatch.setattr(points, "STEPS", steps)
    for name, value in (("ROUNDS", 4), ("CLIMBS", 4), ("SLIDES", 20), ("CANDIDATES", 100)):
        monkeypatch.setattr(points, name, value)


def atoms_of(fit, rows, weights, widths=0.0):
    return Atoms(rows.reals * fit.scale, rows.codes + fit.before, np.full(len(rows), np.square(widths)), weights)


@pytest.mark.parametrize("count", [2, 300, 1030, 2048])
def test_compiled_sums_are_those_of_the_features(count):
    features, rows = mixed(count), rows_of(7)
    weights, vector = np.random.default_rng(1).normal(size=7), np.random.default_rng(2).normal(size=count)
    with Fit(features, BOX, 2) as fit:
        atoms = atoms_of(fit, rows, weights)
        embedded = features.embed(rows)
        np.testing.assert_allclose(fit.embed(atoms), embedded, rtol=0, atol=1e-12)
        np.testing.assert_allclose(fit.sum(atoms).ravel(), weights @ embedded, rtol=0, atol=1e-12)
        values, _ = fit.products(atoms, vector.reshape(2, -1))
        np.testing.assert_allclose(values, embedded @ vector, rtol=0, atol=1e-12 * count)


def test_angles_far_from_zero():
    features = mixed(40)
    rows = rows_of(5)
    far = Rows(rows.reals * 1e4, rows.codes)
    with Fit(features, BOX * 1e4, 1) as fit:
        np.testing.assert_allclose(
            fit.sum(atoms_of(fit, far, np.full(5, 0.2))).ravel(), features.embed(far).mean(0), rtol=0, atol=1e-10
        )


def test_a_wide_atom_is_the_mean_of_a_gaussian():
    features = reals(60)
    rng = np.random.default_rng(0)
    with Fit(features, box(), 1) as fit:
        for width in WIDTHS:
            one = atoms_of(fit, Rows.of_reals(np.ones((1, 2))), np.ones(1), width)
            drawn = one.points + width * rng.standard_normal((30_000, 2))
            sample = features.embed(Rows.of_reals(drawn / fit.scale))
            error = 5 * sample.std(0) / math.sqrt(3e4) + 1e-12
            assert (np.abs(fit.embed(one)[0] - sample.mean(0)) < error).all()
            np.testing.assert_allclose(fit.sum(one).ravel(), fit.embed(one)[0], rtol=0, atol=1e-12)


def test_gradient_against_finite_differences():
    features, rows = mixed(), rows_of(6)
    vector = np.random.default_rng(3).normal(size=(2, 150))
    with Fit(features, BOX, 1) as fit:
        atoms = atoms_of(fit, rows, np.ones(6), np.linspace(0.1, 1, 6))
        _, slopes = fit.products(atoms, vector)
        for d in range(3):
            place, variance = 1e-5 * np.array([d == 0, d == 1]), 1e-5 * (d == 2)
            up, down = (
                fit.products(
                    replace(atoms, points=atoms.points + s * place, variances=atoms.variances + s * variance), vector
                )[0]
                for s in (1, -1)
            )
            np.testing.assert_allclose(slopes[:, d], (up - down) / 2e-5, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("spread", [True, False])
def test_descent_follows_the_gradient_of_the_objective(weighted, spread, monkeypatch):
    """Gradient by points, variances and log-weights, as L-BFGS gets it, against finite
    differences.
    """
    seen = {}

    def catch(objective, start, low, high, steps, watch=None):
        seen.update(objective=objective, start=start)
        return start

    monkeypatch.setattr(atoms, "minimise", catch)
    features = mixed()
    target = features.embed(rows_of(30, 5)).mean(0).reshape(2, -1)
    with Fit(features, BOX, 1) as fit:
        start = atoms_of(fit, rows_of(4), np.array([0.1, 0.2, 0.3, 0.4]), 0.5)
        same = descend(fit, target, start, 1, weighted=weighted, spread=spread)
        for name in ("points", "levels", "variances", "weights"):
            np.testing.assert_allclose(getattr(same, name), getattr(start, name), rtol=1e-14)
        x, rng = seen["start"], np.random.default_rng(0)
        assert x.size == 8 + 4 * spread + 4 * weighted
        assert seen["objective"](x)[0] == pytest.approx(((fit.sum(start) - target) ** 2).sum(), rel=1e-12)
        for _ in range(5):
            way = rng.standard_normal(x.size)
            up, down = (seen["objective"](x + s * 1e-5 * way)[0] for s in (1, -1))
            assert seen["objective"](x)[1] @ way == pytest.approx((up - down) / 2e-5, rel=1e-6)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans())
def test_weights_are_the_optimum_on_the_simplex(count, rank, seed, warm):
    """Karush, Kuhn and Tucker: equal gradients on the support, none better outside; singular
    matrices too.
    """
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(count, rank))
    gram, linear = factor @ factor.T + 1e-9, rng.normal(size=count)
    start = rng.dirichlet(np.ones(count)) if warm else None
    weights = simplex_weights(gram, linear, start)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    gradient = gram @ weights - linear
    assert weights @ gradient - gradient.min() < 1e-7 * (1 + np.abs(gram).max() + np.abs(linear).max())


def test_frank_wolfe_never_rises_and_leaves_only_noise(monkeypatch):
    monkeypatch.setattr(points, "ATOMS", 1)
    features = reals(600)
    sigma = 0.01
    target, mean = noisy(features, sigma)
    found = synthesise(target, features, box(), 50, np.random.default_rng(0), noise=sigma)
    steps = [objective for stage, objective in found.history if stage == "frank-wolfe"]
    assert len(steps) > 1
    assert (np.diff(steps) <= 1e-12).all()
    distance = np.linalg.norm(found.weights @ features.embed(found.rows) - mean)
    assert distance < 0.5 * sigma * math.sqrt(600)


def test_a_table_that_can_be_represented_is_recovered(monkeypatch):
    fewer_steps(monkeypatch, 60)
    features, rows = mixed(1000), rows_of(6, seed=4)
    weights = np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    found = synthesise(
        weights @ features.embed(rows), features, BOX, 40, np.random.default_rng(0), effort=Effort(jobs=2)
    )
    assert found.objective < 1e-6
    mass = [found.weights[(found.rows.codes == codes).all(1)].sum() for codes in rows.codes]
    wanted = [weights[(rows.codes == codes).all(1)].sum() for codes in rows.codes]
    np.testing.assert_allclose(mass, wanted, atol=1e-2)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_points_lie_in_the_box_and_weights_on_the_simplex(uniform, noise, count, monkeypatch):
    fewer_steps(monkeypatch, 20)
    features = mixed()
    rng = np.random.default_rng(7)
    target = features.embed(rows_of(100)).mean(0) + noise * rng.standard_normal(300)
    tight = np.array([[0.0, 0.5], [11.0, 11.0]])  # much of the table is outside
    found = synthesise(target, features, tight, count, rng, noise=noise, uniform=uniform)
    assert found.rows.reals.shape == (count, 2)
    assert found.rows.codes.shape == (count, 2)
    assert ((tight[:, 0] <= found.rows.reals) & (found.rows.reals <= tight[:, 1])).all()
    assert ((found.rows.codes >= 0) & (found.rows.codes < CARDINALITIES)).all()
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    if uniform:
        assert (found.weights == 1 / count).all()
    residual = found.weights @ features.embed(found.rows) - target
    assert found.objective == pytest.approx(residual @ residual, abs=1e-12)


def test_one_point_is_the_best_there_is(monkeypatch):
    fewer_steps(monkeypatch, 60)
    features = reals(2000, dimension=1)
    target, _ = noisy(features, 0.0)
    found = synthesise(target, features, box(1), 1, np.random.default_rng(0))
    grid = features.embed(Rows.of_reals(np.linspace(-5, 5, 2001)[:, np.newaxis])) @ target
    assert found.objective <= 1 - 2 * grid.max() + target @ target + 1e-4


def test_weights_help_and_are_exact_without_noise(monkeypatch):
    fewer_steps(monkeypatch, 20)
    features = reals()
    target, _ = noisy(features, 0.0)
    found = {u: synthesise(target, features, box(), 8, np.random.default_rng(0), uniform=u) for u in (False, True)}
    assert found[False].objective < found[True].objective
    embedded = features.embed(found[False].rows)
    gradient = embedded @ (found[False].weights @ embedded - target)
    assert found[False].weights @ gradient - gradient.min() < 1e-8


def test_neither_threads_nor_repetition_change_a_bit(monkeypatch):
    fewer_steps(monkeypatch, 15)
    features = mixed(1100)
    target = features.embed(rows_of(50)).mean(0) + 0.003 * np.random.default_rng(1).standard_normal(1100)
    for uniform in (False, True):
        first, other = (
            synthesise(
                target,
                features,
                BOX,
                20,
                np.random.default_rng(5),
                noise=0.003,
                uniform=uniform,
                effort=Effort(jobs=jobs),
            )
            for jobs in (1, 3)
        )
        assert first.rows.reals.tobytes() == other.rows.reals.tobytes()
        assert first.rows.codes.tobytes() == other.rows.codes.tobytes()
        assert first.weights.tobytes() == other.weights.tobytes()
        assert first.history == other.history


def test_only_categories():
    kernel = RowKernel(np.zeros(0), np.array([0.2, 0.4]))
    features = draw_features(kernel, CARDINALITIES, 400, np.random.default_rng(0))
    rows = Rows(np.zeros((4, 0)), np.array([[0, 0], [1, 1], [2, 0], [2, 1]]))
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    target = weights @ features.embed(rows)
    found = synthesise(target, features, np.zeros((0, 2)), 64, np.random.default_rng(0))
    assert found.objective < 1e-10
    for codes, weight in zip(rows.codes, weights, strict=True):
        assert found.weights[(found.rows.codes == codes).all(1)].sum() == pytest.approx(weight, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_levels_are_the_best_in_turn(seed):
    """Compared with trying every level in plain NumPy."""
    features, rows = mixed(200, seed), rows_of(5, seed)
    rng = np.random.default_rng(seed)
    target, weights = rng.normal(size=200) * 0.1, rng.dirichlet(np.ones(5))
    codes, changes = rows.codes.copy(), 0
    for m in range(5):
        for c, cardinality in enumerate(CARDINALITIES):
            tried = []
            for level in range(cardinality):
                candidate = codes.copy()
                candidate[m, c] = level
                residual = weights @ features.embed(Rows(rows.reals, candidate)) - target
                tried.append(residual @ residual)
            changes += int(np.argmin(tried)) != codes[m, c]
            codes[m, c] = np.argmin(tried)
    with Fit(features, BOX, 1) as fit:
        atoms = atoms_of(fit, rows, weights)
        residual = target.reshape(2, -1) - fit.sum(atoms)
        turns = LevelTurns(np.cos(fit.phases), np.sin(fit.phases), np.append(fit.before, len(fit.phases)))
        found = choose_levels(fit.table, turns, atoms.points, atoms.levels, weights / 10, residual)
        np.testing.assert_array_equal(atoms.levels - fit.before, codes)
        np.testing.assert_allclose(residual, target.reshape(2, -1) - fit.sum(atoms), rtol=0, atol=1e-13)
    assert found == changes > 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_categories_end_where_no_single_change_helps(seed):
    """Plain rows whose shares are not whole numbers, so that the drawn rows are not the best."""
    kernel = RowKernel(np.zeros(0), np.array([0.2, 0.4]))
    features = draw_features(kernel, CARDINALITIES, 400, np.random.default_rng(seed))
    every = Rows(np.zeros((6, 0)), np.array([[a, b] for a in range(3) for b in range(2)]))
    embedded = features.embed(every)
    target = np.random.default_rng(seed).dirichlet(np.ones(6)) @ embedded
    found = synthesise(target, features, np.zeros((0, 2)), 9, np.random.default_rng(seed), uniform=True)
    counts = np.bincount(2 * found.rows.codes[:, 0] + found.rows.codes[:, 1], minlength=6)
    assert counts.sum() == 9
    for old in np.flatnonzero(counts):
        for new in range(6):
            if (every.codes[old] == every.codes[new]).any():  # one category changes
                moved = counts - (np.arange(6) == old) + (np.arange(6) == new)
                assert found.objective <= ((moved / 9 @ embedded - target) ** 2).sum() + 1e-9


def test_noise_alone_adds_few_atoms(monkeypatch):
    """The first atoms are always added; later ones must stand out from other noise."""
    fewer_steps(monkeypatch, 1)
    monkeypatch.setattr(points, "ROUNDS", 12)
    features, steps = reals(600), 0
    for seed in range(5):
        target = 0.05 * np.random.default_rng(seed).standard_normal(600)
        found = synthesise(target, features, box(), 5, np.random.default_rng(seed), noise=0.05)
        steps += [stage for stage, _ in found.history].count("frank-wolfe")
    assert steps <= 20


@pytest.mark.parametrize("uniform", [False, True])
def test_points_leave_in_the_target_what_is_noise(uniform):
    """The points could fit a third of the noise, but leave J noise^2, less the few parameters of
    the mixture.
    """
    features, sigma = reals(600), 0.05
    for seed in range(3):
        target, mean = noisy(features, sigma, seed)
        rng = np.random.default_rng(seed)
        found = synthesise(target, features, box(), 100, rng, noise=sigma, uniform=uniform)
        noise = float(((target - mean) ** 2).sum())
        assert 0.9 < found.objective / noise < 1.02
        assert np.linalg.norm(found.weights @ features.embed(found.rows) - mean) < 0.25 * math.sqrt(noise)


def test_what_exceeds_noise_is_kept():
    """The share 1 - J noise^2 / |r|^2 is kept, with its noise."""
    smooth, rest = np.ones((2, 50)), np.full((2, 50), 0.2)
    for noise, kept in ((0.0, 1.0), (0.1, 0.75), (0.2, 0.0), (0.3, 0.0)):
        aim, left = points._shrunk(smooth + rest, smooth, noise)
        np.testing.assert_allclose(aim, smooth + kept * rest, atol=1e-12)
        assert left == pytest.approx(kept * noise)
    aim, left = points._shrunk(smooth, smooth, 0.0)
    np.testing.assert_array_equal(aim, smooth)


@pytest.mark.parametrize(
    ("near", "least", "stop"), [(0.0, 0.05, 24), (0.0, 0.5, 20), (0.0, 0.0, None), (85.0, 0.0, 14), (84.995, 0.0, 15)]
)
def test_points_stop_when_near_or_slow(near, least, stop):
    objectives = 100 - np.cumsum([1.0] * 15 + [0.01] * 30)
    watch = points._Watch(lambda stage, objective: False, near, least)
    stops = [k for k, objective in enumerate(objectives) if watch(float(objective))]
    assert (stops[0] if stops else None) == stop


def test_a_time_limit_stops_with_what_there_is(monkeypatch):
    """With a clock that advances by a second when read; each step reads it once."""
    fewer_steps(monkeypatch, 60)
    features = mixed()
    target = features.embed(rows_of(100)).mean(0)
    objectives = []

    class Watch:
        def __init__(self):
            self.readings = itertools.count(1)

        @property
        def seconds(self):
            return next(self.readings)

    monkeypatch.setattr(points, "Stopwatch", Watch)
    found = {}
    for limit in (1, 12):
        objectives.clear()
        found[limit] = synthesise(
            target,
            features,
            BOX,
            20,
            np.random.default_rng(0),
            effort=Effort(limit, progress=objectives.append),
        )
        assert [objective for _, objective in found[limit].history] == objectives
        assert len(objectives) <= limit + 2
        assert found[limit].weights.sum() == pytest.approx(1)
    assert found[12].objective < found[1].objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": np.zeros(299)}, r"shape \(299,\); it must have 300 finite"),
        ({"target": np.full(300, np.nan)}, "300 finite numbers"),
        ({"bounds": BOX[:1]}, "2 finite pairs"),
        ({"bounds": BOX[:, ::-1]}, "the lower first"),
        ({"bounds": BOX * np.inf}, "finite pairs"),
        ({"count": 0}, "points is 0"),
        ({"noise": -1.0}, "noise is -1"),
        ({"noise": math.nan}, "noise is nan"),
    ],
)
def test_bad_input_is_named_in_one_line(change, message):
    given = {"target": np.zeros(300), "bounds": BOX, "count": 5, **change}
    with pytest.raises(InputError, match=message) as caught:
        synthesise(features=mixed(), rng=np.random.default_rng(0), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("effort", "message"), [({"time_limit": 0.0}, "time limit is 0 s"), ({"jobs": 0}, "jobs is 0")]
)
def test_effort_is_checked(effort, message):
    with pytest.raises(InputError, match=message):
        Effort(**effort)
