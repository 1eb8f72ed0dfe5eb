"""Imports by name: objects of this package, files of the user as they are now, packages that may not be installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

from thesis_cli.base.errors import InputError


def named(place: str) -> Any:
    """The object that `module:name` stands for; the module is imported now.

    Digests of code follow such a text like an import of that name.
    """
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class _FromSource(SourceFileLoader):
    """Compiles the source each time: byte code of a file that changes twice within a second, and
    not in size, is out of date, and Python does not notice.
    """

    def get_code(self, fullname: str) -> CodeType:
        found: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return found


def spec_of(name: str, path: str | Path) -> ModuleSpec:
    """The specification by which a file is imported as a module of this name."""
    file = os.path.abspath(path)
    spec = importlib.util.spec_from_file_location(name, file, loader=_FromSource(name, file))
    assert spec is not None
    return spec


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
