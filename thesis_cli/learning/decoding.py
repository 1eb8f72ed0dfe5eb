"""Clean images from noisy ones under the weights of a grid model: binary ones, and by these of other
values.

One MAP solver serves all images and all perturbations of a weight vector, since these change unary
potentials alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.graph_cut.expansion import Expansion
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.inference.names import SolverName
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.learning.grid_model import GridWeights, neighbours
from thesis_cli.learning.shared_model import Weights
from thesis_cli.learning.values import Pixels, Values
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.noise import gumbel

Decision = Literal["map", "marginal"]

NARROW = 12
"""Width up to which grid transfer solves models that are not attractive."""


class Decoder:
    """MAP of the couplings of a grid model under any unary potentials. Raises UnsuitableModel or
    ModelTooLarge if the named solver does not take the couplings.

    Parameters
    ----------
    weights : weights, of which only the couplings count.
    solver : `auto` takes a minimum cut if no coupling is negative, perhaps after flips of pixels,
        otherwise grid transfer on a narrow grid and strips of a wide one.
    """

    def __init__(self, weights: GridWeights, solver: SolverName = "auto") -> None:
        self.shape = height, width = weights.shape
        if solver == "graph-cut" and not weights.attractive:
            low = min(weights.right.min(initial=0), weights.down.min(initial=0))
            raise UnsuitableModel(
                f"a coupling is {low:.3g}, and graph cuts take none below 0",
                "leave --solver out, or train with --couplings attractive",
            )
        self._weights = weights
        self._solver: MapSolver | None = None
        if solver in ("auto", "graph-cut") and weights.attractive:
            couplings = np.concatenate([weights.right.ravel(), weights.down.ravel()])
            capacities = np.repeat(2 * couplings[:, None], 2, axis=1)
            self._network = _network(height, width).with_capacities(capacities)
            self._maximise = self._cut
            return
        graph = SpinGlass(np.zeros(self.shape), weights.right, weights.down).graph()
        found = _general(graph, min(self.shape)) if solver == "auto" else map_solver(graph, solver)[0]
        self._solver = found
        self._maximise = lambda unary: found.maximise(unary.reshape(len(unary), -1))

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self._solver.name if self._solver else "graph cut"

    @property
    def guarantee(self) -> Guarantee:
        """`exact` or `approximate`; some solvers know only once they have maximised."""
        return self._solver.guarantee if self._solver else "exact"

    def maximise(self, own: Floats, noise: Floats | None = None) -> tuple[Floats, Floats]:
        """The best images.

        Parameters
        ----------
        own : factor of each y_i, shape (batch, h, w).
        noise : added to the log-potentials of y_i = -1 and of y_i = +1, shape (batch, h, w, 2).

        Returns
        -------
        values : the maxima, shape (batch,).
        images : the maximisers, in {-1, +1}, shape (batch, h, w).
        """
        both = np.stack([-own, own], axis=-1)
        if noise is not None:
            both += noise
        values, states = self._maximise(both.reshape(len(own), -1, 2))
        return values, np.asarray(np.where(states == 1, 1.0, -1.0).reshape(own.shape))

    def _cut(self, unary: Floats) -> tuple[Floats, Ints]:
        """Values and states by minimum cuts: two pixels that differ cost twice their coupling."""
        states = self._network.labels(unary[..., 0] - unary[..., 1])
        images = np.where(states == 1, 1.0, -1.0).reshape(-1, *self.shape)
        own = np.where(states == 1, unary[..., 1], unary[..., 0]).sum(axis=1)
        return own + self._weights.pairs(images), states


@lru_cache(maxsize=4)
def _network(height: int, width: int) -> Network:
    """A grid without couplings, sorted once for all weights of its size."""
    arcs = neighbours(height, width)
    return Network(arcs, np.zeros(arcs.shape), np.zeros((height * width, 2), np.bool_))


def _general(graph: FactorGraph, width: int) -> MapSolver:
    """A solver of a grid with couplings below 0."""
    if width <= NARROW:
        return map_solver(graph, "grid")[0]
    try:
        return map_solver(graph, "graph-cut")[0]
    except UnsuitableModel:  # a frustrated cycle
        return map_solver(graph, "grid-strips")[0]


BLOCK = 2**21
"""Numbers of noise that are drawn together."""


def map_images(
    weights: Weights, noisy: Bools | Floats, *, solver: SolverName | Decoder = "auto", progress: Tick | None = None
) -> Bools:
    """The most probable clean images, shape (count, h, w). Raises InputError if the images have
    another size than the weights, and UnsuitableModel or ModelTooLarge if the named solver does not
    take the weights.

    Parameters
    ----------
    solver : name of a solver, or one prepared for these weights.
    progress : called with the number of images just done.
    """
    grid = weights.on(*noisy.shape[1:])
    decoder = solver if isinstance(solver, Decoder) else Decoder(grid, solver)
    found = np.empty(noisy.shape, np.bool_)
    size = max(1, BLOCK // (2 * grid.field.size))
    for start in range(0, len(noisy), size):
        block = slice(start, start + size)
        found[block] = decoder.maximise(grid.own(noisy[block]))[1] > 0
        if progress:
            progress(len(noisy[block]))
    return found


def foreground_shares(
    weights: Weights,
    noisy: Bools | Floats,
    samples: int,
    seed: int,
    *,
    solver: SolverName | Decoder = "auto",
    progress: Tick | None = None,
) -> Floats:
    """Share of perturbed maximisers in which each pixel is foreground: its probability under the
    perturb-max distribution, estimated; shape (count, h, w). Raises as `map_images`.
    """
    grid = weights.on(*noisy.shape[1:])
    decoder = solver if isinstance(solver, Decoder) else Decoder(grid, solver)
    found = np.zeros(noisy.shape)
    pixels = grid.field.size
    size = max(1, BLOCK // (2 * pixels))
    for image, child in enumerate(np.random.SeedSequence(seed).spawn(len(noisy))):
        rng = np.random.default_rng(child)
        own = grid.own(noisy[image : image + 1])[0]
        for start in range(0, samples, size):
            count = min(size, samples - start)
            noise = gumbel(rng, count, 2 * pixels).reshape(count, *own.shape, 2)
            _, images = decoder.maximise(np.broadcast_to(own, (count, *own.shape)), noise)
            found[image] += (images > 0).sum(axis=0)
        if progress:
            progress(1)
    return found / samples


def marginal_images(
    weights: Weights,
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


def denoised(
    weights: Weights,
    values: Values,
    noisy: Pixels,
    decision: Decision = "map",
    samples: int = 100,
    seed: int = 0,
    *,
    solver: SolverName | Decoder = "auto",
    progress: Tick | None = None,
) -> Pixels:
    """Clean images of the same kind and values, shape (count, h, w).

    Parameters
    ----------
    decision : `map`, or by the shares of perturbed maximisers, which are majorities for two values
        and means for grey images.
    samples, seed : perturbations of each binary image, and their seed.
    progress : called with the number of binary images just done.

    Raises
    ------
    InputError : the images have another size than the weights, or are labels that these do not know
        or that perturbed maximisers should decide.
    UnsuitableModel, ModelTooLarge : the solver does not take the weights.
    """
    grid = weights.on(*noisy.shape[1:])
    options: dict[str, Any] = {"solver": solver, "progress": progress}
    if values.kind == "two":
        if decision == "map":
            return map_images(grid, noisy, **options)
        return marginal_images(grid, noisy, samples, seed, **options)
    if values.kind == "labels":
        if decision != "map":
            raise InputError("perturbed maximisers decide images of two values and grey ones alone", "take map")
        return _labelled(grid, values, noisy, progress)
    found = np.empty(noisy.shape)
    for k in range(len(noisy)):  # each image is many binary ones
        signals = values.signals(noisy[k : k + 1])
        if decision == "map":
            shares = map_images(grid, signals, **options).astype(np.float64)
        else:
            shares = foreground_shares(grid, signals, samples, seed + k, **options)
        found[k] = values.images(shares)[0]
    return found


def _labelled(grid: GridWeights, values: Values, noisy: Pixels, progress: Tick | None) -> Pixels:
    """Images of labels. Scores are half of those of all binary images, so that with two labels they
    are those of one."""
    if not grid.attractive:
        raise UnsuitableModel("a coupling is below 0, and labels take none", "train with --couplings attractive")
    if not np.isin(noisy, values.values).any():
        raise InputError("no pixel has a label that the weights know", "give images of the same labels")
    height, width = grid.shape
    costs = 2 * np.concatenate([grid.right.ravel(), grid.down.ravel()])
    expansion = Expansion(neighbours(height, width), costs, height * width)
    found = np.empty(noisy.shape)
    for k in range(len(noisy)):
        own = grid.own(values.signals(noisy[k : k + 1]))
        labels = expansion.maximise(own.reshape(values.parts, -1).T)
        found[k] = np.array(values.values)[labels].reshape(height, width)
        if progress:
            progress(values.parts)
    return found
