"""What is said of ln Z where no exact answer is had."""

import itertools
import logging
import math
from dataclasses import replace

import numpy as np
import pytest

from thesis_cli.base.child import Attempt
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.commands.ln_z import portfolio
from thesis_cli.commands.ln_z.estimates import LnZAnswer, LnZOptions, _text
from thesis_cli.commands.ln_z.portfolio import SHARES, UNKNOWN, Known, _in_order, _moved, _simple
from thesis_cli.inference import exact
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.exact import ExactPlan
from thesis_cli.inference.sampling.annealing import annealed
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.estimate import Estimate, fixed_estimate
from thesis_cli.studies.models.examples import random_3_sat

REFUSAL = ModelTooLarge("too wide")


def fixed(value: float, kind: str, method: str) -> LnZAnswer:
    return LnZAnswer((fixed_estimate(value, kind, method, ""),))


def sampled(value: float, error: float, low: float, high: float, kind: str = "Z unbiased") -> LnZAnswer:
    return LnZAnswer((Estimate(value, error, low, high, "ln Z", kind, 0.95, 0, "importance", ""),), 7)


def test_the_best_estimate_comes_first_then_the_tightest_bounds() -> None:
    known = Known()
    known.add("bethe", fixed(10.5, "approximation", "Bethe"))
    known.add("trw", fixed(14.0, "upper bound", "TRW"))
    known.add("mini-bucket", fixed(9.0, "lower bound", "b").after(fixed(12.0, "upper bound", "a")))
    known.add("importance", sampled(10.0, 0.1, 9.5, 10.4))
    found = known.all(REFUSAL)
    assert [e.value for e in found.estimates] == [10.0, 12.0, 9.0, 10.5, 14.0]
    assert found.map_calls == 7
    assert found.meaning.startswith("ln Z is 10 to within 0.1")
    assert "9.5 <= ln Z <= 10.4 with the confidence" in found.meaning


def test_an_approximation_outside_the_bounds_is_not_first() -> None:
    known = Known()
    known.add("bethe", fixed(13.0, "approximation", "Bethe"))
    known.add("junction-graph", fixed(11.0, "approximation, not converged", "join graph"))
    known.add("trw", fixed(12.0, "not converged, by 0.1", "TRW"))
    found = known.all(REFUSAL)
    assert [e.value for e in found.estimates] == [11.0, 12.0, 13.0]
    assert found.meaning == "join graph is an approximation whose error is not known; ln Z <= 12 for certain"


@pytest.mark.parametrize(("error", "first"), [(0.5, "importance"), (math.inf, "Bethe")])
def test_samples_with_a_large_error_come_after_messages_that_converged(error: float, first: str) -> None:
    known = Known()
    known.add("bethe", fixed(10.0, "approximation", "Bethe"))
    assert known.all(REFUSAL).meaning == "Bethe is an approximation whose error is not known"
    known.add("importance", sampled(9.0, error, 5.0, 20.0))
    assert known.all(REFUSAL).estimates[0].method == first


def test_bounds_alone_are_an_answer_and_nothing_is_none(caplog: pytest.LogCaptureFixture) -> None:
    known = Known()
    with pytest.raises(ModelTooLarge, match="too wide"):
        known.all(REFUSAL)
    with caplog.at_level(logging.INFO, "thesis_cli"):
        known.add("trw", fixed(12.0, "upper bound", "TRW"))
        assert known.all(REFUSAL).meaning == "ln Z <= 12 for certain"
        known.add("max-marginal", fixed(8.0, "lower bound", "max-marginal"))
        known.add("average", LnZAnswer((), 3))
    assert caplog.messages == ["8 <= ln Z <= 12 so far"]
    assert known.all(REFUSAL).meaning == "8 <= ln Z <= 12 for certain"


def test_an_estimate_without_a_standard_error_is_shown_with_its_interval() -> None:
    (estimate,) = sampled(37.2, math.inf, 7.0, 63.4).estimates
    assert _text(estimate) == "37.20  standard error infinite  95% interval [7.00, 63.40]"


def test_an_estimate_outside_the_bounds_says_nothing() -> None:
    known = Known()
    known.add("mini-bucket", fixed(9.0, "lower bound", "b").after(fixed(12.0, "upper bound", "a")))
    known.add("ais", sampled(5.0, math.inf, 4.0, math.inf))
    found = known.all(REFUSAL)
    assert [e.value for e in found.estimates] == [12.0, 9.0, 5.0]
    assert found.meaning == "9 <= ln Z <= 12 for certain"


