"""RKHS errors of operations that act linearly on embeddings, composed in one RKHS.

The kernel that the result is measured with says which kernel each argument must be measured with:
the same for a sum of independent variables, one of bandwidth s / |c| for a multiple by c, which is
then an isometry. So the error of a sum of reduced expansions is at most the sum of what each
reduction was measured to lose. Other operations have a bound by W1 alone.

Errors are RKHS distances between the embedding of an exact distribution and that of its
approximation, or Wasserstein-1 distances. In an RKHS the map from the embedding of X to that of
f(X) is bounded for few functions f, and in the Wasserstein distance for every Lipschitz f. A
kernel's feature map is a function of the distance, so that a Wasserstein distance bounds the
distance in the RKHS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.closed_forms import Laws
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import Gaussian, Kernel
from thesis_cli.semantics.batches import Batch
from thesis_cli.semantics.syntax import LARGEST, Call, Expression, Number


def feature_distance(kernel: Kernel, distance: float) -> float:
    """|Phi(x) - Phi(y)| = sqrt(2 - 2 k(x, y)) of two points at a distance."""
    scaled = distance / kernel.bandwidth
    # a product overflows to inf, where a power raises an error
    return math.sqrt(-2 * math.expm1(-0.5 * scaled * scaled if isinstance(kernel, Gaussian) else -scaled))


def from_wasserstein(kernel: Kernel, wasserstein: float) -> float:
    """Bound of the RKHS distance of two distributions at a Wasserstein-1 distance W.

    |mu(P) - mu(Q)| <= E |Phi(X) - Phi(Y)| for any coupling, and |Phi(x) - Phi(y)| is a concave
    function of |x - y|, so the bound is its value at W; two constants attain it. It is at most W /
    s for the Gaussian and sqrt(2 W / s) for the Laplace kernel of bandwidth s, and at most sqrt(2).
    Raises InputError if the distance is negative or NaN.
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


LARGEST_LAW = 1000
"""Largest number of points whose distance from a distribution is computed in closed form."""

ROUNDING = 1e-7
"""Largest error by rounding of a measured RKHS distance."""


def kernel_error(kernel: Kernel, wasserstein: float) -> float:
    """Bound on the RKHS distance of two distributions by their W1 distance; inf if that is."""
    return from_wasserstein(kernel, wasserstein) if math.isfinite(wasserstein) else math.inf


def is_linear(node: Expression) -> bool:
    """Whether an expression is a sum, a difference, a multiple or a distribution of numbers."""
    if not isinstance(node, Call) or node.free:
        return False
    if all(isinstance(part, Number) for part in node.arguments):
        return True
    return node.name in ("+", "-", "negative") or factor(node) is not None


def factor(node: Call) -> float | None:
    """The number c of a multiple c * e, e * c or e / c; None for any other call."""
    if node.name not in ("*", "/") or len(node.arguments) != 2:
        return None
    left, right = node.arguments
    if isinstance(right, Number) and right.value:
        return right.value if node.name == "*" else 1 / right.value
    return left.value if node.name == "*" and isinstance(left, Number) and left.value else None


def kernels_of_arguments(node: Call, kernel: Kernel | None) -> list[Kernel | None]:
    """The kernel that each argument must be measured with; None for any."""
    if kernel is None or not is_linear(node):
        return [None] * len(node.arguments)
    multiple = factor(node)
    width = kernel.bandwidth if multiple is None else kernel.bandwidth / abs(multiple)
    usable = 1 / LARGEST <= width <= LARGEST
    return [type(kernel)(width) if usable else None] * len(node.arguments)


def composed(node: Call, parts: Sequence[Batch], kernel: Kernel) -> float:
    """Bound on the RKHS error of a call from those of its arguments; inf if it has none."""
    errors = [
        0.0 if isinstance(argument, Number) else part.embedded
        for argument, part in zip(node.arguments, parts, strict=True)
    ]
    if not is_linear(node):
        return math.inf
    if node.name in ("+", "-") and len(parts) == 2:
        sizes = [float(abs(part.weights).sum()) for part in parts]
        return independent_sum(errors[0], errors[1], (sizes[0], sizes[1]))
    if node.name == "negative" or factor(node) is not None:
        return max(errors)
    return math.inf


def of_law(node: Expression, expansion: Expansion, kernel: Kernel) -> float:
    """Exact RKHS distance of the points of normal or uniform numbers from the distribution; inf for
    any other, and where no closed form is known.
    """
    if not isinstance(node, Call) or node.name not in ("normal", "uniform"):
        return math.inf
    numbers = [part.value for part in node.arguments if isinstance(part, Number)]
    if not isinstance(kernel, Gaussian) or len(numbers) != 2 or len(expansion) > LARGEST_LAW:
        return math.inf
    law = Laws.normal(*numbers) if node.name == "normal" else Laws.uniform(*numbers)
    return law.distance(expansion, kernel) + ROUNDING
