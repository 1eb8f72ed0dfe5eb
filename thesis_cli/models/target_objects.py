"""Continuous targets that are Python objects of a user's own, and what goes wrong in their code."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.models.proposals import MOST_DIMENSIONS, Proposal
from thesis_cli.models.targets import Target, compiled

OBJECT = "an object with proposal, log_ratio and bound is wanted"
NAME = "module:object, or file.py:object, is wanted"

MOST_EVALUATIONS = 2**19
"""Of log_ratio, in one sample or in quadrature."""

LARGEST = 1e15
"""Of a logarithm: not far beyond, adding 1 changes nothing."""


class UsersTarget:
    """A `Target` by an object of a user's own, which cannot change the points it is given, and returns numbers.

    Attributes
    ----------
    proposal : q.
    names : of the coordinates, if the object has them.

    Raises
    ------
    InputError : what `log_ratio` or `bound` returns is not one number, a log-ratio is too large, a bound nan or inf.
    WorkFailed : the limit of `limited` is reached.
    """

    def __init__(self, found: Any) -> None:
        self._found = found
        self.proposal: Proposal = found.proposal
        self.names = getattr(found, "names", None)
        self._left = math.inf

    @contextmanager
    def limited(self) -> Iterator[None]:
        """No more than `MOST_EVALUATIONS` meanwhile."""
        self._left = MOST_EVALUATIONS
        try:
            yield
        finally:
            self._left = math.inf

    def log_ratio(self, x: Floats) -> float:
        if not self._left:
            raise WorkFailed(
                f"quadrature did not converge in {MOST_EVALUATIONS:,} evaluations of log_ratio; is that smooth, and "
                f"the same each time?"
            )
        self._left -= 1
        ratio = _number("log_ratio", self._found.log_ratio(_read_only(x)))
        if LARGEST <= ratio < math.inf:
            raise _too_large(ratio, x)
        return ratio if math.isnan(ratio) or ratio > -LARGEST else -math.inf  # the same, after exp

    def bound(self, low: Floats, high: Floats) -> float:
        level = _number("bound", self._found.bound(_read_only(low), _read_only(high)))
        if not level < math.inf:
            box = f"the box from {low.tolist()} to {high.tolist()}"
            raise InputError(f"the bound of {box} is {level:g}", "an upper bound of log_ratio there is wanted")
        return level


def _too_large(ratio: float, x: Floats) -> InputError:
    return InputError(
        f"log_ratio is {ratio:.3g} at {x.tolist()}, where adding 1 changes nothing",
        "a target less some constant, or -inf where it vanishes, is wanted",
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
        raise InputError(f"{what} returned {shown}", "it is to return one real number")
    return float(value.item())


def load_object(name: str, made: Callable[[Any], Target] | None = None) -> Target:
    """A target by name, `module:object` or `file.py:object`; modules are looked for in the working directory too.

    Raises
    ------
    InputError : no such object, one that cannot be imported, or one that is no `Target`; with the line of the user's
        file where one is at fault.
    """
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise InputError(f"'{name}' names no {'object' if module else 'module'}", NAME, source="--target")
    if module.endswith(".py") and not Path(module).is_file():
        raise InputError("there is no such file", NAME, source=module)
    try:
        with own_code(name):
            found: Any = _import(module)
            for part in attribute.split("."):
                if not hasattr(found, part):
                    raise InputError(f"there is no '{part}'", f"the name of {OBJECT}")
                found = getattr(found, part)
            return (made or checked_target)(found)
    except InputError as error:
        raise error.at(name) from error
    except Exception as error:  # what the object gave is of no use
        raise InputError(_told(error), OBJECT, source=name) from error


@contextmanager
def own_code(name: str) -> Iterator[None]:
    """While an object of a user's own is at work: an error or a warning of its code is one line that tells the place.

    What lies beside its module can be imported meanwhile. What it prints goes to standard error.

    Parameters
    ----------
    name : as of `load_object`.

    Raises
    ------
    InputError : for an exception that went through the user's code.
    """
    module = name.rpartition(":")[0]
    folder = str(Path(module).absolute().parent if module.endswith(".py") else Path.cwd())
    show, warnings.showwarning = warnings.showwarning, _tell_warning
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
        problem, remedy = _told(error), "log_ratio is wanted at any point of the proposal, bound of any box"
        if isinstance(error, InputError):
            problem, remedy = error.problem, error.remedy
            if problem == "a proposal of shapes () and ()":
                remedy = "two vectors are wanted, even in one dimension: Normal([0.], [2.])"
        raise InputError(problem, remedy, source=place[0], line=place[1]) from error
    finally:
        warnings.showwarning = show
        with suppress(ValueError):
            sys.path.remove(folder)


def _import(module: str) -> ModuleType:
    """The module; `InputError` for what keeps it from being imported."""
    try:
        if not module.endswith(".py"):
            return importlib.import_module(module)
        spec = importlib.util.spec_from_file_location(f"thesis_cli_target_{Path(module).stem}", module)
        assert spec is not None
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
        problem, remedy = f"cannot be imported ({_told(error)})", "a module that runs is wanted"
        if isinstance(error, ModuleNotFoundError):
            remedy = "install that module, or do without it"
        elif isinstance(error, SystemExit):
            problem, remedy = f"ends the program ({_told(error)})", "an import is to come to its end"
        file, line = _place(error, module) or ("", None)
        raise InputError(problem, remedy, source=file, line=line) from error


def _told(error: BaseException) -> str:
    """An exception in one line."""
    text = str(error.msg if isinstance(error, SyntaxError) else error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """`warnings.showwarning` in one line."""
    remedy = "; numpy.errstate silences what is meant" if category is RuntimeWarning else ""
    text = f"{_shown(filename)}:{lineno}: {category.__name__}: {message}{remedy}"
    logging.getLogger("thesis_cli").warning("%s", " ".join(text.split()))


def _place(error: BaseException, module: str) -> tuple[str, int] | None:
    """File and line of the user's module, or of its package, that an exception came from, if it did."""
    if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
        return _shown(str(error.filename)), error.lineno or 1
    places = _places(module)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(frame.filename == place or frame.filename.startswith(place + os.sep) for place in places):
            return _shown(frame.filename), frame.lineno or 1
    return None


