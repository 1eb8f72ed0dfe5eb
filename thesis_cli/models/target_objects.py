"""Continuous targets that a user brings: Python objects, and errors in their code; and plain functions, a
log-density on a box with a bound of its slope.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.modules import spec_of
from thesis_cli.models.proposals import MOST_DIMENSIONS, Proposal, Uniform
from thesis_cli.models.targets import Target, compiled

OBJECT = "give an object with proposal, log_ratio and bound"
NAME = "give module:object or file.py:object"

MOST_EVALUATIONS = 2**19
"""Largest number of evaluations of log_ratio for one sample, or for quadrature."""

LARGEST = 1e15
"""Largest logarithm; a little above it, adding 1 changes nothing."""


class UsersTarget:
    """A `Target` made from an object of a user, which is checked to return numbers.

    Attributes
    ----------
    proposal : density q of the proposal.
    names : names of the coordinates, if the object has them.

    Raises
    ------
    InputError : `log_ratio` or `bound` returns no number, a log-ratio is too large, or a bound is
        NaN or inf.
    WorkFailed : `log_ratio` is called more often than `limited` allows.
    """

    def __init__(self, found: Any) -> None:
        self._found = found
        self.proposal: Proposal = found.proposal
        self.names = getattr(found, "names", None)
        self._left = math.inf

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Allow at most `MOST_EVALUATIONS` inside the block."""
        self._left = MOST_EVALUATIONS
        try:
            yield
        finally:
            self._left = math.inf

    def log_ratio(self, x: Floats) -> float:
        """The object's log-ratio o at a point, shape (D,)."""
        if not self._left:
            raise WorkFailed(
                f"quadrature did not converge in {MOST_EVALUATIONS:,} evaluations of log_ratio; is that smooth, and "
                f"the same each time?"
            )
        self._left -= 1
        ratio = _number("log_ratio", self._found.log_ratio(_read_only(x)))
        if LARGEST <= ratio < math.inf:
            raise _too_large(ratio, x)
        return ratio if math.isnan(ratio) or ratio > -LARGEST else -math.inf  # exp makes 0 of both

    def bound(self, low: Floats, high: Floats) -> float:
        """The object's upper bound of o on a box with corners of shape (D,)."""
        level = _number("bound", self._found.bound(_read_only(low), _read_only(high)))
        if not level < math.inf:
            box = f"the box from {low.tolist()} to {high.tolist()}"
            raise InputError(f"the bound of {box} is {level:g}", "it must be an upper bound of log_ratio there")
        return level


def _too_large(ratio: float, x: Floats) -> InputError:
    return InputError(
        f"log_ratio is {ratio:.3g} at {x.tolist()}, where adding 1 changes nothing",
        "subtract a constant from the target, or return -inf where it vanishes",
    )


def _read_only(x: Floats) -> Floats:
    seen = x.view()
    seen.flags.writeable = False
    return seen


def _number(what: str, returned: object) -> float:
    if type(returned) is float:
        return returned
    value = np.asarray(returned)
    if value.size != 1 or value.dtype.kind not in "biuf":
        shown = f"an array of shape {value.shape}" if value.size != 1 else " ".join(repr(returned).split())[:40]
        raise InputError(f"{what} returned {shown}", "it must return one real number")
    return float(value.item())


def load_object(name: str, made: Callable[[Any], Target] | None = None) -> Target:
    """Import a target by name: `module:object` or `file.py:object`.

    Modules may be installed, or in the working directory.

    Parameters
    ----------
    name : name of the object.
    made : makes a target from the object; by default `checked_target`.

    Raises
    ------
    InputError : there is no such object, it cannot be imported, or it is no `Target`; the message
        gives the line of the user's file that is at fault, if there is one.
    """
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise InputError(f"{name} names no object", "it must be module:object or file.py:object", source="--target")
    if module.endswith(".py") and not Path(module).is_file():
        raise InputError("there is no such file", NAME, source=module)
    try:
        with own_code(name):
            found: Any = _import(module)
            for part in attribute.split("."):
                if not hasattr(found, part):
                    raise InputError(f"there is no '{part}'", OBJECT)
                found = getattr(found, part)
            return (made or checked_target)(found)
    except InputError as error:
        raise error.at(name) from error
    except Exception as error:  # the object returns something unusable
        raise InputError(_line(error), OBJECT, source=name) from error


@contextmanager
def own_code(name: str) -> Iterator[None]:
    """Run code of a user: each error or warning becomes one line that gives its place.

    Inside the block, modules beside the user's module can be imported, and printed text goes to
    standard error.

    Parameters
    ----------
    name : name of the object, as for `load_object`.

    Raises
    ------
    InputError : an exception passed through the user's code.
    """
    module = name.rpartition(":")[0]
    folder = str(Path(module).absolute().parent if module.endswith(".py") else Path.cwd())
    show, warnings.showwarning = warnings.showwarning, _log_warning
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (WorkFailed, KeyboardInterrupt):
        raise
    except BaseException as error:
        place = _place(error, module)
        if place is None or (isinstance(error, InputError) and error.source):
            raise
        problem, remedy = _line(error), "log_ratio must take any point of the proposal, bound any box"
        if isinstance(error, InputError):
            problem, remedy = error.problem, error.remedy
            if problem == "a proposal has shapes () and ()":
                remedy = "give two vectors, even in one dimension: Normal([0.], [2.])"
        raise InputError(problem, remedy, source=place[0], line=place[1]) from error
    finally:
        warnings.showwarning = show
        with suppress(ValueError):
            sys.path.remove(folder)


