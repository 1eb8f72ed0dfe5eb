"""Hard problems turned into optimisation problems: each command of the shell is a function here.

    import thesis_cli as tc
    result = tc.estimate_z("data/models/asia.uai", samples=1000, seed=1)
    print(result)

`docs/python.md` shows what the functions take and return. Importing this package imports none of
them: each is loaded when it is first used.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    from thesis_cli.commands.core.command import python_function
    from thesis_cli.commands.core.registry import command_named, entries

    for entry in entries().values():
        if entry.function == name:
            found = python_function(name, command_named(entry.shell))
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from thesis_cli.commands.core.registry import entries

    return sorted([*globals(), *(entry.function for entry in entries().values())])
