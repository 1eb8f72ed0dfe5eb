"""What counts as other code, and what does not."""

import pytest

from thesis_cli.reproduction import fingerprint as module
from thesis_cli.reproduction.fingerprint import fingerprint

BASE = '''
"""Docstring."""
import numpy as np
from thesis_cli.perturbation import tricks

SIZE = 3
COLOUR = "red"

def helper(x):
    """Helps."""
    return x + SIZE

def run(seed, target):
    return helper(tricks.gumbel())

def plot(frame):
    return COLOUR

EXPERIMENT = dict(claims=[target for target in (1, 2)])
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""Docstring."""', '"""Other."""', True),
        ('    """Helps."""\n', "    # a comment\n", True),
        ("return COLOUR", "return 'blue'", True),
        ("(1, 2)", "(1, 2, 3)", True),
        ("SIZE = 3", "SIZE = 4", False),
        ("x + SIZE", "x - SIZE", False),
        ("tricks.gumbel()", "tricks.pareto()", False),
    ],
)
def test_what_counts(tmp_path, old, new, same):
    path = tmp_path / "e.py"
    path.write_text(BASE)
    before = fingerprint(path)
    assert old in BASE
    path.write_text(BASE.replace(old, new))
    assert (fingerprint(path) == before) is same


def test_a_changed_helper_at_any_depth_counts(tmp_path, monkeypatch):
    """estimators.py is imported by nothing in the file itself, but by what it imports."""
    package = tmp_path / "thesis_cli"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep" / "__init__.py").write_text("")
    (package / "one.py").write_text("def f():\n    from thesis_cli.deep import two\n    return two.g()\n")
    (package / "deep" / "two.py").write_text("def g():\n    return 1\n")
    monkeypatch.setattr(module, "PACKAGE", package)
    path = tmp_path / "e.py"
    path.write_text("from thesis_cli.one import f\ndef run(seed):\n    return f()\n")
    before = fingerprint(path)
    (package / "deep" / "two.py").write_text("def g():\n    return 2\n")
    module._module.cache_clear()
    assert fingerprint(path) != before
