"""Hard problems turned into optimisation problems: each command of the shell is a function here.

    import thesis_cli as tc
    result = tc.estimate_z("data/models/asia.uai", samples=1000, seed=1)
    print(result)

`docs/python.md` shows what the functions take and return. Importing this package imports none of
them: each is loaded when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from thesis_cli.base import VERSION
from thesis_cli.base.errors import InputError as InputError
from thesis_cli.base.errors import WorkFailed as WorkFailed

__version__ = VERSION


def __getattr__(name: str) -> Any:
    from thesis_cli.commands.core.command import CLASSES, entries

    if name in CLASSES:
        return getattr(import_module(CLASSES[name]), name)
    from thesis_cli.commands.core.command import Definition, command_named, python_function

    named = (entry.shell for entry in entries().values() if name in (entry.function, entry.shell))  # tc.map, too
    shell = next(named, "")
    if shell:
        command: Definition = command_named(shell)
    elif shell := _own_functions().get(name, ""):
        from thesis_cli.reproduction.commands import OWN

        command = OWN[shell].command(shell)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    globals()[name] = found = python_function(name, command)
    return found


def _own_functions() -> dict[str, str]:
    """Functions on experiments and sweeps, with the names of their commands in the shell."""
    from thesis_cli.reproduction.commands import OWN

    return {own.function: shell for shell, own in OWN.items() if own.function}


def __dir__() -> list[str]:
    from thesis_cli.commands.core.command import CLASSES, entries

    return sorted([*globals(), *CLASSES, *(entry.function for entry in entries().values()), *_own_functions()])
