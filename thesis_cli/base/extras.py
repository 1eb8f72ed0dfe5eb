"""Packages that not every installation has."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from thesis_cli.base.errors import InputError

REQUIREMENTS = {
    "mbi": "'opendp[mbi]'",
    "opendp": "'opendp>=0.16,<0.17'",
    "polars": "'opendp[mbi]'",
    "psycopg": "'psycopg[binary]'",
    "torch": "torch, or make install EXTRAS=dev,nn in a checkout",
    "z3": "z3-solver",
}
"""Names for `pip install` of modules that are called otherwise."""


def how_to_install(module: str) -> str:
    return f"run pip install {REQUIREMENTS.get(module, module)}"


def is_installed(module: str) -> bool:
    """Whether a package is there, without importing it."""
    return find_spec(module) is not None


def extra(module: str) -> Any:
    """The module, imported.

    Raises
    ------
    InputError : its package, or one that it needs, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = (error.name or module).partition(".")[0]
        raise InputError(f"{name} is not installed", how_to_install(name)) from None
