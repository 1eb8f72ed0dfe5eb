"""Modules by name, and Python files of the user, imported as they are now."""

from __future__ import annotations

import importlib
import importlib.util
import os
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any


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
