"""What stands in the place of a model on the command line: a continuous target, or a matrix of factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    from thesis_cli.models.factor_matrix import FactorMatrix
    from thesis_cli.models.targets import Target

QUANTITIES = ("lnZ", "Z", "f")
"""Words of --target that name what is estimated."""

RaceBound = Literal["normal", "bernstein-serfling"]

DELTA, BOUND = 0.01, "normal"
"""How states race, by default."""

Factors = Annotated[
    Path | None, typer.Option(help="In the place of MODEL: NPY of log-factors, a row for each state; states race.")
]
Delta = Annotated[
    float | None, typer.Option(help="Probability with which a race may go wrong.", show_default=f"{DELTA:g}")
]
Bound = Annotated[RaceBound | None, typer.Option(help="By which a race leaves states out.", show_default=BOUND)]
PriorScale = Annotated[
    float | None,
    typer.Option(help="Standard deviation of each weight of a regression, before the data.", show_default="2"),
]
NoiseScale = Annotated[float | None, typer.Option(help="Scale of the Cauchy noise of a regression.", show_default="1")]
Figure = Annotated[bool, typer.Option("--figure", help="Draw the samples of a continuous target, beside --out.")]


def quantity_and_target(given: Sequence[str]) -> tuple[str, str | None]:
    """What is estimated, and the continuous target, if there is one, of the words of --target."""
    quantities = [word for word in given if word in QUANTITIES]
    targets = [word for word in given if word not in QUANTITIES]
    for words in (quantities, targets):
        if len(words) > 1:
            raise InputError(f"--target {words[0]} and --target {words[1]}", "one of them is wanted")
    return next(iter(quantities), "lnZ"), next(iter(targets), None)


def one_source(model: str | None, target: str | None, factors: Path | None = None) -> str:
    """The one thing whose partition function is wanted.

    Raises
    ------
    InputError : none, or more than one.
    """
    given = [str(source) for source in (model, target, factors) if source is not None]
    if len(given) != 1:
        problem = "nothing to estimate" if not given else f"more than one: {' and '.join(given)}"
        raise InputError(problem, "a MODEL, or what stands in its place, is wanted: see --help")
    return given[0]


def refuse_of_models(model: str | None, options: Mapping[str, object]) -> None:
    """Refuse options that are for a model alone."""
    _refuse("a MODEL", model, options)


def refuse_of_factors(factors: Path | None, delta: float | None, bound: str | None) -> None:
    """Refuse what is for a matrix of factors alone, and a delta that is no probability."""
    _refuse("--factors", factors, {"--delta": delta, "--bound": bound})
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta is {delta:g}", "a probability between 0 and 1 is wanted")


def refuse_of_targets(target: str | None, prior_scale: float | None, noise_scale: float | None, figure: bool) -> None:
    """Refuse what is for a continuous target alone, and scales that are none."""
    given = {"--prior-scale": prior_scale, "--noise-scale": noise_scale, "--figure": figure}
    _refuse("a continuous --target", target, given)
    for name, scale in (("--prior-scale", prior_scale), ("--noise-scale", noise_scale)):
        if scale is not None and not 0 < scale < math.inf:
            raise InputError(f"{name} is {scale:g}", "a number above 0 is wanted")


def _refuse(what: str, given: object, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if given is None and value is not None and value is not False:
            raise InputError(f"{name} without {what}", f"it is for {what}")


def is_object(name: str) -> bool:
    """Whether a continuous target is a Python object by its name, not a file of data."""
    return name != "-" and not Path(name).exists() and ":" in name


def load_target(name: str, prior_scale: float | None, noise_scale: float | None) -> Target:
    """A regression from a CSV file, or an object of the user's own, `module:object`."""
    from thesis_cli.models.target_files import load_regression
    from thesis_cli.models.target_objects import NAME, load_object

    if is_object(name):
        if prior_scale is not None or noise_scale is not None:
            raise InputError("--prior-scale and --noise-scale do not go with an object", "they are for a regression")
        return load_object(name)
    if name.endswith(".py"):
        raise InputError("is Python, and no object in it is named", NAME, source=name)
    given = {"prior_scale": prior_scale, "scale": noise_scale}
    return load_regression(name, **{key: scale for key, scale in given.items() if scale is not None})


def load_factors(path: Path) -> FactorMatrix:
    """A matrix of log-factors from an NPY file, refused where adding 1 to a sum is lost."""
    import numpy as np

    from thesis_cli.models.factor_matrix import load_factor_matrix
    from thesis_cli.models.target_objects import LARGEST

    matrix = load_factor_matrix(path)
    for what, sizes in (("sum to", np.abs(matrix.totals)), ("range over", matrix.widths)):
        if sizes.max() >= LARGEST:
            problem = f"the log-factors of state {sizes.argmax()} {what} {sizes.max():.3g} in absolute value"
            remedy = f"less than {LARGEST:g}, where adding 1 still counts, is wanted"
            raise InputError(problem, remedy, source=path)
    return matrix
