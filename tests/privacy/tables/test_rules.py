import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release.files import read_release
from thesis_cli.privacy.release.record import rows_text
from thesis_cli.privacy.release.release import ReleasePlan, private_record, synthetic
from thesis_cli.privacy.tables.expressions import Formula, read_columns
from thesis_cli.privacy.tables.schema import Boolean, Category, Date, Integer, Real, Schema, drawn, obey

WORK = (Integer("age", 16, 80), Integer("education", 0, 18, missing=True), Integer("experience", 0, 60, missing=True))
AGE = "experience == age - education - 6"
MONEY = (Real("low", 0, 10), Real("high", 1, 7), Real("mid", 0, 9))
STAY = (Date("admitted", "2020-01-01", "2020-03-01"), Date("gone", "2020-01-01", "2020-04-01"), Integer("stay", 0, 99))
SCHEMAS = [
    Schema(WORK, rules=(AGE,)),
    Schema((*WORK, Boolean("adult"), Category("job", ("none", "part", "full"))), rules=(
        AGE, "adult == (age >= 18)", 'job == "none" or adult', 'not (job == "full" and experience < 1)'
    )),
    Schema(MONEY, rules=("low <= high", "mid == (low + high) / 2")),
    Schema(STAY, rules=("stay == gone - admitted", 'gone >= "2020-02-01"')),
    Schema((*STAY[:2], Integer("n", 0, 20, missing=True)), rules=("admitted <= gone", "n < 9 or gone >= admitted + 9")),
    Schema(
        (Real("x", 1, 1000, log=True), Real("y", 0, 1, missing=True), Category("c", ("a", "b"), missing=True)),
        rules=("x * y <= 100", 'c == "a" or y > 0.5', "not missing(c)"),
    ),
]  # fmt: skip


