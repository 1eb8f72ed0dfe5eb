import importlib.util
import os
import sys

from thesis_cli.base.modules import spec_of


def test_a_file_that_changes_within_a_second_is_imported_as_it_is(tmp_path, monkeypatch):
    """Byte code is compared by the second and the size of its source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for x in (1, 2):
        path.write_text(f"x = {x}\n")
        os.utime(path, (1e9, 1e9))
        spec = spec_of("mine", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.x == x
