"""Bounds on the error of an expression from those of its parts.

Errors are RKHS distances between the embedding of an exact distribution and that of its
approximation, or Wasserstein-1 distances. In the RKHS of a kernel of fixed bandwidth the map from
the embedding of X to that of f(X) is bounded for few functions f: translations and sums for both
kernels, contractions for the Gaussian, and functions whose slope is bounded on both sides for the
Laplace kernel, whose RKHS is the Sobolev space of order 1. In the Wasserstein distance it is
bounded for every Lipschitz f. A kernel's feature map is a function of the distance, so that a
Wasserstein distance bounds the distance in the RKHS.
"""

from __future__ import annotations

import math

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.kernels import Gaussian, Kernel, Laplace


def feature_distance(kernel: Kernel, distance: float) -> float:
    """|Phi(x) - Phi(y)| = sqrt(2 - 2 k(x, y)) of two points at a distance."""
    scaled = distance / kernel.bandwidth
    return math.sqrt(-2 * math.expm1(-0.5 * scaled**2 if isinstance(kernel, Gaussian) else -scaled))


def from_wasserstein(kernel: Kernel, wasserstein: float) -> float:
    """Bound of the RKHS distance of two distributions at a Wasserstein-1 distance W.

    |mu(P) - mu(Q)| <= E |Phi(X) - Phi(Y)| for any coupling, and |Phi(x) - Phi(y)| is a concave function
    of |x - y|, so the bound is its value at W; two constants attain it. It is at most W / s for the
    Gaussian and sqrt(2 W / s) for the Laplace kernel of bandwidth s, and at most sqrt(2).

    Raises
    ------
    InputError : the distance is negative or NaN.
    """
    if not wasserstein >= 0:
        raise InputError(f"the Wasserstein distance is {wasserstein:g}", "it must be at least 0")
    return feature_distance(kernel, wasserstein)


def independent_sum(first: float, second: float, variations: tuple[float, float] = (1.0, 1.0)) -> float:
    """Bound of the RKHS error of X + Y from those of independent X and Y.

    |mu1 * mu2 - nu1 * nu2| <= TV(nu2) |mu1 - nu1| + TV(mu1) |mu2 - nu2|, since convolution with a
    measure is a mean of translations, which are isometries; so is the same with 1 and 2 exchanged.

    Parameters
    ----------
    first, second : RKHS errors of X and Y.
    variations : total variation norms of their approximations, which are 1 unless weights are
        negative; those of the exact distributions are 1.
    """
    return min(variations[1] * first + second, first + variations[0] * second)


def scaling(kernel: Kernel, factor: float) -> float:
    """Norm of the map from the embedding of X to that of c X + d; inf if it is unbounded.

    The distance of c X and c Y in the kernel of bandwidth s is that of X and Y in the kernel of
    bandwidth s / |c|. The spectral density of the latter is at most r times that of the former. For
    the Gaussian kernel r = 1 / |c| if |c| <= 1, and there is none otherwise; for the Laplace kernel r
    = max(|c|, 1 / |c|). The norm is sqrt(r).
    """
    size = abs(factor)
    if size == 0:
        return 0.0
    if isinstance(kernel, Laplace):
        return math.sqrt(max(size, 1 / size))
    return math.sqrt(1 / size) if size <= 1 else math.inf


def monotone(kernel: Kernel, least: float, largest: float) -> float:
    """Norm of the map from the embedding of X to that of f(X), if f is monotone and its slope has
    an absolute value from `least` to `largest` where X and its approximation lie; inf if it is
    unbounded.

    The squared norm of g in the RKHS of the Laplace kernel is half the integral of g^2 / s + s g'^2.
    Composed with f, the first part grows at most by 1 / least and the second at most by `largest`.
    In the RKHS of the Gaussian kernel only affine f have a bound.

    Raises
    ------
    InputError : not 0 <= least <= largest.
    """
    if not 0 <= least <= largest:
        raise InputError(f"slopes from {least:g} to {largest:g}", "they must be at least 0, the smaller first")
    if least == largest:
        return scaling(kernel, least)
    if isinstance(kernel, Gaussian) or least == 0:
        return math.inf
    return math.sqrt(max(largest, 1 / least))
