import numpy as np
import pytest

from tests.conftest import all_states
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.inference.parity.constraints import HashLimits, bits_of, enumerated_maxima
from thesis_cli.inference.parity.kernels import hashed_maxima
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials


def columns_of(steps):
    """The columns whose running exclusive or is `steps`, shape (T, n)."""
    return np.concatenate([steps[:, :1], steps[:, 1:] ^ steps[:, :-1]], axis=1)


def hashed_maxima_reference(values, start, columns, offsets, best):
    """`hashed_maxima` in plain NumPy, from the columns of A, shape (T, n), and b, shape (T,)."""
    levels = columns.shape[1]
    index = start + np.arange(len(values))
    for t, (column, offset) in enumerate(zip(columns, offsets, strict=True)):
        code = np.full(len(values), offset)
        for j in range(levels):
            code ^= np.where(index >> j & 1, column[j], 0)
        zeros = np.cumprod((code[:, None] >> np.arange(levels)) & 1 ^ 1, axis=1).sum(axis=1)
        np.maximum.at(best[t], zeros, values)


def test_the_kernel_is_its_reference():
    """Two blocks, the second from the hashes that the first leaves."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    columns, offsets = rng.integers(0, 2**8, (5, 8)), rng.integers(0, 2**8, 5)
    expected = np.full((5, 9), -np.inf)
    hashed_maxima_reference(values, 0, columns, offsets, expected)
    found, hashes = np.full((5, 9), -np.inf), offsets.copy()
    steps = np.bitwise_xor.accumulate(columns, axis=1)
    for start, stop in ((0, 70), (70, 200)):
        hashed_maxima(values[start:stop], start, steps, hashes, found)
    np.testing.assert_array_equal(found, expected)


def test_levels_are_maxima_under_the_first_constraints():
    """Against constraints applied one by one to the rows of a table, for a model of 3 x 2 x 3
    states.
    """
    rng = np.random.default_rng(1)
    graph = FactorGraph([3, 2, 3], [Factor((0, 1, 2), rng.normal(size=(3, 2, 3)))])
    found = enumerated_maxima(graph, 7, np.random.default_rng(2))
    same = np.random.default_rng(2)
    columns = columns_of(np.bitwise_xor.accumulate(same.integers(0, 2**5, (7, 5)), axis=1))
    offsets = same.integers(0, 2**5, 7)
    phi = graph.log_potential(all_states(graph))
    bits = np.arange(18)[:, None] >> np.arange(5) & 1
    for t in range(7):
        kept = np.ones(18, bool)
        for level in range(6):
            assert found.values[t, level] == phi[kept].max(initial=-np.inf)
            if level < 5:
                kept &= (bits @ (columns[t] >> level & 1) + (offsets[t] >> level & 1)) % 2 == 0
    assert found.exact.all()
    assert found.calls == 7 * 5 + 1


def test_a_constraint_keeps_half_and_pairs_independently():
    """Of two configurations among 8, each is kept by i constraints with 2^-i, both with 4^-i."""
    count = 20_000
    first, last, both = (
        np.isfinite(enumerated_maxima(LogPotentials(x), count, np.random.default_rng(3)).values)
        for x in (_only(2), _only(7), _only(2, 7))
    )
    for level in range(1, 4):
        share = 0.5**level
        error = 5 * np.sqrt(share / count)
        assert first[:, level].mean() == pytest.approx(share, abs=error)
        assert (first & last)[:, level].mean() == pytest.approx(share**2, abs=error * np.sqrt(share))
    np.testing.assert_array_equal(both, first | last)


def _only(*possible):
    values = np.full(8, -np.inf)
    values[list(possible)] = 0
    return values


def test_threads_and_blocks_change_nothing(monkeypatch):
    model = LogPotentials(np.random.default_rng(4).normal(size=1000))
    alone = enumerated_maxima(model, 9, np.random.default_rng(5))
    monkeypatch.setattr("thesis_cli.inference.enumeration.BLOCK", 64)
    units = []
    shared = enumerated_maxima(model, 9, np.random.default_rng(5), limits=HashLimits(jobs=3), progress=units.append)
    np.testing.assert_array_equal(alone.values, shared.values)
    assert sum(units) == 9000


def test_refusals():
    with pytest.raises(InputError, match="number of hashes is 0"):
        enumerated_maxima(LogPotentials(np.zeros(2)), 0, np.random.default_rng(0))
    with pytest.raises(ModelTooLarge):
        enumerated_maxima(
            FactorGraph([2] * 9, []), 1, np.random.default_rng(0), limits=HashLimits(max_configurations=511)
        )
    with pytest.raises(NoConfiguration):
        enumerated_maxima(LogPotentials(np.full(3, -np.inf)), 1, np.random.default_rng(0))
    assert [bits_of(n) for n in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]
