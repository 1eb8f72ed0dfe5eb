r"""Tests of whether two tables come from one population (Thesis eq. 4.6; Gretton et al. 2012, JMLR
13:723-773).

Both tests measure the maximum mean discrepancy (MMD) of a release and another table.
`permutation_test` compares rows, and treats the released ones as a sample. `noisy_mean_test`
compares the released vector with the other table's mean features, and accounts for the noise, whose
law is known.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import NoiseName

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

MOST = 2000
"""Largest number of rows of which pairs are formed, at quadratic cost in time and memory."""
DRAWS = 100_000
"""Number of draws from the law of the statistic under the null hypothesis."""
BLOCK = 2**21
"""Numbers per block."""
TIED = 1e-12
"""Difference of two statistics that counts as rounding."""


class NoisyMean(NamedTuple):
    """A released vector: the mean features of N private rows, with noise.

    Attributes
    ----------
    vector : t, shape (J,).
    scale : standard deviation of Gaussian noise, or the b of Laplace noise.
    rows : N.
    noise : law of the noise.
    """

    vector: Floats
    scale: float
    rows: int
    noise: NoiseName = "gaussian"


@dataclass(frozen=True)
class TwoSampleResult:
    """A test of the null hypothesis that two tables come from one population.

    Attributes
    ----------
    test : "permutation" or "noisy mean".
    mmd_squared : estimate of the squared MMD; unbiased, so it may be negative.
    statistic : tested statistic; large if the tables differ.
    p_value : probability under the null hypothesis of a statistic as large, at least 1 / (1 +
        draws).
    rows, other_rows : numbers of compared rows.
    draws : number of permutations, or of draws from the law.
    """

    test: Literal["permutation", "noisy mean"]
    mmd_squared: float
    statistic: float
    p_value: float
    rows: int
    other_rows: int
    draws: int


def permutation_test(
    kernel: RowKernel, a: Rows, b: Rows, permutations: int, rng: np.random.Generator, most: int = MOST
) -> TwoSampleResult:
    """Compare the unbiased estimate of MMD^2 (Gretton et al. 2012, eq. 3) with its values at
    shuffled labels.

    If all rows are independent draws from one distribution, then p = (1 + number of shuffles with
    as large a value) / (1 + permutations) is at most alpha with probability at most alpha, for any
    sizes. Released rows are not such draws: noise moves all of them together, and a reduced set is
    spread more evenly than a sample. For them p is a rough guide.

    Parameters
    ----------
    a, b : n and m rows, at least two of each.
    rng : generator of the shuffles, and of the rows taken from a table with more than `most`.

    Raises
    ------
    InputError : there are fewer than two rows, or no permutations.
    """
    if permutations < 1:
        raise InputError(f"the number of permutations is {permutations}", "it must be at least 1")
    if min(len(a), len(b)) < 2:
        raise InputError(f"the tables have {len(a)} and {len(b)} rows", "each must have at least two")
    a, b = random_rows(a, most, rng), random_rows(b, most, rng)
    n, m, pooled = len(a), len(b), Rows.concatenate([a, b])
    labels = np.zeros((n + m, 1 + permutations))
    labels[:n, 0] = 1
    labels[:, 1:] = rng.permuted(np.repeat(labels[:, :1], permutations, 1), axis=0)
    total, within, with_all = 0.0, np.zeros(1 + permutations), np.zeros(1 + permutations)
    with _one_thread():
        for start in range(0, n + m, step := max(1, BLOCK // (n + m))):
            part = slice(start, start + step)
            matrix = kernel.matrix(pooled[part], pooled)
            within += (labels[part] * (matrix @ labels)).sum(0)
            with_all += matrix.sum(1) @ labels[part]
            total += float(matrix.sum())
    values = (within - n) / (n * (n - 1))
    values += (total - 2 * with_all + within - m) / (m * (m - 1))
    values -= 2 * (with_all - within) / (n * m)
    found = float(values[0])
    as_large = int((values[1:] >= found - TIED).sum())
    return TwoSampleResult("permutation", found, found, (1 + as_large) / (1 + permutations), n, m, permutations)


def noisy_mean_test(
    features: Features,
    released: NoisyMean,
    other: Rows,
    rng: np.random.Generator,
    *,
    most: int = MOST,
    draws: int = DRAWS,
) -> TwoSampleResult:
    r"""Compare |v|^2 with its law under the null hypothesis, where v = t - mean phi(y) and t is the
    released vector.

    t is the mean of phi(x) over N private rows, plus noise. If these rows and the other table's n
    come from one population, v is the sum of that noise and, by the central limit theorem, nearly
    N(0, (1/N + 1/n) Sigma), where Sigma is the covariance of phi(y). With Gaussian noise |v|^2 is a
    sum of chi-squares of weights sigma^2 + (1/N + 1/n) lambda_j, whose law is simulated. Laplace
    noise is added along the eigenvectors of Sigma as if they were the axes: its norm is right, and
    its products with the rest are nearly right.

    |v|^2 - J (variance of the noise) is an unbiased estimate of the squared distance of the two
    tables' mean features.

    Parameters
    ----------
    released : t with its noise, and N.
    other : n rows; their mean feature is that of all, and Sigma is estimated from at most `most` of
        them.
    rng : generator of the simulation, and of the rows that Sigma is estimated from.

    Raises
    ------
    InputError : the vector has another length than the features, or there are fewer than two other
        rows.
    """
    vector, scale, rows, noise = released
    if vector.shape != (features.count,):
        raise InputError(f"the vector has {vector.size} numbers", f"it must have {features.count}, one per feature")
    if len(other) < 2:
        raise InputError(f"the table has {len(other)} rows", "it must have at least two")
    variance = scale**2 * (2 if noise == "laplace" else 1)
    statistic = float(((vector - features.mean([other])) ** 2).sum())
    with _one_thread():
        spread = (1 / rows + 1 / len(other)) * spectrum(features.embed(random_rows(other, most, rng)))
        null = null_statistics(spread, scale, features.count, noise, draws, rng)
    as_large = int((null >= statistic).sum())
    return TwoSampleResult(
        "noisy mean",
        statistic - features.count * variance,
        statistic,
        (1 + as_large) / (1 + draws),
        rows,
        len(other),
        draws,
    )


def spectrum(sample: Floats) -> Floats:
    """Eigenvalues of the covariance of rows (n, J) that may differ from 0: min(n - 1, J) of
    them.
    """
    n, size = sample.shape
    centred = sample - sample.mean(0)
    gram = centred @ centred.T if n <= size else centred.T @ centred
    return np.asarray(np.maximum(np.linalg.eigvalsh(gram)[-min(n - 1, size) :], 0) / (n - 1))


def null_statistics(
    spread: Floats, scale: float, size: int, noise: NoiseName, draws: int, rng: np.random.Generator
) -> Floats:
    """Draws of |v|^2, shape (draws,); v is noise on J = `size` axes plus Gaussians of variances
    `spread` on the first.
    """
    first, parts = len(spread), []
    for start in range(0, draws, step := max(1, BLOCK // size)):
        count = min(step, draws - start)
        if noise == "gaussian":
            found = rng.standard_normal((count, first)) ** 2 @ (spread + scale**2)
            if size > first:
                found += scale**2 * rng.chisquare(size - first, count)
        else:
            v = rng.laplace(0.0, scale, (count, size))
            v[:, :first] += rng.standard_normal((count, first)) * np.sqrt(spread)
            found = (v**2).sum(1)
        parts.append(found)
    return np.concatenate(parts)


def _one_thread() -> AbstractContextManager[object]:
    """One thread for sums, so that the number of threads changes no bit."""
    found: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> ThreadpoolController:
    """Controller of threads, kept because making one inspects all libraries of the process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def random_rows(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """All rows, or `most` of them, drawn without replacement."""
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]
