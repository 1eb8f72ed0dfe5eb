"""Units of estimates and of exact answers."""

from __future__ import annotations

import math

import pytest

from thesis_cli.base.errors import WorkFailed
from thesis_cli.commands.ln_z.estimates import ExactAnswer, in_unit, log_z_of, unknown
from thesis_cli.perturbation.estimate import fixed_estimate


@pytest.mark.parametrize("log_z", [3.0, -2.5, 1e4, -1e4])
@pytest.mark.parametrize("quantity", ["lnZ", "log10Z", "Z"])
def test_an_exact_answer_keeps_its_ln_z(log_z, quantity):
    found = ExactAnswer(log_z, "elimination").estimate(quantity)
    assert log_z_of(found) == pytest.approx(log_z, abs=1e-9)
    assert (found.kind, found.standard_error, found.map_calls) == ("exact", 0, 0)


def test_the_error_of_quadrature_is_that_of_the_quantity():
    answer = ExactAnswer(2.0, "quadrature", 1e-3, "error 1.0e-03 of Z")
    assert answer.estimate("lnZ").standard_error == pytest.approx(1e-3)
    assert answer.estimate("Z").standard_error == pytest.approx(1e-3 * math.exp(2))
    decimal = answer.estimate("log10Z")
    assert decimal.standard_error == pytest.approx(1e-3 / math.log(10))
    assert decimal.high - decimal.low == pytest.approx(2e-3 / math.log(10))


def test_only_ln_z_has_another_unit():
    other = fixed_estimate(1.0, "exact", "m", "s", "Z")
    assert in_unit(other, "log10Z") is other
    assert in_unit(fixed_estimate(1.0, "exact", "m", "s"), "log10Z").target == "log10 Z"
    with pytest.raises(ValueError, match="1/Z"):
        log_z_of(fixed_estimate(1.0, "exact", "m", "s", "1/Z"))


@pytest.mark.parametrize(("quantity", "target"), [("lnZ", "ln Z"), ("f", "ln Z"), ("Z", "Z"), ("log10Z", "log10 Z")])
def test_what_is_not_known_is_nan_with_a_reason(quantity, target):
    found = unknown(WorkFailed("too hard"), quantity)
    assert math.isnan(found.value)
    assert (found.target, found.kind) == (target, "not known (too hard)")
