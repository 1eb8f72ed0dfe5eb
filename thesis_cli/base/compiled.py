"""Decorators of compiled functions.

Compilation takes longer than most runs, so kernels compile little. Callers give every array
contiguous, in float64 or int64, so that a kernel is compiled once. Helpers get no literal numbers,
since each literal compiles them once more (`ZERO` is none). Arrays are copied in loops, since
`a[:] = b` compiles the message of an error, in 2 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

_njit: Any = numba.njit  # its stubs lack options

ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
"""0 and 1 as arguments of helpers."""


def kernel(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls; `options` are further ones of `numba.njit`."""
    decorator: Callable[[Function], Function] = _njit(
        cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options
    )
    return decorator


def helper(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that only kernels call; cached if kernels of several files do."""
    decorator: Callable[[Function], Function] = _njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", **options
    )
    return decorator
