"""Release methods by name: what `--method`, help, `auto`, refusals, previews, records and audits are
made from.

A method is one file and one row. The file defines `METHOD`, an `Implementation`
(`release.py`). Nothing here imports NumPy, so that `--help` stays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from thesis_cli.privacy.mechanisms.mechanism import NoiseName

BUDGET = ("delta", "accept_delta")
"""Options of methods that spend a delta."""
UNITS = ("person", "contribution_bound", "neighbours")
"""Options of methods that can keep the number of rows secret."""


@dataclass(frozen=True, kw_only=True)
class DPMethod:
    """One release method.

    Attributes
    ----------
    implementation : `module:name` of the implementation.
    help : the mechanism, in the words of the help of `--method`.
    basis : the map from a table to the vector or choice, in the words of the record.
    options : fields of `dp-release` that this method heeds and some other method does not.
    noises : laws of its noise; none for a mechanism that adds no noise to a vector.
    weights : weights that its rows may have.
    auto : place in the order in which `auto` tries methods, from 1; 0 if it never does.
    size : default of `--size`; 0 if it has none.
    sizes : the things that `--size` counts, in words.
    stages : names of the vectors that it releases one after another; empty for a single one.
    fits_rows : whether each row is fitted, so that rows cost time.
    points_are_rows : whether weighted rows are the method's points, so that `--rows` is refused.
    seconds : seconds for a row and a coordinate when rows are fitted, roughly; 0 if rows are quick.
    replicates : number of simulated releases that take seconds, the default of `dp-query`; None if a
        release cannot be simulated.
    audit : `module:function` that finds the worst neighbouring tables for `dp-audit` and scores
        releases of them; empty if it audits the noisy vectors alone.
    package : module of an extra that the method needs beside OpenDP.
    """

    implementation: str
    help: str
    basis: str
    options: tuple[str, ...]
    noises: tuple[NoiseName, ...] = ("gaussian",)
    weights: tuple[str, ...] = ("uniform",)
    auto: int = 0
    size: int = 0
    sizes: str = ""
    stages: tuple[str, ...] = ()
    fits_rows: bool = False
    points_are_rows: bool = False
    seconds: float = 0.0
    replicates: int | None = None
    audit: str = ""
    package: str = ""

    @property
    def secret_rows(self) -> bool:
        """Whether it can protect units that keep the number of rows secret."""
        return "neighbours" in self.options

    def delta(self, noise: str, delta: float) -> float:
        """Delta of its privacy guarantee under a budget with this delta: (epsilon, 0) for a choice and
        for Laplace noise, (epsilon, delta) for Gaussian noise.
        """
        pure = not self.noises or (noise == "laplace" and noise in self.noises)
        return 0.0 if pure else delta


METHODS: dict[str, DPMethod] = {
    "copula": DPMethod(
        implementation="thesis_cli.privacy.release.copula:METHOD",
        help="columns, pairs and triples of them (copula)",
        basis="kernels of columns and of pairs of columns",
        options=(*BUDGET, *UNITS, "households", "household_schema", "favour", "rows"),
        auto=1,
        stages=("columns", "pairs"),
        replicates=30,
        audit="thesis_cli.privacy.audit.scores:staged_subject",
    ),
    "features": DPMethod(
        implementation="thesis_cli.privacy.release.features:METHOD",
        help="whole rows (features)",
        basis="random features",
        options=(*BUDGET, *UNITS, "noise", "size", "rows", "weights", "time_limit"),
        noises=("gaussian", "laplace"),
        weights=("uniform", "simplex"),
        auto=2,
        size=1000,
        sizes="features",
        fits_rows=True,
        seconds=2e-5,
        replicates=0,
        audit="thesis_cli.privacy.audit.scores:vector_subject",
    ),
    "marginals": DPMethod(
        implementation="thesis_cli.privacy.release.marginals:METHOD",
        help="marginals that OpenDP chooses (marginals)",
        basis="counts of columns and of pairs of columns",
        options=(*BUDGET, "algorithm", "rows"),
        auto=4,
        package="mbi",
    ),
    "subspace": DPMethod(
        implementation="thesis_cli.privacy.release.subspace:METHOD",
        help="the span of points (subspace)",
        basis="points drawn uniformly over the schema",
        options=(
            *(*BUDGET, *UNITS, "noise", "size", "rows", "weights"),
            *("weight_bound", "public", "confirm_public"),
        ),
        noises=("gaussian", "laplace"),
        weights=("uniform", "simplex", "l1", "raw"),
        auto=3,
        size=1000,
        sizes="points drawn from the schema (subspace)",
        fits_rows=True,
        points_are_rows=True,
        audit="thesis_cli.privacy.audit.scores:vector_subject",
    ),
    "exponential": DPMethod(
        implementation="thesis_cli.privacy.release.exponential:METHOD",
        help="a small table (exponential)",
        basis="all tables of so many rows",
        options=("size",),
        noises=(),
        size=3,
        sizes="rows (exponential)",
        fits_rows=True,
        audit="thesis_cli.privacy.audit.scores:choice_subject",
    ),
}

AUTO = tuple(sorted((name for name, row in METHODS.items() if row.auto), key=lambda name: METHODS[name].auto))
"""Methods that `auto` chooses from; the first that heeds all options is taken."""
SCORED = tuple(name for name, row in METHODS.items() if row.audit)
"""Methods whose releases `dp-audit` tells apart by scores."""

if TYPE_CHECKING:
    MethodChoice = str
    AuditChoice = str
else:
    MethodChoice = Literal[("auto", *METHODS)]
    AuditChoice = Literal[("all", *METHODS)]


def methods_where(condition: Callable[[DPMethod], object]) -> tuple[str, ...]:
    """Names of the methods whose rows meet a condition."""
    return tuple(name for name, row in METHODS.items() if condition(row))


def heeding_methods(option: str) -> tuple[str, ...]:
    """Methods that heed an option of `dp-release`."""
    return methods_where(lambda row: option in row.options)


def listed(words: tuple[str, ...] | list[str], last: str) -> str:
    """`a, b or c`, where `last` is ` or `."""
    return ", ".join(words[:-1]) + last * (len(words) > 1) + words[-1]


def sizes_text() -> str:
    """Default sizes: `1000; 3 for exponential`."""
    names: dict[int, list[str]] = {}
    for name, row in METHODS.items():
        if row.size:
            names.setdefault(row.size, []).append(name)
    (first, _), *rest = names.items()
    return "; ".join([str(first), *(f"{size} for {listed(own, ' and ')}" for size, own in rest)])
