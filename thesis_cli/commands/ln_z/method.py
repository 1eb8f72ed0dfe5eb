"""A row of the table of methods of ln Z."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from thesis_cli.commands.ln_z.estimates import LnZAnswer

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import FactorGraph

CommandName = Literal["estimate-z", "bound"]
Guarantee = Literal[
    "exact",
    "upper bound",
    "lower bound",
    "both bounds",
    "approximation",
    "Z unbiased",
    "consistent",
    "probable interval",
]


class Share(NamedTuple):
    """Place of a method in the portfolio of `estimate-z`.

    Attributes
    ----------
    turn : order of the start; among approximations, a later one is believed before an earlier one.
    most : largest share of the time limit; the last method takes what is left.
    alone : whether it gets a share where there is one core.
    grows : option that becomes larger from one answer of the method to the next.
    """

    turn: int
    most: float
    alone: bool = False
    grows: str = ""


@dataclass(frozen=True)
class LnZMethod:
    """A method of ln Z.

    Attributes
    ----------
    command : command that offers it.
    guarantee : meaning of its answer on a model that it takes, once it has converged.
    run : (model, options, progress, and its own options by name) -> answer.
    heeds : fields of the command's request that it heeds, among those that not all methods do.
    own : options of its own, rows of `OWN_OPTIONS`, with their defaults.
    vectors : whether it takes a vector of log-potentials; those that do not refuse it by name.
    stream : number of its random stream.
    share : its place in the portfolio of `estimate-z`.
    problems : number of MAP problems that a model takes, where there may be too many for `auto`.
    encloses : whether the interval of its estimate holds for any number of samples, and so bounds ln Z.
    help : what it does, in brackets in the help of `--method`; empty if the name says it.
    """

    command: CommandName
    guarantee: Guarantee
    run: Callable[..., LnZAnswer]
    heeds: tuple[str, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict)
    vectors: bool = False
    stream: int = 0
    share: Share | None = None
    problems: Callable[[FactorGraph], int] | None = None
    encloses: bool = False
    help: str = ""
