"""Two tables cell by cell: the same, equal within tolerances, or different."""

import pytest

from thesis_cli.reproduction.comparison import Cell, NoTable, compare, parse, without_noise
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Tolerance

OLD = "name,n,x,y\na,1,0.5,2\nb,2,1e-3,\nc,3,inf,nan\n"


def verdict(old, new, **options):
    """Of two tables of one column."""
    return compare(f"x\n{old}\n", f"x\n{new}\n", **options).verdict


def test_the_same_text_is_identical():
    found = compare(OLD, OLD)
    assert (found.verdict, found.cells, str(found)) == ("identical", 0, "identical")


def test_numbers_within_the_tolerance_are_equal():
    found = compare(OLD, OLD.replace("0.5", "0.50000000049").replace("1e-3", "0.001"))
    assert (found.verdict, found.cells, found.largest) == ("equal", 0, None)
    assert str(found) == "equal to 1e-9"


def test_cells_that_differ_are_counted_and_the_largest_is_named():
    found = compare(OLD, OLD.replace("0.5", "0.50001").replace("1e-3", "2e-3"))
    assert (found.verdict, found.cells) == ("differs", 2)
    assert found.largest == Cell("x", 2, "1e-3", "2e-3")
    assert str(found) == "differs in 2 cells (largest: x, row 2: 1e-3, now 2e-3)"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1", "1.0000000009", "equal"),
        ("1", "1.0000000011", "differs"),
        ("-1", "1", "differs"),
        ("0", "-0", "equal"),
        ("7", "-7", "differs"),
        ("0", "-0.0", "equal"),
        ("0", "1e-300", "differs"),
        ("1e300", "-1e300", "differs"),
        ("1e308", "-1e308", "differs"),
        ("1000000000000", "1000000000001", "differs"),
        ("1000000000000", "1000000000001.0", "equal"),
        ("nan", "NaN", "equal"),
        ("nan", "1.5", "differs"),
        ("nan", '""', "differs"),
        ("1.5", '""', "differs"),
        ("inf", "+inf", "equal"),
        ("inf", "-inf", "differs"),
        ("inf", "1e308", "differs"),
        ("word", "words", "differs"),
        ("word", "1.5", "differs"),
        ("1_0", "10.0", "differs"),  # Python's int takes it
        ("1.0", "2.0", "differs"),
    ],
)
def test_kinds_of_cells(old, new, expected):
    assert verdict(old, new) == expected
    assert verdict(new, old) == expected


def test_a_word_counts_for_more_than_any_number():
    found = compare("w,x\na,1.0\nb,2.0\n", "w,x\na,9.0\nc,2.0\n")
    assert found.largest == Cell("w", 2, "b", "c")


def test_a_column_declares_its_tolerance():
    wide = {"x": Tolerance(relative=0.1)}
    assert verdict("1", "1.05") == "differs"
    assert verdict("1", "1.05", tolerances=wide) == "equal"
    assert verdict("1", "1.2", tolerances=wide) == "differs"
    for old, new in (("10.0", "11.1"), ("11.1", "10.0")):  # a share of the larger number
        assert verdict(old, new, tolerances=wide) == "equal"
    assert verdict("100", "105", tolerances=wide) == "equal"  # integers too
    assert verdict("a", "b", tolerances=wide) == "differs"
    assert verdict("1", "1.05", tolerances={"y": Tolerance(relative=0.1)}) == "differs"
    small = {"x": Tolerance(absolute=1e-12)}
    assert verdict("0", "9e-13", tolerances=small) == "equal"
    assert verdict("0", "2e-12", tolerances=small) == "differs"
    assert verdict("1.5", "1.5000000001", tolerances=small) == "equal"
    tight = {"x": Tolerance(relative=1e-12)}
    assert verdict("1.5", "1.5000000001", tolerances=tight) == "differs"


def test_what_is_equal_only_by_a_wider_tolerance_is_named():
    tolerances = {"x": Tolerance(relative=0.1), "y": Tolerance(absolute=0.5), "n": NOT_REPEATABLE}
    found = compare("n,x,y\n1,1.0,0.1\n", "n,x,y\n2,1.05,0.1000000000001\n", tolerances)
    assert (found.verdict, set(found.wider)) == ("equal", {"n", "x"})
    assert str(found) == "equal to 1e-9, but for n (not repeatable), x (to 0.1)"


