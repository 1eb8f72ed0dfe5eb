import math
import re
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.entropy import low_rank
from thesis_cli.entropy.low_rank import SHANNON_ORDERS, TemperedSolvers, low_rank_bounds, shannon_sandwich
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass

ALPHAS = [0.0, 0.2, 0.7, 1.5, 3.0, math.inf]


def seed(n=0):
    return np.random.SeedSequence(n)


def log_z_of(graph):
    return Elimination(graph).log_partition_function()


def entropy(graph, alpha):
    """H_alpha by its definition, over every configuration."""
    phi = graph.log_potential(all_states(graph))
    log_p = phi[phi > -np.inf] - np.logaddexp.reduce(phi)
    if alpha == 1:
        return float(-(np.exp(log_p) * log_p).sum())
    if alpha == math.inf:
        return float(-log_p.max())
    return float(np.logaddexp.reduce(alpha * log_p) / (1 - alpha))


def product(cardinalities, spread=1.5):
    rng = np.random.default_rng(3)
    return FactorGraph(cardinalities, [Factor((i,), rng.normal(0, spread, k)) for i, k in enumerate(cardinalities)])


def spin_glass():
    return random_spin_glass(3, 3, 1.0, 1.0, "mixed", np.random.default_rng(0)).graph()


def constrained():
    """Eight variables under twelve clauses, each with a weight for its last literal."""
    rng = np.random.default_rng(5)
    factors = []
    for _ in range(12):
        table = np.zeros((2, 2, 2)) + rng.normal(0, 1.0, 2)
        table[tuple(rng.integers(0, 2, 3))] = -np.inf
        factors.append(Factor(tuple(rng.choice(8, 3, replace=False).tolist()), table))
    return FactorGraph([2] * 8, factors)


class Recorded(Elimination):
    """Keeps the noise of every MAP problem, and which models were prepared."""

    prepared: ClassVar[list["Recorded"]] = []

    def __init__(self, graph):
        super().__init__(graph)
        self.noise = []
        Recorded.prepared.append(self)

    def maximise(self, noise):
        self.noise.append(noise)
        return super().maximise(noise)


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(Recorded, "prepared", [])
    return Recorded


class Worse(Elimination):
    """An approximate solver: the maximiser with its first variable at state 0."""

    name = "worse"
    guarantee = "approximate"

    def maximise(self, noise):
        _, states = super().maximise(noise)
        states[:, 0] = 0
        columns = states + np.cumsum([0, *self.graph.cardinalities[:-1]])
        return self.graph.log_potential(states) + np.take_along_axis(noise, columns, axis=1).sum(axis=1), states


def shifted(monkeypatch, shift):
    """Replace the maxima by exact ln Z, plus `shift` of the upper and minus `shift` of the lower
    bounds.
    """

    def maxima(solver, count, seed, *, scale, jobs, progress):
        value = log_z_of(solver.graph) + (shift if scale == "sum" else -shift)
        return SimpleNamespace(values=np.full(count, value))

    monkeypatch.setattr(low_rank, "low_rank_maxima", maxima)


# --- algebra, with nothing sampled ---


@settings(max_examples=examples(25))
@given(factor_graphs(), st.sampled_from([*ALPHAS, 0.01, 0.99, 1.01, 20.0]), st.booleans())
def test_tight_bounds_are_the_entropy_and_loose_ones_enclose_it(graph, alpha, known):
    if log_z_of(graph) == -np.inf:
        return
    exact, log_z = entropy(graph, alpha), log_z_of(graph) if known else None
    looseness = {0.0: 1.0, math.inf: 0.0 if known else 1.0}.get(
        alpha, (1 if known else 1 + alpha) / abs(1 - alpha) if alpha < math.inf else 0.0
    )
    for shift in (0.0, 2.0):
        with pytest.MonkeyPatch.context() as patch:
            shifted(patch, shift)
            (found,) = low_rank_bounds(TemperedSolvers(Elimination, graph), [alpha], 2, seed(), log_z=log_z)
        rounding = 1e-10 * (1 + abs(log_z_of(graph))) / min(1.0, abs(1 - alpha))
        assert found.upper.value - exact == pytest.approx(shift * looseness, abs=rounding)
        assert exact - found.lower.value == pytest.approx(shift * looseness, abs=rounding)


