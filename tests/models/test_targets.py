import math
import re
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.models import target_kernels as kernels
from thesis_cli.models.proposals import REACH, Normal, Uniform
from thesis_cli.models.quadrature import integrate, log_densities
from thesis_cli.models.target_files import load_regression
from thesis_cli.models.target_objects import load_object, own_code
from thesis_cli.models.targets import (
    Mixture,
    Regression,
    compiled,
    log_ratios,
    published_regression,
    split_dimension,
    tempered,
)


def regression(dimension, n=40, seed=0, **settings):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension))
    return Regression(x, x.sum(axis=1) + 0.5 * rng.standard_cauchy(n), **settings)


def mixture(dimension=2, proposal=None):
    rng = np.random.default_rng(dimension)
    means, scales = rng.normal(size=(3, dimension)), rng.uniform(0.1, 0.8, (3, dimension))
    return Mixture([1.0, 2.0, 0.5], means, scales, proposal or Normal(np.full(dimension, 0.3), np.full(dimension, 2.0)))


TARGETS = [
    regression(1),
    regression(2, 70, scale=0.5),
    regression(4),
    mixture(),
    mixture(3, Uniform(np.full(3, -4.0), np.full(3, 5.0))),
    tempered(regression(2), 0.3),
    tempered(mixture(2), 2.5),
]


@given(st.sampled_from(TARGETS), st.integers(0, 2**32), st.floats(-3, 1))
def test_bounds_bound_and_compiled_is_plain(target, seed, size):
    rng = np.random.default_rng(seed)
    dimension = target.proposal.low.size
    low = np.clip(rng.normal(0, 2, dimension), target.proposal.low, target.proposal.high)
    high = np.minimum(low + 10**size * rng.random(dimension), target.proposal.high)
    arrays = compiled(target)
    level = target.bound(low, high)
    assert kernels.bound(arrays, low, high) == pytest.approx(level, rel=1e-11, abs=1e-11)
    points = low + rng.random((50, dimension)) * (high - low)
    ratios = [target.log_ratio(x) for x in points]
    np.testing.assert_allclose(log_ratios(target, points), ratios, rtol=1e-11, atol=1e-11)
    assert max(ratios) <= level + 1e-10 * (1 + abs(level))
    middle = (low + high) / 2
    assert target.bound(middle, middle) == pytest.approx(target.log_ratio(middle), rel=1e-11, abs=1e-11)
    u = rng.random(dimension)
    quantiles = [kernels.quantile(arrays, d, u[d], low[d], high[d]) for d in range(dimension)]
    np.testing.assert_allclose(quantiles, target.proposal.quantile(u, low, high), rtol=1e-13, atol=1e-14)
    halvings = rng.integers(0, 3, dimension)
    assert kernels.split_dimension(arrays, low, high, halvings) == split_dimension(target, low, high, halvings)


def test_bounds_tighten_with_the_square_of_the_sides():
    """What keeps the boxes of many points few: interval arithmetic alone loses in proportion to the sides."""
    target, x = published_regression(), np.array([-0.03])
    gaps = [target.bound(x - h, x + h) - max(target.log_ratio(x - h), target.log_ratio(x + h)) for h in (0.01, 0.005)]
    assert 0 < gaps[1] < gaps[0] / 3


def test_a_product_of_residuals_does_not_overflow():
    y = np.array([1e150, 3.0, -1e80] * 400)
    target = Regression(np.ones(y.size), y)
    expected = -400 * (2 * math.log(1e150) + math.log1p(9) + 2 * math.log(1e80))
    assert log_ratios(target, np.zeros((1, 1)))[0] == pytest.approx(expected, rel=1e-14)
    assert kernels.bound(target.compiled, np.zeros(1), np.zeros(1)) == pytest.approx(expected, rel=1e-14)


