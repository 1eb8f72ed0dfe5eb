"""Conditional confusion matrices against loops over programs."""

import numpy as np
import pytest

from thesis_cli.studies.synthesis.confusion import Confusion, confusion, contrasts, serial_order


def drawn(programs, attributes, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((programs, attributes)) < 0.4
    return rng.random((programs, attributes)), truth


def test_cells_are_means_over_programs_with_one_attribute_and_not_the_other():
    predicted, truth = drawn(20, 5)
    truth[:, 4] = False
    found = confusion(predicted, truth)
    for i in range(5):
        for j in range(5):
            of = [p for p in range(20) if truth[p, i] and not truth[p, j]]
            assert found.counts[i, j] == len(of)
            expected = np.mean([predicted[p, j] for p in of]) if of else np.nan
            assert found.mean[i, j] == pytest.approx(expected, nan_ok=True)


def test_the_order_puts_blocks_together():
    rng = np.random.default_rng(1)
    blocks = np.repeat([0, 1, 2], 4)
    matrix = np.where(blocks[:, None] == blocks, 0.6, 0.1) + 0.02 * rng.random((12, 12))
    np.fill_diagonal(matrix, np.nan)
    shuffled = rng.permutation(12)
    counts = np.where(np.eye(12), 0, 50)
    order = serial_order(Confusion(matrix[np.ix_(shuffled, shuffled)], counts))
    assert sorted(order) == list(range(12))
    found = blocks[shuffled[order]]
    assert np.count_nonzero(np.diff(found)) == 2


def test_contrasts_are_differences_of_the_matrix():
    predicted, truth = drawn(300, 6)
    groups = [[(0, 1), (1, 0)], [(2, 3)]]
    found = contrasts(predicted, truth, groups, 200, np.random.default_rng(2))
    matrix = confusion(predicted, truth).mean
    for group, (everywhere, column) in zip(groups, found, strict=True):
        assert everywhere.value == column.value == pytest.approx(np.mean([matrix[cell] for cell in group]))
        assert everywhere.average == pytest.approx(np.nanmean(matrix))
        neither = [predicted[~truth[:, i] & ~truth[:, j], j].mean() for i, j in group]
        assert column.average == pytest.approx(np.mean(neither))


def test_standard_errors_are_those_of_repeated_samples():
    group = [[(0, 1), (1, 0), (2, 1)]]
    runs = [
        contrasts(*drawn(150, 4, seed), group, 100 if seed < 20 else 1, np.random.default_rng(seed))[0]
        for seed in range(300)
    ]
    for which in (0, 1):
        spread = np.std([run[which].value - run[which].average for run in runs])
        errors = np.mean([run[which].standard_error for run in runs[:20]])
        assert 0.8 < errors / spread < 1.25  # each ratio has a standard error of some 5 %
