"""Rows from the noisy vectors of a copula release: post-processing of public numbers.

`normal_guess` is the guess towards which covariances are shrunk, those of two columns whose ranks
depend as those of two normal numbers do: one correlation a pair explains most of the dependence of
two numbers, and is known far better than each covariance. `search` changes rows until their tables
of pairs of columns are near given ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.cells import Cells, Tree
from thesis_cli.privacy.kernels import Rows

TERMS = 12
"""Terms of the series in the correlation (Mehler)."""
CORRELATIONS = np.tanh(np.linspace(-2.2, 2.2, 89))
SPREADS = 0.005 * 2.0 ** np.arange(0, 9.0, 0.75)
"""Standard deviations among which the prior of the correlations is chosen."""
ROUNDS = 60
LEAST_VALUE = 0.01
"""Least eigenvalue of a matrix of correlations, each estimated on its own."""
BLOCK = 256


def hermite_means(cells: Cells, tree: Tree) -> Floats:
    """Means of a tree's functions times Hermite polynomials of the normal score of a column.

    Shape (B - 1, TERMS); 0 for a category of more than two bins, whose order means nothing.
    """
    from scipy.special import eval_hermitenorm, ndtri

    found = np.zeros((tree.count - 1, TERMS))
    if not cells.line and tree.count > 2:
        return found
    masses = tree.masses.copy()
    if cells.gap and tree.count > 2 and tree.bins[-1] != tree.bins[-2]:
        masses[-1] = 0
    whole = masses.sum()
    scores = ndtri(np.clip(np.cumsum(masses)[:-1] / whole, 1e-12, 1 - 1e-12))
    density = np.exp(-(scores**2) / 2) / math.sqrt(2 * math.pi)
    for m in range(1, TERMS + 1):
        ends = np.concatenate([[0.0], eval_hermitenorm(m - 1, scores) * density, [0.0]])
        found[:, m - 1] = whole * (-np.diff(ends) / math.sqrt(math.factorial(m))) @ tree.functions
    return found


def normal_guess(
    cells: Sequence[Cells], trees: Sequence[Tree], pairs: Ints, found: Floats, variances: Floats
) -> tuple[Floats, Floats]:
    """Posterior means of the covariances, shape (P, R, R), and of the correlations, shape (P,), if
    all pairs depend as normal numbers do.

    The prior of the correlations is a mixture of normal laws of `SPREADS`, estimated from all pairs
    by expectation maximisation.

    Parameters
    ----------
    cells, trees : cells and bins of each column.
    pairs : numbers of the columns of each pair, shape (P, 2).
    found, variances : noisy covariances of the trees' functions, and variances of their noise, shape
        (P, R, R); the latter are infinite where nothing is known.
    """
    width = found.shape[1]
    means = np.zeros((len(trees), width, TERMS))
    for i, (column, tree) in enumerate(zip(cells, trees, strict=True)):
        means[i, : tree.count - 1] = hermite_means(column, tree)
    powers = CORRELATIONS[:, None] ** np.arange(1, TERMS + 1)
    likely = np.zeros((len(pairs), len(CORRELATIONS)))
    known = np.isfinite(variances) & (variances > 0)
    precision = np.where(known, 1 / np.where(known, variances, 1), 0)
    if not known.any():
        precision = np.where(np.isfinite(variances), 1e8, 0.0)
    for start in range(0, len(pairs), BLOCK):
        part = slice(start, start + BLOCK)
        i, j = pairs[part].T
        for c, power in enumerate(powers):
            guess = (means[i] * power) @ means[j].swapaxes(1, 2)
            likely[part, c] = -0.5 * (precision[part] * (found[part] - guess) ** 2).sum((1, 2))
    likelihood = np.exp(likely - likely.max(1, keepdims=True))
    priors = np.exp(-0.5 * (CORRELATIONS / SPREADS[:, None]) ** 2) * (1 - CORRELATIONS**2)
    priors /= priors.sum(1, keepdims=True)
    evidence = likelihood @ priors.T
    shares = np.full(len(SPREADS), 1 / len(SPREADS))
    for _ in range(ROUNDS):
        members = evidence * shares
        shares = (members / members.sum(1, keepdims=True)).sum(0) + 0.5 / len(SPREADS)
        shares /= shares.sum()
    posterior = likelihood * (shares @ priors)
    posterior /= posterior.sum(1, keepdims=True)
    i, j = pairs.T
    guess = (means[i] * (posterior @ powers)[:, None]) @ means[j].swapaxes(1, 2)
    ordered = (means[i] != 0).any((1, 2)) & (means[j] != 0).any((1, 2))
    return guess, np.where(ordered, posterior @ CORRELATIONS, 0)


def normal_scores(
    columns: int,
    pairs: Ints,
    correlations: Floats,
    count: int,
    rng: np.random.Generator,
    known: Mapping[int, Floats] | None = None,
) -> Floats:
    """Normal numbers of M = `count` rows, shape (M, columns), with nearly these correlations.

    Some columns may be `known`: the others are then drawn given those.
    """
    matrix = np.eye(columns)
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = correlations
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, LEAST_VALUE))
    drawn = rng.standard_normal((count, columns))
    found = np.asarray(drawn @ root.T)
    if known:  # conditioning by kriging: what is known less what was drawn moves the rest by regression
        of, covariances = list(known), root @ root.T
        apart = np.stack([own - found[:, i] for i, own in known.items()], 1)
        found += apart @ np.linalg.solve(covariances[np.ix_(of, of)], covariances[of])
    return found


def scores_of(cells: Ints, rng: np.random.Generator) -> Floats:
    """Normal scores of the ranks of cells, shape (M,); ties are in random order."""
    from scipy.special import ndtri

    ranks = np.empty(len(cells))
    ranks[np.lexsort((rng.random(len(cells)), cells))] = np.arange(len(cells)) + 0.5
    return np.asarray(ndtri(ranks / len(cells)))


SWEEPS = 30
STILL = 0.002
"""The search ends when a sweep changes a smaller share of the bins."""


def starting_bins(
    cells: Sequence[Cells], trees: Sequence[Tree], masses: Sequence[Floats], scores: Floats, rng: np.random.Generator
) -> Ints:
    """Bins of rows by the ranks of their scores, shape (M, columns); each has its mass, up to
    rounding.

    Values are missing in random rows.

    Parameters
    ----------
    cells, trees : cells and bins of each column.
    masses : masses of the bins of each column, shape (B,).
    scores : normal scores of the rows, shape (M, columns).
    """
    bins = np.zeros(scores.shape, np.int64)
    count = len(scores)
    for i, (column, tree, own) in enumerate(zip(cells, trees, masses, strict=True)):
        found = np.sort(systematic(own, count, rng))
        ranked = scores[:, i]
        if column.gap and tree.count > 1 and tree.bins[-1] != tree.bins[-2]:
            ranked = ranked.copy()
            ranked[rng.permutation(count)[: np.count_nonzero(found == tree.bins[-1])]] = np.inf
        bins[np.argsort(ranked, kind="stable"), i] = found
    return bins


def search(
    trees: Sequence[Tree],
    bins: Ints,
    pairs: Ints,
    tables: Floats,
    rng: np.random.Generator,
    triples: Sequence[tuple[Ints, Floats]] = (),
    groups: Sequence[Ints] = (),
    kept: Collection[int] = (),
) -> Ints:
    """Bins of rows, shape (M, columns), with tables of pairs near the given ones.

    With `triples`, also with what the tables of the `groups` of three columns' bins lack now. The bins of
    the columns `kept` do not change.

    Bins of the given rows are changed only where that brings their tables nearer to the target, in
    a kernel of the scales of the trees.
    """
    from thesis_cli.privacy.copula.kernels import sweep

    sizes = np.array([tree.count for tree in trees])
    (count, d), width = bins.shape, int(sizes.max())
    bins = bins.copy()
    alike = np.zeros((d, width, width))
    for own, tree in zip(alike, trees, strict=True):
        own[: tree.count, : tree.count] = tree.alike()
    excess = np.zeros((d, d, width, width))
    for (i, j), table in zip(pairs, tables, strict=True):
        now = np.bincount(bins[:, i] * width + bins[:, j], minlength=width**2).reshape(width, width) / count
        excess[i, j] = alike[j] @ (now - table).T @ alike[i]
        excess[j, i] = excess[i, j].T
    of = np.array([triple for triple, _ in triples], np.int64).reshape(-1, 3)
    beyond = -np.array([lack for _, lack in triples]).reshape(-1, *(triples[0][1].shape if triples else (1, 1, 1)))
    within = np.zeros((d, width), np.int64)
    for i, group in enumerate(groups):
        within[i, : len(group)] = group
    for _ in range(SWEEPS):
        order = rng.permutation(d)
        changed = sweep(bins, sizes, alike, excess, order[~np.isin(order, list(kept))], of, within, beyond)
        if changed <= STILL * bins.size:
            break
    return bins


def systematic(shares: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Numbers of cells, shape (count,), in random order; each occurs as often as its share of `count`, up
    to one.

    Parameters
    ----------
    shares : shares of the cells, shape (cells,), of any sum.
    """
    at = (np.arange(count) + rng.random()) / count * shares.sum()
    found = np.minimum(np.searchsorted(np.cumsum(shares), at, "right"), np.flatnonzero(shares)[-1])
    return np.asarray(rng.permutation(found))


