import itertools
import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge, OutOfTime, UnsuitableModel, WorkFailed
from thesis_cli.inference.external import model_counting
from thesis_cli.inference.external import weighted_cnf as table_clauses
from thesis_cli.inference.external.model_counting import ModelCounter, _job
from thesis_cli.models.factor_graph import Factor, FactorGraph

NO = -np.inf


@contextmanager
def in_this_process():
    """Count without a process, which is faster."""
    pytest.importorskip("pyganak")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_counting, "call", lambda function, job, timeout, memory: function(job))
        yield


@settings(max_examples=examples(15))
@given(factor_graphs())
def test_log_partition_function_is_brute_force(graph):
    phi = graph.log_potential(all_states(graph))
    with in_this_process():
        found = ModelCounter(graph).log_partition_function()
    assert found == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-11)


@st.composite
def repetitive(draw):
    """Tables of few distinct weights, far apart, and of many zeros."""
    cardinalities = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4]), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = draw(st.sampled_from([[0.0], [0.0, -0.5], [3.0, -700.0, 500.0], [0.0, -5000.0]]))
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        scope = rng.permutation(len(cardinalities))[: rng.integers(0, 6)]
        table = rng.choice([NO, NO, *weights], [cardinalities[i] for i in scope])
        if np.max(table) > NO:
            factors.append(Factor(tuple(scope.tolist()), np.array(table)))
    return FactorGraph(cardinalities, factors)


@settings(max_examples=examples(20))
@given(repetitive())
def test_repeated_weights_and_zeros_are_brute_force(graph):
    phi = graph.log_potential(all_states(graph))
    whole = all(set(f.table.ravel()) <= {0.0, NO} for f in graph.factors)
    with in_this_process():
        counter = ModelCounter(graph)
        assert counter.log_partition_function() == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-11)
        assert counter.count() == ((phi == 0).sum() if whole else None)


@settings(max_examples=examples(30))
@given(st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([0, 5, 99]), st.sampled_from([0, 99]))
def test_boxes_cover_what_they_must_and_no_more(count, seed, most, few):
    """By each of the three ways."""
    kinds = np.random.default_rng(seed).integers(0, 3, 2**count)
    must, may = kinds == 0, kinds < 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_clauses, "_MOST_DIGITS", most)
        patch.setattr(table_clauses, "_FEW", few)
        covered = np.zeros(2**count, bool)
        for box in table_clauses.boxes(must, may):
            covered[table_clauses._inside(box)] = True
    assert covered[must].all()
    assert not covered[~may].any()


@settings(max_examples=examples(30))
@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.integers(0, 2**32), st.booleans())
def test_weights_of_a_template_sum_to_its_table(shape, seed, diagram):
    table = np.random.default_rng(seed).choice([NO, NO, 0.0, -0.7, 2.0], shape)
    if np.max(table) == NO:
        return
    found = table_clauses.template(table)
    if diagram:
        values, classes = table_clauses._weights(table)
        out = table_clauses._Clauses(sum(map(table_clauses.digits, shape)), values[:-1] - values[-1])
        assert table_clauses._diagram(table_clauses._coded(classes, copy=True), out, 10**9)
        found = table_clauses.Template(np.array(out.literals), out.count, np.array(out.logs), found.shift)
    np.testing.assert_allclose(_summed(found, table.shape), np.exp(table), rtol=1e-14)


def _summed(template, shape):
    """The weight of each entry: a sum over the auxiliary literals."""
    clauses = [list(part) for zero, part in itertools.groupby(template.literals.tolist(), bool) if zero]
    count = sum(map(table_clauses.digits, shape))
    ready = {}  # clauses by their last literal, if it is auxiliary
    for clause in clauses:
        ready.setdefault(max(count, *map(abs, clause)), []).append(clause)

    def total(true):
        """The weight of all assignments that begin with one, if no clause is false already."""
        known = len(true)
        if any(all(true[abs(x) - 1] != (x > 0) for x in clause) for clause in ready.get(known, [])):
            return 0.0
        if known == count + len(template.logs):
            return 1.0
        log = template.logs[known - count]
        yes, no = (math.exp(log), -math.expm1(log)) if log else (1.0, 1.0)
        return yes * total([*true, 1]) + no * total([*true, 0])

    found = np.zeros(shape)
    for place in np.ndindex(*shape):
        code = "".join(f"{s:0{table_clauses.digits(k)}b}" for s, k in zip(place, shape, strict=True))
        found[place] = total(list(map(int, code)))
    return found * math.exp(template.shift)


