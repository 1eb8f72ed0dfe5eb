"""The cooling schedules as Vembu et al. print them."""

import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.studies.structured.products import listed_schedule, printed_schedule


def test_the_printed_formula_passes_1_and_turns_back():
    found = printed_schedule(3, 2.1)
    assert found.betas[8] == pytest.approx(8 / 6.3)
    assert found.steps.min() == pytest.approx(1 - 8 / 6.3)


def test_the_schedule_as_written_out_ends_in_a_step_that_is_too_long():
    found = listed_schedule(3, 2.9)
    np.testing.assert_allclose(found.betas[:-1], np.arange(7) / 8.7)
    assert found.steps[-1] * 2.9 == pytest.approx(0.9)  # where 1/3 is stated


def test_both_are_right_where_the_bound_is_an_integer():
    for make in (printed_schedule, listed_schedule):
        np.testing.assert_allclose(make(3, 2.0).betas, np.arange(7) / 6)


def test_bad_input():
    for make in (printed_schedule, listed_schedule):
        for p, radius in ((0, 1), (3, math.nan), (3, -1)):
            with pytest.raises(InputError):
                make(p, radius)
