"""Covariances of functions of two columns if their ranks depend as those of two normal numbers do.

It is the guess towards which a noisy release is shrunk: one correlation a pair explains most of the
dependence of two numbers, and is known far better than each covariance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.bins import Tree
from thesis_cli.privacy.copula.cells import Cells

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


def normal_scores(columns: int, pairs: Ints, correlations: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Normal numbers of M = `count` rows, shape (M, columns), with nearly these correlations."""
    matrix = np.eye(columns)
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = correlations
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, LEAST_VALUE))
    drawn = rng.standard_normal((count, columns))
    return np.asarray(drawn @ root.T)
