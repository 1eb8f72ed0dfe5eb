import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.inference import enumeration
from thesis_cli.inference.enumeration import Enumeration, log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials


@given(factor_graphs(), st.integers(1, 20))
def test_blocks_are_the_configurations_in_order(graph, block):
    """Compiled and started anew at every block, against the plain sum of table entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "BLOCK", block)
        blocks = [b.copy() for b in Enumeration(graph).blocks()]
    assert all(b.size == block for b in blocks[:-1])
    np.testing.assert_allclose(np.concatenate(blocks), graph.log_potential(all_states(graph)), rtol=1e-13, atol=1e-12)


@given(factor_graphs(), st.integers(1, 20))
def test_log_partition_function_is_brute_force(graph, block):
    phi = graph.log_potential(all_states(graph))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "BLOCK", block)
        found = log_partition_function(graph)
    assert found == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shift", [1e5, -1e5, 0.0])
def test_nothing_overflows(shift):
    assert log_partition_function(LogPotentials(np.array([shift, shift - 1, -np.inf]))) == pytest.approx(
        shift + math.log1p(math.exp(-1)), rel=1e-14
    )


def test_an_impossible_model_has_log_z_minus_inf():
    assert log_partition_function(LogPotentials(np.full(3, -np.inf))) == -np.inf


def test_too_large_a_model_is_refused_at_once():
    with pytest.raises(ModelTooLarge, match="more than --max-configurations 1,000"):
        Enumeration(FactorGraph([2] * 100, []), max_configurations=1000)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_mapped_vector_is_checked_as_it_is_read(bad):
    values = np.zeros(100)
    values[70] = bad
    with pytest.raises(InputError, match="log-potential 70 is"):
        log_partition_function(LogPotentials(values))


def test_progress_counts_every_configuration(monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", 7)
    done = []
    log_partition_function(LogPotentials(np.zeros(30)), progress=done.append)
    assert done == [7, 7, 7, 7, 2]


@pytest.mark.filterwarnings("error")
def test_potentials_as_far_apart_as_doubles_allow():
    assert log_partition_function(LogPotentials(np.array([1e308, -1e308, 1.7e308]))) == 1.7e308
