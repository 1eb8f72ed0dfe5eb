"""Balanced programs: how likely they are, and what their weights estimate."""

import numpy as np
import pytest

from tests.synthesis.corpus.test_behaviours import every
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus import behaviours
from thesis_cli.synthesis.corpus.balance import KEPT, NUMBER, Proposal, _fitted, batches, proposal, weights_of
from thesis_cli.synthesis.corpus.corpus import TYPES
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, DEFAULT, FUNCTIONS, INT, LIST
from thesis_cli.synthesis.language.program_codes import encode, operation_of

BOTH = frozenset(["output-type", "function"])


def uses(codes):
    """Which functions programs use, and whether they give a number, shape (P, 16)."""
    ids = operation_of(codes)
    functions = np.array([FUNCTIONS.index(o.function) for o in DEEPCODER.operations])[ids]
    found = (functions[:, :, None] == np.arange(DEEPCODER.functions)).any(axis=1)
    return np.column_stack([found, NUMBER[ids[:, -1]]])


def properties(corpus):
    return np.column_stack([corpus.attributes, corpus.types[:, -1] == TYPES.index(INT)])


def shares(corpus):
    """Weighted shares, and their standard errors."""
    weights = corpus.weights / corpus.weights.sum()
    found = properties(corpus)
    mean = weights @ found
    return mean, np.sqrt(weights**2 @ (found - mean) ** 2)


def test_programs_are_drawn_at_their_rates():
    kinds = np.array([True, False])
    operations = np.arange(len(DEEPCODER.operations)) % 5 + 1
    tilted = Proposal(2, kinds, (1, 3), operations)
    a = 0.25
    tilted = Proposal(2, kinds, (1, 3), operations, a, (1 - a) / tilted.mean)
    programs = np.array([encode(p) for p in every((INT, LIST), 2) if not p.unused])
    rates = tilted.rates(programs)
    assert rates.mean() == pytest.approx(1)
    drawn, counts = np.unique(tilted.draw(100_000, np.random.default_rng(1)), axis=0, return_counts=True)
    rows = {tuple(row): n for row, n in zip(drawn.tolist(), counts.tolist(), strict=True)}
    found = np.array([rows.get(tuple(row), 0) for row in programs.tolist()])
    assert found.sum() == counts.sum()
    expected = rates / len(programs) * counts.sum()
    freedom = len(programs) - 1
    assert abs(((found - expected) ** 2 / expected).sum() - freedom) < 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("count", [10, 150])
def test_weights_of_known_programs_are_unbiased(count):
    known = behaviours.enumerated((LIST,), DEFAULT, 2)
    fitted = proposal((LIST,), DEFAULT, 2, BOTH)
    truth = np.append(uses(known.short(2)).sum(axis=0), len(known.short(2)))
    estimates = []
    for seed in range(100):
        (batch,) = batches(fitted, known, np.random.default_rng(seed), 10**6)
        weights = weights_of(batch.rates[:count], batch.times[count])
        estimates.append(np.append(weights @ uses(batch.codes[:count]), weights.sum()))
    errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - truth) <= 5 * errors).all()


@pytest.mark.parametrize("length", [pytest.param(3, marks=pytest.mark.long), 4])
def test_a_balanced_corpus_estimates_a_uniform_one(length):
    few = {"signatures": [(LIST,), (INT, LIST)]}
    uniform = make_corpus(CorpusPlan(length, 2000, **few), np.random.default_rng(1))
    assert (uniform.weights == 1).all()
    balanced = make_corpus(CorpusPlan(length, 1000, 100, balance=BOTH, **few), np.random.default_rng(2))
    (one, error), (other, spread) = shares(uniform), shares(balanced)
    assert (np.abs(one - other) <= 5 * np.hypot(error, spread)).all()
    plain = properties(balanced).mean(axis=0)
    assert np.abs(plain - one).max() > 0.1
    functions = dict(zip(ATTRIBUTES, plain, strict=False))
    assert min(functions[f.name] for f in FUNCTIONS[: DEEPCODER.functions]) > 2 * one[: DEEPCODER.functions].min()
    assert one[-1] < plain[-1] - 0.1 < 0.5
    assert balanced.weights.mean() == pytest.approx(1)
    ratio = balanced.weights.sum() ** 2 / (balanced.weights**2).sum() / len(balanced)
    assert 0.1 < ratio < 0.9