def _import(module: str) -> ModuleType:
    """Import a module; any failure is an `InputError`."""
    try:
        if not module.endswith(".py"):
            return importlib.import_module(module)
        spec = spec_of(f"thesis_cli_target_{Path(module).stem}", module)
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made  # where dataclasses look for it
        spec.loader.exec_module(made)
        return made
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise InputError(f"there is no module {error.name}, neither here nor installed", NAME) from error
        problem, remedy = f"cannot be imported ({_line(error)})", "the module must run"
        if isinstance(error, ModuleNotFoundError):
            remedy = "install that module"
        elif isinstance(error, SystemExit):
            problem, remedy = f"ends the program ({_line(error)})", "a module must not exit when it is imported"
        file, line = _place(error, module) or ("", None)
        raise InputError(problem, remedy, source=file, line=line) from error


def _line(error: BaseException) -> str:
    """An exception in one line."""
    text = str(error.msg if isinstance(error, SyntaxError) else error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log a warning in one line, in place of `warnings.showwarning`."""
    remedy = "; numpy.errstate silences it" if category is RuntimeWarning else ""
    text = f"{_shown(filename)}:{lineno}: {category.__name__}: {message}{remedy}"
    logging.getLogger("thesis_cli").warning("%s", " ".join(text.split()))


def _place(error: BaseException, module: str) -> tuple[str, int] | None:
    """File and line in the user's module or package that raised an exception, if one did."""
    if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
        return _shown(str(error.filename)), error.lineno or 1
    places = _places(module)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(frame.filename == place or frame.filename.startswith(place + os.sep) for place in places):
            return _shown(frame.filename), frame.lineno or 1
    return None


def _places(module: str) -> list[str]:
    """The file, or the folders of the package, with the user's code."""
    if module.endswith(".py"):
        return [os.path.abspath(module)]
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except ValueError:  # the name is malformed
        return []
    return list(spec.submodule_search_locations or [str(spec.origin)]) if spec else []


def _shown(file: str) -> str:
    """A path, relative to the working folder if it is below that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def checked_target(found: Any) -> Target:
    """Check an object at its corners and in its middle."""
    if isinstance(found, type):
        raise InputError("it is a class", "give an object made from it")
    for part in ("proposal", "log_ratio", "bound"):
        if not hasattr(found, part):
            raise InputError(f"it has no {part}", OBJECT)
    for part in ("low", "high", "log_density", "quantile"):
        if not hasattr(found.proposal, part):
            problem = "is None" if found.proposal is None else f"has no {part}"
            raise InputError(f"its proposal {problem}", "use Normal or Uniform of thesis_cli.models.proposals")
    low, high = np.asarray(found.proposal.low, float), np.asarray(found.proposal.high, float)
    if low.shape != high.shape or low.ndim != 1 or not 1 <= low.size <= MOST_DIMENSIONS:
        raise InputError(
            f"its proposal has corners of shapes {low.shape} and {high.shape}",
            f"it must have 1 to {MOST_DIMENSIONS} dimensions",
        )
    target = found if compiled(found) is not None else UsersTarget(found)
    middle = found.proposal.quantile(np.full(low.size, 0.5), low, high)
    target.bound(low, high)
    ratio = _number("log_ratio", found.log_ratio(_read_only(middle)))
    density = float(found.proposal.log_density(middle))
    if math.isfinite(ratio) and abs(ratio) >= LARGEST:
        raise _too_large(ratio, middle)
    if math.isnan(ratio) or ratio == math.inf:
        raise InputError(f"in the middle its log_ratio is {ratio:g}", "it must be a number, or -inf")
    if not math.isfinite(density):
        raise InputError(f"in the middle the log_density of its proposal is {density:g}", "it must be finite")
    return target


class FunctionTarget:
    """An unnormalised log-density f on a box, with the uniform proposal; Z is the integral of
    exp(f).

    f is finite in the whole box. Its bound on a smaller box is f at the centre plus `slope` times
    the sum of half the sides.

    Parameters
    ----------
    function : f, of a point of shape (D,).
    low, high : corners of the box, D = 1 to 4 numbers each.
    slope : largest absolute derivative of f along any axis, anywhere in the box.

    Raises
    ------
    InputError : corners that make no box, or a slope that is negative or not finite.
    """

    def __init__(self, function: Callable[[Floats], Any], low: Sequence[float], high: Sequence[float], slope: float):
        self.proposal = Uniform(np.array(low, float), np.array(high, float))
        if not 0 <= slope < math.inf:
            raise InputError(f"the slope is {slope:g}", "it must be finite and 0 or more")
        self._function, self._slope = function, slope
        self._log_volume = float(np.log(self.proposal.high - self.proposal.low).sum())

    def log_ratio(self, x: Floats) -> Any:
        """f - ln q at a point of shape (D,)."""
        return self._function(x) + self._log_volume

    def bound(self, low: Floats, high: Floats) -> Any:
        """An upper bound of `log_ratio` in the box from low to high, shape (D,) each."""
        centre = (low + high) / 2
        level = self.log_ratio(centre)
        if np.size(level) == 1 and not np.isfinite(level).all():
            raise InputError(f"the function is {np.ravel(level)[0]:g} at {centre.tolist()}", "it must be finite")
        return level + self._slope * (high - low).sum() / 2
