"""Bounds on the error of an expression from those of its parts.

Errors are RKHS distances between the embedding of an exact distribution and that of its
approximation, or Wasserstein-1 distances. In an RKHS the map from the embedding of X to that of
f(X) is bounded for few functions f, and in the Wasserstein distance for every Lipschitz f. A
kernel's feature map is a function of the distance, so that a Wasserstein distance bounds the
distance in the RKHS.
"""

from __future__ import annotations

import math

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.kernels import Gaussian, Kernel


def feature_distance(kernel: Kernel, distance: float) -> float:
    """|Phi(x) - Phi(y)| = sqrt(2 - 2 k(x, y)) of two points at a distance."""
    scaled = distance / kernel.bandwidth
    # a product overflows to inf, where a power raises an error
    return math.sqrt(-2 * math.expm1(-0.5 * scaled * scaled if isinstance(kernel, Gaussian) else -scaled))


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
