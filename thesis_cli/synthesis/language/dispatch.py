"""Compiled functions that choose by the id of an operation, written from the table of the language.

Code that is compiled cannot look functions up in a table. So the chain of comparisons is written
out, one branch for each kernel, and compiled as if it stood in the module that asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