@pytest.mark.parametrize("known", [False, True])
def test_the_tightest_alphas_enclose_the_shannon_entropy(monkeypatch, known):
    """The best of H_alpha +- (1 + alpha) shift / |1 - alpha|, or shift / |1 - alpha| for known ln
    Z.
    """
    graph = spin_glass()
    log_z = log_z_of(graph) if known else None
    shifted(monkeypatch, 0.1)
    found = shannon_sandwich(TemperedSolvers(Elimination, graph), 4, seed(), log_z=log_z)
    spread = {a: 0.1 * (1 if known else 1 + a) / abs(1 - a) for a in SHANNON_ORDERS if a < math.inf}
    upper = {a: entropy(graph, a) + spread[a] for a in spread if a < 1}
    lower = {a: entropy(graph, a) - spread[a] for a in spread if a > 1}
    best = min(upper, key=upper.get), max(lower, key=lower.get)
    assert (found.upper.method, found.lower.method) == tuple(f"H_{a:g}" for a in best)
    assert 0 < best[0] < 1 < best[1] < math.inf
    assert found.upper.value == pytest.approx(upper[best[0]], rel=1e-9)
    assert found.lower.value == pytest.approx(lower[best[1]], rel=1e-9)
    assert found.lower.value < entropy(graph, 1) < found.upper.value


@settings(max_examples=examples(20))
@given(factor_graphs(), st.integers(0, 2**32), st.booleans())
def test_a_model_of_one_configuration_has_no_entropy(graph, entropy_seed, known):
    phi = graph.log_potential(all_states(graph))
    if phi.max() == -np.inf:
        with pytest.raises(NoConfiguration):
            low_rank_bounds(TemperedSolvers(Elimination, graph), [math.inf], 3, seed())
        return
    held = graph.condition(dict(enumerate(all_states(graph)[phi.argmax()].tolist())))
    log_z = log_z_of(held) if known else None
    for found in low_rank_bounds(TemperedSolvers(Elimination, held), ALPHAS, 3, seed(entropy_seed), log_z=log_z):
        for bound in (found.lower, found.upper):
            assert (bound.value, bound.standard_error) == pytest.approx((0.0, 0.0), abs=1e-10 * (1 + abs(phi.max())))


# --- what is sampled ---


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("cardinalities", [[5], [2, 3, 1, 4]])
def test_expectations_of_independent_variables(cardinalities, known):
    """There U_a = ln Z_a, and L_a = ln Z_na / n: n terms of max {n a phi_i + gamma_i} / n each."""
    graph, count = product(cardinalities), 4000
    n = sum(k > 1 for k in cardinalities)

    def upper(a):
        return log_z_of(graph.tempered(a))

    def lower(a):
        return log_z_of(graph.tempered(n * a)) / n

    top = float(graph.log_potential(all_states(graph)).max())
    log_z = log_z_of(graph) if known else None
    for found in low_rank_bounds(TemperedSolvers(Elimination, graph), ALPHAS, count, seed(1), log_z=log_z):
        a = found.order
        low_z, high_z = (log_z, log_z) if known else (lower(1), upper(1))
        if a == math.inf:
            expected = low_z - top, high_z - top
        elif a < 1:
            expected = (lower(a) - a * high_z) / (1 - a), (upper(a) - a * low_z) / (1 - a)
        else:
            expected = (a * low_z - upper(a)) / (a - 1), (a * high_z - lower(a)) / (a - 1)
        for bound, mean in zip((found.lower, found.upper), expected, strict=True):
            assert abs(bound.value - mean) <= 5 * bound.standard_error + 1e-9
            assert bound.standard_error < 0.25


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("model", [spin_glass, constrained])
def test_bounds_enclose_the_entropy(model, known):
    graph = model()
    log_z = log_z_of(graph) if known else None
    found = low_rank_bounds(TemperedSolvers(Elimination, graph), ALPHAS, 2000, seed(2), log_z=log_z)
    found.append(shannon_sandwich(TemperedSolvers(Elimination, graph), 2000, seed(3), log_z=log_z))
    for bounds in found:
        exact = entropy(graph, bounds.order)
        assert bounds.lower.value <= exact + 5 * bounds.lower.standard_error + 1e-9
        assert bounds.upper.value >= exact - 5 * bounds.upper.standard_error - 1e-9
    loose = [b for b in found if not (known and b.order == math.inf)]
    assert all(b.lower.value < b.upper.value - 5 * b.upper.standard_error for b in loose)


