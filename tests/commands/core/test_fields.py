"""What a field takes, from text and from Python, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import (
    Request,
    argument,
    fields_of,
    files_named,
    given,
    heeding,
    option,
    settings_of,
)


@dataclass(frozen=True, kw_only=True)
class Sample(Request):
    model: str = argument("Model.", names="file", objects=True)
    method: Literal["auto", "slow", "fast"] = option("auto", "Method.")
    count: int = option(10, "Count.", least=1, most=100)
    level: float = option(0.5, "Level.", above=0, below=1)
    order: tuple[float, ...] | None = option(None, "Order.", least=0, finite=False, methods=("auto", "slow"))
    size: tuple[int, int] | None = option(None, "Size.")
    steps: int | None = option(None, "Steps.", methods=("auto", "fast"))
    out: Path | None = option(None, "File.")
    exact: bool = option(False, "Exact.")


def make(**values):
    return Sample(**{"model": "m", **values})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", "7", 7),
        ("count", np.int64(7), 7),
        ("level", ".5", 0.5),
        ("level", "5e-1", 0.5),
        ("level", np.float32(0.5), 0.5),
        ("order", "inf", (math.inf,)),
        ("order", [0, "1", 2.5], (0.0, 1.0, 2.5)),
        ("order", np.array([0.0, 1.0]), (0.0, 1.0)),
        ("order", 3, (3.0,)),
        ("order", [], None),
        ("size", (3, "4"), (3, 4)),
        ("out", "a.csv", Path("a.csv")),
        ("exact", True, True),
        ("model", Path("x/y.uai"), "x/y.uai"),
    ],
)
def test_a_value_is_taken_from_text_and_from_python(name, value, expected):
    found = getattr(make(**{name: value}), name)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("count", "0", "--count is 0; it must be a whole number from 1 to 100"),
        ("count", "1_0", "--count is 1_0;"),
        ("count", "9" * 400, "--count is 999"),
        ("count", 10**400, "--count is 1000"),
        ("count", "1e1", "--count is 1e1;"),
        ("count", 2.5, "--count is 2.5;"),
        ("count", True, "--count is True;"),
        ("count", "", "--count is empty;"),
        ("count", "9" * 5000, "--count is 999"),
        ("level", "1", "--level is 1; it must be a number between 0 and 1"),
        ("level", "nan", "--level is nan;"),
        ("level", "half", "--level is half;"),
        ("level", None, "--level is None;"),
        ("order", [1, -1], "--order is -1; it must be a number, 0 or more"),
        ("size", [1, 2, 3], "--size has 3 values; it takes 2"),
        ("method", "magic", "--method is magic; it must be one of auto, slow, fast"),
        ("exact", "yes", "--exact is yes;"),
        ("out", "", "--out is empty;"),
    ],
)
def test_another_value_is_refused_by_name(name, value, message):
    with pytest.raises(InputError) as refusal:
        make(**{name: value})
    assert str(refusal.value).startswith(message)


def test_objects_pass_where_a_field_takes_them():
    vector = np.zeros(3)
    assert make(model=vector).model is vector
    assert settings_of(make(model=vector))["model"] == "<ndarray>"


def test_a_method_refuses_what_it_does_not_heed():
    with pytest.raises(InputError, match=r"--order does not go with --method fast; it is for auto, slow"):
        make(method="fast", order=[1])
    assert make(method="slow", order=[1]).order == (1.0,)


def test_auto_chooses_among_the_methods_that_heed_what_is_given():
    assert heeding(make(), ["slow", "fast"]) == ["slow", "fast"]
    assert heeding(make(order=[1]), ["slow", "fast"]) == ["slow"]
    assert heeding(make(steps=1), ["slow", "fast"]) == ["fast"]
    with pytest.raises(InputError, match="--steps does not go with --order"):
        heeding(make(order=[1], steps=1), ["slow", "fast"])


def test_given_files_and_settings():
    request = make(count=3, out="a.csv")
    assert given(request) == {"model": "m", "count": 3, "out": Path("a.csv")}
    assert files_named(request) == ["m"]
    assert settings_of(request, method="slow", seed=1)["method"] == "slow"
    assert settings_of(request, method="slow", seed=1)["seed"] == 1


def test_a_type_that_no_command_line_can_write_is_a_mistake_of_the_programmer():
    @dataclass(frozen=True, kw_only=True)
    class Wrong(Request):
        table: dict | None = option(None, "Table.")

    with pytest.raises(TypeError, match="no form on the command line"):
        fields_of(Wrong)


def test_a_range_without_its_lower_end():
    @dataclass(frozen=True, kw_only=True)
    class Weighted(Request):
        weight: float = option(1.0, "Weight.", above=0, most=10)

    with pytest.raises(InputError, match=r"it must be a number above 0 and up to 10$"):
        Weighted(weight=0.0)
