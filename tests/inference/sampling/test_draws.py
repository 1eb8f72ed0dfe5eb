import numpy as np
import pytest
from scipy.stats import binom, chi2

from tests.conftest import all_states
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.inference import enumeration, marginals
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.studies.models.examples import ising


def check_drawn_from(indices: np.ndarray, log_potentials: np.ndarray) -> None:
    """Both at 5 sigma: chi-square of the configurations that are expected at least ten times, and the
    binomial distribution of the number of draws that are none of these, which may be expected .001 times.
    """
    probabilities = np.exp(log_potentials - np.logaddexp.reduce(log_potentials))
    observed = np.bincount(indices, minlength=probabilities.size)
    assert not observed[probabilities == 0].any()
    expected = indices.size * probabilities
    often = expected >= 10
    others = observed[~often].sum()
    of_others = binom(indices.size, min(1, probabilities[~often].sum()))
    assert min(of_others.sf(others - 1), of_others.cdf(others)) > 2.9e-7
    if often.any():
        share = (indices.size - others) / expected[often].sum()
        statistic = ((observed - share * expected)[often] ** 2 / (share * expected[often])).sum()
        assert chi2.sf(statistic, max(1, often.sum() - 1)) > 5.7e-7


def index_of(graph: FactorGraph, states: np.ndarray) -> np.ndarray:
    return np.ravel_multi_index(tuple(states.T), graph.cardinalities)


def constrained() -> FactorGraph:
    rng = np.random.default_rng(4)
    pair = rng.normal(0, 1, (3, 2))
    pair[0, 1] = pair[2, 0] = -np.inf
    triple = rng.normal(0, 1, (2, 2, 4))
    triple[0, 1] = -np.inf
    factors = [Factor((0, 1), pair), Factor((3, 1, 2), triple), Factor((4,), np.array([2.0]))]
    return FactorGraph([3, 2, 4, 2, 1], factors)


@pytest.mark.parametrize("memory", [1, 2**30])
def test_draws_follow_the_gibbs_distribution_by_either_route(memory, monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", 7)
    graph = constrained()
    states, method = exact_samples(graph, 50_000, np.random.default_rng(1), memory=memory)
    assert method == ("enumeration" if memory == 1 else "elimination")
    check_drawn_from(index_of(graph, states), graph.log_potential(all_states(graph)))


@pytest.mark.parametrize("memory", [1, 2**30])
def test_states_under_evidence_are_those_of_the_model(memory):
    graph = ising(2, 3, 1.0, np.random.default_rng(0))
    states, _ = exact_samples(graph.condition({1: 1, 4: 0}), 20_000, np.random.default_rng(1), memory=memory)
    every = all_states(graph)
    agree = (every[:, 1] == 1) & (every[:, 4] == 0)
    check_drawn_from(index_of(graph, states), np.where(agree, graph.log_potential(every), -np.inf))


def test_the_lowest_level_draws_no_configuration_of_probability_0():
    class Lowest:
        def random(self, count):
            return np.zeros(count)

    values = np.array([-np.inf, -np.inf, 0.5, 0.0])
    assert exact_samples(LogPotentials(values), 2, Lowest())[0].tolist() == [[2], [2]]


def test_draws_of_a_vector_are_indices_even_where_rounding_leaves_mass_over(monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", 4)
    values = np.array([0.0, -np.inf, 2.0, 1.0, -np.inf, 1.5, -np.inf, -np.inf, -np.inf])
    states, method = exact_samples(LogPotentials(values), 20_000, np.random.default_rng(1))
    assert (states.shape, method) == ((20_000, 1), "enumeration")
    check_drawn_from(states[:, 0], values)

    class Highest:
        def random(self, count):
            return np.full(count, np.nextafter(1.0, 0.0))

    monkeypatch.setattr("thesis_cli.inference.sampling.draws.log_partition_function", lambda *_, **__: 20.0)
    assert exact_samples(LogPotentials(values), 2, Highest())[0].tolist() == [[5], [5]]


def test_what_cannot_be_drawn_is_refused():
    graph = ising(3, 3, 1.0, np.random.default_rng(0))
    with pytest.raises(ModelTooLarge, match="width 3"):
        exact_samples(graph, 1, np.random.default_rng(0), memory=10, max_configurations=10)
    with pytest.raises(InputError, match="0 draws"):
        exact_samples(graph, 0, np.random.default_rng(0))
    with pytest.raises(InputError, match="no configuration is possible"):
        exact_samples(LogPotentials(np.full(3, -np.inf)), 1, np.random.default_rng(0))


def test_a_grid_too_wide_for_elimination_is_sampled_by_grid_transfer(monkeypatch):
    def refuse(*_):
        raise ModelTooLarge("too wide", "narrow it")

    monkeypatch.setattr(marginals, "Elimination", refuse)
    monkeypatch.setattr(marginals, "small_elimination", lambda *_: None)
    graph = ising(3, 3, 0.5, np.random.default_rng(0)).condition({4: 1})
    states, method = exact_samples(graph, 20, np.random.default_rng(0), max_configurations=1)
    assert method == "grid transfer"
    assert states.shape == (20, 9)
    assert (states[:, 4] == 1).all()