def placed(
    cells: Sequence[Cells],
    trees: Sequence[Tree],
    shares: Sequence[Floats],
    bins: Ints,
    scores: Floats,
    rng: np.random.Generator,
    given: Mapping[int, Ints],
) -> Rows:
    """Encoded rows in given bins; the cells within a bin have their shares, up to rounding, and the
    order of the rows' scores.

    Parameters
    ----------
    cells, trees : cells and bins of each column.
    shares : shares of the cells of each column, shape (cells,).
    bins, scores : bins and scores of the rows, shape (M, columns).
    given : cells of the rows in some columns, shape (M,) each.
    """
    reals, codes = (sum(getattr(c, kind) >= 0 for c in cells) for kind in ("real", "code"))
    rows = Rows(np.zeros((len(bins), reals)), np.zeros((len(bins), codes), np.int64))
    for i, (column, tree, own) in enumerate(zip(cells, trees, shares, strict=True)):
        found = given.get(i, np.zeros(len(bins), np.int64))
        for b in range(0 if i in given else tree.count):
            inside = np.flatnonzero(bins[:, i] == b)
            if len(inside):
                within = np.where(tree.bins == b, own, 0.0)
                within = within if within.sum() > 0 else 1.0 * (tree.bins == b)
                order = np.argsort(scores[inside, i], kind="stable")
                found[inside[order]] = np.sort(systematic(within, len(inside), rng))
        column.write(found, rows)
    return rows
