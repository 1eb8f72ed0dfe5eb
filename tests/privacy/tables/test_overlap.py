import numpy as np
import pytest

from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.overlap import _excess, fingerprints, overlap


def table(rng, count, levels=50, reals=1):
    return Rows(rng.random((count, reals)), rng.integers(0, levels, (count, 1)))


def compared(public, private):
    return overlap(fingerprints([public]), fingerprints([private[:30], private[30:]]))


@pytest.mark.parametrize("levels", [2, 500])
def test_copies_are_found(levels):
    rng = np.random.default_rng(1)
    private = table(rng, 200, levels)
    shuffled = private[rng.permutation(200)]
    assert compared(shuffled, private).identical
    for rows in (private[:199], private[:20], private[:3], private[:1]):
        found = compared(rows, private)
        assert (found.identical, found.likely, found.shared) == (False, False, len(rows))
    rounded = Rows(private.reals.round(5), private.codes)
    assert not compared(rounded, private).likely
    decoys = Rows.concatenate([table(rng, 100, levels), private[:10]])
    assert not compared(decoys, private).likely


def test_independent_tables_share_rows_by_chance_alone():
    """Of 300 pairs, over 4 to 400 cells of unequal probability, with 20 to 300 rows."""
    rng = np.random.default_rng(2)
    refused = 0
    for cells in (4, 20, 100, 400):
        share = rng.dirichlet(np.ones(cells))
        for size in (20, 100, 300):
            for _ in range(25):
                both = [Rows(np.zeros((n, 0)), rng.choice(cells, (n, 1), p=share)) for n in (size, 300)]
                refused += not compared(*both).likely
    assert refused <= 5


def test_a_subset_of_a_crowded_table_is_found_if_it_is_large():
    rng = np.random.default_rng(3)
    private = Rows(np.zeros((2000, 0)), rng.choice(200, (2000, 1)))
    assert not compared(private[:1500], private).likely
    assert compared(private[:5], private).likely


def test_mean_and_variance_are_those_of_random_divisions():
    rng = np.random.default_rng(4)
    t = np.array([1, 1, 2, 2, 3, 5, 8, 9])
    p = rng.multivariate_hypergeometric(t, 12, size=4000)
    found = [_excess(q, t - q, t.astype(float)) for q in p]
    assert abs(np.mean(found)) < 5 / np.sqrt(4000)
    assert abs(np.std(found) - 1) < 0.08  # five standard errors of a law with kurtosis below 5
