"""Options of the language of programs: how numbers are divided, and which numbers there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import option

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Semantics

DivisionName = Literal["trunc", "floor"]


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


def semantics_of(division: DivisionName, bounds: tuple[int, int], longest: int = 20) -> Semantics:
    """The semantics that the options stand for."""
    from thesis_cli.synthesis.language.dsl import Semantics

    return Semantics(division, *bounds, longest)
