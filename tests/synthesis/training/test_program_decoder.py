"""The network that writes programs: PyTorch and NumPy agree, and beam search goes by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import thesis_cli as tc  # noqa: E402
from thesis_cli.base.errors import InputError  # noqa: E402
from thesis_cli.synthesis.corpus.corpus import join  # noqa: E402
from thesis_cli.synthesis.guided.beam_search import Beam, NetworkScores  # noqa: E402
from thesis_cli.synthesis.language.dsl import Semantics  # noqa: E402
from thesis_cli.synthesis.language.task import Example, Task, check  # noqa: E402
from thesis_cli.synthesis.networks.network_guide import network_guide  # noqa: E402
from thesis_cli.synthesis.networks.program_decoder import network  # noqa: E402
from thesis_cli.synthesis.networks.weights import config_of, save  # noqa: E402
from thesis_cli.synthesis.search.execution import moves, start, step  # noqa: E402
from thesis_cli.synthesis.search.solver import Limits, Order, TokenOrder  # noqa: E402
from thesis_cli.synthesis.training.corpora import TrainingData, held_out  # noqa: E402
from thesis_cli.synthesis.training.program_decoder import ProgramLearner, mixed  # noqa: E402
from thesis_cli.synthesis.training.trainer import TrainingPlan, train  # noqa: E402

PROGRAMS = 12


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory):
    """A small network that knows a few programs by heart, its file, and the programs."""
    parts = held_out(2, PROGRAMS // 2), held_out(3, PROGRAMS // 2)
    corpus = join([replace(part, codes=part.codes[:, :3]) for part in parts])
    rows = np.arange(PROGRAMS)
    data = TrainingData(corpus, rows, rows.copy())
    learner = ProgramLearner(data, 0, embedding=10, layers=1, units=32, token=8)
    train(learner, data, TrainingPlan(12 * 120, batch=12, evaluations=5, rate=2e-2, half=False))
    path = tmp_path_factory.mktemp("program") / "small.safetensors"
    save(path, learner.arrays(), learner.kind, config_of(corpus.semantics, **learner.sizes), {})
    with torch.no_grad():
        for value in learner.module.parameters():
            value.copy_(value.half())
    return learner, str(path), data


def test_states_and_logits_are_those_of_torch(overfitted):
    learner, path, data = overfitted
    found, line, tasks = network(path), 0, [data.corpus.task(row) for row in range(PROGRAMS)]
    *taken, _, lines, _ = learner.batch(np.arange(PROGRAMS), None)
    state = np.concatenate([found.start(task) for task in tasks])
    above = np.full(PROGRAMS, len(found.of_token) - 1)
    with torch.no_grad():
        expected = learner.module.encoder.pooled(*taken)
        for line in range(3):
            np.testing.assert_allclose(state, expected.numpy(), rtol=1e-5, atol=1e-5)
            expected, wanted = learner.module(expected, torch.from_numpy(above), torch.full((PROGRAMS,), 3 - line))
            state, logits = found.step(state, above, 3 - line)
            np.testing.assert_allclose(logits, wanted.numpy(), rtol=1e-5, atol=1e-4)
            above = np.maximum(lines[:, line].numpy(), 0)


def test_a_decoder_that_knows_the_programs_finds_them_with_a_beam_of_one(overfitted):
    _, path, data = overfitted
    for row in range(PROGRAMS):
        task, length = data.corpus.task(row), int(data.corpus.lengths[row])
        found = Beam().solve(task, TokenOrder(Order.uniform().probabilities, path), Limits(length))
        assert check(found.program, task)
        assert found.nodes <= length  # one program of each length up to its own


def test_probabilities_add_up_over_the_legal_lines(overfitted):
    _, path, data = overfitted
    scores = NetworkScores(network(path))
    task = data.corpus.task(0)
    pool, states = start([task], 3), scores.start(task)
    for line in range(3):
        found = moves(pool)
        after, logs = scores.lines(states, pool, found, line)
        sums = np.bincount(found.parents, np.exp(logs), minlength=len(pool))
        np.testing.assert_allclose(sums[np.unique(found.parents)], 1, rtol=1e-6)
        best = np.argsort(-logs)[:20]
        pool, states = step(pool, found.lines[best], found.parents[best]), after[found.parents[best]]


def test_the_log_likelihood_of_a_program_is_that_of_its_lines(overfitted):
    learner, path, data = overfitted
    *taken, _, lines, fits = learner.batch(np.arange(PROGRAMS), None)
    with torch.no_grad():
        found = learner.module.losses(tuple(taken), lines, fits)[0].numpy()
    reader = network(path)
    for row in range(PROGRAMS):
        state, above, expected = reader.start(data.corpus.task(row)), len(reader.of_token) - 1, 0.0
        length = int(data.corpus.lengths[row])
        for line in range(length):
            state, logits = reader.step(state, np.array([above]), length - line)
            above = int(lines[row, line])
            expected -= logits[0, above] - np.log(np.exp(logits[0][fits[row, line].numpy()]).sum())
        assert found[row] == pytest.approx(expected, abs=1e-3)


def test_inputs_may_come_in_any_order(overfitted):
    _, path, data = overfitted
    row = next(row for row in range(PROGRAMS) if len(set(data.corpus.program(row).inputs)) == 2)
    task = data.corpus.task(row)
    turned = Task("turned", tuple(Example(example.inputs[::-1], example.output) for example in task.examples))
    order = TokenOrder(Order.uniform().probabilities, path)
    found = Beam().solve(turned, order, Limits(int(data.corpus.lengths[row])))
    assert check(found.program, turned)
    assert found.nodes <= data.corpus.lengths[row]


def test_as_a_guide_it_serves_beam_search_and_all_others(overfitted):
    _, path, data = overfitted
    task = data.corpus.task(0)
    order = network_guide(path).orders([task])[0]
    assert isinstance(order, TokenOrder)
    assert order.weights == path
    for solver in ("beam", "dfs"):
        found = tc.synthesize(task, guide=path, solver=solver, max_length=3)
        assert check(found.solutions[0].program, task)


def test_a_decoder_writes_programs_of_the_lengths_it_knows_and_takes_the_lists_it_knows(overfitted):
    _, path, _ = overfitted
    order = TokenOrder(Order.uniform().probabilities, path)
    none = Task("none", (Example(((5, 1),), (250,)), Example(((5, 1, 0),), (-250,))))
    found = Beam(10**5).solve(none, order, Limits(9))
    assert (found.exhausted, found.stopped) == (3, "")
    far = Task("far", (Example(((300, 1),), 300),))
    with pytest.raises(InputError, match="task far has the value"):
        Beam().solve(far, order, Limits(3), Semantics(high=300))


def test_programs_of_rare_lengths_are_repeated():
    parts = held_out(1), held_out(2), held_out(3, 400)
    corpus = join([replace(part, codes=part.codes[:, :3]) for part in parts])
    rows = np.arange(len(corpus))
    found = mixed(TrainingData(corpus, rows, rows[:5]))
    counts = np.bincount(corpus.lengths[found.train])
    assert counts.tolist() == [0, 6 * 17, 200, 400]
    with pytest.raises(InputError, match="the corpus has 606 programs"):
        mixed(TrainingData(corpus, rows, rows))
