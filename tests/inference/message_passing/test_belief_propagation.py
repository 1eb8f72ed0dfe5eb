"""Message passing beside a plain reference, brute force on forests, and itself by another route."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.message_passing import belief_kernels
from thesis_cli.inference.message_passing.belief_propagation import (
    MaxProduct,
    bethe_log_partition_function,
    messages_of,
    soft_binary,
    up_and_down,
)
from thesis_cli.inference.message_passing.message_arrays import UpdateSchedule
from thesis_cli.inference.pairwise import lifted, pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph


@st.composite
def forests(draw, impossible=True):
    """Cardinalities 1 to 4, neighbours in any order, potentials from weak to strong, some entries
    -inf.
    """
    cardinalities = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.1, 2.0, 30.0]))
    names = rng.permutation(len(cardinalities))
    factors = []
    for k, i in enumerate(names):
        factors.append(Factor((int(i),), rng.normal(0, scale, cardinalities[i])))
        if k and rng.random() < 0.8:
            j = names[rng.integers(k)]
            table = rng.normal(0, scale, (cardinalities[i], cardinalities[j]))
            if impossible:
                table.reshape(-1)[rng.permutation(table.size)[: rng.integers(table.size)]] = -np.inf
            factors.append(Factor((int(i), int(j)), table))
    return FactorGraph(cardinalities, factors)


def grid(rows, columns, coupling, rng, states=2, attractive=True):
    """Unary U[-1, 1]; couplings U[0, C] or U[-C, C] between spins, or between equal states of a
    Potts model.
    """
    at = np.arange(rows * columns).reshape(rows, columns)
    spins = np.linspace(-1, 1, states)
    agree = np.outer(spins, spins) if states == 2 else np.eye(states)
    factors = [Factor((i,), rng.uniform(-1, 1) * spins) for i in range(at.size)]
    for i, j in [*zip(at[:, :-1].flat, at[:, 1:].flat, strict=True), *zip(at[:-1].flat, at[1:].flat, strict=True)]:
        factors.append(Factor((int(i), int(j)), rng.uniform(-coupling * (not attractive), coupling) * agree))
    return FactorGraph([states] * at.size, factors)


def perturbed(graph, noise):
    """phi + noise of every configuration, shape (batch, |X|)."""
    states = all_states(graph)
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    return graph.log_potential(states)[None] + noise[:, states + offsets].sum(axis=-1)


def attained(graph, noise, states):
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    return graph.log_potential(states) + np.take_along_axis(noise, states + offsets, axis=1).sum(axis=1)


def gumbels(graph, batch, seed):
    return np.random.default_rng(seed).gumbel(size=(batch, sum(graph.cardinalities)))


def splitmix(state):
    """SplitMix64 in Python's integers: next state, output."""
    mask = 2**64 - 1
    state = (state + 0x9E3779B97F4A7C15) & mask
    word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return state, word ^ (word >> 31)


def shuffle_reference(order, state):
    for i in range(len(order) - 1, 0, -1):
        state, word = splitmix(state)
        j = ((word >> 32) * (i + 1)) >> 32
        order[i], order[j] = order[j], order[i]
    return state


def propagate_reference(form, unary, state, schedule, summing, messages):
    """Messages as a dictionary (source, target) -> log-message, plainly; sums go up and down,
    maxima at random.
    """
    damping, tolerance, max_sweeps = schedule
    n = len(form.cardinalities)
    unary = [unary[form.offsets[i] : form.offsets[i + 1]] for i in range(n)]
    tables = {}
    for (i, j), table in zip(form.edges.tolist(), form.tables, strict=True):
        tables[i, j], tables[j, i] = table, table.T
    messages = dict(messages)
    pairs = list(tables)

    def shifted(log):
        return log - log.max() if log.max() > -np.inf else log

    def belief(i, but=None):
        return unary[i] + sum(m for (k, j), m in messages.items() if j == i and k != but)

    beliefs = np.concatenate([shifted(belief(i)) for i in range(n)])
    order = list(range(len(pairs)))
    if summing:
        order.sort(key=lambda d: (0, pairs[d]) if pairs[d][0] < pairs[d][1] else (1, -pairs[d][0], pairs[d][1]))
    for sweep in range(1, max_sweeps + 1):
        if not summing:
            state = shuffle_reference(order, state)
        for d in order:
            i, j = pairs[d]
            terms = tables[i, j] + belief(i, but=j)[:, None]
            new = shifted(np.logaddexp.reduce(terms, axis=0) if summing else terms.max(axis=0))
            old = messages[i, j]
            mixed = new + old  # -inf where either is
            finite = mixed > -np.inf
            mixed[finite] = damping * old[finite] + (1 - damping) * new[finite]
            messages[i, j] = shifted(mixed)
        before, beliefs = beliefs, np.concatenate([shifted(belief(i)) for i in range(n)])
        moved = beliefs != before
        if np.abs(beliefs[moved] - before[moved]).max(initial=0) < tolerance:
            return True, sweep, messages
    return False, max_sweeps, messages


