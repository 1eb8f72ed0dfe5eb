"""What tests share: folders, small random models, and the command line run in this process."""

from __future__ import annotations

import gc
import itertools
import logging
import shlex
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from matplotlib.layout_engine import ConstrainedLayoutEngine

from tests import tiers
from thesis_cli.base.figures import STYLE
from thesis_cli.cli.app import main
from thesis_cli.commands.core.command import Command, Definition
from thesis_cli.models.factor_graph import Factor, FactorGraph

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "data" / "models"

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell starts jobs in the background so; children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
tiers.register()
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """With `--hypothesis-seed` the seed decides what is drawn, as it does in the profile `long`."""
    if config.getoption("--hypothesis-seed", None) is not None:
        settings.load_profile("seeded")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays to the end: to look for garbage there takes a quarter of
    the time of collecting, and again at each later look.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # few objects are in cycles


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test of training is left out where PyTorch is not installed."""
    if item.get_closest_marker("torch") and not find_spec("torch"):
        pytest.skip("PyTorch is not installed: make install EXTRAS=dev,nn")


@pytest.fixture(scope="session", autouse=True)
def _quick_figures() -> Iterator[None]:
    """Fonts of type 3 take a third of the time of PDFs, and placing axes half of that of figures;
    `test_figures.py` has those that users get.
    """
    with mock.patch.dict(STYLE, {"pdf.fonttype": 3}), mock.patch.object(ConstrainedLayoutEngine, "execute"):
        yield


@pytest.fixture
def uncached() -> Iterator[Callable[..., None]]:
    """Makes cached functions forget what they know, now and after a test that changes what they depend
    on."""
    forgetful: list[Any] = []

    def forget(*functions: Any) -> None:
        forgetful.extend(functions)
        for function in functions:
            function.cache_clear()

    yield forget
    forget(*forgetful)


@st.composite
def factor_graphs(draw: st.DrawFn, most_variables: int = 5, impossible: bool = True) -> FactorGraph:
    """Cardinalities 1 to 4, scopes of 0 to 3 variables in any order, some entries -inf."""
    cardinalities = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most_variables))
    n = len(cardinalities)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        scope = tuple(draw(st.lists(st.integers(0, n - 1), max_size=min(n, 3), unique=True)))
        table = rng.normal(0, draw(st.sampled_from([0.1, 2.0, 30.0])), [cardinalities[i] for i in scope])
        if impossible and table.size > 1:
            flat = table.reshape(-1)
            flat[rng.permutation(table.size)[: draw(st.integers(0, table.size - 1))]] = -np.inf
        factors.append(Factor(scope, table))
    return FactorGraph(cardinalities, factors)


def all_states(graph: FactorGraph) -> np.ndarray:
    """Every configuration, last variable fastest, shape (|X|, n)."""
    return np.array(list(itertools.product(*map(range, graph.cardinalities))))


@pytest.fixture(autouse=True)
def _level_of_messages() -> Iterator[None]:
    """A test that runs a command with --quiet or --verbose does not change what later tests log."""
    logger = logging.getLogger("thesis_cli")
    before = logger.level
    yield
    logger.setLevel(before)


@dataclass
class Result:
    status: int
    out: str
    err: str


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the program in an empty folder, as if in a terminal of 110 columns, with all code
    compiled.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")

    def run(*arguments: object) -> Result:
        status = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        said = [line for line in captured.err.splitlines(keepends=True) if not line.startswith("compiling code")]
        return Result(status, captured.out, "".join(said))

    return run


@pytest.fixture
def understood(cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Assert that a command understands its arguments; nothing is run."""

    class Understood(Exception):
        pass

    def stop(*_: object, **__: object) -> None:
        raise Understood

    monkeypatch.setattr(Command, "execute", stop)
    monkeypatch.setattr(Definition, "execute", stop)

    def check(*arguments: str) -> None:
        with pytest.raises(Understood):
            pytest.fail(f"{shlex.join(arguments)}: {cli(*arguments).err}")

    return check
