"""Images of many values as binary images, which are what grid models denoise.

A grey image of levels v_1 < ... < v_m is m - 1 binary ones: whether a pixel is above the threshold
between two levels. If pairs of neighbours cost a multiple of the difference of their levels, as in
total variation, each of them can be denoised alone (Darbon and Sigelle, 2006), and the noisy image
has the difference from the threshold for its signal. An image of m labels is m binary ones, one a
label, which are decided together by alpha-expansion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.errors import InputError
from thesis_cli.learning.settings import LEVELS, Kind

Pixels = npt.NDArray[Any]
"""Images of booleans, or of the values that they have in their files."""

MOST_LABELS = 64

FARTHEST = 20
"""Largest ratio of the range of noisy grey images to that of the levels, or the reverse, that raises no doubt."""


@dataclass(frozen=True)
class Values:
    """The values of images.

    Attributes
    ----------
    kind : `two`, `grey` or `labels`.
    values : levels or labels, ascending; empty for two values, which are booleans.
    """

    kind: Kind = "two"
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, kind: Kind, clean: Pixels, levels: int = LEVELS) -> Values:
        """The values of clean images: all that occur, or for grey ones evenly spaced levels if more
        than `levels` occur.

        Raises
        ------
        InputError : all pixels are equal, or there are too many labels.
        """
        if kind == "two":
            return cls()
        found = np.unique(clean).astype(np.float64)
        if len(found) < 2:
            raise InputError("the clean images have one value", "give images of two or more")
        if kind == "labels" and len(found) > MOST_LABELS:
            raise InputError(f"the clean images have {len(found):,} labels", f"give at most {MOST_LABELS}, or grey")
        if kind == "grey" and len(found) > levels:
            found = np.linspace(found[0], found[-1], levels)
        return cls(kind, tuple(found.tolist()))

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Values:
        """The values that weights say they are for. Raises InputError if they are none."""
        found = about.get("values", {"kind": "two", "values": []})
        try:
            kind, values = found["kind"], tuple(float(value) for value in found["values"])
        except (TypeError, KeyError, ValueError, LookupError):
            kind, values = "", ()
        ascending = all(a < b < math.inf for a, b in pairwise((-math.inf, *values)))
        if kind not in ("two", "grey", "labels") or not ascending or (kind == "two") != (len(values) < 2):
            raise InputError("its values are damaged", "give a file that thesis-cli train-denoiser has written")
        return cls(kind, values)

    def write(self) -> dict[str, Any]:
        """The values in types of JSON, for `read`."""
        return {"kind": self.kind, "values": list(self.values)}

    @property
    def parts(self) -> int:
        """Binary images that an image is."""
        return {"two": 1, "grey": len(self.values) - 1, "labels": len(self.values)}[self.kind]

    @property
    def thresholds(self) -> Floats:
        """Middles of neighbouring levels, shape (parts,)."""
        levels = np.array(self.values)
        return np.asarray((levels[1:] + levels[:-1]) / 2)

    def signals(self, noisy: Pixels) -> Bools | Floats:
        """Noisy images as those of a binary model, numbers about 0; shape (count, h, w) -> (count
        parts, h, w), the parts of an image one after another."""
        if self.kind == "two":
            return noisy
        if self.kind == "labels":
            return np.where(self.binary(noisy), 1.0, -1.0)
        half = (self.values[-1] - self.values[0]) / 2
        return np.asarray((noisy[:, None] - self.thresholds[:, None, None]) / half).reshape(-1, *noisy.shape[1:])

    def binary(self, clean: Pixels) -> Bools:
        """Clean images as binary ones, shape (count, h, w) -> (count parts, h, w)."""
        if self.kind == "two":
            return clean
        if self.kind == "labels":
            found = clean[:, None] == np.array(self.values)[:, None, None]
        else:
            found = clean[:, None] > self.thresholds[:, None, None]
        return np.asarray(found.reshape(-1, *clean.shape[1:]), np.bool_)

    def images(self, found: Floats) -> Floats:
        """Grey images from binary ones, or from the probabilities of a 1, whose sum is the mean; shape
        (count parts, h, w) -> (count, h, w).

        A pixel that is above a threshold but not above a lower one, as a network may find, has the level
        of the number of thresholds that it is above.
        """
        steps = np.diff(self.values)
        parts = -np.sort(-found.reshape(-1, self.parts, *found.shape[1:]), axis=1)
        return np.asarray(self.values[0] + np.einsum("kpij,p->kij", parts, steps))

    def doubt(self, noisy: Pixels) -> str:
        """Why noisy images may not be of these values, in words; empty if nothing says so."""
        if self.kind == "labels":
            known = np.isin(noisy, self.values)
            if known.all():
                return ""
            others = ", ".join(f"{value:g}" for value in np.unique(noisy[~known])[:5])
            return f"{(~known).mean():.3g} of the pixels have labels that the weights do not know, such as {others}"
        if self.kind == "two":
            return ""
        low, high = float(noisy.min()), float(noisy.max())
        first, last = self.values[0], self.values[-1]
        spread = (high - low) / (last - first)
        if 1 / FARTHEST < spread < FARTHEST and low < 2 * last - first and high > 2 * first - last:
            return ""
        return (
            f"values from {low:g} to {high:g} may be in other units than the weights' levels from {first:g} to {last:g}"
        )

    def errors(self, found: Pixels, clean: Pixels) -> Floats:
        """Error of each image: the root mean square of grey ones, the share of wrong pixels of others,
        shape (count,)."""
        if self.kind == "grey":
            return np.asarray(np.sqrt(((found.astype(np.float64) - clean) ** 2).mean(axis=(1, 2))))
        return np.asarray((found != clean).mean(axis=(1, 2)))

    def shown(self, error: float, digits: int = 3) -> str:
        """An error in words."""
        return f"{error:.4g} root mean square" if self.kind == "grey" else f"{error:.{digits}%} of pixels"
