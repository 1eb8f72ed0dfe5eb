"""Decorators of compiled functions.

Compilation takes longer than most runs, so kernels compile little. Callers give every array
contiguous, in float64 or int64, so that a kernel is compiled once. Helpers get no literal numbers,
since each literal compiles them once more (`ZERO` is none). Arrays are copied in loops, since
`a[:] = b` compiles the message of an error, in 2 seconds.

numba keeps compiled kernels on the disk, and compiles them again when a source changes that they
depend on (`progress.sources_digest`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from thesis_cli.base import progress as progress  # for its changes to numba

Function = TypeVar("Function", bound=Callable[..., Any])

_interpreting = ContextVar("interpreting", default=False)

ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
"""0 and 1 as arguments of helpers."""


def kernel(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls; `options` are further ones of `numba.njit`."""
    return _decorator(cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options)


def helper(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that only kernels call; cached if kernels of several files do."""
    return _decorator(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", **options)


def _decorator(**options: Any) -> Callable[[Function], Function]:
    if _interpreting.get():
        return lambda function: function
    from numba import njit

    decorator: Callable[[Function], Function] = njit(**options)
    return decorator


@cache
def interpreted(module: str) -> ModuleType:
    """A copy of a module of kernels that Python interprets, for inputs so small that compilation
    takes longer than the work. Its helpers must be its own.
    """
    spec = importlib.util.find_spec(module)
    assert spec
    assert spec.loader
    copy = importlib.util.module_from_spec(spec)
    token = _interpreting.set(True)
    try:
        spec.loader.exec_module(copy)
    finally:
        _interpreting.reset(token)
    return copy
