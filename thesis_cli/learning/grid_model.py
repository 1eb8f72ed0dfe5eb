"""A grid model that denoises images: a weight for each pixel and for each pair of neighbours.

The most probable clean image y given a noisy image x, both in {-1, +1}^(h x w), maximises
sum_i (field_i x_i + bias_i) y_i + sum_ij coupling_ij y_i y_j (Hazan et al. section V, with features
of the data that depend on y, as docs/errata.md says).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.tensor_file import Form
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import SpinGlass

FORM = Form(
    key="weights",
    format="thesis-cli grid weights 1",
    arrays=("field", "bias", "right", "down"),
    what="weights of a grid model",
    remedy="give a file that thesis-cli train-denoiser has written",
)
"""Files of weights."""


@dataclass(frozen=True, eq=False)
class GridWeights:
    """The weights of a grid model. Raises InputError if the shapes do not fit a grid, or a weight
    is NaN or infinite.

    Attributes
    ----------
    field : how much a pixel of the noisy image counts, shape (h, w).
    right, down : couplings to the neighbours on the right and below, shapes (h, w - 1), (h - 1, w).
    bias : bias of each pixel towards +1, whatever the noisy image has; 0 by default, shape (h, w).
    about : how the weights came about, in types of JSON.
    evidence : a further factor of each pixel of noisy images, shape (count, h, w); no file keeps it.
    """

    field: Floats
    right: Floats
    down: Floats
    bias: Floats = dataclasses.field(default_factory=lambda: np.zeros(()))
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evidence: Callable[[Floats], Floats] | None = None

    def __post_init__(self) -> None:
        if self.bias.ndim == 0:
            object.__setattr__(self, "bias", np.full(self.field.shape, self.bias))
        SpinGlass(self.field, self.right, self.down)
        SpinGlass(self.bias, self.right, self.down)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the images."""
        height, width = self.field.shape
        return height, width

    @property
    def attractive(self) -> bool:
        """Whether no coupling is negative, so that a minimum cut finds the best image."""
        return bool((self.right >= 0).all() and (self.down >= 0).all())

    @property
    def count(self) -> int:
        """Number of weights."""
        return self.field.size * (1 + bool(self.bias.any())) + self.right.size + self.down.size

    def on(self, height: int, width: int) -> GridWeights:
        """These weights. Raises InputError if images of this size are none of theirs."""
        check_size(self, (height, width))
        return self

    def own(self, noisy: Bools | Floats) -> Floats:
        """Factor of each y_i, given noisy images, booleans or numbers about 0, shape (count, h, w)."""
        signals = signs(noisy)
        found = np.asarray(self.field * signals + self.bias)
        return found if self.evidence is None else found + self.evidence(signals)

    def scaled(self, factor: float) -> GridWeights:
        """The same weights with couplings times a factor."""
        return dataclasses.replace(self, right=factor * self.right, down=factor * self.down)

    def pairs(self, images: Floats) -> Floats:
        """Sum over neighbours of coupling times y_i y_j; images in {-1, +1}, shape (count, h, w)."""
        right = np.einsum("ij,kij,kij->k", self.right, images[:, :, :-1], images[:, :, 1:])
        return np.asarray(right + np.einsum("ij,kij,kij->k", self.down, images[:, :-1], images[:, 1:]))

    def graph(self, noisy: Bools) -> FactorGraph:
        """The model of one noisy image, shape (h, w): a variable a pixel in row-major order, state
        1 for +1 (foreground), state 0 for -1.
        """
        check_size(self, noisy.shape)
        return SpinGlass(self.own(noisy[None])[0], self.right, self.down).graph()

    def save(self, path: str | Path) -> None:
        """Write the weights, safetensors; the same weights give the same bytes. Raises OSError
        naming the file that could not be written."""
        write_atomic({Path(path): self.to_bytes()})

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        arrays = {name: getattr(self, name) for name in FORM.arrays}
        return FORM.to_bytes(arrays, {"shape": self.shape, **self.about})


def check_size(weights: GridWeights, shape: tuple[int, ...]) -> None:
    """Refuse images of another size than the weights (`InputError`); shape (..., h, w)."""
    if shape[-2:] != weights.shape:
        theirs, own = (" x ".join(map(str, size)) for size in (shape[-2:], weights.shape))
        raise InputError(f"the images are {theirs} and the weights {own}", "give images of the size of the weights")


def signs(images: Bools | Floats) -> Floats:
    """Booleans as -1 and +1; numbers as they are."""
    return np.where(images, 1.0, -1.0) if images.dtype == np.bool_ else np.asarray(images, np.float64)


@cache
def neighbours(height: int, width: int) -> Ints:
    """Pixels next to each other, to the right and then down, in row-major order, shape (E, 2)."""
    at = np.arange(height * width).reshape(height, width)
    first = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    second = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    found = np.stack([first, second], axis=1)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class WeightLayout:
    """Weights as one vector: field, bias if there is one, right, down, each in row-major order.

    Attributes
    ----------
    height, width : size of the images.
    bias : whether each pixel has a bias.
    """

    height: int
    width: int
    bias: bool = False

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def unary(self) -> int:
        """Number of weights of single pixels, which come first."""
        return self.pixels * (2 if self.bias else 1)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.unary + 2 * self.pixels - self.height - self.width

    def start(self, rng: np.random.Generator) -> Floats:
        """Weights to start from: 0."""
        return np.zeros(self.size)

    def model(self, vector: Floats, about: Mapping[str, Any] | None = None) -> GridWeights:
        """The weights of a vector."""
        h, w, n = self.height, self.width, self.pixels
        bias = vector[n : 2 * n].reshape(h, w) if self.bias else np.zeros((h, w))
        right, down = np.split(vector[self.unary :], [h * (w - 1)])
        return GridWeights(
            vector[:n].reshape(h, w), right.reshape(h, w - 1), down.reshape(h - 1, w), bias, dict(about or {})
        )

    def gradient(self, field: Floats, bias: Floats, right: Floats, down: Floats) -> Floats:
        """A vector of parts in the shapes of the weights."""
        parts = [field, bias, right, down] if self.bias else [field, right, down]
        return np.concatenate([part.reshape(-1) for part in parts])

    def pull(self, vector: Floats, noisy: Floats, own: Floats, right: Floats, down: Floats) -> Floats:
        """Derivatives by the weights, from those by the factors of pixels, shape (count, h, w), and
        by couplings, shapes (h, w - 1), (h - 1, w)."""
        return self.gradient((noisy * own).sum(axis=0), own.sum(axis=0), right, down)

    def features(self, noisy: Floats, clean: Floats) -> Floats:
        """Factors of the weights in the scores of pairs, averaged over the pairs; shapes (count, h,
        w), in {-1, +1}, -> (size,)."""
        count = len(clean)
        return self.gradient(
            np.einsum("kij,kij->ij", noisy, clean) / count,
            clean.mean(axis=0),
            np.einsum("kij,kij->ij", clean[:, :, :-1], clean[:, :, 1:]) / count,
            np.einsum("kij,kij->ij", clean[:, :-1], clean[:, 1:]) / count,
        )
