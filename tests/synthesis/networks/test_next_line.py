"""What the network for the next line must not depend on, and what it sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import BY_NAME, DEFAULT, Semantics, Value
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks import next_line
from thesis_cli.synthesis.networks.next_line import PRUNING, LayerSizes, NextLine
from thesis_cli.synthesis.networks.relation_kernels import ALONE, FEATURES, LOGARITHMS, relate
from thesis_cli.synthesis.networks.weights import config_of, save
from thesis_cli.synthesis.search.execution import Pool, moves, start, step

SIZES = LayerSizes(pair=9, variable=8, state=7, own=6, rank=3)
CLOSE = {"rtol": 0, "atol": 1e-4}
"""Sums of some hundred terms in float32, in another order."""


def arrays_of(sizes: LayerSizes = SIZES) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        name: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in sizes.shapes.items()
    }


@pytest.fixture
def network() -> NextLine:
    return NextLine(SIZES, arrays_of())


def example(n: int) -> Example:
    xs = tuple(range(n, 2 * n + 2))
    return Example((n % 3, xs, tuple(-x * x % 17 for x in xs)), tuple(x + n for x in reversed(xs)))


TASK = Task("any", tuple(example(n) for n in range(1, 6)))
LINES = [(BY_NAME["REVERSE"].id, 1, 1), (BY_NAME["ZIPWITH (-)"].id, 2, 1)]


def after(tasks: list[Task], lines: list[tuple[int, int, int]], length: int = 4) -> Pool:
    pool = start(tasks, length)
    for line in lines:
        pool = step(pool, [line] * len(pool))
    return pool


def by_move(network: NextLine, pool: Pool) -> list[dict[tuple[int, ...], float]]:
    """The score of each move of each program."""
    found = moves(pool, pruning=PRUNING)
    scores = network.scores(pool, found)
    rows: list[dict[tuple[int, ...], float]] = [{} for _ in range(len(pool))]
    for parent, line, score in zip(found.parents, found.lines.tolist(), scores, strict=True):
        rows[parent][tuple(line)] = float(score)
    return rows


def test_probabilities_of_a_program_add_up_to_1(network: NextLine) -> None:
    for lines in ([], LINES):
        sums = [sum(np.exp(list(scores.values()))) for scores in by_move(network, after([TASK, TASK], lines))]
        np.testing.assert_allclose(sums, 1, **CLOSE)


def test_neither_the_order_of_examples_nor_padding_nor_the_batch_matters(
    network: NextLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = by_move(network, after([TASK], LINES))[0]
    mirrored = by_move(network, after([Task("mirrored", TASK.examples[::-1])], LINES))[0]
    more = Task("more", tuple(example(n) for n in range(2, 9)))
    together = by_move(network, after([more, TASK, more], LINES))
    monkeypatch.setattr(next_line, "BLOCK", 1)
    monkeypatch.setattr(next_line, "ROOM", 1)
    fresh = NextLine(SIZES, arrays_of())
    for n in range(1, 10):  # more values than there is room for
        by_move(fresh, after([Task("other", (example(n),))], LINES))
    little = by_move(fresh, after([TASK], LINES))[0]
    for other in (mirrored, together[1], little):
        assert other.keys() == alone.keys()
        np.testing.assert_allclose(list(other.values()), list(alone.values()), **CLOSE)
    assert not np.allclose(list(together[0].values()), list(alone.values()), **CLOSE)


def test_variables_that_change_places_take_their_scores_along(network: NextLine) -> None:
    swapped = Task("swapped", tuple(Example((e.inputs[0], *e.inputs[:0:-1]), e.output) for e in TASK.examples))
    one = by_move(network, after([TASK], []))[0]
    two = by_move(network, after([swapped], []))[0]
    place = [0, 2, 1]
    for (id, x, y), score in one.items():
        moved = (id, place[x], place[y])
        if moved not in two:  # the first of a pair that can be swapped is the earlier one
            moved = (id, place[y], place[x])
        assert two[moved] == pytest.approx(score, abs=1e-4)
    assert len(two) == len(one)


def test_any_range_and_long_lists_are_taken(network: NextLine) -> None:
    wide = Semantics(low=-32766, high=32766, longest=31)
    example = Example(((32766, -32766) * 15 + (7,),), -32766)
    pool = start([Task("wide", (example,))], 2, wide)
    assert np.isfinite(network.scores(pool, moves(pool, pruning=PRUNING))).all()


def test_weights_are_read_and_refused(tmp_path: Path) -> None:
    sizes = {"pair": 9, "variable": 8, "state": 7, "own": 6, "rank": 3}
    path = tmp_path / "a.safetensors"
    save(path, arrays_of(), "next-line", config_of(DEFAULT, {}, **sizes), {})
    network = NextLine.load(path)
    halves = NextLine(SIZES, {name: x.astype(np.float16).astype(np.float32) for name, x in arrays_of().items()})
    pool = after([TASK], LINES)
    assert by_move(network, pool) == by_move(halves, pool)
    save(path, arrays_of(), "next-line", config_of(DEFAULT, {}, **{**sizes, "rank": 4}), {})
    with pytest.raises(InputError, match="first"):
        NextLine.load(path)


def features(value: Value, output: Value) -> np.ndarray:
    pool = start([Task("any", (Example(((1,), value), output),))], 1)
    out = np.zeros((1, 1, FEATURES), dtype=np.float32)
    lists = (pool.types == 2).ravel()
    rows, kinds = pool.values.reshape(-1, pool.values.shape[2]), pool._target_types == 2
    relate(rows, lists, np.array([1]), pool._targets, np.array([0]), kinds, LOGARITHMS, out)
    return out[0, 0]


@pytest.mark.parametrize(
    ("value", "output", "place", "expected"),
    [
        ((1, 2, 3), (2, 4, 6), 29, 1),  # twice the value
        ((1, 2, 3), (2, 4, 7), 29, 2 / 3),
        ((3, -7, 8), (1, -3, 4), 34, 1),  # half of it, toward zero
        ((5, 1, 4), (5, 6, 10), 66, 1),  # its running sums
        ((5, 1, 4), (1, 4, 5), 76, 1),  # sorted
        ((5, 1, 4, 2), (1, 2), 79, 1),  # some of it, in order
        ((5, 1, 4, 2), (2, 1), 79, 0),
        ((5, 1, 4), 10, 17, 1),  # its sum
        ((5, -1, 4), 2, 18, 1),  # how many are above 0
        (3, (7, 7, 7), 4, 1),  # the length
        ((9, 1), (1, 9), 45, 1),  # mirrored
        ((), (1, 9), 0, 0),
    ],
)
def test_features_are_what_they_say(value: Value, output: Value, place: int, expected: float) -> None:
    assert features(value, output)[2 * ALONE + place] == pytest.approx(expected)


@pytest.mark.parametrize("value", [(-4, -8, -8), (-9, 3), (1, 5, 7), (0, 0), (200, 2, 2, -1), (-128, 0, 127)])
def test_features_of_one_value_are_shares_and_what_holds_of_all(value: tuple[int, ...]) -> None:
    x = np.array(value)
    step, even = np.diff(x), x % 2 == 0
    shares = (x < 0, x == 0, ~even, x % 3 == 0, x % 4 == 0, np.abs(x) > 127, np.abs(x) < 4)
    of_steps = (step > 0, step < 0, step == 0)
    holds = (step >= 0, step <= 0, x >= 0, x <= 0, x > 0, even, ~even, x % 3 == 0, x % 4 == 0, x < 0)
    expected = [*map(np.mean, shares), len(set(value)) / len(x), *map(np.mean, of_steps), *map(np.all, holds)]
    np.testing.assert_allclose(features(value, 1)[23:ALONE], expected, rtol=1e-6)
