import math
import subprocess
import sys
from typing import get_args

import pytest

from thesis_cli.perturbation.tricks.trick_rows import TRICKS, TrickChoice, UnscaledTrickName, make_trick, tricks_with


class Scales:
    def log_scale(self):
        return 3.0

    def log_z(self):
        return 4.0


@pytest.mark.parametrize("name", TRICKS)
def test_each_row_makes_the_trick_of_its_name(name):
    assert make_trick(name, scales=Scales()).name == name


def test_scales_and_parameters_are_heeded():
    assert make_trick("weibull").label == "weibull(0.5)"
    assert make_trick("frechet", -0.4).label == "frechet(-0.4)"
    assert make_trick("tail", 0.25).label == "tail(0.25)"
    assert make_trick("tail", scales=Scales()).label == f"tail({1.5936242600400403 * math.exp(-4):.4g})"
    assert make_trick("pareto", scales=Scales()).label == f"pareto({0.1 * math.exp(3):.4g})"


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("weibull", [1e-6, 10], [0, -0.1, 10.1, math.nan]),
        ("frechet", [-0.99, -1e-6], [-1, 0, 0.1]),
        ("tail", [1e-300, 1e300], [0, -1, math.inf, math.nan]),
    ],
)
def test_the_range_of_a_parameter(name, inside, outside):
    parameter = TRICKS[name].parameter
    assert all(map(parameter.allows, inside))
    assert not any(map(parameter.allows, outside))
    assert parameter.range_text


def test_choices_are_made_from_the_rows_without_numpy():
    assert get_args(TrickChoice) == (*TRICKS, "all")
    assert get_args(UnscaledTrickName) == tuple(name for name, row in TRICKS.items() if not row.scaled)
    code = "import sys, thesis_cli.perturbation.tricks.trick_rows; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tricks_are_found_by_their_parameter():
    found = {name: tricks_with(name) for name in ("alpha", "threshold")}
    assert {trick: name for name, tricks in found.items() for trick in tricks} == {
        trick: row.parameter.name for trick, row in TRICKS.items() if row.parameter
    }
    assert found["alpha"]["weibull"].default == 0.5
