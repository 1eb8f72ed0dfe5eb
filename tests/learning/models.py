"""Small pairs of images, and what enumeration says of them."""

import itertools

import numpy as np


def pairs(count=3, height=3, width=3, seed=0, share=0.2):
    """Images that a line divides, and their noisy copies, shape (count, height, width)."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width]
    rows, columns = rows - (height - 1) / 2, columns - (width - 1) / 2
    clean = np.stack([rows * a + columns * b > 0.3 * c for a, b, c in rng.normal(0, 1, (count, 3))])
    return clean ^ (rng.random(clean.shape) < share), clean


def all_images(height, width):
    """Every image in {-1, +1}, shape (2^(h w), h, w)."""
    found = np.array(list(itertools.product((-1.0, 1.0), repeat=height * width)))
    return found.reshape(-1, height, width)


def scores(weights, noisy, images):
    """Scores of images given one noisy image in {-1, +1}, from the definition."""
    own = (weights.field * noisy + weights.bias) * images
    right = weights.right * images[:, :, :-1] * images[:, :, 1:]
    down = weights.down * images[:, :-1] * images[:, 1:]
    return own.sum(axis=(1, 2)) + right.sum(axis=(1, 2)) + down.sum(axis=(1, 2))
