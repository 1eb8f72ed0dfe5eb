"""Clean images from noisy ones, under learnt weights."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.progress import Tick
from thesis_cli.inference.names import SolverName
from thesis_cli.learning.decoding import Decoder
from thesis_cli.learning.grid_model import GridWeights, check_size
from thesis_cli.perturbation.noise import gumbel

BLOCK = 2**21
"""Numbers of noise that are drawn together."""


def map_images(
    weights: GridWeights, noisy: Bools, *, solver: SolverName | Decoder = "auto", progress: Tick | None = None
) -> Bools:
    """The most probable clean images, shape (count, h, w).

    Parameters
    ----------
    solver : by name, or prepared for these weights.
    progress : called with the number of images just done.

    Raises
    ------
    InputError : the images have another size than the weights.
    UnsuitableModel, ModelTooLarge : the named solver does not take the weights.
    """
    check_size(weights, noisy.shape)
    decoder = solver if isinstance(solver, Decoder) else Decoder(weights, solver)
    found = np.empty(noisy.shape, np.bool_)
    size = max(1, BLOCK // (2 * weights.field.size))
    for start in range(0, len(noisy), size):
        block = slice(start, start + size)
        found[block] = decoder.maximise(weights.own(noisy[block]))[1] > 0
        if progress:
            progress(len(noisy[block]))
    return found


def foreground_shares(
    weights: GridWeights,
    noisy: Bools,
    samples: int,
    seed: int,
    *,
    solver: SolverName | Decoder = "auto",
    progress: Tick | None = None,
) -> Floats:
    """Share of perturbed maximisers in which each pixel is foreground: its probability under the
    perturb-max distribution, estimated; shape (count, h, w). Raises as `map_images`.
    """
    check_size(weights, noisy.shape)
    decoder = solver if isinstance(solver, Decoder) else Decoder(weights, solver)
    found = np.zeros(noisy.shape)
    pixels = weights.field.size
    size = max(1, BLOCK // (2 * pixels))
    for image, child in enumerate(np.random.SeedSequence(seed).spawn(len(noisy))):
        rng = np.random.default_rng(child)
        own = weights.own(noisy[image])
        for start in range(0, samples, size):
            count = min(size, samples - start)
            noise = gumbel(rng, count, 2 * pixels).reshape(count, *own.shape, 2)
            _, images = decoder.maximise(np.broadcast_to(own, (count, *own.shape)), noise)
            found[image] += (images > 0).sum(axis=0)
        if progress:
            progress(1)
    return found / samples


def marginal_images(
    weights: GridWeights,
    noisy: Bools,
    samples: int,
    seed: int,
    *,
    solver: SolverName | Decoder = "auto",
    progress: Tick | None = None,
) -> Bools:
    """Each pixel in its more probable state under the perturb-max distribution, which makes the
    expected number of wrong pixels least (Shpakova and Bach, 2016); at equal shares it keeps that
    of the noisy image. Raises as `map_images`.
    """
    shares = foreground_shares(weights, noisy, samples, seed, solver=solver, progress=progress)
    return np.asarray(np.where(shares == 0.5, noisy, shares > 0.5))
