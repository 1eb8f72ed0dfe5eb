"""Hard problems turned into optimisation problems: each command of the shell is a function here.

    import thesis_cli as tc
    result = tc.estimate_z("data/models/asia.uai", samples=1000, seed=1)
    print(result)

`docs/python.md` shows what the functions take and return. Importing this package imports none of
them: each is loaded when it is first used.
"""

from __future__ import annotations

import sys
from typing import Any

from thesis_cli.base.errors import InputError as InputError
from thesis_cli.base.errors import WorkFailed as WorkFailed
from thesis_cli.base.version import VERSION

__version__ = VERSION


def __getattr__(name: str) -> Any:
    from thesis_cli.commands.core.command import command_named, python_function

    shell = _functions().get(name)
    if shell is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from thesis_cli.reproduction.commands import OWN

    found = python_function(name, OWN[shell].command(shell) if shell in OWN else command_named(shell))
    globals()[name] = found
    return found


def _functions() -> dict[str, str]:
    """Names of the functions, and of their commands in the shell."""
    from thesis_cli.commands.core.registry import entries
    from thesis_cli.reproduction.commands import OWN

    found = {entry.function: entry.shell for entry in entries().values()}
    return found | {own.function: shell for shell, own in OWN.items() if own.function}


def __dir__() -> list[str]:
    return sorted([*globals(), *_functions()])
