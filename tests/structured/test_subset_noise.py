"""Programs over subsets, against all structures one by one."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

from thesis_cli.structured.subset_noise import cycle_maxima, order_maxima, partition_maxima

D, PROBLEMS = 5, 6


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


def test_orders():
    before, noise = numbers(D, D), numbers(PROBLEMS, D, D)
    values, found = order_maxima(before, noise)

    def value(places, problem):
        pairs = sum(before[j, i] for j in range(D) for i in range(D) if places[j] < places[i])
        return pairs + sum(noise[problem, i, k] for i, k in enumerate(places))

    for problem in range(PROBLEMS):
        best = max(permutations(range(D)), key=lambda places, p=problem: value(places, p))
        assert found[problem].tolist() == list(best)
        assert values[problem] == pytest.approx(value(best, problem))


@pytest.mark.parametrize("all_of_them", [True, False])
def test_cycles(all_of_them):
    arcs = numbers(PROBLEMS, D, D) - 0.3
    values, found = cycle_maxima(arcs, all_of_them)
    sizes = [D] if all_of_them else range(3, D + 1)
    every = [(s[0], *rest) for n in sizes for s in combinations(range(D), n) for rest in permutations(s[1:])]

    def value(cycle, problem):
        return sum(arcs[problem, i, j] for i, j in pairwise((*cycle, cycle[0])))

    for problem in range(PROBLEMS):
        best = max(every, key=lambda cycle, p=problem: value(cycle, p))
        assert found[problem].tolist() == [*best, *[-1] * (D - len(best))]
        assert values[problem] == pytest.approx(value(best, problem))
    assert all_of_them or len(set((found < 0).sum(axis=1))) > 1


def partitions(elements):
    if not elements:
        yield []
        return
    first, *others = elements
    for size in range(len(others) + 1):
        for more in combinations(others, size):
            for rest in partitions([e for e in others if e not in more]):
                yield [(first, *more), *rest]


def test_partitions():
    pairs, noise = numbers(D, D), numbers(PROBLEMS, D, D)
    values, found = partition_maxima(pairs, noise)

    def value(blocks, problem):
        inside = sum(pairs[i, j] for block in blocks for i, j in combinations(block, 2))
        return inside + sum(noise[problem, j, block[0]] for block in blocks for j in block)

    for problem in range(PROBLEMS):
        best = max(partitions(list(range(D))), key=lambda blocks, p=problem: value(blocks, p))
        assert found[problem].tolist() == [next(k for k, b in enumerate(best) if j in b) for j in range(D)]
        assert values[problem] == pytest.approx(value(best, problem))
    assert len(set(found.max(axis=1))) > 1
