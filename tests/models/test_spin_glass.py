import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.conftest import all_states
from thesis_cli.base.errors import InputError
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models import spin_glass
from thesis_cli.models.glibc import RAND_MAX, GlibcRand
from thesis_cli.models.spin_glass import SpinGlass, published_noise, published_spin_glass, random_spin_glass
from thesis_cli.studies.published_data import digest, shipped

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 3))
KINDS = st.sampled_from(["attractive", "mixed"])


@given(SIZES, KINDS, st.integers(0, 2**32))
def test_the_graph_has_the_potential_of_the_definition(size, kind, seed):
    model = random_spin_glass(*size, 2.0, 1.0, kind, np.random.default_rng(seed))
    graph = model.graph()
    states = all_states(graph)
    x = (2 * states - 1).reshape(-1, *size)
    phi = (model.fields * x).sum((1, 2))
    phi += (model.right * x[:, :, 1:] * x[:, :, :-1]).sum((1, 2)) + (model.down * x[:, 1:] * x[:, :-1]).sum((1, 2))
    np.testing.assert_allclose(graph.log_potential(states), phi, rtol=1e-12, atol=1e-12)


def test_the_order_of_the_factors():
    graph = SpinGlass(np.arange(6.0).reshape(2, 3), np.full((2, 2), 10.0), np.full((1, 3), 20.0)).graph()
    scopes = [(0,), (1,), (2,), (3,), (4,), (5,), (0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    assert [f.scope for f in graph.factors] == scopes
    assert [f.table[(-1,) * f.table.ndim] for f in graph.factors] == [*range(6), *[10] * 4, *[20] * 3]
    assert graph.factors[1].table.tolist() == [-1, 1]
    assert graph.factors[6].table.tolist() == [[10, -10], [-10, 10]]


def test_grids_without_edges():
    graph = random_spin_glass(1, 1, 3.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    assert [f.scope for f in graph.factors] == [(0,)]
    chain = random_spin_glass(1, 5, 3.0, 1.0, "mixed", np.random.default_rng(0)).graph()
    assert [f.scope for f in chain.factors[5:]] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert published_spin_glass(1, "mixed", rows=3, columns=1).down.shape == (2, 1)


@pytest.mark.parametrize(("kind", "lowest"), [("attractive", 0), ("mixed", -3)])
def test_strengths_are_uniform(kind, lowest):
    model = random_spin_glass(100, 101, 3.0, 2.0, kind, np.random.default_rng(1))
    for values, low, high in ((model.fields, -2, 2), (model.right, lowest, 3), (model.down, lowest, 3)):
        assert stats.kstest(values.ravel(), stats.uniform(low, high - low).cdf).pvalue > 1e-6
    again = random_spin_glass(100, 101, 3.0, 2.0, kind, np.random.default_rng(1))
    np.testing.assert_array_equal(again.down, model.down)


BAD = [
    ({"rows": 0}, "the grid is 0 x 3; it must have"),
    ({"columns": -1}, "the grid is 2 x -1"),
    ({"coupling": math.nan}, "the coupling is nan; it must be from 0 to"),
    ({"coupling": math.inf}, "the coupling is inf"),
    ({"coupling": -0.1}, "the coupling is -0.1"),
    ({"coupling": 1e308}, r"the coupling is 1e\+308"),
    ({"kind": "repulsive"}, "the kind is 'repulsive'; it must be"),
]


@pytest.mark.parametrize(("wrong", "message"), [*BAD, ({"field": math.nan}, "the field is nan"), ({"field": -1}, "-1")])
def test_invalid_strengths_are_refused(wrong, message):
    arguments = {"rows": 2, "columns": 3, "coupling": 1.0, "field": 1.0, "kind": "mixed", **wrong}
    with pytest.raises(InputError, match=message):
        random_spin_glass(**arguments, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [*BAD, ({"coupling": "one"}, "the coupling is 'one'"), ({"coupling": "nan"}, "the coupling is nan")],
)
def test_invalid_strengths_of_published_models_are_refused(wrong, message):
    arguments = {"rows": 2, "columns": 3, "coupling": 1.0, "kind": "mixed", **wrong}
    with pytest.raises(InputError, match=message):
        published_spin_glass(**arguments)
    with pytest.raises(InputError, match=message):
        published_noise(**arguments, count=1)


@pytest.mark.parametrize(
    ("fields", "right", "down", "message"),
    [
        (np.zeros(3), np.zeros((1, 2)), np.zeros((0, 3)), r"the fields have shape \(3,\)"),
        (np.zeros((0, 3)), np.zeros((0, 2)), np.zeros((0, 3)), r"the fields have shape \(0, 3\)"),
        (
            np.zeros((2, 3)),
            np.zeros((2, 3)),
            np.zeros((1, 3)),
            r"right has shape \(2, 3\); the fields make it \(2, 2\)",
        ),
        (np.zeros((2, 3)), np.zeros((2, 2)), np.zeros((2, 3)), r"down has shape \(2, 3\); the fields make it \(1, 3\)"),
        (np.full((2, 3), np.nan), np.zeros((2, 2)), np.zeros((1, 3)), "fields has a NaN"),
        (np.zeros((2, 3)), np.full((2, 2), np.nan), np.zeros((1, 3)), "right has a NaN"),
        (np.zeros((2, 3)), np.zeros((2, 2)), np.full((1, 3), np.inf), "down has a NaN or an infinity"),
    ],
)
def test_shapes_that_form_no_grid_are_refused(fields, right, down, message):
    with pytest.raises(InputError, match=message):
        SpinGlass(fields, right, down)


@pytest.mark.parametrize(
    ("coupling", "kind", "expected"),
    [
        (0, "mixed", "84.4928"),
        ("0.333333", "attractive", "86.4781"),
        ("0.333333", "mixed", "86.4370"),
        ("1.66667", "attractive", "162.174"),
        ("1.66667", "mixed", "149.554"),
    ],
)
def test_published_partition_functions(coupling, kind, expected):
    ln_z = Elimination(published_spin_glass(coupling, kind).graph()).log_partition_function()
    assert f"{ln_z:#.6g}" == expected


def test_the_first_numbers_of_a_published_model():
    """Computed by hand: each site draws its field, then its couplings to the site above and left."""
    r = GlibcRand(0).draw(60).tolist()
    model = published_spin_glass(1, "mixed")
    halves = RAND_MAX / 2
    assert model.fields[0, :3].tolist() == [-1 + r[0] / halves, -1 + r[1] / halves, -1 + r[3] / halves]
    assert model.right[0, :2].tolist() == [-1 + r[2] / halves, -1 + r[4] / halves]
    assert (model.fields[1, 0], model.down[0, 0]) == (-1 + r[19] / halves, -1 + r[20] / halves)
    assert (model.fields[1, 1], model.down[0, 1], model.right[1, 0]) == tuple(-1 + r[k] / halves for k in (21, 22, 23))
    attractive = published_spin_glass(1, "attractive")
    assert attractive.right[0, 0] == r[2] / RAND_MAX
    assert attractive.fields[0, 1] == model.fields[0, 1]


def test_zero_couplings_draw_no_random_numbers():
    r = GlibcRand(0).draw(301)
    model = published_spin_glass(0, "mixed")
    np.testing.assert_array_equal(model.fields.ravel(), -1 + r[:100] / (RAND_MAX / 2))
    assert not model.right.any()
    np.testing.assert_allclose(
        published_noise(0, "mixed", 1)[0], -np.log(-np.log(r[100:300] / RAND_MAX)) - 0.5772156649, rtol=1e-13
    )


def test_six_digits_stand_for_a_third_in_single_precision():
    third = published_spin_glass(1 / 3, "attractive")
    for name in ("0.333333", 0.333333, "0.33333333"):
        np.testing.assert_array_equal(published_spin_glass(name, "attractive").right, third.right)
    r = GlibcRand(0).draw(3)
    assert third.right[0, 0] == r[2] / (RAND_MAX / float(np.float32(1 / 3)))
    assert published_spin_glass("0.33333", "attractive").right[0, 0] != third.right[0, 0]
    assert published_spin_glass(0.4, "attractive").right[0, 0] == r[2] / (RAND_MAX / float(np.float32(0.4)))


def test_noise_continues_the_stream_of_the_model():
    r = GlibcRand(0).draw(280 + 3 * 200)[280:].reshape(3, 200)
    expected = -np.log(-np.log(r / RAND_MAX)) - 0.5772156649
    noise = published_noise(1, "mixed", 3)
    np.testing.assert_allclose(noise, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(published_noise(1, "mixed", 2, skip=1), noise[1:])
    assert published_noise(1, "mixed", 0).shape == (0, 200)
    assert published_noise(1, "mixed", 2, rows=2, columns=3).shape == (2, 12)
    for wrong in ({"count": -1}, {"count": 1, "skip": -1}):
        with pytest.raises(InputError, match="is -1"):
            published_noise(1, "mixed", **wrong)


def test_noise_is_finite_at_the_ends_of_the_generator(monkeypatch):
    class Ends(GlibcRand):
        def draw(self, count):
            return np.resize(np.array([0, RAND_MAX], np.int32), count)

    monkeypatch.setattr(spin_glass, "GlibcRand", Ends)
    noise = published_noise(1, "mixed", 1)[0]
    low, high = -math.log(math.log(2 * RAND_MAX)), -math.log(-math.log1p(-0.5 / RAND_MAX))
    np.testing.assert_allclose(noise[:2] + 0.5772156649, [low, high], rtol=1e-8)


@pytest.mark.parametrize("published", shipped("fig-2-4"), ids=lambda entry: f"{entry['kind']} {entry['coupling']}")
def test_the_published_partition_function_and_maxima(published):
    """All printed digits of ln Z and of the first 2,000 MAP values agree; six digits of the
    coupling, instead of the float nearest to a third, would change many of them (the errata say how
    many).
    """
    coupling, kind = published["coupling"], published["kind"]
    model = published_spin_glass(coupling, kind)
    solver = GridTransfer(model.graph())
    assert float(f"{solver.log_partition_function():.6g}") == published["log_z"]
    first = published["solvers"]["exact"]["digest"]
    noise = published_noise(coupling, kind, first["count"])
    values, _ = solver.maximise(noise)
    assert digest(values) == first["sha256"]
    ratio = coupling / float(np.float32(round(3 * coupling) / 3))
    others, _ = GridTransfer(SpinGlass(model.fields, ratio * model.right, ratio * model.down).graph()).maximise(noise)
    assert sum(f"{one:.6g}" != f"{other:.6g}" for one, other in zip(values, others, strict=True)) in range(150, 560)
