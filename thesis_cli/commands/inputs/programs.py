"""Options of commands on programs: the numbers of the language, guides as users name them, and what a summary
states of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, counted
from thesis_cli.commands.core.fields import option

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Semantics
    from thesis_cli.synthesis.networks.network_guide import LineGuide, NetworkGuide
    from thesis_cli.synthesis.search.solver import Order


DivisionName = Literal["trunc", "floor"]

DslName = Literal["deepcoder", "extended"]


def division_option() -> Any:
    return option("trunc", "Rounding of (/2), (/3) and (/4): toward zero (trunc) or down (floor).")


def range_option() -> Any:
    return option(
        (-256, 255), "Smallest and largest number that a value may have.", least=-32766, most=32766, metavar="LOW HIGH"
    )


def max_list_option() -> Any:
    return option(20, "Largest length of a list.", least=1, most=31)


def check_range(bounds: tuple[int, int]) -> None:
    """Refuse bounds in the wrong order."""
    low, high = bounds
    if low > high:
        raise InputError(f"--range is {low} {high}", "LOW must be at most HIGH")


def dsl_option() -> Any:
    return option("deepcoder", "Language of programs: that of the thesis, or a larger one.")


def semantics_of(
    division: DivisionName, bounds: tuple[int, int], longest: int = 20, dsl: DslName = "deepcoder"
) -> Semantics:
    """The semantics that the options stand for."""
    from thesis_cli.synthesis.language.dsl import Semantics

    return Semantics(division, *bounds, longest, dsl)


def line_guide_named(name: str | Path, prior: Order) -> LineGuide | NetworkGuide:
    """The network that `--guide` names to a search that can ask for next lines; the prior is for what
    does not ask.

    Raises
    ------
    InputError : as `guide_named`.
    """
    from thesis_cli.synthesis.networks.network_guide import line_guide

    with _option(name):
        return line_guide(name, prior)


def guide_named(name: str | Path) -> NetworkGuide:
    """The network that `--guide` names.

    Raises
    ------
    InputError : there are no such weights, or they are damaged or of another kind.
    """
    from thesis_cli.synthesis.networks.network_guide import network_guide

    with _option(name):
        return network_guide(name)


@contextmanager
def _option(name: str | Path) -> Iterator[None]:
    """Name the option in an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"--guide {name}: {error.problem}", error.remedy) from None


def guide_lines(guidance: Mapping[str, Any], tasks: int) -> list[tuple[str, str]]:
    """Line about the guide that ordered the searches of some tasks; none without one."""
    if not guidance:
        return []
    left = f"; it left {counted(guidance['by_prior'], 'task')} to --prior" * bool(guidance["by_prior"])
    return [("guide", f"{guidance['identity']}, {guidance['seconds']:.3g} s for {counted(tasks, 'task')}{left}")]
