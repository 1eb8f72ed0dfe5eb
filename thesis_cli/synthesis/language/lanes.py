"""What compiled operations are made of: access to values in lanes (see `packing`), and the choice of a function
by the id of an operation.

Code that is compiled cannot look functions up in a table. So the chain of comparisons is written
out, one branch for each kernel, and compiled as if it stood in the module that asks for it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from thesis_cli.base.compiled import helper
from thesis_cli.synthesis.language.packing import NULL, WIDTH

inlined: Any = partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@inlined
def examples_of(pool):
    """Number M of examples."""
    return pool.shape[1] // (WIDTH + 1)


@inlined
def start(m):
    """First column of an example; unsigned, or the compiler fears that it counts from the end."""
    return np.uint64(m * WIDTH)


@inlined
def length_of(pool, x, m):
    return np.uint64(pool[x, start(examples_of(pool)) + np.uint64(m)])


@inlined
def end(pool, x, m):
    """The column after the last of a list."""
    return start(m) + length_of(pool, x, m)


@inlined
def set_length(pool, out, m, n):
    pool[out, start(examples_of(pool)) + np.uint64(m)] = np.int16(n)


@inlined
def copy_lengths(pool, x, out, first, last):
    base = start(examples_of(pool))
    for i in range(base + np.uint64(first), base + np.uint64(last)):
        pool[out, i] = pool[x, i]


@inlined
def clear(pool, out, first, last):
    for i in range(start(first), start(last)):
        pool[out, i] = NULL


@inlined
def give(pool, out, m, number, low, high):
    """Write a number; whether it is in range."""
    clear(pool, out, m, m + 1)
    pool[out, start(m)] = number
    set_length(pool, out, m, 1)
    return low <= number <= high


@inlined
def clamp(x):
    return np.int16(min(max(x, np.int32(-(2**15))), np.int32(2**15 - 1)))


@helper()
def same(pool, x, y, first, last):
    """Whether two values agree on examples `first` to `last` - 1."""
    differs = np.int16(0)
    for i in range(start(first), start(last)):
        differs |= pool[x, i] ^ pool[y, i]
    return differs == 0


def by_operation(name: str, parameters: str, calls: Mapping[int, tuple[Any, ...]], module: dict[str, Any]) -> Any:
    """A function of the id of an operation and of `parameters`, to be compiled.

    Parameters
    ----------
    name : name of the function.
    parameters : parameters after `id`, as text such as `x, y`.
    calls : a compiled function for the id of each operation that it is called with, and further
        compiled functions, which it takes first.
    module : the globals of the module that the function is to belong to; compiled code is cached
        with that module.
    """
    branches: dict[tuple[Any, ...], list[int]] = {}
    for id, call in calls.items():
        branches.setdefault(call, []).append(id)
    names: dict[str, Any] = {"__name__": module["__name__"]}
    lines = [f"def {name}(id, {parameters}):"]
    for number, (call, ids) in enumerate(branches.items()):
        parts = [f"_{number}_{place}" for place in range(len(call))]
        names.update(zip(parts, call, strict=True))
        chosen = f"id == {ids[0]}" if len(ids) == 1 else f"id in {tuple(ids)}"
        if number < len(branches) - 1:
            lines.append(f"    if {chosen}:")
            lines.append("    " * 2 + f"return {parts[0]}({', '.join([*parts[1:], 'id', parameters])})")
        else:  # the only ones left
            lines.append(f"    return {parts[0]}({', '.join([*parts[1:], 'id', parameters])})")
    exec(compile("\n".join(lines), module["__file__"], "exec"), names)
    return names[name]
