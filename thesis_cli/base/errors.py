"""Errors of input: one line each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Bad input: says where it is, what is wrong and what would be right.

    Parameters
    ----------
    problem : what is wrong.
    remedy : what would be right.
    source : file (or other name of the input) that is at fault.
    line : 1-based line in that file.
    """

    def __init__(self, problem: str, remedy: str = "", *, source: str | Path = "", line: int | None = None) -> None:
        self.problem, self.remedy, self.source, self.line = problem, remedy, str(source), line
        place = f"{self.source}:{line}: " if line is not None else f"{self.source}: " if self.source else ""
        super().__init__(place + problem + (f"; {remedy}" if remedy else ""))

    def at(self, source: str | Path) -> InputError:
        """The same complaint about an input that it does not name yet."""
        return self if self.source else type(self)(self.problem, self.remedy, source=source)


class NoConfiguration(InputError):
    """Every configuration has log-potential -inf."""

    def __init__(
        self,
        problem: str = "no configuration is possible (Z = 0)",
        remedy: str = "some configuration must have a finite log-potential",
        *,
        source: str | Path = "",
    ) -> None:
        super().__init__(problem, remedy, source=source)


class ModelTooLarge(InputError):
    """The model is well formed, but beyond what the method asked for can take.

    Parameters
    ----------
    memory, seconds, width : what the best plan of an exact algorithm would take: bytes, predicted time and
        variables of its largest table; 0 and nan if that is not known.
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        source: str | Path = "",
        memory: int = 0,
        seconds: float = math.nan,
        width: int = 0,
    ) -> None:
        super().__init__(problem, remedy, source=source)
        self.memory, self.seconds, self.width = memory, seconds, width

    @classmethod
    def best(cls, refusals: Sequence[ModelTooLarge]) -> ModelTooLarge:
        """The refusal of several whose plan needs least memory, or the last if none has a plan."""
        return min((each for each in refusals if each.memory), key=lambda each: each.memory, default=refusals[-1])


class WorkFailed(RuntimeError):
    """The input was good, the work was not: one line that says what failed."""


class OutOfTime(WorkFailed):
    """The work did not end by its deadline, and has no answer yet."""


class UnsuitableModel(InputError):
    """A model of a form that a solver does not take; the remedy names one that could."""


@contextmanager
def about(source: str | Path) -> Iterator[None]:
    """Add the name of an input to errors that lack one."""
    try:
        yield
    except InputError as error:
        raise error.at(source) from error


def describe(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror.lower()
    return str(error)