def test_the_split_sees_modes_at_the_median_and_beside_it():
    """Halving across the long side shows no gain at once: the halves are mirror images."""
    one = Mixture([1.0], [[0.0, 0.0]], [[1.0, 0.1]], Normal(np.zeros(2), np.full(2, 2.0)))
    two = Mixture([1.0, 1.0], [[0.0, 1.0], [0.0, -1.0]], [[1.0, 0.1]] * 2, Normal(np.zeros(2), np.full(2, 2.0)))
    for target in (one, two):
        assert split_dimension(target, target.proposal.low, target.proposal.high, np.array([0, 5])) == 1


def test_quantiles_far_out_are_exact():
    q = Normal(np.zeros(1), np.ones(1))
    wide = Mixture([1.0], [[0.0]], [[0.5]], q)
    p = 10.0 ** -np.arange(1, 300, 7.0)
    np.testing.assert_allclose([kernels.lower_quantile(v) for v in p], stats.norm.ppf(p), rtol=2e-15)
    for low, high in ((20.0, REACH), (-REACH, -20.0), (8.0, 8.001), (-1.0, 30.0)):
        a, b = np.array([low]), np.array([high])
        middle = q.quantile(np.array([0.5]), a, b)
        side = stats.norm.sf if low > 0 else stats.norm.cdf
        assert abs(side(low) - side(middle[0])) == pytest.approx(abs(side(middle[0]) - side(high)), rel=1e-9)
        assert kernels.quantile(compiled(wide), 0, 0.5, low, high) == pytest.approx(middle[0], rel=1e-14)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(
    "proposal", [Normal(np.array([1.0, 0.0]), np.array([2.0, 3.0])), Uniform(-np.full(2, 9.0), np.full(2, 9.0))]
)
def test_tempering_multiplies_the_log_density(alpha, proposal):
    base = mixture(2, proposal)
    target = tempered(base, alpha)
    points = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(log_densities(target, points), alpha * log_densities(base, points), rtol=1e-11)
    assert (target is base) == (alpha == 1)


def test_the_published_evidence():
    """Figure 2.3a, integrated with its maximum taken out."""
    found = integrate(published_regression())
    assert found.log_z == pytest.approx(-532.4153167492, abs=1e-10)
    assert found.error < 1e-10


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 1.0])
def test_quadrature_of_narrow_peaks_on_a_line(scale):
    target = Mixture([1.0, 3.0], [[-1.2], [4.5]], [[scale], [2 * scale]], Normal(np.zeros(1), np.array([5.0])))
    assert integrate(target).log_z == pytest.approx(math.log(4), abs=1e-10)


@pytest.mark.parametrize("target", [mixture(1), mixture(2), mixture(3)])
def test_quadrature_of_mixtures(target):
    found = integrate(target, 1e-10 if target.proposal.low.size == 1 else 1e-4)
    assert abs(found.log_z - math.log(3.5)) <= max(found.error, 1e-12)


def test_quadrature_of_two_features_is_a_sum_over_a_grid():
    target = regression(2, 100)
    side = np.linspace(0, 2, 801)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    expected = np.logaddexp.reduce(log_densities(target, points)) + 2 * math.log(side[1] - side[0])
    assert integrate(target, 1e-6).log_z == pytest.approx(expected, abs=2e-6)


def test_quadrature_refuses_what_it_cannot_do():
    with pytest.raises(
        WorkFailed, match=r"quadrature did not converge: its error is .* of Z after .* evaluations, above 1e-05"
    ):
        integrate(regression(4, 300), max_evaluations=2**14)


class Nowhere:
    proposal = Normal(np.zeros(1), np.ones(1))

    def log_ratio(self, x):
        return -math.inf

    bound = log_ratio


@pytest.mark.parametrize(("value", "dimension"), [(math.nan, 1), (math.nan, 2), (math.inf, 1)])
def test_quadrature_says_where_a_target_is_no_number(value, dimension):
    class Holed:
        proposal = Normal(np.zeros(dimension), np.ones(dimension))

        def log_ratio(self, x):
            return value if x[0] > 30 else 0.0

        def bound(self, low, high):
            return 0.0

    with pytest.raises(WorkFailed, match=rf"quadrature met a log-ratio that is {value:g}, at \(3\d\.\d+"):
        integrate(Holed())


