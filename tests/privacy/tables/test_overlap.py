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


def wide(rng, count):
    """Half of the rows are of a few common kinds in their seven categories."""
    reals, codes = rng.random((count, 7)), rng.integers(0, (2, 3, 4, 5, 2, 3, 4), (count, 7))
    common = rng.random(count) < 0.5
    reals[common] = rng.integers(0, 2, (int(common.sum()), 7)) * 0.25
    codes[common] = rng.integers(0, 2, (int(common.sum()), 1))
    return Rows(reals, codes)


def changed(rows, rng, reals=(), codes=(), by=None):
    """Rows with some columns of others, or with all numbers moved."""
    other = wide(rng, len(rows))
    found = Rows(rows.reals.copy(), rows.codes.copy())
    found.reals[:, list(reals)] = other.reals[:, list(reals)]
    found.codes[:, list(codes)] = other.codes[:, list(codes)]
    if by is not None:
        found.reals[:] = np.clip(found.reals + by(found.reals.shape), 0, 1)
    return found


ATTACKS = {
    "13 of 14 columns, a number changed": lambda own, rng: changed(own, rng, reals=[3]),
    "13 of 14 columns, a category changed": lambda own, rng: changed(own, rng, codes=[5]),
    "shifted by half a percent": lambda own, rng: changed(own, rng, by=lambda shape: 0.005),
    "shifted, and a category changed": lambda own, rng: changed(own, rng, codes=[3], by=lambda shape: 0.005),
    "noise of half a percent": lambda own, rng: changed(own, rng, by=lambda shape: rng.normal(0, 0.005, shape)),
    "rounded to three digits": lambda own, rng: Rows(own.reals.round(3), own.codes),
    "20 rows among 1,000": lambda own, rng: Rows.concatenate([wide(rng, 1000), own[:20]]),
    "20 rows among 10,000": lambda own, rng: Rows.concatenate([wide(rng, 10_000), own[:20]]),
    "20 rows alone": lambda own, rng: own[:20],
    "30 rows three times among 1,000": lambda own, rng: Rows.concatenate([wide(rng, 1000), *[own[:30]] * 3]),
    "all rows five times": lambda own, rng: Rows.concatenate([own] * 5),
    "a column changed, among as many others": lambda own, rng: Rows.concatenate(
        [wide(rng, len(own)), changed(own, rng, reals=[0])]
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_ways_around_the_guard_are_refused(attack):
    """Rows of their own are rare ones of the private table; common ones are no evidence."""
    rng = np.random.default_rng(5)
    private = wide(rng, 2000)
    own = private[np.flatnonzero((private.reals != 0).all(1))[:300]]
    assert not compared(ATTACKS[attack](own, rng), private).likely
    assert all(compared(wide(rng, count), private).likely for count in (50, 1000, 3000))


def test_mean_and_variance_are_those_of_random_divisions():
    rng = np.random.default_rng(4)
    t = np.array([1, 1, 2, 2, 3, 5, 8, 9])
    p = rng.multivariate_hypergeometric(t, 12, size=4000)
    found = [_excess(q, t - q, t.astype(float)) for q in p]
    assert abs(np.mean(found)) < 5 / np.sqrt(4000)
    assert abs(np.std(found) - 1) < 0.08  # five standard errors of a law with kurtosis below 5