def _places(module: str) -> list[str]:
    """The file, or the folders of the package, that hold a user's code."""
    if module.endswith(".py"):
        return [os.path.abspath(module)]
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except ValueError:  # of a name that is none
        return []
    return list(spec.submodule_search_locations or [str(spec.origin)]) if spec else []


def _shown(file: str) -> str:
    """A path, from the working folder if it lies there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def checked_target(found: Any) -> Target:
    """The object, after a look at its corners and its middle."""
    if isinstance(found, type):
        raise InputError("it is a class", "an object made from it is wanted")
    for part in ("proposal", "log_ratio", "bound"):
        if not hasattr(found, part):
            raise InputError(f"it has no {part}", OBJECT)
    for part in ("low", "high", "log_density", "quantile"):
        if not hasattr(found.proposal, part):
            problem = "is None" if found.proposal is None else f"has no {part}"
            raise InputError(f"its proposal {problem}", "thesis_cli.models.proposals has Normal and Uniform")
    low, high = np.asarray(found.proposal.low, float), np.asarray(found.proposal.high, float)
    if low.shape != high.shape or low.ndim != 1 or not 1 <= low.size <= MOST_DIMENSIONS:
        raise InputError(
            f"its proposal has corners of shapes {low.shape} and {high.shape}", f"1 to {MOST_DIMENSIONS} dimensions"
        )
    target = found if compiled(found) is not None else UsersTarget(found)
    middle = found.proposal.quantile(np.full(low.size, 0.5), low, high)
    target.bound(low, high)
    ratio = _number("log_ratio", found.log_ratio(_read_only(middle)))
    density = float(found.proposal.log_density(middle))
    if math.isfinite(ratio) and abs(ratio) >= LARGEST:
        raise _too_large(ratio, middle)
    if math.isnan(ratio) or ratio == math.inf:
        raise InputError(f"in the middle its log_ratio is {ratio:g}", "a number, or -inf, is wanted")
    if not math.isfinite(density):
        raise InputError(f"in the middle the log_density of its proposal is {density:g}", "a finite number is wanted")
    return target
