"""States that the network for the next line learns from, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

from thesis_cli.synthesis.networks.next_line import PRUNING, LayerSizes, NextLine, places_of
from thesis_cli.synthesis.search.execution import moves, start, step
from thesis_cli.synthesis.training.corpora import held_out

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from thesis_cli.synthesis.corpus.corpus import Corpus  # noqa: E402
from thesis_cli.synthesis.training.corpora import TrainingData  # noqa: E402
from thesis_cli.synthesis.training.next_line_learner import (  # noqa: E402
    NextLineLearner,
    StateBatch,
    batch_of,
    lines_of,
)
from thesis_cli.synthesis.training.trainer import TrainingPlan, train  # noqa: E402

SIZES = LayerSizes(pair=24, variable=20, state=16, own=16, rank=4)


@pytest.fixture(scope="module")
def programs() -> Corpus:
    """Programs of 3 to 6 lines."""
    found = held_out()
    rows = [np.flatnonzero((found.lengths == length) & found.test)[:14] for length in (3, 4, 5, 6)]
    return found.subset(np.concatenate(rows)[:50])


def states_of(batch: StateBatch, program: int, states: int) -> list[tuple[frozenset[int], int]]:
    """Variables of the states of a program, and the number of the state."""
    rows = range(program * states, (program + 1) * states)
    return [(frozenset(np.flatnonzero(batch.there[row]).tolist()), row) for row in rows]


def test_right_lines_are_those_that_are_left_and_can_be_next(programs: Corpus) -> None:
    batch = batch_of(programs, np.random.default_rng(0), states=3)
    variables = batch.there.shape[1]
    seen = 0
    for program, lines in enumerate(lines_of(programs)):
        inputs = len(programs.program(program).inputs)
        for there, row in states_of(batch, program, 3):
            left = [
                line
                for t, line in enumerate(lines)
                if line[0] >= 0 and inputs + t not in there and {line[1], line[2]} <= there
            ]
            expected = set(places_of(np.array(left), variables).tolist())
            assert set(np.flatnonzero(batch.right[row]).tolist()) == expected
            assert bool(batch.legal[row][list(expected)].all())
            seen += len(there) > inputs
    assert seen > 50


def test_the_network_is_the_same_without_pytorch(programs: Corpus) -> None:
    learner = NextLineLearner(TrainingData(programs, *[np.arange(50)] * 2), 0, SIZES)
    network = NextLine(SIZES, learner.arrays())
    batch = batch_of(programs, np.random.default_rng(0), states=1, slack=False)
    with torch.no_grad():
        logarithms = torch.log_softmax(learner.module(batch), 1).numpy()
    lines, compared = lines_of(programs), 0
    for row in range(0, 50, 7):
        length, inputs = int(batch.lengths[row]), len(programs.program(row).inputs)
        pool, place = start([programs.task(row)], length), list(range(inputs))
        for t in np.flatnonzero(batch.there[row])[inputs:] - inputs:
            id, x, y = lines[row, t].tolist()
            pool = step(pool, [(id, place.index(x), place.index(y))])
            place.append(inputs + int(t))
        found = moves(pool, pruning=PRUNING)
        moved = found.lines.copy()
        moved[:, 1:] = np.array(place)[found.lines[:, 1:]]
        expected = logarithms[row, places_of(moved, batch.there.shape[1])]
        np.testing.assert_allclose(network.scores(pool, found), expected, rtol=0, atol=1e-5)
        compared += len(expected)
    assert compared > 500


def test_training_overfits_50_programs(programs: Corpus) -> None:
    data = TrainingData(programs, np.arange(50), np.arange(50), examples=5)
    learner = NextLineLearner(data, 0, SIZES)
    before = learner.loss(learner.batch(data.train, None)).item()
    course = train(learner, data, TrainingPlan(50 * 60, batch=50, rate=1e-2, evaluations=4))
    assert course.best < 0.65 * before
    found = learner.metrics(data.train)
    assert found["top"]["3"]["20"] > found["prior"]["3"]["20"]