def test_a_scale_is_a_product_of_powers_of_2():
    """So that it rounds nothing."""
    pytest.importorskip("pyganak")
    formula = ModelCounter(FactorGraph([2], [Factor((0,), np.array([0.0, 0.3]))])).formula
    shares = np.frombuffer(_job(formula, 2501).weights).reshape(-1, 2)[len(formula.weights) :, 0]
    fractions, exponents = np.frexp(shares)
    assert (fractions == 0.5).all()
    assert (exponents - 1).sum() == 2501


def test_parity_of_many_variables_takes_few_clauses():
    table = np.where(np.indices((2,) * 12).sum(axis=0) % 2 == 0, 0.0, NO)
    assert table_clauses.template(table).clauses < 50


@pytest.mark.parametrize("scale", [-3000.0, -1e5, 2000.0, 0.1])
def test_no_log_partition_function_is_too_large_or_small(scale):
    """Half of the variables must be in their least likely state."""
    off, on = np.array([0.0, NO]), np.array([0.0, -abs(scale) / 300])
    chain = [Factor((i, i + 1), np.array([[NO, 0.0], [0.0, 0.0]])) for i in range(0, 600, 2)]
    unary = [Factor((i,), on + (scale > 0) * abs(scale) / 100) for i in range(1, 600, 2)]
    graph = FactorGraph([2] * 600, [*chain, *unary, *(Factor((i,), off) for i in range(0, 600, 2))])
    expected = 300 * (unary[0].table[1])
    with in_this_process():
        assert ModelCounter(graph).log_partition_function() == pytest.approx(expected, rel=1e-12)


def queens(n: int) -> FactorGraph:
    """The queen of each row, by its column."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    rows = itertools.combinations(range(n), 2)
    return FactorGraph([n] * n, [Factor((a, b), np.where((apart == 0) | (apart == b - a), NO, 0.0)) for a, b in rows])


def test_counts_of_queens_are_those_published():
    """OEIS A000170."""
    with in_this_process():
        assert [ModelCounter(queens(n)).count() for n in range(3, 7)] == [0, 2, 10, 4]


def test_counts_have_any_number_of_digits():
    pytest.importorskip("pyganak")
    assert ModelCounter(FactorGraph([2] * 20_000 + [10**9], [])).count() == 2**20_000 * 10**9


def _with_library(tmp_path, monkeypatch, body):
    """A counter that has a library in the place of Ganak."""
    text = f"""
import os, time
class Counter:
    calls = 0
    new_vars = add_clauses = set_sampling_set = lambda self, n: None
    def count(self):
        Counter.calls += 1
        if Counter.calls == 1:
            return 1
        {body}
"""
    (tmp_path / "pyganak.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return ModelCounter(FactorGraph([2], []))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os.abort()", r"a process died \(signal 6\)"),
        ("raise MemoryError", r"the model counter needs more than 2 GiB; raise --memory"),
        ("raise RuntimeError('no\\n way')", "the model counter failed: no way"),
    ],
)
def test_a_failure_of_the_library_is_one_line(tmp_path, monkeypatch, body, message):
    with pytest.raises(WorkFailed, match=f"^{message}$"):
        _with_library(tmp_path, monkeypatch, body).log_partition_function()


def test_a_time_limit_ends_the_process(tmp_path, monkeypatch):
    file = tmp_path / "pid"
    body = f"open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(OutOfTime):
        _with_library(tmp_path, monkeypatch, body).log_partition_function(0.5)


def test_refusals(monkeypatch):
    with pytest.raises(ModelTooLarge, match="a table of 2,097,152 entries"):
        ModelCounter(FactorGraph([2**21], [Factor((0,), np.zeros(2**21))]))
    with pytest.raises(ModelTooLarge, match="a table of 2,000 distinct weights; model counting takes at most 1,025"):
        ModelCounter(FactorGraph([2000], [Factor((0,), np.arange(2000.0))]))
    with pytest.raises(ModelTooLarge, match="differ by 1e"):
        ModelCounter(FactorGraph([2, 2], [Factor((0, 1), np.array([[0.0, -1e9], [0.0, 0.0]]))]))
    monkeypatch.setattr(model_counting, "is_installed", lambda name: False)
    with pytest.raises(UnsuitableModel, match="the package pyganak; run pip install pyganak"):
        ModelCounter(FactorGraph([2], []))