def uniform(schema, count, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return Rows(rng.random((count, schema.reals)), codes)


def all_hold(schema, decoded):
    """Whether every rule holds, or is missing, in every row."""
    columns = read_columns(schema.columns, decoded)
    return all((Formula(rule).truth(columns) != 0).all() for rule in schema.rules)


def numbers(rows):
    return np.hstack([rows.reals, rows.codes])


@settings(max_examples=examples(8))
@given(st.sampled_from(SCHEMAS), st.integers(1, 40), st.integers(0, 2**32))
def test_every_row_obeys(schema, count, seed):
    rows = uniform(schema, count, seed)
    found = obey(schema, rows)
    decoded = schema.decode(found)
    assert list(decoded) == list(schema.names)
    assert all_hold(schema, decoded)
    for column in schema.columns:  # also of those that rules determine, within bounds and of the right kind
        present = np.array([x for x in decoded[column.name].tolist() if x is not None and x == x], object)
        assert (column.read(present) >= 0).all()
        assert column.missing or len(present) == count
        if isinstance(column, Integer | Real):
            assert all(column.low <= x <= column.high for x in present)
        if isinstance(column, Date):
            assert all(column.low <= x <= column.high for x in present)
    again = obey(schema, found)
    np.testing.assert_array_equal(numbers(again), numbers(found))
    np.testing.assert_array_equal(numbers(obey(schema, rows)), numbers(found))
    read_again = schema.decode(schema.encode(decoded))
    assert {name: str(values.tolist()) for name, values in read_again.items()} == {
        name: str(values.tolist()) for name, values in decoded.items()
    }


POSSIBLE = [
    SCHEMAS[0],
    Schema((Real("a", 0, 10), Real("b", 3, 14), Category("c", ("x", "y"))), rules=("a <= b", 'c == "x" or b >= 5')),
    Schema((*STAY[:2], Integer("stay", 0, 99)), rules=("stay == gone - admitted",)),
]


@pytest.mark.parametrize("schema", POSSIBLE)
def test_values_are_exchanged_so_that_marginals_stay(schema):
    rows = uniform(schema, 200)
    found = obey(schema, rows)
    broken = schema.between.broken(schema.between.data(schema.decode(rows))) > 0
    assert 0.03 < broken.mean() < 0.6
    for before, after in zip(numbers(rows).T, numbers(found).T, strict=True):
        at = np.sort(before)
        counts = np.searchsorted(np.sort(after), at, "right") - np.searchsorted(at, at, "right")
        assert abs(counts).max() <= 0.25 * broken.sum()
    kept = ~broken & (numbers(rows) == numbers(found)).all(1)
    assert kept.sum() >= len(rows) - 2 * broken.sum()


def test_rows_that_obey_stay_as_they_are():
    schema = SCHEMAS[1]
    rows = drawn(schema)[:50]
    np.testing.assert_array_equal(numbers(obey(schema, rows)), numbers(rows))
    plain = Schema(WORK)
    assert obey(plain, rows) is rows


def test_a_determined_column_is_neither_read_nor_encoded():
    schema = SCHEMAS[0]
    assert (schema.names, schema.names_read) == (("age", "education", "experience"), ("age", "education"))
    assert (schema.reals, schema.cardinalities) == (2, (2,))
    assert schema.kernel().gamma.tolist() == Schema(WORK[:2]).kernel().gamma.tolist()
    rows = schema.encode({"age": np.array([30, 70, 16]), "education": np.array([10, None, 18], object)})
    found = schema.decode(rows)["experience"].tolist()
    assert found == [14, None, 0]  # private rows may break the rule: 16 - 18 - 6 is clamped


def test_toml_and_older_records():
    schema = SCHEMAS[1]
    assert Schema.parse(schema.to_toml()) == schema
    assert "[constraints]" not in Schema(WORK).to_toml()
    assert Schema.parse(Schema(WORK).to_toml()).rules == ()


@pytest.mark.parametrize("method", ["subspace", "exponential", "copula"])
def test_releases_and_their_files_obey(method, tmp_path):
    small = (Integer("a", 0, 3), Integer("b", 0, 3), Integer("c", -3, 3))
    schema = Schema(small, rules=("a <= b", "c == b - a"))
    if method == "copula":
        schema = Schema((*MONEY, Integer("a", 0, 3), Integer("b", 0, 3)), rules=(*SCHEMAS[2].rules, "a <= b"))
    table = uniform(schema, 50)
    table = schema.encode(schema.decode(table))
    size = 3 if method == "exponential" else 20
    delta = 0 if method == "exponential" else 1e-3
    request = ReleasePlan(schema, Budget(1.0, delta), method, size=size, entropy=3)
    record = private_record([table], 50, request, lambda *_: None)
    release = synthetic(record, 30)
    assert all_hold(schema, release.columns)
    np.testing.assert_array_equal(numbers(synthetic(record, 30).points), numbers(release.points))
    (tmp_path / "r.csv").write_text(rows_text(release, weighted=False))
    (tmp_path / "r.json").write_text(record.to_json())
    with open(tmp_path / "r.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    written = {name: np.array([float(row[name]) for row in cells]) for name in schema.names}
    assert all_hold(schema, written)
    again = read_release(tmp_path / "r.csv")
    for name, values in again.columns.items():
        np.testing.assert_array_equal(values.astype(float), written[name])


BAD = [
    (("a <",), "rule 'a <': it cannot be read"),
    (("a + b",), r"a \+ b is a number; it must be a condition"),
    (("z <= b",), "unknown column 'z'"),
    (("a + 1 == b + 2",), "no column is alone on a side of =="),
    (("a == 2 * b", "b == m - 1", "b == a"), "column 'b' is determined twice"),
    (("a == b + 1", "b == a - 1"), "its column determines itself"),
    (("a == 3",), "column 'a' has a single value"),
    (("a == d",), "a is a number; it must be a date"),
    (("a == t",), "the sides of == differ in kind at 'a'"),
    (("a == m",), "'m' may be missing, and 'a' may not"),
    (("a <= b", "a > b"), "none of 10,000 rows drawn from the schema obeys"),
]


@pytest.mark.parametrize(("rules", "message"), BAD)
def test_bad_rules(rules, message):
    columns = (Integer("a", 0, 9), Integer("b", 0, 9), Boolean("t"), Integer("m", 0, 9, missing=True))
    with pytest.raises(InputError, match=message):
        drawn(Schema((*columns, Date("d", "2020-01-01", "2021-01-01")), rules=rules))


def test_rules_in_toml():
    columns = "[columns.a]\ntype = 'boolean'\n[constraints]\n"
    with pytest.raises(InputError, match="the rules are not a list of texts"):
        Schema.parse(columns + "rules = 'a'")
    with pytest.raises(InputError, match="'rules' is nearest"):
        Schema.parse(columns + "rule = ['a']")
    assert Schema.parse(columns + "rules = ['a']").rules == ("a",)
