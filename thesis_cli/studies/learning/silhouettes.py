"""Binary images to learn denoising from: drawn silhouettes of a man, and handwritten digits.

Hazan et al. (section V) learn from ten 100 x 70 images of a man in silhouette with 10 % of their
pixels flipped, and test on ten more; those images are not public. These are our own, drawn from
ellipses and tapered strokes. `python -m thesis_cli.studies.learning.silhouettes FOLDER` (`make
silhouettes`) writes them as PNG.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.files import write_atomic
from thesis_cli.models.images import add_flips, encoded

HEIGHT, WIDTH = 100, 70
COUNT = 10
"""Images to train on, and as many to test on, as in the source."""

FLIPS = 0.1
SEED = 2019

THRESHOLD = 8
"""Brightness, of 0 to 16, from which a pixel of a digit is foreground."""

Stroke = tuple[float, float, float, float, float, float]
"""x, y and radius at both ends, in image heights; x from the middle of the image, y from its top."""


def silhouettes(
    count: int, rng: np.random.Generator, variation: float = 1.0, height: int = HEIGHT, width: int = WIDTH
) -> Bools:
    """Images of a standing or walking man, True on him, shape (count, height, width).

    Parameters
    ----------
    variation : variation of pose, size and place; with 0 all images are the same.
    height, width : pixels; the man fills most of the height.
    """
    return np.stack([_drawn(_strokes(rng, variation), height, width) for _ in range(count)])


def digits(count: int, rng: np.random.Generator) -> Bools:
    """Distinct handwritten digits of scikit-learn, True from `THRESHOLD` on, shape (count, 8, 8).

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits (UCI).
    """
    from sklearn.datasets import load_digits

    images = load_digits().images
    return np.asarray(images[rng.choice(len(images), count, replace=False)] >= THRESHOLD)


def _strokes(rng: np.random.Generator, variation: float) -> list[Stroke]:
    """The parts of a man in a random pose."""

    def about(mean: float, spread: float) -> float:
        return mean + variation * spread * rng.uniform(-1, 1)

    size = about(0.95, 0.05)
    lean, x, top = about(0.0, 0.08), about(0.0, 0.03), 0.5 - 0.45 * size + about(0.0, 0.02)
    stride = about(0.2, 0.2)

    def at(along: float, y: float) -> tuple[float, float]:
        """A point of the upright body, leaned about the hips."""
        return x + size * (along + lean * (0.48 - y)), top + size * y

    strokes = [
        (*at(0.0, 0.05), size * 0.05, *at(0.0, 0.08), size * 0.052),  # head
        (*at(0.0, 0.10), size * 0.035, *at(0.0, 0.18), size * 0.04),  # neck
        (*at(-0.07, 0.19), size * 0.04, *at(0.07, 0.19), size * 0.04),  # shoulders
        (*at(0.0, 0.23), size * 0.085, *at(0.0, 0.44), size * 0.07),  # torso
    ]
    for side in (-1, 1):
        swing = side * about(0.35, 0.35) - lean
        strokes += _limb(at(side * 0.09, 0.19), swing, swing + side * about(0.15, 0.35), size, (0.17, 0.16), 0.033)
        leg = side * (stride + about(0.0, 0.06))
        knee = leg - side * about(0.12, 0.12)
        strokes += _limb(at(side * 0.035, 0.46), leg, knee, size, (0.2, 0.2), 0.05)
        _, _, _, ankle_x, ankle_y, radius = strokes[-1]
        strokes.append((ankle_x, ankle_y, radius, ankle_x + side * size * 0.05, ankle_y + size * 0.01, radius * 0.8))
    return strokes


def _limb(
    start: tuple[float, float], upper: float, lower: float, size: float, lengths: tuple[float, float], radius: float
) -> list[Stroke]:
    """An arm or a leg; angles from straight down, in radians."""
    strokes: list[Stroke] = []
    x, y = start
    for angle, length, (near, far) in zip((upper, lower), lengths, ((1.0, 0.8), (0.8, 0.6)), strict=True):
        end_x, end_y = x + size * length * math.sin(angle), y + size * length * math.cos(angle)
        strokes.append((x, y, size * radius * near, end_x, end_y, size * radius * far))
        x, y = end_x, end_y
    return strokes


def _drawn(strokes: list[Stroke], height: int, width: int) -> Bools:
    """Pixels whose middle is within a stroke."""
    y = (np.arange(height)[:, None] + 0.5) / height
    x = (np.arange(width)[None, :] + 0.5 - width / 2) / height
    image = np.zeros((height, width), np.bool_)
    for x0, y0, r0, x1, y1, r1 in strokes:
        dx, dy = x1 - x0, y1 - y0
        along: Floats = np.clip(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0, 1)
        image |= np.hypot(x - x0 - along * dx, y - y0 - along * dy) <= r0 + along * (r1 - r0)
    return image


def files(seed: int = SEED) -> dict[Path, bytes]:
    """Name -> content of the images to train and to test on, clean and noisy."""
    rng = np.random.default_rng(seed)
    clean = silhouettes(2 * COUNT, rng)
    kinds = {"clean": clean, "noisy": add_flips(clean, FLIPS, rng)}
    found = {}
    for kind, images in kinds.items():
        for at, pixels in enumerate(images):
            part, number = ("train", at) if at < COUNT else ("test", at - COUNT)
            path = Path(part, kind, f"man-{number}.png")
            found[path] = encoded(pixels, path)
    return found


def main() -> int:
    """Write the images into the folder that is named on the command line."""
    if len(sys.argv) not in (2, 3):
        sys.stderr.write("usage: python -m thesis_cli.studies.learning.silhouettes FOLDER [SEED]\n")
        return 2
    folder = Path(sys.argv[1])
    write_atomic({folder / path: data for path, data in files(int(sys.argv[2]) if sys.argv[2:] else SEED).items()})
    sys.stdout.write(f"{folder}: train and test, clean and noisy, {COUNT} images of {WIDTH} x {HEIGHT} pixels each\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
