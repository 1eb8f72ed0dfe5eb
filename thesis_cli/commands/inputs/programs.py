"""Options of commands on programs: the numbers of the language, priors and guides as users name them, and what a
summary states of guides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, counted
from thesis_cli.commands.core.fields import option

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Language, Semantics
    from thesis_cli.synthesis.networks.network_guide import LineGuide, NetworkGuide
    from thesis_cli.synthesis.prior import Guide
    from thesis_cli.synthesis.search.solver import Order


PRIOR = "corpus"
"""The prior, unless the user names another one."""

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


def prior_of(prior: object, language: Language) -> Order:
    """Probabilities by name, from a file, or from a mapping."""
    from thesis_cli.synthesis.prior import Guide, from_mapping, load, read
    from thesis_cli.synthesis.search.solver import Order

    if isinstance(prior, Order):
        return prior
    if isinstance(prior, Mapping):
        return from_mapping(prior, language)
    if not isinstance(prior, str | Path):
        remedy = "it must be corpus, uniform, a CSV file, probabilities by name, or an Order"
        remedy = "give it as guide" if isinstance(prior, Guide) else remedy
        raise InputError(f"--prior is an object of type {type(prior).__name__}", remedy)
    if prior == PRIOR:
        return load(language)
    return Order.uniform(language) if prior == "uniform" else read(Path(prior), language)


def guide_of(guide: object, weights: str, prior: Order) -> Guide | None:
    """A guide by name, from a file of weights, or as it is; None for `none`.

    Parameters
    ----------
    weights : what `network` stands for, for a solver that is made for weights of its own; else empty.
    prior : the order of searches that do not ask a network for next lines.
    """
    from thesis_cli.synthesis.prior import Guide

    if isinstance(guide, str | Path):
        if guide == "none":
            return None
        name = (weights if guide == "network" else "") or guide
        return line_guide_named(name, prior) if weights == "next-line" else guide_named(name)
    if not isinstance(guide, Guide):
        remedy = "it must be none, network, a file of weights, or a Guide"
        raise InputError(f"--guide is an object of type {type(guide).__name__}", remedy)
    return guide


def guide_lines(guidance: Mapping[str, Any], tasks: int) -> list[tuple[str, str]]:
    """Line about the guide that ordered the searches of some tasks; none without one."""
    if not guidance:
        return []
    left = f"; it left {counted(guidance['by_prior'], 'task')} to --prior" * bool(guidance["by_prior"])
    return [("guide", f"{guidance['identity']}, {guidance['seconds']:.3g} s for {counted(tasks, 'task')}{left}")]