@pytest.mark.parametrize("model", [spin_glass, constrained])
def test_shared_noise_lowers_the_variance(model):
    graph, count = model(), 1000
    root = seed(4)
    for found in low_rank_bounds(TemperedSolvers(Elimination, graph), [0.2, 0.7, 1.5, 3.0], count, root):
        a = found.order
        for side, bound in (("lower", found.lower), ("upper", found.upper)):
            perturbed = low_rank._Perturbed(TemperedSolvers(Elimination, graph), count, seed(4), None, 0.95, 1, None)
            scales = ("sum", "average") if (side == "upper") == (a < 1) else ("average", "sum")
            own, of_z = perturbed._maxima(a, scales[0]), perturbed._maxima(1.0, scales[1])
            apart = math.sqrt((own.var(ddof=1) + a**2 * of_z.var(ddof=1)) / count) / abs(1 - a)
            samples = (own - a * of_z) / (1 - a)
            assert bound.value == pytest.approx(samples.mean(), rel=1e-12)
            assert bound.standard_error == pytest.approx(samples.std(ddof=1) / math.sqrt(count), rel=1e-12)
            assert bound.standard_error < 0.99 * apart


def test_every_maximum_is_under_the_same_noise(recorded):
    """Tempered and averaged noise times alpha n is that of the ln Z of phi; max phi has none."""
    graph = product([2, 3])
    low_rank_bounds(TemperedSolvers(recorded, graph), [0.0, 0.5, 4.0, math.inf], 3, seed())
    own, support = sorted(recorded.prepared, key=lambda s: s.graph is not graph)
    assert (own.graph is graph, len(recorded.prepared)) == (True, 2)
    np.testing.assert_array_equal(support.graph.factors[1].table, 0)
    flat = [row for solver in (own, support) for noise in solver.noise for row in noise]
    assert sum(not row.any() for row in flat) == 1
    base = {}
    for row in flat:
        if row.any():
            base.setdefault(tuple(np.round(row / row[0], 9)), []).append(row[0])
    assert len(base) == 3
    for factors in base.values():
        ratios = np.sort(np.abs(factors) / np.abs(factors).max())
        np.testing.assert_allclose(ratios, np.sort([1 / 16, 1 / 8, 1 / 4, 1 / 4, 1 / 2, 1 / 2, 1 / 2, 1]))


def test_the_choice_of_alpha_does_not_bias_the_bound():
    """All H_alpha of a uniform distribution are n ln 2 and U_alpha is tight: the least of them
    would fall below.
    """
    graph = FactorGraph([2] * 3, [])
    found = [
        shannon_sandwich(
            TemperedSolvers(Elimination, graph), 4, seed(k), orders=[0.0, 0.7, 1.3, 3.0], log_z=3 * math.log(2)
        )
        for k in range(400)
    ]
    for side in ("lower", "upper"):
        values = np.array([getattr(f, side).value for f in found])
        assert len({getattr(f, side).method for f in found}) == 2
        assert abs(values.mean() - 3 * math.log(2)) < 5 * values.std() / math.sqrt(len(found))


# --- what an estimate says ---


