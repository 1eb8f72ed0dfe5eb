r"""Do two tables come from one population? (Thesis eq. 4.6; Gretton et al. 2012, JMLR 13:723-773.)

Both tests measure the maximum mean discrepancy (MMD) of a release and another table. `permutation_test` compares rows,
and takes the released ones for a sample. `noisy_mean_test` compares the vector that the mechanism put out with the
other table's mean features, and allows for the noise, whose law is known.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.mechanism import NoiseName

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

MOST = 2000
"""Rows of which pairs are formed: their matrices take memory and time that grow with the square."""
DRAWS = 100_000
"""From the law of the statistic under the null hypothesis."""
BLOCK = 2**21
"""Numbers at a time."""
TIED = 1e-12
"""Statistics as near as this are equal, but for rounding."""


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
    statistic : what was tested, large if the tables differ.
    p_value : probability of one as large under the null hypothesis, at least 1 / (1 + draws).
    rows, other_rows : that were compared.
    draws : permutations, or draws from the law.
    """

    test: Literal["permutation", "noisy mean"]
    mmd_squared: float
    statistic: float
    p_value: float
    rows: int
    other_rows: int
    draws: int


def permutation_test(
    kernel: Kernel, a: Rows, b: Rows, permutations: int, rng: np.random.Generator, most: int = MOST
) -> TwoSampleResult:
    """The unbiased estimate of MMD^2 (Gretton et al. 2012, eq. 3), beside its values at shuffled labels.

    p = (1 + number of shuffles with as large a value) / (1 + permutations) is at most alpha with probability at most
    alpha, whatever the sizes, if all rows are independent draws from one distribution. Released rows are not: noise
    moves them, all together, and a reduced set is spread more evenly than a sample. For them p is a rough guide.

    Parameters
    ----------
    a, b : n and m rows, two of each or more.
    rng : of the shuffles, and of the rows that are taken from a table with more than `most`.

    Raises
    ------
    InputError : fewer than two rows, no permutations.
    """
    if permutations < 1:
        raise InputError(f"{permutations} permutations", "one or more are wanted")
    if min(len(a), len(b)) < 2:
        raise InputError(f"tables of {len(a)} and {len(b)} rows", "two or more of each are wanted")
    a, b = sampled(a, most, rng), sampled(b, most, rng)
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
    r"""|v|^2 with v = t - mean phi(y), t the released vector, beside its law under the null hypothesis.

    t is mean phi(x) over N private rows, plus noise. If these rows and the other table's n come from one population, v
    is that noise and, by the central limit theorem, nearly N(0, (1/N + 1/n) Sigma), Sigma the covariance of phi(y).
    With Gaussian noise |v|^2 is a sum of chi-squares of weights sigma^2 + (1/N + 1/n) lambda_j; its law is simulated.
    Laplace noise is put on each eigenvector of Sigma, as if these were the axes: its norm is right, and its products
    with the rest nearly.

    |v|^2 - J (variance of the noise) is an unbiased estimate of the squared distance of the two tables' mean features.

    Parameters
    ----------
    released : t with its noise, and N.
    other : n rows; their mean feature is that of all, and Sigma is estimated from at most `most` of them.
    rng : generator of the simulation, and of the rows that Sigma is estimated from.

    Raises
    ------
    InputError : the vector has another length than the features, or there are fewer than two other rows.
    """
    vector, scale, rows, noise = released
    if vector.shape != (features.count,):
        raise InputError(f"the vector has {vector.size} numbers", f"it must have {features.count}, one per feature")
    if len(other) < 2:
        raise InputError(f"the table has {len(other)} rows", "it must have at least two")
    variance = scale**2 * (2 if noise == "laplace" else 1)
    statistic = float(((vector - features.mean([other])) ** 2).sum())
    with _one_thread():
        spread = (1 / rows + 1 / len(other)) * spectrum(features.embed(sampled(other, most, rng)))
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
    """Eigenvalues of the covariance of rows (n, J), those that need not be 0: at most min(n - 1, J)."""
    n, size = sample.shape
    centred = sample - sample.mean(0)
    gram = centred @ centred.T if n <= size else centred.T @ centred
    return np.asarray(np.maximum(np.linalg.eigvalsh(gram)[-min(n - 1, size) :], 0) / (n - 1))


def null_statistics(
    spread: Floats, scale: float, size: int, noise: NoiseName, draws: int, rng: np.random.Generator
) -> Floats:
    """Draws of |v|^2, v noise on J = `size` axes and Gaussians of variances `spread` on the first of them, (draws,)."""
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
    """For sums that the number of threads does not change."""
    found: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return found


@cache
def _controller() -> ThreadpoolController:
    """Kept, as it looks through all libraries of the process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def sampled(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """All rows, or `most` of them drawn without replacement."""
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]
