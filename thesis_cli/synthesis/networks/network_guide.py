"""Guides that are networks: the predicted probability that a program uses each function and lambda
(Thesis section 5.4.3), or a network for next lines, which searches ask for each partial program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks.feed_forward import FeedForward, encode
from thesis_cli.synthesis.networks.gru import Recurrent
from thesis_cli.synthesis.networks.program_decoder import ProgramNetwork
from thesis_cli.synthesis.networks.weights import SUFFIX, Weights, load
from thesis_cli.synthesis.search.solver import LineOrder, Order, TokenOrder

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats
    from thesis_cli.synthesis.language.task import Task
    from thesis_cli.synthesis.networks.feed_forward import Encoded
    from thesis_cli.synthesis.networks.weights import Array

DEFAULT = "lines-4"
"""The shipped weights that `network` stands for: those trained on the longest programs."""

TASKS = 2**10
"""Tasks that are encoded at a time."""


class AttributeNetwork(Protocol):
    """A network that predicts attributes."""

    def logits(self, encoded: Encoded) -> Array:
        """Logits of the attributes of each task, shape (B, 34), float32."""


_NETWORKS: dict[str, Callable[[Weights], AttributeNetwork]] = {
    "feed-forward": FeedForward.of,
    "gru": Recurrent.of,
    "program": ProgramNetwork.of,
}
"""The network of each kind of weights that predicts attributes."""


@dataclass(frozen=True, eq=False)
class NetworkGuide:
    """A network that gives each task an order: its operations by their predicted probabilities.

    Attributes
    ----------
    weights : weights of the network, with the range of numbers and length of lists that it takes.
    network : the network of these weights.
    """

    weights: Weights
    network: AttributeNetwork

    @classmethod
    def of(cls, weights: Weights) -> NetworkGuide:
        """The guide of weights. Raises InputError if the network is of another kind, or its arrays
        do not fit its sizes."""
        if weights.kind not in _NETWORKS:
            remedy = f"it must be {' or '.join(_NETWORKS)}"
            raise InputError(f"its network is of the kind {weights.kind!r}", remedy, source=weights.name)
        guide = cls(weights, _NETWORKS[weights.kind](weights))
        guide.probabilities([Task("", (Example(((),), weights.semantics.low),))])  # the first call takes 10 ms
        return guide

    @property
    def identity(self) -> str:
        """Name of the weights, and a digest."""
        return f"network {Path(self.weights.name).name.removesuffix(SUFFIX)} {self.weights.digest[:16]}"

    def probabilities(self, tasks: Sequence[Task]) -> Floats:
        """Predicted probabilities of the attributes.

        Returns
        -------
        Shape (B, 34), in the order of `dsl.ATTRIBUTES`; nan for a task that the network cannot take:
        one with a number out of its range, with a longer list, or with more than 3 inputs.
        """
        found = np.full((len(tasks), len(ATTRIBUTES)), np.nan)
        for start in range(0, len(tasks), TASKS):
            part = range(start, min(start + TASKS, len(tasks)))
            try:
                encoded, rows = encode([tasks[row] for row in part], self.weights.semantics), list(part)
            except InputError:
                rows = [row for row in part if self.refusal(tasks[row]) is None]
                encoded = encode([tasks[row] for row in rows], self.weights.semantics)
            if rows:
                logits = self.network.logits(encoded).astype(np.float64)
                found[rows] = np.exp(-np.logaddexp(0.0, -logits))
        return found

    def orders(self, tasks: Sequence[Task]) -> list[Order | None]:
        """The order for each task, which names the weights if they write whole programs; None for a
        task that the network cannot take."""

        def order(row: Floats) -> Order:
            found = tuple(row.tolist())
            return TokenOrder(found, self.weights.name) if self.weights.kind == "program" else Order(found)

        return [None if np.isnan(row[0]) else order(row) for row in self.probabilities(tasks)]

    def refusal(self, task: Task) -> InputError | None:
        """Why the network cannot take a task; None if it can."""
        try:
            encode([task], self.weights.semantics)
        except InputError as error:
            return error
        return None


@cache
def _default() -> NetworkGuide:
    return NetworkGuide.of(load(DEFAULT))


def network_guide(name: str | Path = "network") -> NetworkGuide:
    """The guide that a user names: `network` for the shipped weights that serve most tasks, the
    name of other shipped weights, or a file. Raises InputError as `weights.load` and
    `NetworkGuide.of` do."""
    return _default() if name == "network" else NetworkGuide.of(load(name))


@dataclass(frozen=True, eq=False)
class LineGuide:
    """A guide that gives every task the prior, and a network to the searches that can ask it.

    Attributes
    ----------
    weights : weights of the network.
    prior : order of searches that do not ask the network.
    """

    weights: Weights
    prior: Order

    @property
    def identity(self) -> str:
        """Name of the weights, and a digest."""
        return f"network {self.weights.name} {self.weights.digest[:16]}"

    def orders(self, tasks: Sequence[Task]) -> list[LineOrder]:
        """The prior, with the name of the weights, for each task."""
        order = LineOrder(self.prior.probabilities, self.weights.name)
        return [order] * len(tasks)


def line_guide(name: str | Path, prior: Order) -> LineGuide | NetworkGuide:
    """The guide of weights that may be those of a network for next lines. Raises InputError as
    `weights.load` and `NetworkGuide.of` do."""
    weights = load(name)
    return LineGuide(weights, prior) if weights.kind == "next-line" else NetworkGuide.of(weights)