@pytest.mark.parametrize("known", [False, True])
def test_map_calls_are_counted(recorded, known):
    graph = spin_glass()
    told = []
    log_z = log_z_of(graph) if known else None
    found = low_rank_bounds(
        TemperedSolvers(recorded, graph), [0.0, 0.5, 4.0, math.inf], 7, seed(), log_z=log_z, progress=told.append
    )
    solved = sum(len(noise) for solver in recorded.prepared for noise in solver.noise)
    assert sum(told) == solved == 7 * (6 if known else 8) + 1
    calls = [(f.lower.map_calls, f.upper.map_calls) for f in found]
    assert calls == ([(7, 7)] * 3 + [(1, 1)] if known else [(7, 7), (14, 14), (14, 14), (8, 8)])
    recorded.prepared.clear()
    told.clear()
    found = shannon_sandwich(
        TemperedSolvers(recorded, graph), 7, seed(), orders=[0.0, 4.0], log_z=log_z, progress=told.append
    )
    solved = sum(len(noise) for solver in recorded.prepared for noise in solver.noise)
    assert sum(told) == solved == 7 * (2 if known else 3)
    assert (found.lower.map_calls, found.upper.map_calls) == (7 if known else 14, 7)
    recorded.prepared.clear()
    found = shannon_sandwich(TemperedSolvers(recorded, graph), 8, seed(), orders=[0.5, 0.8, 2.0, 4.0], log_z=log_z)
    solved = sum(len(noise) for solver in recorded.prepared for noise in solver.noise)
    assert solved == 4 * 4 + 2 * 4 + (0 if known else 4 + 4)  # both sides use L_1
    assert found.lower.map_calls == found.upper.map_calls == 2 * 4 + 4 + (0 if known else 4 + 4)


def test_an_estimate_names_its_formula():
    graph = product([2, 3])
    found = low_rank_bounds(TemperedSolvers(Elimination, graph), [0.0, 0.4, 3.0, math.inf], 5, seed())
    assert [(f.lower.method, f.upper.method) for f in found] == [
        ("L_0", "U_0"),
        ("(L_0.4 - 0.4 U_1) / 0.6", "(U_0.4 - 0.4 L_1) / 0.6"),
        ("(3 L_1 - U_3) / 2", "(3 U_1 - L_3) / 2"),
        ("L_1 - max", "U_1 - max"),
    ]
    assert [f.upper.target for f in found] == ["H_0", "H_0.4", "H_3", "H_inf"]
    assert {f.lower.kind for f in found} == {"lower bound in expectation"}
    found = low_rank_bounds(TemperedSolvers(Elimination, graph), [0.4, 3.0, math.inf], 5, seed(), log_z=log_z_of(graph))
    assert [(f.lower.method, f.upper.method) for f in found] == [
        ("(L_0.4 - 0.4 ln Z) / 0.6", "(U_0.4 - 0.4 ln Z) / 0.6"),
        ("(3 ln Z - U_3) / 2", "(3 ln Z - L_3) / 2"),
        ("ln Z - max", "ln Z - max"),
    ]
    assert (found[2].lower.kind, found[2].lower.standard_error) == ("lower bound", 0.0)
    assert found[2].upper.value == pytest.approx(entropy(graph, math.inf), rel=1e-12)
    shannon = shannon_sandwich(TemperedSolvers(Elimination, graph), 5, seed(), orders=[0.4, 3.0])
    assert (shannon.lower.target, shannon.upper.target) == ("H_1", "H_1")
    assert (shannon.lower.method, shannon.upper.method) == ("H_3", "H_0.4")


def test_an_approximate_solver_leaves_the_bounds_that_it_can_only_loosen():
    graph = spin_glass()
    alphas = [0.0, 0.4, 3.0, math.inf]
    unsure, unknown = "approximate {} bound", "{} bound in expectation"
    for log_z, lower, upper in (
        (None, [unknown, unsure, unsure, unsure], [unsure] * 4),
        (log_z_of(graph), [unknown, unknown, unsure, unsure], [unsure, unsure, unknown, "{} bound"]),
    ):
        found = low_rank_bounds(TemperedSolvers(Worse, graph), alphas, 3, seed(), log_z=log_z)
        assert [f.lower.kind for f in found] == [k.format("lower") for k in lower]
        assert [f.upper.kind for f in found] == [k.format("upper") for k in upper]
        exact = low_rank_bounds(TemperedSolvers(Elimination, graph), alphas, 3, seed(), log_z=log_z)
        for worse, better in zip(found, exact, strict=True):
            assert worse.lower.kind.startswith("approx") or worse.lower.value <= better.lower.value
            assert worse.upper.kind.startswith("approx") or worse.upper.value >= better.upper.value