def check_propagation(kernel, graph, stream, damping, summing):
    form = pairwise(lifted(graph))
    layout = messages_of(form)
    order = up_and_down(form.edges) if summing else np.arange(layout.source.size)
    messages = np.random.default_rng(stream).uniform(0, 0.1, layout.starts[-1])
    ends = list(zip(layout.source.tolist(), layout.target.tolist(), strict=True))
    start = {pair: messages[layout.starts[d] : layout.starts[d + 1]].copy() for d, pair in enumerate(ends)}
    schedule = UpdateSchedule(damping, 1e-5, 12)
    converged, sweeps = kernel(layout, form.unary, order, np.uint64(stream), schedule, summing, messages)
    expected = propagate_reference(form, form.unary, stream, schedule, summing, start)
    assert (converged, sweeps) == expected[:2]
    for d, (i, j) in enumerate(ends):
        found = messages[layout.starts[d] : layout.starts[d + 1]]
        shift = found.max() if found.max() > -np.inf else 0.0
        np.testing.assert_allclose(found - shift, expected[2][i, j], rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(25))
@given(factor_graphs(), st.integers(0, 2**64 - 1), st.sampled_from([0.0, 0.5, 0.8]), st.booleans())
def test_propagation_is_the_reference(graph, stream, damping, summing):
    check_propagation(belief_kernels.propagate, graph, stream, damping, summing)


@st.composite
def binary_graphs(draw):
    """One or two states, scopes of one or two, finite potentials from weak to far beyond the range
    of exp.
    """
    cardinalities = draw(st.lists(st.integers(1, 2), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.1, 2.0, 1e3]))
    scopes = [(i,) for i in range(len(cardinalities))]
    scopes += [(i, j) for j in range(len(cardinalities)) for i in range(j) if rng.random() < 0.6]
    return FactorGraph(
        cardinalities, [Factor(scope, rng.normal(0, scale, [cardinalities[i] for i in scope])) for scope in scopes]
    )


@settings(max_examples=examples(25))
@given(binary_graphs(), st.integers(0, 2**64 - 1), st.sampled_from([0.0, 0.5]), st.booleans())
def test_binary_propagation_is_the_reference(graph, stream, damping, summing):
    assert soft_binary(pairwise(graph))
    check_propagation(belief_kernels.propagate_binary, graph, stream, damping, summing)