def test_a_fit_to_programs_that_were_drawn_is_what_the_module_promises():
    """A share of the programs is uniform, and rates have mean 1 over all that are well-typed. Half of the
    outputs are numbers, up to rounding of the weights. A fit that may not move keeps all weights.
    """
    rng = np.random.default_rng(0)
    start = Proposal(4, np.array([False]))
    codes, weights = start.draw(500, rng), rng.random(500)
    fitted = _fitted(start, BOTH, codes, weights, np.inf)
    among = weights @ fitted.products(codes) / weights.sum()
    assert fitted.a / (fitted.a + fitted.b * among) == pytest.approx(KEPT)
    assert fitted.a + fitted.b * fitted.mean == pytest.approx(1)
    even = _fitted(start, frozenset(["output-type"]), codes, weights, np.inf)
    shares = weights * even.products(codes)
    numbers = shares @ NUMBER[operation_of(codes)[:, -1]] / shares.sum()
    assert abs(numbers - 0.5) <= 0.25 * 0.5 / min(even.outputs)
    again = _fitted(fitted, BOTH, codes, weights, 0.0)
    assert again.outputs == fitted.outputs
    assert again.operations.tolist() == fitted.operations.tolist()


@pytest.mark.parametrize("length", [2, pytest.param(4, marks=pytest.mark.long)])
def test_only_what_is_asked_for_is_balanced(length):
    outputs, functions, neither = (
        proposal((LIST,), DEFAULT, length, frozenset([feature])) for feature in ("output-type", "function", "length")
    )
    assert len(set(outputs.operations.tolist())) == 1
    assert outputs.outputs[0] < outputs.outputs[1]
    assert len(set(functions.outputs)) == 1
    assert len(set(functions.operations.tolist())) > 10
    assert (neither.a, neither.b) == (1, 0)


def test_weights_by_length_add_up_to_the_programs_of_each():
    plan = CorpusPlan(3, 400, shorter=True, signatures=[(LIST,)], balance=("function", "length"))
    made = make_corpus(plan, np.random.default_rng(0))
    everything = make_corpus(CorpusPlan(2, 10**4, shorter=True, signatures=[(LIST,)]), np.random.default_rng(0))
    for length in (1, 2):
        weights = made.weights[made.lengths == length]
        count = (everything.lengths == length).sum()
        assert abs(weights.sum() - count) <= 5 * np.sqrt((weights * (weights - 1)).sum())
        assert (len(weights) == count) == np.allclose(weights, 1)
    assert made.weights[made.lengths == 3].sum() > 8000


def test_programs_that_are_drawn_stand_for_all_that_are_well_typed(monkeypatch, uncached):
    """With what is enumerated cut to 1 line, so that programs of 2 lines are drawn."""
    whole = make_corpus(CorpusPlan(2, 10**4, shorter=True, signatures=[(LIST,)]), np.random.default_rng(0))
    for module in ("behaviours", "balance", "corpus_maker"):
        monkeypatch.setattr(f"thesis_cli.synthesis.corpus.{module}.ENUMERATED", 1)
    uncached(behaviours._enumerated, proposal)
    plan = CorpusPlan(2, 40, shorter=True, signatures=[(LIST,)], balance=("length",))
    made = make_corpus(plan, np.random.default_rng(0))
    estimate = made.weights[made.lengths == 2]
    count = (whole.lengths == 2).sum()  # and programs that do what another one does count, too
    assert count - 5 * np.sqrt((estimate**2).sum()) < estimate.sum() < 3 * count


def test_one_length_is_not_balanced():
    with pytest.raises(InputError, match="programs of one length"):
        CorpusPlan(3, 10, balance=("length",))