def test_threads_and_other_alphas_change_nothing():
    graph = spin_glass()
    one = low_rank_bounds(TemperedSolvers(Elimination, graph), [0.5], 300, seed(9))
    assert low_rank_bounds(TemperedSolvers(Elimination, graph), [3.0, 0.5, 0.0], 300, seed(9), jobs=2)[1:2] == one
    assert low_rank_bounds(TemperedSolvers(Elimination, graph), [0.5], 300, seed(10)) != one


def test_one_perturbation_has_no_standard_error():
    (found,) = low_rank_bounds(TemperedSolvers(Elimination, spin_glass()), [2.0], 1, seed())
    assert (found.lower.standard_error, found.upper.high) == (math.inf, math.inf)


def test_the_interval_is_normal():
    (found,) = low_rank_bounds(TemperedSolvers(Elimination, spin_glass()), [2.0], 50, seed(), confidence=0.9)
    low = found.lower
    assert (low.value - low.low) / low.standard_error == pytest.approx(1.6448536, rel=1e-6)
    assert (low.high - low.value) / low.standard_error == pytest.approx(1.6448536, rel=1e-6)


@pytest.mark.parametrize("alpha", [1.0, -0.5, math.nan, -math.inf, 1e-7, 1e7])
def test_an_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(InputError, match=re.escape(f"the order is {alpha:g};")):
        low_rank_bounds(TemperedSolvers(Elimination, spin_glass()), [0.5, alpha], 3, seed())
    with pytest.raises(InputError, match=re.escape(f"the order is {alpha:g};")):
        shannon_sandwich(TemperedSolvers(Elimination, spin_glass()), 3, seed(), orders=[0.5, 2.0, alpha])


@pytest.mark.parametrize("alpha", [1e-6, 1e6])
def test_extreme_alphas_stay_finite(alpha):
    graph = constrained()
    (found,) = low_rank_bounds(TemperedSolvers(Elimination, graph), [alpha], 2000, seed(), log_z=log_z_of(graph))
    assert found.lower.value <= entropy(graph, alpha) + 5 * found.lower.standard_error
    assert found.upper.value >= entropy(graph, alpha) - 5 * found.upper.standard_error
    if alpha > 1:
        assert found.lower.value == pytest.approx(entropy(graph, math.inf), rel=1e-4)


def test_other_bad_input_is_refused():
    graph = spin_glass()
    with pytest.raises(InputError, match="ln Z is nan"):
        low_rank_bounds(TemperedSolvers(Elimination, graph), [2.0], 3, seed(), log_z=math.nan)
    with pytest.raises(InputError, match="confidence is 95"):
        low_rank_bounds(TemperedSolvers(None, graph), [2.0], 3, seed(), confidence=95)
    with pytest.raises(InputError, match="0"):
        low_rank_bounds(TemperedSolvers(Elimination, graph), [2.0], 0, seed())
    with pytest.raises(InputError, match="perturbations is 1"):
        shannon_sandwich(TemperedSolvers(Elimination, graph), 1, seed())
    for alphas in ([], [0.5, 0.0], [2.0]):
        with pytest.raises(InputError, match="one side of 1"):
            shannon_sandwich(TemperedSolvers(Elimination, graph), 4, seed(), orders=alphas)


def test_an_approximate_solver_that_finds_nothing_has_failed():
    held = FactorGraph([2, 2], [Factor((0,), np.array([-np.inf, 0.0]))])
    with pytest.raises(WorkFailed, match="worse found no possible configuration in 1 of 1 MAP problems"):
        low_rank_bounds(TemperedSolvers(Worse, held), [math.inf], 3, seed(), log_z=0.0)