@settings(max_examples=examples(25))
@given(forests(), st.integers(0, 2**32), st.integers(1, 3))
def test_max_product_is_exact_on_forests(graph, seed, batch):
    noise = gumbels(graph, batch, seed)
    solver = MaxProduct(graph)
    values, states = solver.maximise(noise)
    assert solver.converged.all()
    np.testing.assert_allclose(values, perturbed(graph, noise).max(axis=1), rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(attained(graph, noise, states), values)


@settings(max_examples=examples(25))
@given(factor_graphs(), st.integers(0, 2**32))
def test_max_product_never_beats_the_maximum(graph, seed):
    noise = gumbels(graph, 2, seed)
    values, states = MaxProduct(graph, max_sweeps=50).maximise(noise)
    assert states.shape == (2, len(graph.cardinalities))
    np.testing.assert_array_equal(attained(graph, noise, states), values)
    best = perturbed(graph, noise).max(axis=1)
    assert (values <= best + 1e-11 * np.maximum(1, np.abs(np.where(best > -np.inf, best, 0)))).all()


@pytest.mark.parametrize(("attractive", "damping"), [(True, 0.5), (False, 0.5), (True, 0.0)])
def test_binary_messages_are_the_general_ones(attractive, damping):
    graph = grid(6, 5, 1.5, np.random.default_rng(0), attractive=attractive)
    noise = gumbels(graph, 60, 1)
    binary, general = (MaxProduct(graph, damping=damping, max_sweeps=400) for _ in range(2))
    assert binary._binary
    general._binary = False
    for a, b in zip(binary.maximise(noise), general.maximise(noise), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(binary.sweeps, general.sweeps)
    np.testing.assert_array_equal(binary.converged, general.converged)
    assert binary.converged.any()


def test_hard_constraints_keep_off_binary_messages():
    forbidden = np.array([[0.0, -np.inf], [0.0, 0.0]])
    assert not MaxProduct(FactorGraph([2, 2], [Factor((0, 1), forbidden)]))._binary
    assert not MaxProduct(FactorGraph([2, 3], []))._binary
    assert MaxProduct(FactorGraph([2, 1], []))._binary


@pytest.mark.parametrize("states", [2, 3])
def test_a_row_depends_on_its_noise_and_the_seed_alone(states):
    graph = grid(4, 4, 2.0, np.random.default_rng(3), states=states, attractive=False)
    noise = gumbels(graph, 40, 4)

    def solve(rows, **options):
        solver = MaxProduct(graph, max_sweeps=60, **options)
        values, found = solver.maximise(noise[rows])
        return values, found, solver.converged, solver.sweeps

    together = solve(slice(None), jobs=3)
    for rows in (slice(30, 31), slice(None, None, -1)):
        for a, b in zip(together, solve(rows), strict=True):
            np.testing.assert_array_equal(a[rows], b)
    other = solve(slice(None), seed=1)
    assert (other[3] != together[3]).any()


def test_orders_differ_between_rows():
    """On a model with no converged row the sweeps are the limit's, so look at the streams."""
    solver = MaxProduct(grid(2, 2, 1.0, np.random.default_rng(0)))
    noise = gumbels(solver.graph, 100, 5)
    assert np.unique((noise.view(np.uint64) * solver._hash).sum(axis=1)).size == 100


def test_shuffles_are_uniform():
    """Each of 6 orders of 3 within 5 sigma, and a long one stays a permutation."""
    counts: dict[tuple[int, ...], int] = {}
    stream, draws = np.uint64(1), 6000
    for _ in range(draws):
        order = np.arange(3)
        stream = np.uint64(belief_kernels.shuffle(order, stream))
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 6
    assert all(abs(c - draws / 6) < 5 * np.sqrt(draws * 5 / 36) for c in counts.values())
    long = np.arange(1000)
    belief_kernels.shuffle(long, stream)
    assert sorted(long.tolist()) == list(range(1000))
    assert (long != np.arange(1000)).mean() > 0.9


def test_ties_are_broken_alike():
    """Four variables that must agree, both ways equally good: a decoder of each by itself could mix
    them.
    """
    cycle = [Factor((i, (i + 1) % 4), np.where(np.eye(2) > 0, 0.0, -5.0)) for i in range(4)]
    values, states = MaxProduct(FactorGraph([2] * 4, cycle)).maximise(np.zeros((1, 8)))
    assert values.tolist() == [0.0]
    assert len(set(states[0].tolist())) == 1
    other = [Factor((i, (i + 1) % 4), np.where(np.eye(2) > 0, -5.0, 0.0)) for i in range(4)]
    assert MaxProduct(FactorGraph([2] * 4, other)).maximise(np.zeros((1, 8)))[0].tolist() == [0.0]


def test_weakly_coupled_grids_are_solved_and_sweeps_are_counted():
    graph = grid(8, 8, 1 / 3, np.random.default_rng(0))
    noise = gumbels(graph, 100, 1)
    solver = MaxProduct(graph, jobs=2)
    values, _ = solver.maximise(noise)
    assert solver.converged.all()
    assert (solver.sweeps > 5).all()
    exact = Elimination(graph).maximise(noise)[0]
    assert (values >= exact - 1e-9).mean() >= 0.95
    short = MaxProduct(graph, max_sweeps=2)
    short.maximise(noise)
    assert not short.converged.any()
    assert (short.sweeps == 2).all()


def test_no_rows_and_no_edges():
    graph = FactorGraph([1, 3], [Factor((1,), np.array([0.0, 2.0, 1.0]))])
    solver = MaxProduct(graph)
    assert solver.maximise(np.zeros((0, 4)))[1].shape == (0, 2)
    values, states = solver.maximise(np.array([[0.5, 0, 0, 3]]))
    assert values.tolist() == [4.5]
    assert states.tolist() == [[0, 2]]


@settings(max_examples=examples(25))
@given(forests())
def test_bethe_is_exact_on_forests(graph):
    phi = graph.log_potential(all_states(graph))
    log_z = np.logaddexp.reduce(phi)
    result = bethe_log_partition_function(graph)
    assert result.converged
    assert result.value == pytest.approx(log_z, rel=1e-9, abs=1e-8)
    if log_z > -np.inf:
        states = all_states(graph)
        marginals = [
            np.exp(np.logaddexp.reduce(phi[states[:, i] == x]) - log_z)
            for i, k in enumerate(graph.cardinalities)
            for x in range(k)
        ]
        np.testing.assert_allclose(result.marginals, marginals, atol=1e-7)


@settings(max_examples=examples(25))
@given(factor_graphs())
def test_bethe_of_one_large_factor_is_exact(graph):
    """A single factor of three variables is a tree of the lifted model."""
    scope = max((f.scope for f in graph.factors), key=len, default=())
    kept = [f for f in graph.factors if len(f.scope) < 2]
    kept += [f for f in graph.factors if f.scope == scope and len(scope) >= 2][:1]
    model = FactorGraph(graph.cardinalities, kept)
    log_z = np.logaddexp.reduce(model.log_potential(all_states(model)))
    assert bethe_log_partition_function(model).value == pytest.approx(log_z, rel=1e-9, abs=1e-8)


def test_bethe_of_a_cycle_without_fields():
    """A uniform cycle of n spins of coupling J: ln Z = n ln(2 cosh J) + ln(1 + tanh(J)^n), Bethe n
    ln(2 cosh J).
    """
    n, coupling = 5, 0.7
    spin = np.array([-1.0, 1.0])
    factors = [Factor((i, (i + 1) % n), coupling * np.outer(spin, spin)) for i in range(n)]
    result = bethe_log_partition_function(FactorGraph([2] * n, factors))
    assert result.converged
    assert bethe_log_partition_function(FactorGraph([2], [])).sweeps == 1
    assert result.value == pytest.approx(n * np.log(2 * np.cosh(coupling)), abs=1e-12)
    np.testing.assert_allclose(result.marginals, 0.5)


def test_bethe_is_a_lower_bound_on_attractive_binary_grids():
    """Proved by Ruozzi (2012)."""
    for seed in range(50):
        graph = grid(4, 4, 0.2 * (1 + seed % 10), np.random.default_rng(seed))
        result = bethe_log_partition_function(graph)
        log_z = Elimination(graph).log_partition_function()
        assert result.converged
        assert log_z - 2 < result.value <= log_z + 1e-9


def test_bethe_leaves_the_unstable_fixed_point_of_a_symmetric_model():
    """Strong coupling without fields: messages of 0 are a fixed point whose value misses all that
    is ordered.
    """
    spin = np.array([-1.0, 1.0])
    factors = [Factor(f.scope, np.outer(spin, spin)) for f in grid(4, 4, 1.0, np.random.default_rng(0)).factors[16:]]
    graph = FactorGraph([2] * 16, factors)
    form = pairwise(graph)
    layout, messages = messages_of(form), np.zeros(4 * len(form.edges))
    order, schedule = up_and_down(form.edges), UpdateSchedule(0.0, 1e-9, 10)
    done = belief_kernels.propagate_binary(layout, form.unary, order, np.uint64(0), schedule, True, messages)
    assert done == (True, 1)
    disordered = belief_kernels.bethe(layout, form.unary, messages, np.empty(32))
    log_z = Elimination(graph).log_partition_function()
    found = [bethe_log_partition_function(graph, seed=seed) for seed in range(10)]
    for result in found:
        assert result.converged
        assert disordered + 1 < result.value <= log_z
    assert len({bool(result.marginals[0] > 0.5) for result in found}) == 2  # either phase, by the seed


def test_bethe_says_when_it_has_not_converged_and_damps_more_before():
    graph = grid(4, 4, 8.0, np.random.default_rng(1), attractive=False)
    result = bethe_log_partition_function(graph, max_sweeps=3)
    assert not result.converged
    assert result.sweeps == 9
    spin = np.array([-1.0, 1.0])
    dense = [Factor((i, j), -np.outer(spin, spin)) for i in range(6) for j in range(i)]
    dense += [Factor((i,), 0.1 * i * spin) for i in range(6)]
    retried = bethe_log_partition_function(FactorGraph([2] * 6, dense), damping=0.0, max_sweeps=1000)
    assert retried.converged
    assert 1000 < retried.sweeps < 3000


def test_bethe_of_an_impossible_model():
    never = [Factor((0, 1), np.where(np.eye(2) > 0, 0.0, -np.inf)), Factor((0,), np.array([0.0, -np.inf]))]
    never.append(Factor((1,), np.array([-np.inf, 0.0])))
    assert bethe_log_partition_function(FactorGraph([2, 2], never)).value == -np.inf