def test_quadrature_of_a_point_does_not_converge():
    class Spike:
        proposal = Normal(np.zeros(1), np.ones(1))

        def log_ratio(self, x):
            return 0.0 if x[0] == 0 else -math.inf

    with pytest.raises(WorkFailed, match="did not converge: its error is inf"):
        integrate(Spike())


def test_quadrature_of_nothing():
    with pytest.raises(NoConfiguration, match="0 everywhere"):
        integrate(Nowhere())


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 20), st.booleans(), st.integers(0, 2**32))
def test_a_table_is_read_as_it_is(tmp_path_factory, dimension, n, heading, seed):
    values = np.random.default_rng(seed).normal(size=(n, dimension + 1))
    names = [*(f"a{d}" for d in range(dimension)), "z"]
    lines = [",".join(names)] * heading + [",".join(map(repr, row)) for row in values.tolist()]
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text("\n".join(lines) + "\n\n")
    target = load_regression(path, prior_scale=3)
    np.testing.assert_array_equal(target.x, values[:, :-1])
    np.testing.assert_array_equal(target.y, values[:, -1])
    assert target.names == tuple(names[:-1] if heading else (f"x{d + 1}" for d in range(dimension)))
    assert (target.proposal.scale == 3).all()


def test_the_response_may_be_named(tmp_path):
    (tmp_path / "t.csv").write_text('"y", dose\n1,2\n3,4\n')
    target = load_regression(tmp_path / "t.csv")
    assert target.y.tolist() == [1, 3]
    assert target.names == ("dose",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no rows"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n1,nan\n", "t.csv:3: 'nan' is no finite number"),
        ("x,y\n1,inf\n", "t.csv:2: 'inf'"),
        ("x,y\n1,\n", "t.csv:2: ''"),
        ("1,2\n1,two\n", "t.csv:2: 'two'"),
        ("x,x\n1,2\n", "t.csv:1: two columns are named 'x'"),
        ("x,y\n1,2\n1,2,3\n", "t.csv:3: has 3 values"),
        ("1,2,3,4,5,6\n", "has 6 columns"),
        ("y\n1\n", "has 1 column;"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path, text, complaint):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        load_regression(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


def test_no_table(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_regression(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        load_regression(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Regression([[1.0, math.nan]], [1.0]), "row 1"),
        (lambda: Regression(np.zeros((3, 5)), np.zeros(3)), "5 features"),
        (lambda: Regression([1.0, 2.0], [1.0]), "shape"),
        (lambda: Regression([], []), "shape"),
        (lambda: Regression([1.0], [1.0], prior_scale=0), "scale of a normal proposal is 0"),
        (lambda: Regression([1.0], [1.0], scale=-1), "noise is -1"),
        (lambda: Uniform(np.zeros(1), np.zeros(1)), "side of a uniform"),
        (lambda: Normal(np.array([math.inf]), np.ones(1)), "mean of a normal proposal is inf"),
        (lambda: Normal(np.zeros(5), np.ones(5)), "1 to 4"),
        (lambda: Mixture([1.0], [[0.0]], [[0.0]], Normal(np.zeros(1), np.ones(1))), "mixture"),
        (lambda: Mixture([1.0], [[0.0]], [[1.0]], Normal(np.zeros(1), np.ones(1))), "a wider proposal"),
        (lambda: tempered(regression(1), 0.0), "alpha is 0"),
    ],
)
def test_bad_targets(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


MODULE = """
import numpy as np
from thesis_cli.models.proposals import Normal
class Flat:
    proposal = Normal(np.zeros(1), np.ones(1))
    def log_ratio(self, x): return 0.0
    def bound(self, low, high): return 0.0
class Bad(Flat):
    def log_ratio(self, x): return float("nan")
class Wide(Flat):
    def log_ratio(self, x): return np.zeros(2)
class Raises(Flat):
    def bound(self, low, high):
        return pick({})
class Stops(Flat):
    def log_ratio(self, x): raise KeyboardInterrupt
def pick(sides):
    return sides["side"]
class Shapeless(Flat):
    class proposal(Normal):
        low = high = np.zeros(5)
class Loose(Flat):
    class proposal(Normal):
        def log_density(self, x): return -np.inf
    proposal = proposal(np.zeros(1), np.ones(1))
flat, bad, wide, raises, number, shapeless, loose = Flat(), Bad(), Wide(), Raises(), 3, Shapeless(), Loose()
stops = Stops()
class Box: inner = flat
def made(proposal=flat.proposal, ratio=lambda x: 0.0, bound=lambda low, high: 0.0):
    found = Flat()
    found.proposal, found.log_ratio, found.bound = proposal, ratio, bound
    return found
def halve(x): x *= 0.5
def widen(low, high):
    low -= 1
headless, boundless = made(None), made(bound=lambda low, high: np.inf)
far_up, far_down = made(ratio=lambda x: 1e300), made(ratio=lambda x: -1e300)
halves, widens = made(ratio=halve), made(bound=widen)
"""

NAMED = [
    ("users_target:none", "users_target:none: there is no 'none'; give an object"),
    ("users_target:number", "users_target:number: it has no proposal"),
    ("users_target:Flat", "users_target:Flat: it is a class"),
    ("users_target:bad", "users_target:bad: in the middle its log_ratio is nan"),
    (
        "users_target:wide",
        r"users_target:wide: log_ratio returned an array of shape \(2,\)",
    ),
    ("users_target:headless", "users_target:headless: its proposal is None"),
    (
        "users_target:boundless",
        r"users_target:boundless: the bound of the box from \[-37.5\] to \[37.5\] is inf",
    ),
    ("users_target:far_up", r"users_target:far_up: log_ratio is 1e\+300 at \[0.0\], where adding 1 changes nothing"),
    (
        "users_target:far_down",
        r"users_target:far_down: log_ratio is -1e\+300 at \[0.0\], where adding 1 changes nothin",
    ),
    ("users_target:halves", "users_target.py:33: ValueError: .*read-only"),
    ("users_target:widens", "users_target.py:35: ValueError: .*read-only"),
    ("users_target:shapeless", r"users_target:shapeless: its proposal has corners of shapes \(5,\) and \(5,\)"),
    ("users_target:loose", "users_target:loose: in the middle the log_density of its proposal is -inf"),
    ("users_target:raises", "users_target.py:18: KeyError: 'side'"),
    ("users_target.py:raises", "users_target.py:18: KeyError: 'side'"),
    ("users_target:", "--target: 'users_target:' names no object; give module:object"),
    (":flat", "--target: ':flat' names no module; give module:object"),
    ("nowhere_at_all:x", "nowhere_at_all:x: there is no module nowhere_at_all, neither here nor installed"),
    ("users_target.x:y", "users_target.x:y: there is no module users_target.x, neither here nor installed"),
    ("nowhere.py:x", "nowhere.py: there is no such file; give module:object"),
    (".relative:x", ".relative:x: cannot be imported"),
]


def test_an_object_of_the_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "users_target", raising=False)
    (tmp_path / "users_target.py").write_text(MODULE)
    path = list(sys.path)
    for name in (
        "users_target:flat",
        "users_target.py:flat",
        f"{tmp_path}/users_target.py:flat",
        "users_target:Box.inner",
    ):
        assert load_object(name).bound(np.zeros(1), np.ones(1)) == 0
    for name, complaint in NAMED:
        with pytest.raises(InputError) as caught:
            load_object(name)
        assert re.match(complaint, str(caught.value)), str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(KeyboardInterrupt):
        load_object("users_target:stops")
    assert sys.path == path


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ("import sys; sys.exit(3)", "ends the program (SystemExit: 3)"),
        ("import not_there", "cannot be imported (ModuleNotFoundError: No module named 'not_there'); install that"),
        ("def f(:", "cannot be imported (SyntaxError: invalid syntax)"),
        ("raise ValueError('mine\\nand more')", "cannot be imported (ValueError: mine)"),
        ("raise RuntimeError", "cannot be imported (RuntimeError)"),
        ("Normal(0., 2.)", "a proposal has shapes () and (); give two vectors, even"),
        ("proposal = Normal(np.zeros(5), np.ones(5))", "a proposal has shapes (5,) and (5,)"),
    ],
)
@pytest.mark.parametrize(
    ("file", "name"), [("m{}.py", "m{}:flat"), ("m{}.py", "m{}.py:flat"), ("p{}/__init__.py", "p{}.inner:flat")]
)
def test_what_keeps_a_module_from_being_imported_is_told_with_its_line(
    tmp_path, monkeypatch, file, name, last, complaint
):
    monkeypatch.chdir(tmp_path)
    own = f"{zlib.crc32(last.encode())}"  # a module is imported once
    file, name = file.format(own), name.format(own)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(MODULE + last + "\n")
    with pytest.raises(InputError) as caught:
        load_object(name)
    assert str(caught.value).startswith(f"{file}:{MODULE.count(chr(10)) + 1}: {complaint}")
    assert "\n" not in str(caught.value)


