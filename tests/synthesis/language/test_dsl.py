"""Values by hand for every operation, and what holds of all values."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthesis.strategies import values
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import (
    ATTRIBUTES,
    BY_NAME,
    DEEPCODER,
    DEFAULT,
    EXTENDED,
    FUNCTIONS,
    INT,
    LAMBDAS,
    LIST,
    LONGEST,
    OPERATIONS,
    Semantics,
    type_of,
)

FLOOR = Semantics("floor")
XS = (3, -5, 0, 2, -4)
YS = (1, 7, -2)

ORDER = """
HEAD LAST TAKE DROP ACCESS MINIMUM MAXIMUM REVERSE SORT SUM
MAP:(+1) MAP:(-1) MAP:(*2) MAP:(/2) MAP:(*(-1)) MAP:(**2) MAP:(*3) MAP:(/3) MAP:(*4) MAP:(/4)
FILTER:(>0) FILTER:(<0) FILTER:(%2==0) FILTER:(%2==1) COUNT:(>0) COUNT:(<0) COUNT:(%2==0) COUNT:(%2==1)
ZIPWITH:(+) ZIPWITH:(-) ZIPWITH:(*) ZIPWITH:MIN ZIPWITH:MAX SCANL1:(+) SCANL1:(-) SCANL1:(*) SCANL1:MIN SCANL1:MAX
"""

CASES = {
    "HEAD": [(XS, 3), ((), None)],
    "LAST": [(XS, -4), ((), None)],
    "TAKE": [(2, XS, (3, -5)), (0, XS, ()), (9, XS, XS), (-2, XS, (3, -5, 0)), (-9, XS, ()), (1, (), ())],
    "DROP": [(2, XS, (0, 2, -4)), (0, XS, XS), (9, XS, ()), (-2, XS, (2, -4)), (-9, XS, XS), (1, (), ())],
    "ACCESS": [(0, XS, 3), (4, XS, -4), (5, XS, None), (-1, XS, None), (0, (), None)],
    "MINIMUM": [(XS, -5), ((), None)],
    "MAXIMUM": [(XS, 3), ((-7,), -7), ((), None)],
    "REVERSE": [(XS, (-4, 2, 0, -5, 3)), ((), ())],
    "SORT": [(XS, (-5, -4, 0, 2, 3)), ((2, 1, 2), (1, 2, 2)), ((), ())],
    "SUM": [(XS, -4), ((), 0), ((200, 100, -100), 200), ((200, 100), None)],
    "MAP (+1)": [(XS, (4, -4, 1, 3, -3)), ((255,), None), ((), ())],
    "MAP (-1)": [(XS, (2, -6, -1, 1, -5)), ((-256,), None)],
    "MAP (*2)": [(XS, (6, -10, 0, 4, -8)), ((-128, 127), (-256, 254)), ((128,), None)],
    "MAP (/2)": [(XS, (1, -2, 0, 1, -2)), ((-1, 1), (0, 0))],
    "MAP (*(-1))": [(XS, (-3, 5, 0, -2, 4)), ((-256,), None)],
    "MAP (**2)": [(XS, (9, 25, 0, 4, 16)), ((-15,), (225,)), ((16,), None)],
    "MAP (*3)": [(XS, (9, -15, 0, 6, -12)), ((85, -85), (255, -255)), ((-86,), None)],
    "MAP (/3)": [(XS, (1, -1, 0, 0, -1)), ((-2, 255, -256), (0, 85, -85))],
    "MAP (*4)": [(XS, (12, -20, 0, 8, -16)), ((-64,), (-256,)), ((64,), None)],
    "MAP (/4)": [(XS, (0, -1, 0, 0, -1)), ((-3, 7, -7), (0, 1, -1))],
    "FILTER (>0)": [(XS, (3, 2)), ((), ())],
    "FILTER (<0)": [(XS, (-5, -4))],
    "FILTER (%2==0)": [(XS, (0, 2, -4))],
    "FILTER (%2==1)": [(XS, (3, -5)), ((-1, -2), (-1,))],
    "COUNT (>0)": [(XS, 2), ((), 0)],
    "COUNT (<0)": [(XS, 2), ((1, 0, -3), 1)],
    "COUNT (%2==0)": [(XS, 3)],
    "COUNT (%2==1)": [(XS, 2), ((-1, -3, 2), 2)],
    "ZIPWITH (+)": [(XS, YS, (4, 2, -2)), (YS, XS, (4, 2, -2)), ((200,), (56,), None), ((), XS, ())],
    "ZIPWITH (-)": [(XS, YS, (2, -12, 2)), (YS, XS, (-2, 12, -2)), ((-200,), (57,), None)],
    "ZIPWITH (*)": [(XS, YS, (3, -35, 0)), ((16,), (-16,), (-256,)), ((16,), (16,), None)],
    "ZIPWITH MIN": [(XS, YS, (1, -5, -2))],
    "ZIPWITH MAX": [(XS, YS, (3, 7, 0))],
    "SCANL1 (+)": [(XS, (3, -2, -2, 0, -4)), ((), ()), ((200, 100, -100), None)],
    "SCANL1 (-)": [(XS, (3, 8, 8, 6, 10)), ((7,), (7,))],
    "SCANL1 (*)": [(XS, (3, -15, 0, 0, 0)), ((2,) * 7, (2, 4, 8, 16, 32, 64, 128)), ((100,) * 20, None)],
    "SCANL1 MIN": [(XS, (3, -5, -5, -5, -5))],
    "SCANL1 MAX": [((1, -5, 4, 2), (1, 1, 4, 4)), ((), ())],
    "MAP (*10)": [((25, -4), (250, -40)), ((26,), None)],
    "MAP (/10)": [((25, -25, 9, -9, 10, -10), (2, -2, 0, 0, 1, -1))],
    "ZIPWITH (/)": [((7, -7, 7), (2, 2, -2, 5), (3, -3, -3)), ((1, 2), (1, 0), None), ((), (0,), ())],
    "SCANL1 (/)": [((100, 3, -2), (100, 33, -16)), ((5, 0), None), ((0,), (0,))],
    "LENGTH": [(XS, 5), ((), 0)],
    "UNIQUE": [((3, 1, 3, 2, 1), (3, 1, 2)), ((), ())],
    "COUNTS": [((3, 1, 3, 2, 3), (3, 1, 3, 1, 3)), ((), ())],
    "INDEX": [(2, XS, 3), (3, (1, 3, 3), 1), (9, XS, None), (9, (), None)],
    "RANGE": [(3, (1, 2, 3)), (0, ()), (-4, ()), (31, tuple(range(1, 32))), (32, None)],
    "ITEM 1": [(XS, -5), ((1,), None)],
    "ITEM 2": [(XS, 0), ((1, 2), None)],
    "ITEM 3": [(XS, 2), ((), None)],
    "FIRST 1": [(XS, (3,)), ((), ())],
    "FIRST 2": [(XS, (3, -5)), ((1,), (1,))],
    "FIRST 3": [(XS, (3, -5, 0))],
    "SKIP 1": [(XS, (-5, 0, 2, -4)), ((), ())],
    "SKIP 2": [(XS, (0, 2, -4)), ((1,), ())],
    "SKIP 3": [(XS, (2, -4))],
    "KEEP (>)": [(0, XS, (3, 2)), (2, XS, (3,))],
    "KEEP (<)": [(0, XS, (-5, -4)), (9, (), ())],
    "KEEP (==)": [(1, (1, 2, 1), (1, 1)), (7, XS, ())],
    "TALLY (>)": [(-5, XS, 4), (0, (), 0)],
    "TALLY (<)": [(-4, XS, 1)],
    "TALLY (==)": [(1, (1, 2, 1), 2)],
    "WITH (+)": [(2, XS, (5, -3, 2, 4, -2)), (255, (1,), None)],
    "WITH (-)": [(2, XS, (1, -7, -2, 0, -6))],
    "WITH (*)": [(-2, XS, (-6, 10, 0, -4, 8))],
    "WITH MIN": [(0, XS, (0, -5, 0, 0, -4))],
    "WITH MAX": [(0, XS, (3, 0, 0, 2, 0)), (0, (), ())],
    "WITH (/)": [(2, XS, (1, -2, 0, 1, -2)), (0, XS, None), (0, (), ())],
    "CALC (+)": [(3, -5, -2), (255, 1, None)],
    "CALC (-)": [(3, -5, 8), (-256, 1, None)],
    "CALC (*)": [(3, -5, -15), (16, 16, None)],
    "CALC MIN": [(3, -5, -5)],
    "CALC MAX": [(3, -5, 3)],
    "CALC (/)": [(-7, 2, -3), (7, 2, 3), (2, 7, 0), (7, 0, None)],
    "WHERE (>0)": [(XS, (9, 8, 7, 6), (9, -5, 0, 6))],
    "WHERE (<0)": [(XS, (9, 8, 7, 6), (3, 8, 0, 2)), ((), XS, ())],
    "WHERE (%2==0)": [(XS, (9, 8, 7, 6), (3, -5, 7, 6))],
    "WHERE (%2==1)": [(XS, (9, 8, 7, 6), (9, 8, 0, 2))],
}


def apply(name, *arguments, semantics=DEFAULT):
    return semantics.apply(BY_NAME[name], *arguments)


def test_the_language_has_the_parts_that_the_thesis_counts_in_an_order_that_stays():
    assert (DEEPCODER.functions, DEEPCODER.lambdas, len(set(ATTRIBUTES))) == (15, 19, 34)
    assert [operation.name for operation in DEEPCODER.operations] == [name.replace(":", " ") for name in ORDER.split()]
    assert [operation.id for operation in DEEPCODER.operations] == list(range(38))
    assert ATTRIBUTES[:15] == tuple(dict.fromkeys(name.partition(":")[0] for name in ORDER.split()))


def test_signatures():
    found = Counter((operation.inputs, operation.output) for operation in DEEPCODER.operations)
    assert found == {
        ((LIST,), INT): 9,
        ((INT, LIST), INT): 1,
        ((LIST,), LIST): 21,
        ((INT, LIST), LIST): 2,
        ((LIST, LIST), LIST): 5,
    }


def test_the_larger_language_has_all_of_the_tables_and_the_smaller_one_comes_first():
    assert EXTENDED.operations == OPERATIONS
    assert [operation.id for operation in OPERATIONS] == list(range(len(OPERATIONS)))
    assert OPERATIONS[:38] == DEEPCODER.operations
    assert EXTENDED.attributes[:34] == DEEPCODER.attributes
    assert set(EXTENDED.attributes) == {part.name for part in (*FUNCTIONS, *LAMBDAS)}
    assert (DEEPCODER.lengthens, DEEPCODER.needs_list) == (False, True)
    assert (EXTENDED.lengthens, EXTENDED.needs_list) == (True, False)


def test_an_operation_has_the_attributes_of_its_parts():
    for operation in OPERATIONS:
        assert " ".join(EXTENDED.attributes[place] for place in operation.attributes) == operation.name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_values_by_hand(operation):
    for *arguments, expected in CASES[operation.name]:
        assert tuple(map(type_of, arguments)) == operation.inputs
        result = DEFAULT.apply(operation, *arguments)
        assert result == expected, arguments
        assert type(result) is (type(None) if expected is None else tuple if operation.output is LIST else int)


@pytest.mark.parametrize("divisor", [2, 3, 4, 10])
def test_division_of_negative_numbers(divisor):
    xs = tuple(range(-20, 0))
    assert apply(f"MAP (/{divisor})", xs) == tuple(int(x / divisor) for x in xs)
    assert apply(f"MAP (/{divisor})", xs, semantics=FLOOR) == tuple(x // divisor for x in xs)
    assert apply(f"MAP (/{divisor})", (7, 8), semantics=FLOOR) == apply(f"MAP (/{divisor})", (7, 8))


@given(st.sampled_from(OPERATIONS), st.data())
def test_every_value_is_null_or_of_the_type_in_the_range_and_not_too_long(operation, data):
    for semantics in (DEFAULT, FLOOR, Semantics(low=-9, high=30000, longest=6)):
        value = semantics.apply(operation, *(data.draw(values(kind, semantics)) for kind in operation.inputs))
        if value is not None:
            numbers = (value,) if operation.output is INT else value
            assert type_of(value) is operation.output
            assert all(type(x) is int for x in numbers)
            assert len(numbers) <= (LONGEST if operation.function.lengthens else semantics.longest)
            assert all(semantics.low <= x <= semantics.high for x in numbers)


@given(values(LIST), values(LIST), values(INT))
def test_shapes(xs, ys, n):
    for operation in DEEPCODER.operations:
        if operation.name.startswith(("MAP", "SCANL1")):
            assert len(operation.trunc(xs)) == len(xs)
        if operation.name.startswith("SCANL1"):
            assert operation.trunc(xs)[:1] == xs[:1]
        if operation.name.startswith("ZIPWITH"):
            assert len(operation.trunc(xs, ys)) == min(len(xs), len(ys))
    assert apply("TAKE", n, xs) + apply("DROP", n, xs) == xs
    assert len(apply("TAKE", n, xs)) == (min(n, len(xs)) if n >= 0 else max(len(xs) + n, 0))
    assert apply("SORT", apply("SORT", xs)) == apply("SORT", xs)
    assert Counter(apply("SORT", xs)) == Counter(xs)
    assert apply("REVERSE", apply("REVERSE", xs)) == xs


@given(values(LIST))
def test_relations_of_operations(xs):
    for one, other in (("(%2==0)", "(%2==1)"), ("(>0)", "(<0)")):
        kept = apply(f"FILTER {one}", xs), apply(f"FILTER {other}", xs)
        assert apply(f"COUNT {one}", xs) == len(kept[0])
        assert len(kept[0]) + len(kept[1]) + (one == "(>0)") * xs.count(0) == len(xs)
    if xs:
        assert apply("HEAD", apply("SORT", xs)) == apply("MINIMUM", xs) == apply("LAST", apply("SCANL1 MIN", xs))
        assert apply("LAST", apply("SORT", xs)) == apply("MAXIMUM", xs) == apply("LAST", apply("SCANL1 MAX", xs))
        assert apply("ACCESS", 0, xs) == apply("HEAD", xs)
        assert apply("ACCESS", len(xs) - 1, xs) == apply("LAST", xs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"division": "round"}, "unknown division 'round'"),
        ({"low": 5, "high": 4}, "the range is 5 to 4; it needs LOW <= HIGH"),
        ({"low": -32768}, "the range is -32768 to 255"),
        ({"high": 32768}, "the range is -256 to 32768"),
        ({"longest": 0}, "the longest list has 0 numbers"),
    ],
)
def test_bad_semantics(settings, message):
    with pytest.raises(InputError, match=f"^{message}"):
        Semantics(**settings)


def test_bounds_belong_to_the_range():
    semantics = Semantics(low=-3, high=4)
    assert [semantics.holds(x) for x in (-4, -3, 4, 5, (), (-3, 4), (0, 5), (-4, 0))] == [
        *(False, True, True, False),
        *(True, True, False, False),
    ]


def test_the_language_and_its_tasks_need_no_numerical_package():
    code = "import sys, thesis_cli.synthesis.language.task; sys.exit('numpy' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
