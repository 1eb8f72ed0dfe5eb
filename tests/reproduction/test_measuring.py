from math import log10

import pandas as pd
import pytest

from thesis_cli.reproduction.measuring import labelled, measure, measured, pooled_by, printed, select


def test_a_measurement_has_a_number_and_its_standard_error_or_nothing():
    measure = measured(lambda frame, factor: None if frame is None else (factor * frame, 0.5), 3)
    assert (measure(2).value, measure(2).standard_error) == (6, 0.5)
    assert measure(None) is None
    assert measured(lambda frame: (frame, 0.5, 0.25))(2).sources == 0.25


def test_a_printed_time_is_rounded_by_half_of_its_last_digit():
    claim = printed("c", "s", "t", 0.04, 0.001, lambda frame: None, "40 ms", finding="why")
    assert 10**claim.published == pytest.approx(0.04)
    assert 10 ** (claim.published + claim.rounding) == pytest.approx(0.0405)
    assert (claim.relation, claim.kind, claim.distinguishes) == ("=", "published", pytest.approx(log10(2)))
    assert (claim.printed, claim.finding) == ("40 ms", "why")


def test_a_decorated_function_of_a_result_becomes_one_that_gives_measures():
    @measure
    def scaled(frame, factor, error=0.5):
        return factor * frame, error

    found = scaled(3, error=0.25)(2)
    assert (found.value, found.standard_error) == (6, 0.25)


def test_numbers_of_a_group_are_pooled_as_independent():
    frame = pd.DataFrame({"kind": ["a", "b", "a"], "value": [1.0, 5.0, 3.0], "standard_error": [3.0, 1.0, 4.0]})
    found = select().then(pooled_by("kind"))(frame).set_index("kind")
    assert found.value.to_dict() == {"a": 2.0, "b": 5.0}
    assert found.standard_error.to_dict() == {"a": 2.5, "b": 1.0}


def test_the_first_the_last_and_the_least_row_of_a_group():
    rows = {"kind": ["a", "b", "a", "a"], "value": [2.0, 5.0, 1.0, 3.0], "standard_error": 0.0}
    frame, found = pd.DataFrame(rows), select()
    for one, value in ((found.first("kind"), 2.0), (found.last("kind"), 3.0), (found.best("kind"), 1.0)):
        assert one(frame).set_index("kind").value.to_dict() == {"a": value, "b": 5.0}


def test_a_floor_keeps_numbers_without_sampling_error_from_deciding():
    frame = pd.DataFrame({"value": [0.1, 3.0], "standard_error": [0.0, 1.0]})
    with pytest.raises(ValueError, match="positive"):
        select().furthest()(frame)
    assert select().furthest(floor=1e-3)(frame).value == 0.1
    assert select().furthest(floor=0.5)(frame).value == 3.0


def test_rows_begin_with_what_their_task_is():
    found = labelled([(1, 2.0)], ["at", "value"], kind="mixed", size=4)
    assert found.to_dict("records") == [{"kind": "mixed", "size": 4, "at": 1, "value": 2.0}]
    assert list(found) == ["kind", "size", "at", "value"]
