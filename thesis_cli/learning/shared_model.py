"""A grid model whose weights are the same everywhere, so that it denoises images of any size.

The most probable clean image y given a noisy image x maximises sum_i e(x about i) y_i + sum_ij
coupling_ij y_i y_j, with one coupling to the right and one downwards. The local evidence of a patch
p is e(p) = bias + linear . p + sum_k output_k max(0, offset_k + hidden_k . p): logistic regression
if the couplings are 0 and there is no hidden unit, and a small network otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.tensor_file import Form, read_any
from thesis_cli.learning.grid_model import FORM, GridWeights

SHARED_FORM = Form(
    key="weights",
    format="thesis-cli shared grid weights 1",
    arrays=("linear", "bias", "hidden", "offsets", "output", "couplings"),
    what="weights of a grid model",
    remedy="give a file that thesis-cli train-denoiser has written",
)
"""Files of shared weights."""

BLOCK = 2**20
"""Numbers of the patches that are taken out of images together."""


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """Weights that all pixels share. Raises InputError if the shapes do not fit each other, or a
    weight is NaN or infinite.

    Attributes
    ----------
    linear : weights of a patch, shape (side, side), an odd side.
    bias : bias towards +1, shape (1,).
    hidden, offsets, output : of the hidden units, shapes (units, side, side), (units,), (units,).
    couplings : to the right and downwards, shape (2,).
    about : how the weights came about, in types of JSON.
    """

    linear: Floats
    bias: Floats
    hidden: Floats
    offsets: Floats
    output: Floats
    couplings: Floats
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        side, units = len(self.linear) if self.linear.ndim else 0, self.output.size
        expected = {
            "linear": (side, side),
            "bias": (1,),
            "hidden": (units, side, side),
            "offsets": (units,),
            "output": (units,),
            "couplings": (2,),
        }
        for name, shape in expected.items():
            found = getattr(self, name)
            if found.shape != shape or not side % 2:
                raise InputError(f"{name} has shape {found.shape}", f"the other weights make it {shape}, of odd sides")
            if not np.isfinite(found).all():
                raise InputError(f"{name} has a NaN or an infinity", "all numbers must be finite")

    @property
    def count(self) -> int:
        """Number of weights."""
        return sum(getattr(self, name).size for name in SHARED_FORM.arrays)

    @property
    def slope(self) -> Floats:
        """Derivatives of the evidence by the pixels of a patch, where half of the hidden units are
        active, shape (side, side)."""
        return np.asarray(self.linear + np.tensordot(self.output / 2, self.hidden, 1))

    def on(self, height: int, width: int) -> GridWeights:
        """The weights of images of one size."""
        zeros, (right, down) = np.zeros((height, width)), self.couplings
        couplings = np.full((height, width - 1), right), np.full((height - 1, width), down)
        return GridWeights(zeros, *couplings, zeros, self.about, self.evidence)

    def evidence(self, noisy: Floats) -> Floats:
        """Factor of each pixel from its patch of the noisy images, shape (count, h, w); pixels
        outside count 0.
        """
        found = np.empty(noisy.shape)
        for images in _blocks(noisy, self.linear.size):
            flat = patches(noisy[images], len(self.linear))
            values = flat @ self.linear.ravel() + self.bias
            if self.output.size:
                values += self._units(flat) @ self.output
            found[images] = values.reshape(found[images].shape)
        return found

    def slopes(self, noisy: Floats, factors: Floats) -> Floats:
        """Derivatives of sum(factors * evidence) by linear, bias, hidden, offsets and output, one
        after another as a vector; shapes (count, h, w).
        """
        total = np.zeros(self.count - 2)
        for images in _blocks(noisy, self.linear.size):
            flat, own = patches(noisy[images], len(self.linear)), factors[images].ravel()
            parts: list[Floats] = [own @ flat, own.sum(keepdims=True)]
            if self.output.size:
                units = self._units(flat)
                inner = np.multiply.outer(own, self.output) * (units > 0)
                parts += [(inner.T @ flat).ravel(), inner.sum(axis=0), own @ units]
            total += np.concatenate(parts)
        return total

    def _units(self, flat: Floats) -> Floats:
        """Values of the hidden units, shape (pixels, units)."""
        return np.asarray(np.maximum(flat @ self.hidden.reshape(len(self.hidden), -1).T + self.offsets, 0))

    def scaled(self, factor: float) -> SharedWeights:
        """The same weights with couplings times a factor."""
        return dataclasses.replace(self, couplings=factor * self.couplings)

    def save(self, path: str | Path) -> None:
        """Write the weights, safetensors; the same weights give the same bytes. Raises OSError
        naming the file that could not be written."""
        write_atomic({Path(path): self.to_bytes()})

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return SHARED_FORM.to_bytes({name: getattr(self, name) for name in SHARED_FORM.arrays}, self.about)


Weights = GridWeights | SharedWeights


def load_weights(path: str | Path) -> Weights:
    """Read weights of pixels, or shared ones. Raises InputError for no such file, a damaged one, one
    of another format, or weights that make no grid."""
    form, arrays, about = read_any(path, (FORM, SHARED_FORM))
    about.pop("shape", None)
    try:
        if form is SHARED_FORM:
            return SharedWeights(**arrays, about=about)
        return GridWeights(arrays["field"], arrays["right"], arrays["down"], arrays["bias"], about)
    except InputError as error:
        raise error.at(path) from None


def patches(noisy: Floats, side: int) -> Floats:
    """The patch about each pixel, shape (pixels of all images, side^2), 0 outside of the images."""
    reach = side // 2
    padded = np.pad(noisy, ((0, 0), (reach, reach), (reach, reach)))
    found = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(1, 2))
    return np.ascontiguousarray(found.reshape(noisy.size, side * side))


def _blocks(noisy: Floats, size: int) -> Iterator[slice]:
    """Images whose patches are taken out together."""
    step = max(1, BLOCK // (size * noisy[0].size)) if len(noisy) else 1
    return (slice(start, start + step) for start in range(0, len(noisy), step))


@dataclass(frozen=True)
class SharedLayout:
    """Shared weights as one vector: the parts of the evidence, then the two couplings.

    Attributes
    ----------
    height, width : size of the images.
    side : side of the patches.
    units : number of hidden units.
    """

    height: int
    width: int
    side: int
    units: int = 0

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def unary(self) -> int:
        """Number of weights of the evidence, which come first."""
        patch = self.side**2
        return patch + 1 + self.units * (patch + 2)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.unary + 2

    def start(self, rng: np.random.Generator) -> Floats:
        """Weights to start from: 0, but for the patches of hidden units, which are random."""
        found, patch = np.zeros(self.size), self.side**2
        hidden = slice(patch + 1, patch + 1 + self.units * patch)
        found[hidden] = rng.standard_normal(self.units * patch) / self.side
        return found

    def model(self, vector: Floats, about: Mapping[str, Any] | None = None) -> SharedWeights:
        """The weights of a vector."""
        patch, units = self.side**2, self.units
        ends = np.cumsum([patch, 1, units * patch, units, units])
        linear, bias, hidden, offsets, output, couplings = np.split(vector, ends)
        shape = self.side, self.side
        return SharedWeights(
            linear.reshape(shape), bias, hidden.reshape(units, *shape), offsets, output, couplings, dict(about or {})
        )

    def pull(self, vector: Floats, noisy: Floats, own: Floats, right: Floats, down: Floats) -> Floats:
        """Derivatives by the weights, from those by the factors of pixels, shape (count, h, w), and
        by couplings, shapes (h, w - 1), (h - 1, w)."""
        return np.concatenate([self.model(vector).slopes(noisy, own), [right.sum(), down.sum()]])

    def features(self, noisy: Floats, clean: Floats) -> Floats:
        """Factors of the weights in the scores of pairs, averaged over the pairs, where scores are
        linear; shapes (count, h, w), clean in {-1, +1}, -> (size,)."""
        right, down = clean[:, :, :-1] * clean[:, :, 1:], clean[:, :-1] * clean[:, 1:]
        return self.pull(np.zeros(self.size), noisy, clean, right, down) / len(clean)
