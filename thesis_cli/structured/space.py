"""A finite space of combinatorial structures with features (Vembu et al. sections 1 and 4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge

if TYPE_CHECKING:
    from thesis_cli.structured.observations import Known

ENUMERATED = 2**20
"""Most structures that are enumerated for want of a better algorithm."""


@dataclass(frozen=True)
class Maxima:
    """Best structures of a batch of weight vectors.

    Attributes
    ----------
    values : their log-potentials, shape (n,).
    structures : shape (n, width).
    exact : whether each is known to be the best.
    """

    values: Floats
    structures: Ints
    exact: bool


class Space(ABC):
    """Structures y with features phi(y); weights w give the distribution exp(<phi(y), w>) / Z(w).

    Structures are rows of integers. Batches of weight vectors have shape (n, dimension).

    Attributes
    ----------
    name : name in files and options.
    word : what an element is.
    in_order : whether a row lists elements in an order, and not something of each element.
    diagonal : whether a square table of weights has weights of single elements on its diagonal.
    linear : whether the log-potential is <phi(y), w>; otherwise there are no `features`.
    precision : type of the numbers from which `sums` are computed.
    frozen : number of the first weights that no gradient moves; learning takes them from elsewhere.
    elements : number of labels, items, vertices or nodes.
    width : length of a row.
    dimension : number of features.
    radius : R, the largest Euclidean norm of a feature vector, or an upper bound.
    """

    name: str
    word: ClassVar[str] = "element"
    in_order: ClassVar[bool] = False
    diagonal: ClassVar[bool] = False
    linear: ClassVar[bool] = True
    precision: type[np.floating[Any]] = np.float64
    frozen: int = 0
    elements: int
    width: int
    dimension: int
    radius: float

    @abstractmethod
    def size(self) -> int:
        """Number of structures, exactly."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Independent structures from the uniform distribution, shape (count, width)."""

    @abstractmethod
    def features(self, structures: Ints) -> Floats:
        """Feature vectors, shape (count, dimension)."""

    @abstractmethod
    def valid(self, structures: Ints) -> Bools:
        """Whether each row is a structure of this space, in its canonical form."""

    @abstractmethod
    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        """All structures, each once, in blocks of at most so many rows."""

    def text(self, structure: Ints, names: Sequence[str]) -> str:
        """A structure in words, such as `{a, c}`, of the elements' names."""
        return "{" + ", ".join(name for name, bit in zip(names, structure.tolist(), strict=True) if bit) + "}"

    def scores(self, structures: Ints, weights: Floats) -> Floats:
        """Log-potentials <phi(y), w> of structures under one weight vector, shape (count,)."""
        return self.features(structures) @ weights

    def log_partition(self, weights: Floats) -> Floats:
        """Exact ln Z of each weight vector, shape (n,). Raises ModelTooLarge if no exact algorithm
        takes a space of this size."""
        weights = self.checked(weights)
        self._check_enumerable()
        found = np.full(len(weights), -np.inf)
        for block in self.blocks():
            scores = self.features(block) @ weights.T
            found = np.logaddexp(found, logsumexp(scores, axis=0))
        return found

    def mean_features(self, weights: Floats) -> Floats:
        """Exact expected features, the gradient of ln Z, shape (n, dimension). Raises ModelTooLarge
        as for `log_partition`."""
        log_z, found = self.log_partition(weights), np.zeros((len(weights), self.dimension))
        for block in self.blocks():
            features = self.features(block)
            found += np.exp(features @ weights.T - log_z).T @ features
        return found

    def seen(self, weights: Floats, structures: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
        """Log-potential of each structure under weights of its own, shape (n,), and its gradient,
        shape (n, dimension).

        Parameters
        ----------
        known : what is known of permutations, instead of the structures; then ln of the sum over all
            that agree stands for the log-potential.
        """
        features = self.features(structures)
        return np.einsum("id,id->i", features, weights), features

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        """ln Z of each weight vector, shape (n,), and its gradient, shape (n, dimension): the same as
        `log_partition` and `mean_features`, together and quicker for many vectors. Raises
        ModelTooLarge as for `log_partition`."""
        return self.log_partition(weights), self.mean_features(weights)

    def rough(self) -> Space:
        """This space with `sums` of six digits, where these take less time."""
        return self

    def surrogate(self) -> Space:
        """A space with the same weights whose likelihood takes less time and is largest near the same ones;
        as a rule this space itself."""
        return self

    def maximise(self, weights: Floats) -> Maxima:
        """A structure of largest log-potential for each weight vector (MAP). Raises ModelTooLarge
        if no algorithm takes a space of this size."""
        weights = self.checked(weights)
        self._check_enumerable()
        values = np.full(len(weights), -np.inf)
        best = np.zeros((len(weights), self.width), np.int64)
        for block in self.blocks():
            scores = self.features(block) @ weights.T
            at = scores.argmax(axis=0)
            highest = scores[at, np.arange(len(weights))]
            better = highest > values
            values[better], best[better] = highest[better], block[at[better]]
        return Maxima(values, best, exact=True)

    def best(self, weights: Floats, count: int) -> tuple[Floats, Ints]:
        """The structures of largest log-potential for each weight vector, the best first; log-potentials,
        shape (n, count), and structures, shape (n, count, width), or fewer if there are not as many.
        Raises ModelTooLarge if no algorithm takes a space of this size."""
        weights = self.checked(weights)
        self._check_enumerable()
        rows = np.concatenate(list(self.blocks()))
        values, found = zip(*(_largest(self.scores(rows, vector), count) for vector in weights), strict=True)
        return np.stack(values), rows[np.stack(found)]

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Independent exact samples under one weight vector, shape (count, width). Raises
        ModelTooLarge as for `log_partition`."""
        weights = self.checked(weights[None])[0]
        self._check_enumerable()
        rows = np.concatenate(list(self.blocks()))
        scores = self.scores(rows, weights)
        chances = np.cumsum(np.exp(scores - scores.max()))
        return np.asarray(rows[np.searchsorted(chances, rng.random(count) * chances[-1], side="right")])

    def check(self, structures: Ints) -> None:
        """Refuse rows that are no structures. Raises InputError naming the first such row."""
        if structures.ndim != 2 or structures.shape[1] != self.width:
            raise InputError(f"structures have shape {structures.shape}", f"rows must have {self.width} numbers")
        wrong = ~self.valid(structures)
        if wrong.any():
            at = int(wrong.argmax())
            raise InputError(f"row {at + 1}, {structures[at].tolist()}, is not in the space {self.name}")

    def checked(self, weights: Floats) -> Floats:
        """Weights as float64, if their shape is (n, dimension) and all are finite. Raises
        InputError otherwise."""
        found = np.asarray(weights, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != self.dimension:
            raise InputError(
                f"weights have shape {found.shape}", f"{self.name} needs {self.dimension:,} numbers for each vector"
            )
        if not np.isfinite(found).all():
            row, column = np.argwhere(~np.isfinite(found))[0]
            raise InputError(f"weight {column + 1} of vector {row + 1} is {found[row, column]}", "must be finite")
        return found

    def check_exact(self, largest: int, what: str) -> None:
        """Refuse what an exact algorithm does not take. Raises ModelTooLarge if the space has more.

        Parameters
        ----------
        largest : most elements that it takes.
        what : the word for elements.
        """
        if self.elements > largest:
            raise ModelTooLarge(
                f"exact sums over {self.name} take at most {largest} {what}, not {self.elements:,}", "use an estimate"
            )

    def _check_enumerable(self) -> None:
        if self.size() > ENUMERATED:
            raise ModelTooLarge(
                f"the space {self.name} has {self.size():.3e} structures"
                if self.size() < 10**300
                else f"the space {self.name} has more than 1e300 structures",
                f"exact algorithms take {ENUMERATED:,}; use an estimate",
            )


def _largest(scores: Floats, count: int) -> tuple[Floats, Ints]:
    """The largest of some scores in descending order, and their places; the first ones of equals."""
    least = np.partition(scores, -count)[-count] if count < len(scores) else -np.inf
    at = np.flatnonzero(scores >= least)
    at = at[np.argsort(-scores[at], kind="stable")][:count]
    return scores[at], at