@pytest.mark.parametrize(("old", "new"), [("1.5", "99"), ("1.5", '""'), ("a", "7"), ("inf", "0.0")])
def test_a_column_that_no_run_repeats(old, new):
    assert verdict(old, new, tolerances={"x": NOT_REPEATABLE}) == "equal"


def test_rows_have_wider_tolerances():
    """In either table; what the columns allow needs none."""
    old, new = "answer,n\n,100\n3,200\n,300\n4,400\n,1.0\n", "answer,n\n,101\n,201\n3,301\n4,400\n,1.0000000001\n"
    ended = lambda row: None if row["answer"] else NOT_REPEATABLE  # noqa: E731
    found = compare(old, new, rows=ended)
    assert (found.verdict, found.rows) == ("equal", {NOT_REPEATABLE: 3})
    assert str(found) == "equal to 1e-9, but for 3 rows (not repeatable)"
    found = compare(old, new.replace("400", "401"), rows=ended)
    assert (found.verdict, found.largest) == ("differs", Cell("n", 4, "400", "401"))
    chaotic = lambda row: Tolerance(0.1, 0.5) if row["by"] == "guess" else None  # noqa: E731
    found = compare("by,x\nguess,1.5\nmap,1.5\n", "by,x\nguess,2.1\nmap,1.5\n", rows=chaotic)
    assert str(found) == "equal to 1e-9, but for 1 row (to 0.1 or 0.5 absolute)"
    found = compare("by,x\nguess,1.5\nmap,1.5\n", "by,x\nguess,2.5\nmap,1.6\n", rows=chaotic)
    assert (found.verdict, found.cells) == ("differs", 2)


def test_the_tolerance_of_a_column_holds_in_rows_with_a_wider_one():
    found = compare("s,x\n1,1.5\n", "s,x\n9,1.6\n", {"s": NOT_REPEATABLE}, lambda row: Tolerance(0.1))
    assert (found.verdict, str(found)) == ("equal", "equal to 1e-9, but for 1 row (to 0.1)")


@pytest.mark.parametrize(
    ("new", "fragment"),
    [
        (OLD + "d,4,1,1\n", "3 rows, now 4"),
        ("name,n,x,y\n", "3 rows, now 0"),
        (OLD.replace("name,n", "name,m"), "without n and with m"),
        (OLD.replace("name,n", "n,name"), "another order"),
        ("name,n,x\na,1,2\n", "without y"),
    ],
)
def test_other_columns_or_rows_differ(new, fragment):
    found = compare(OLD, new)
    assert (found.verdict, found.cells) == ("differs", 0)
    assert fragment in str(found)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [("", "empty"), ("a,b\n1\n", "line 2 has 1 cell, not 2"), ("a\n1\n\n", "line 3"), ('a\n"1', "end of data")],
)
def test_what_is_no_table(text, fragment):
    for pair in ((text, OLD), (OLD, text)):
        with pytest.raises(NoTable, match=fragment):
            compare(*pair)


def test_noise_about_zero_is_written_as_zero():
    text = 'x,y,z\n1e-16,1e-16,"a, b"\n-4e-13,0.50,\n6e-13,nan,inf\n1e-16,w,-0\n'
    noiseless = without_noise(text, {"x": Tolerance(absolute=1e-12), "z": Tolerance(absolute=1e-12)})
    assert noiseless == 'x,y,z\n0,1e-16,"a, b"\n0,0.50,\n6e-13,nan,inf\n0,w,0\n'
    assert compare(text, noiseless, {"x": Tolerance(absolute=1e-12)}).verdict == "equal"
    assert without_noise(text, {"x": Tolerance(relative=0.5), "y": NOT_REPEATABLE}) is text


def test_a_number_beside_the_bound_of_noise_is_equal_to_zero():
    """Another processor may round it to the other side."""
    tolerances = {"x": Tolerance(absolute=1e-12)}
    above, below = (without_noise(f"x\n{x}\n", tolerances) for x in ("5.000001e-13", "4.999999e-13"))
    assert above != below == "x\n0\n"
    assert compare(above, below, tolerances).verdict == "equal"


def test_parse():
    assert parse('a,b\n"1\n2",\n') == (["a", "b"], [["1\n2", ""]])
