from math import log10

import pytest

from thesis_cli.reproduction.measuring import measured, printed


def test_a_measurement_has_a_number_and_its_standard_error_or_nothing():
    measure = measured(lambda frame, factor: None if frame is None else (factor * frame, 0.5), 3)
    assert (measure(2).value, measure(2).standard_error) == (6, 0.5)
    assert measure(None) is None


def test_a_printed_time_is_rounded_by_half_of_its_last_digit():
    claim = printed("c", "s", "t", 0.04, 0.001, lambda frame: None)
    assert 10**claim.published == pytest.approx(0.04)
    assert 10 ** (claim.published + claim.rounding) == pytest.approx(0.0405)
    assert (claim.relation, claim.kind, claim.distinguishes) == ("=", "published", pytest.approx(log10(2)))
