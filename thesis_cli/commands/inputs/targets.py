"""Open continuous targets: regressions, objects with bounds, and functions on a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.targets import Regression, Target

    TargetSource = str | Target | Callable[[Floats], Any] | Any
    """A name, `module:object` or `file.py:object`; a `Target`; or a function."""

    RegressionSource = str | Path | pd.DataFrame | Floats | tuple[Any, Any]
    """A path, a DataFrame, a matrix whose last column is the response, or a pair (x, y)."""
else:
    TargetSource = RegressionSource = str


class FunctionBox(NamedTuple):
    """Bounds of the box on which a plain function is a log-density, and on its slope there.

    Attributes
    ----------
    low, high : corners of the box.
    slope : largest absolute derivative along any axis.
    """

    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    slope: float | None


def open_target(source: TargetSource, box: FunctionBox) -> Target:
    """The target of a name, an object or a function.

    Raises
    ------
    InputError : no such object, one that is no target, or a function without a box.
    """
    from thesis_cli.models.target_objects import checked_target, load_object

    def made(found: Any) -> Target:
        return checked_target(_boxed(found, box))

    if not isinstance(source, str):
        return made(source)
    if source.endswith(".py"):
        raise InputError(f"{source} names no object", f"it must be {source}:object", source="--target")
    return load_object(source, made)


def _boxed(found: Any, box: FunctionBox) -> Any:
    """The object itself, or a target made from a function and its box."""
    from thesis_cli.models.function_target import FunctionTarget

    options = ("--low", "--high", "--slope")
    if callable(found) and not isinstance(found, type) and not hasattr(found, "proposal"):
        for option, value in zip(options, box, strict=True):
            if value is None:
                raise InputError(f"a function as target needs {option}", "give --low, --high and --slope")
        assert box.low is not None
        assert box.high is not None
        assert box.slope is not None
        if len(box.low) != len(box.high):
            raise InputError(f"--low has {len(box.low)} numbers, --high {len(box.high)}", "give as many of each")
        return FunctionTarget(found, box.low, box.high, box.slope)
    for option, value in zip(options, box, strict=True):
        if value is not None:
            raise InputError(f"{option} does not go with a target that has a proposal", "it is for a function")
    return found


def at_work(source: TargetSource | None) -> AbstractContextManager[None]:
    """A context for calls of the target's code.

    An error in the code of a target that was loaded by its name is one line that names the place.
    Errors of an object that was passed in Python keep their traceback.
    """
    from thesis_cli.models.target_objects import own_code

    return own_code(source) if isinstance(source, str) else nullcontext()


def open_regression(source: RegressionSource, prior_scale: float, noise_scale: float) -> Regression:
    """The posterior of a regression.

    Raises
    ------
    InputError : a file that cannot be read, columns that are no numbers, or shapes that do not fit.
    """
    from thesis_cli.models.target_files import load_regression
    from thesis_cli.models.targets import Regression

    if isinstance(source, str | Path):
        return load_regression(source, prior_scale=prior_scale, scale=noise_scale)
    x, y, names = _columns(source)
    try:
        return Regression(x, y, prior_scale=prior_scale, scale=noise_scale, names=names)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the data of the regression are no numbers ({error})", "drop or encode the column") from None


def _columns(source: Any) -> tuple[Any, Any, Sequence[str] | None]:
    """Features, response and names of the features."""
    if isinstance(source, tuple | list) and len(source) == 2:
        names = getattr(source[0], "columns", None)
        return *source, None if names is None else [str(name) for name in names]
    if hasattr(source, "columns"):
        response = "y" if "y" in source.columns else source.columns[-1]
        features = source.drop(columns=[response])
        return features.to_numpy(), source[response].to_numpy(), [str(name) for name in features.columns]
    if getattr(source, "ndim", 0) != 2:
        raise InputError(
            f"--regression is a {type(source).__name__}", "give a file, a DataFrame, a matrix or a pair (x, y)"
        )
    return source[:, :-1], source[:, -1], None
