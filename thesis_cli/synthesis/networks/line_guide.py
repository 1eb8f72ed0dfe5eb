"""The guide that is a network for next lines: searches that build programs line by line ask it anew
for each partial program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.synthesis.networks.network_guide import NetworkGuide
from thesis_cli.synthesis.networks.weights import Weights, load
from thesis_cli.synthesis.search.solver import LineOrder, Order

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.task import Task


@dataclass(frozen=True, eq=False)
class LineGuide:
    """A guide that gives every task the prior, and a network to the searches that can ask it.

    Attributes
    ----------
    weights : of the network.
    prior : for what does not ask the network.
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
    """The guide of weights that may be those of a network for next lines.

    Raises
    ------
    InputError : as `weights.load` and `NetworkGuide.of`.
    """
    weights = load(name)
    return LineGuide(weights, prior) if weights.kind == "next-line" else NetworkGuide.of(weights)