def test_a_syntax_error_beside_the_module_is_told_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imports_broken.py").write_text("import broken_beside\n")
    (tmp_path / "broken_beside.py").write_text("\nx = (\n")
    with pytest.raises(InputError, match=r"^broken_beside.py:2: cannot be imported \(SyntaxError: "):
        load_object("imports_broken.py:x")


def test_what_lies_beside_a_file_can_be_imported_until_it_is_called(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/beside_it.py").write_text("level = 0.25\n")
    late = MODULE.replace("return 0.0", "from beside_it import level; return level", 1)
    (tmp_path / "folder/late.py").write_text(late)
    monkeypatch.chdir(tmp_path)
    assert load_object("folder/late.py:flat").log_ratio(np.zeros(1)) == 0.25


def test_own_code_leaves_alone_what_is_not_the_users(tmp_path, monkeypatch):
    """An error of this package stays one, with its traceback; so do an interruption and what names its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text(MODULE)
    load_object("good.py:flat")
    for error in (ZeroDivisionError("ours"), KeyboardInterrupt(), WorkFailed("no"), InputError("no", source="there")):
        with pytest.raises(type(error)) as caught, own_code("good.py:flat"):
            raise error
        assert caught.value is error


@pytest.mark.parametrize("tolerance", [1e-5, 1e-7])
def test_quadrature_says_how_wrong_it_is_where_the_proposal_peaks_and_the_ratio_is_flat(tolerance: float) -> None:
    target = Mixture([1.0], [[0.0, 0.0]], [[0.5, 1.5]], Normal(np.zeros(2), np.full(2, 2.0)))
    found = integrate(target, tolerance)
    assert abs(found.log_z) <= found.error <= tolerance


@pytest.mark.parametrize(("x", "y"), [(1e17, 1.0), (1e300, 1.0), (1.0, 1e200)])
def test_data_that_leave_no_numbers_to_tell_weights_apart_are_refused(x: float, y: float) -> None:
    with pytest.raises(InputError, match="noise of scale 1"):
        Regression([x, 1.0], [y, 1.0])


def test_proposals_take_lists() -> None:
    assert Uniform([0.0, 0.0], [1.0, 2.0]).log_density(np.array([0.5, 0.5])) == pytest.approx(-math.log(2))
    assert Normal([0.0], [1.0]).low == pytest.approx(-REACH)
