"""No shipped experiment is left out here."""

from pathlib import Path

from tests.conftest import ROOT
from thesis_cli.reproduction.experiment import Checkout


def test_some_test_runs_each_experiment():
    """A new experiment needs a test in this folder that holds what its `run` returns against known numbers."""
    written = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert not [name for name in Checkout(ROOT).files() if f'"{name}"' not in written]