def test_annealing_gives_a_lower_bound_with_a_probability_and_no_upper_bound() -> None:
    known = Known(hard=True)
    known.add("ais", sampled(10.0, 0.1, 9.8, 10.2).after(fixed(9.0, "lower bound with probability 95%", "ais")))
    assert known.all(REFUSAL).meaning.endswith("9 <= ln Z with the confidence of the rows")


def test_without_a_configuration_ln_z_may_be_minus_infinity() -> None:
    known = Known(hard=True)
    known.add("mini-bucket", fixed(12.0, "upper bound", "a"))
    assert known.all(REFUSAL).meaning == "ln Z <= 12 for certain" + UNKNOWN


@pytest.mark.parametrize("seed", range(30))
def test_simple_bounds_and_configurations_found_hold_on_a_reduced_model(seed: int) -> None:
    """Zeros are used, then bounds are those of the first model, whatever the size of its constants."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 5)
    factors = [Factor((0,), np.full(sizes[0], 10.0 ** rng.integers(0, 6)))]
    for scope in itertools.combinations(range(5), 2):
        table = rng.normal(size=sizes[list(scope)])
        table[rng.random(table.shape) < 0.4] = -np.inf
        table[0, 0] = 0.0
        factors.append(Factor(scope, table))
    graph = FactorGraph(sizes, factors)
    log_z = log_partition_function(graph)
    smaller = reduced(graph)
    rows = _moved(_simple(smaller.graph), smaller.constant).estimates
    found = annealed(smaller.graph, 20, 10, np.random.SeedSequence(seed)).seen
    rows += _moved(fixed(found, "lower bound", "configurations found"), smaller.constant).estimates
    assert len(rows) >= 2
    for e in rows:
        assert e.low <= log_z if e.kind == "lower bound" else e.high >= log_z
        assert e.kind == "upper bound" or e.value > log_z - 20


@pytest.mark.parametrize("seed", range(8))
def test_an_interval_comes_out_even_if_no_method_ends(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On models of random clauses, beside enumeration."""
    graph = random_3_sat(14, 30, np.random.default_rng(seed))
    log_z = log_partition_function(graph)
    plan = ExactPlan(None, (), promising=False, refusal=REFUSAL, smaller=reduced(graph))
    monkeypatch.setattr(exact, "exact_plan", lambda *_: plan)
    monkeypatch.setattr(portfolio, "attempts", lambda *_: ())
    found = portfolio.portfolio(graph, LnZOptions(samples=1, seed=seed), 1.0, 1)
    assert "<= ln Z <=" in found.meaning
    for e in found.estimates:
        assert e.low <= log_z or e.kind != "lower bound"
        assert e.high >= log_z or e.kind != "upper bound"


def test_on_one_core_counting_that_is_likely_to_end_comes_first_and_then_the_best_approximation() -> None:
    def named(name: str) -> Attempt:
        return Attempt(name, iter, (), 10.0)

    approximate = [named(name) for name in ("ais", "bethe", "importance")]
    plan = ExactPlan(None, (named("model counting"), named("sparse elimination")), promising=True)
    order = {alone: _in_order(plan, approximate, 10.0, alone=alone) for alone in (True, False)}
    assert [a.name for a in order[True]] == ["model counting", "importance", "ais", "bethe", "sparse elimination"]
    assert [a.name for a in order[False]] == ["model counting", "ais", "sparse elimination", "bethe", "importance"]
    assert order[True][0].seconds < 10.0
    assert order[True][-1].seconds == 5.0
    order = _in_order(replace(plan, promising=False), approximate, 10.0, alone=True)
    assert [a.name for a in order] == ["ais", "bethe", "model counting", "sparse elimination", "importance"]


def test_on_one_core_importance_sampling_has_most_of_the_time() -> None:
    shares = {name: portfolio._most(share, alone=True) for name, share in SHARES.items() if share.alone}
    assert list(SHARES)[-1] == "importance"
    del shares["importance"]
    assert sum(shares.values()) < 0.5
    del shares["coupling"]  # which ends soon unless its bound is as good
    assert sum(shares.values()) <= 0.25


def test_on_more_cores_the_two_with_the_best_intervals_follow_the_exact_algorithms() -> None:
    approximate = [Attempt(name, iter, (), 10.0) for name in SHARES]
    plan = ExactPlan(None, (Attempt("model counting", iter, (), 10.0),))
    order = [a.name for a in _in_order(plan, approximate, 10.0, alone=False)]
    assert order[:4] == ["mini-bucket", "model counting", "ais", "importance"]
    assert sorted(order[4:]) == ["average", "bethe", "coupling", "junction-graph", "trw", "unary"]
