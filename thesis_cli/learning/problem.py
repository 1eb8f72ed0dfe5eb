"""The pairs of images to learn from, and what all objectives share.

An objective is the mean over pairs of A(weights, noisy) - score(weights, noisy, clean), plus the
squared norm of the weights; the methods differ in A: the expected perturbed maximum, the maximum,
ln Z (Hazan et al. section V).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.learning.grid_model import GridWeights, WeightLayout, signs
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.shared_model import SharedLayout

LARGEST = 1e100
"""Weight from which a descent has failed: its square is finite."""

BLOCK = 2**21
"""Numbers of noise, or unary potentials, of the images that are solved together."""


class Problem:
    """Pairs of noisy and clean images. Raises InputError if the shapes differ, or there is no image
    or no pixel.

    Parameters
    ----------
    noisy, clean : shape (count, h, w); the noisy ones booleans or numbers about 0.

    Attributes
    ----------
    noisy, clean : images in {-1, +1}, or noisy ones of numbers.
    layout : layout of the weights as a vector.
    """

    def __init__(self, noisy: Bools | Floats, clean: Bools, settings: Settings) -> None:
        if noisy.shape != clean.shape:
            raise InputError(
                f"the noisy images have shape {noisy.shape} and the clean ones {clean.shape}",
                "give as many of the same size",
            )
        if noisy.ndim != 3 or not noisy.size:
            raise InputError(f"the images have shape {noisy.shape}", "give a count, a height and a width, all above 0")
        self.settings = settings
        self.noisy, self.clean = signs(noisy), signs(clean)
        self.count = len(noisy)
        _, height, width = noisy.shape
        self.layout: WeightLayout | SharedLayout
        if settings.weights == "shared":
            self.layout = SharedLayout(height, width, settings.patch, settings.hidden)
        else:
            self.layout = WeightLayout(height, width, settings.bias)

    @cached_property
    def features(self) -> Floats:
        """Features of the clean images, averaged over the pairs, where scores are linear."""
        return self.layout.features(self.noisy, self.clean)

    def weights(self, vector: Floats) -> GridWeights:
        """The weights of a vector, for images of this size."""
        return self.layout.model(vector).on(self.layout.height, self.layout.width)

    def own(self, weights: GridWeights, images: Ints | slice = slice(None)) -> Floats:
        """Factor of each y_i, given some noisy images."""
        return weights.own(self.noisy[images])

    def feasible(self, vector: Floats) -> Floats:
        """The nearest vector that the settings allow: without a negative coupling, if they must attract."""
        if self.settings.couplings == "any":
            return vector
        found = vector.copy()
        np.maximum(found[self.layout.unary :], 0.0, out=found[self.layout.unary :])
        return found

    def moved(self, vector: Floats, gradient: Floats, step: float) -> Floats:
        """The vector that a step against the gradient leads to. Raises WorkFailed if it is too
        large to go on from."""
        with np.errstate(over="ignore"):
            found = self.feasible(vector - step * gradient)
        if not np.abs(found).max() < LARGEST:
            raise WorkFailed("the weights grow beyond all bounds; give a smaller --rate or --regularisation")
        return found

    def norm(self, vector: Floats) -> float:
        """The regulariser of the objective."""
        return self.settings.regularisation * float(vector @ vector)

    def scores(self, vector: Floats) -> float:
        """Score of the clean images, averaged over the pairs."""
        return float(vector @ self.features)

    def blocks(self, times: int = 1) -> Iterator[Ints]:
        """Numbers of the images, each `times` times, in parts that are solved together."""
        size, total = max(1, BLOCK // (2 * self.layout.pixels)), self.count * times
        return (np.arange(start, min(start + size, total)) // times for start in range(0, total, size))
