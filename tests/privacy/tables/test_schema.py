import math
import re
import traceback
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import LARGEST_INTEGER, MISSING_TEXTS
from thesis_cli.privacy.tables.columns import KINDS
from thesis_cli.privacy.tables.schema import Boolean, Category, Date, Integer, Real, Schema, template

TEXT = """
[columns.wage]
type = "real"
low = 0
high = 1e4

[columns.age]
type = "integer"
low = 18
high = 99
missing = true

[columns.region]
type = "category"
levels = ["north", "east", "south", 4]

[columns.school]
type = "category"
levels = ["none", "some", "much"]
ordered = true
missing = true

[columns.smokes]
type = "boolean"
missing = true
"""
MIXED = Schema(
    (
        Real("wage", 0, 1e4),
        Integer("age", 18, 99, missing=True),
        Category("region", ("north", "east", "south", "4")),
        Category("school", ("none", "some", "much"), missing=True, ordered=True),
        Boolean("smokes", missing=True),
    )
)


def one(column, values, **options):
    """Rows of one column."""
    return Schema((column,)).encode({column.name: np.array(values, dtype=object)}, **options)


def back(column, values, **options):
    """Values of a column, encoded and decoded."""
    return Schema((column,)).decode(one(column, values, **options))[column.name].tolist()


@st.composite
def columns(draw, name="x"):
    kind = draw(st.sampled_from(sorted(KINDS)))
    missing = draw(st.booleans())
    ordered = kind == "category" and draw(st.booleans())
    options = {"missing": missing}
    if kind in ("real", "integer") or ordered:
        options["gamma"] = draw(st.none() | st.floats(1e-3, 1e3))
    if missing or (kind == "category" and not ordered) or kind == "boolean":
        options["rho"] = draw(st.none() | st.floats(0, 0.99))
    if kind == "real":
        low, high = draw(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True).map(sorted))
        return Real(name, low, high, log=0 < low < 0.9 * high and draw(st.booleans()), **options)
    if kind == "integer":
        bound = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
        low, high = draw(st.lists(bound, min_size=2, max_size=2, unique=True).map(sorted))
        return Integer(name, low, high, **options)
    if kind == "boolean":
        return Boolean(name, **options)
    text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
    levels = draw(st.lists(text, min_size=2, max_size=5, unique=True))
    return Category(name, tuple(levels), ordered=ordered, **options)


@st.composite
def schemas(draw):
    names = draw(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), min_size=1, unique=True))
    fixed = [draw(st.none() | st.floats(1e-3, 1e3)), draw(st.none() | st.floats(0, 0.99))]
    return Schema(tuple(draw(columns(name)) for name in names[:6]), *fixed)


def values_of(column):
    """Values within the bounds."""
    if isinstance(column, Real):
        found = st.floats(column.low, column.high)
    elif isinstance(column, Integer):
        found = st.integers(column.low, column.high)
    else:
        found = st.sampled_from(column.levels) if isinstance(column, Category) else st.booleans()
    return st.lists(st.none() | found if column.missing else found, max_size=6)


@given(st.data())
def test_what_is_within_the_bounds_comes_back(data):
    column = data.draw(columns())
    values = data.draw(values_of(column))
    rows = one(column, values)
    assert len(rows) == len(values)
    found = Schema((column,)).decode(rows)[column.name]
    if not isinstance(column, Real):
        assert found.tolist() == values
    else:
        wanted = np.array(values, np.float64)
        spacing = 4 * np.spacing(max(abs(column.low), abs(column.high)))
        if column.log:  # exp turns absolute errors of logarithms into relative ones
            spacing *= 1 + abs(np.log(column.low)) + abs(np.log(column.high))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=spacing)
        assert np.nanmin(found, initial=column.high) >= column.low
        assert np.nanmax(found, initial=column.low) <= column.high


@given(st.data())
def test_texts_of_a_csv_file_read_like_the_values(data):
    column = data.draw(columns())
    values = data.draw(values_of(column))
    texts = one(column, ["" if v is None else str(v) for v in values])
    plain = one(column, values)
    np.testing.assert_array_equal(texts.reals, plain.reals)
    np.testing.assert_array_equal(texts.codes, plain.codes)


@given(columns(), st.lists(st.floats(), max_size=6))
def test_rows_are_always_of_the_unit_cube_and_the_codes_of_the_schema(column, values):
    schema = Schema((column,))
    if column.kind not in ("real", "integer") or not column.missing:
        return
    rows = schema.encode({"x": np.array(values)}, unknown="missing")
    assert ((rows.reals >= 0) & (rows.reals <= 1)).all()
    assert ((rows.codes >= 0) & (rows.codes < schema.cardinalities)).all()
    gone = [not (math.isfinite(v) and (v.is_integer() or column.kind == "real")) and not math.isinf(v) for v in values]
    np.testing.assert_array_equal(rows.codes[:, 0], gone)
    np.testing.assert_array_equal(rows.reals[gone, 0], 0.5)


@given(schemas())
def test_toml_comes_back(schema):
    assert Schema.parse(schema.to_toml()) == schema


@given(schemas())
def test_the_kernel_fits_the_rows(schema):
    kernel = schema.kernel()
    assert kernel.gamma.shape == (schema.reals,)
    assert kernel.rho.shape == (len(schema.cardinalities),)
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, n, 4) for n in schema.cardinalities], np.int64).reshape(-1, 4).T
    rows = Rows(rng.uniform(size=(4, schema.reals)), codes)
    decoded = schema.decode(rows)
    assert list(decoded) == list(schema.names)
    again = schema.encode(decoded)
    np.testing.assert_array_equal(np.diag(kernel.matrix(again, again)), 1)
    unordered = [c for c in schema.columns if not c.on_line]
    at = [i for i, c in enumerate(c for c in schema.columns if c.cardinality) if not c.on_line]
    assert len(unordered) == len(at)
    np.testing.assert_array_equal(again.codes[:, at], codes[:, at])


def test_toml_has_all_kinds():
    assert Schema.parse(TEXT) == MIXED
    assert MIXED.reals == 3
    assert MIXED.cardinalities == (2, 4, 2, 3)


def test_encoding_by_hand():
    rows = MIXED.encode(
        {
            "wage": np.array([2500.0, -1.0]),
            "age": np.array([np.nan, 200.0]),
            "region": np.array([4.0, "east"], object),
            "school": np.array(["some", None], object),
            "smokes": np.array(["Yes", ""]),
            "ignored": np.array(["secret", "secret"]),
        }
    )
    np.testing.assert_array_equal(rows.reals, [[0.25, 0.5, 0.5], [0, 1, 0.5]])
    np.testing.assert_array_equal(rows.codes, [[1, 3, 0, 1], [0, 1, 1, 2]])
    decoded = MIXED.decode(rows)
    assert {name: values.tolist() for name, values in decoded.items()} == {
        "wage": [2500.0, 0.0],
        "age": [None, 99],
        "region": ["4", "east"],
        "school": ["some", None],
        "smokes": [True, None],
    }


def test_types_of_decoded_columns_are_of_the_schema_and_not_of_the_rows():
    rows = MIXED.encode({"wage": [1.0], "age": [20], "region": ["4"], "school": ["some"], "smokes": [True]})
    for some in (rows, rows[:0]):
        kinds = [values.dtype.kind for values in MIXED.decode(some).values()]
        assert kinds == ["f", "O", "O", "O", "O"]
    whole = Schema((Integer("a", 0, 9), Boolean("b")))
    assert [v.dtype.kind for v in whole.decode(whole.encode({"a": [1], "b": [0]})).values()] == ["i", "b"]


def test_decoding_takes_the_nearest_and_clamps():
    schema = Schema((Integer("a", 10, 14), Category("o", ("a", "b", "c"), ordered=True), Real("r", 1, 3)))
    reals = np.array([[0.13, 0.24, -0.5], [0.12, 0.26, 1.5], [9.0, -9.0, 0.5]])
    decoded = schema.decode(Rows.of_reals(reals))
    assert decoded["a"].tolist() == [11, 10, 14]
    assert decoded["o"].tolist() == ["a", "b", "a"]
    assert decoded["r"].tolist() == [1, 3, 2]


def test_values_beyond_the_bounds_are_clamped_without_a_word(recwarn, capfd, caplog):
    assert back(Real("x", -1, 1), [-5, 1e300, math.inf, -math.inf, "1e999"]) == [-1, 1, 1, -1, 1]
    assert back(Integer("x", -3, 7), [-4, 8, "99999999999999999999", 10**30]) == [-3, 7, 7, 7]
    assert back(Integer("x", -3, 7), [10**400, -(10**400), Decimal("1e999")]) == [7, -3, 7]
    assert not recwarn.list
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_a_log_column_is_even_in_ratios():
    column = Real("x", 1e-2, 1e4, log=True)
    assert one(column, [1e-3, 1e-2, 1, 10, 1e4, math.inf, 0, -5]).reals[:, 0] == pytest.approx(
        [0, 0, 1 / 3, 1 / 2, 1, 1, 0, 0]
    )
    assert back(column, [0.1, 7, 1e4, "3"]) == pytest.approx([0.1, 7, 1e4, 3], rel=1e-12)
    assert back(Real("x", 5e-324, 1e308, log=True), [5e-324, 1, 1e308]) == pytest.approx([5e-324, 1, 1e308])
    assert Schema.parse(Schema((column,)).to_toml()).columns == (column,)


def test_bounds_of_any_size():
    assert back(Real("x", -1e308, 7e307), [-1e308, 7e307, 0]) == pytest.approx([-1e308, 7e307, 0], abs=1e293)
    assert -4.4 + (4.7 - -4.4) > 4.7
    assert back(Real("x", -4.4, 4.7), [4.7]) == [4.7]
    far = LARGEST_INTEGER
    assert back(Integer("x", -far, far), [-far, far, far - 1, 1 - far, 1]) == [-far, far, far - 1, 1 - far, 1]


def test_texts_stay_as_they_are():
    levels = Category("x", ("01", "1", "NA", "None", " 1"))
    assert back(levels, ["01", "1", "NA", "None", " 1", 1, 1.0]) == ["01", "1", "NA", "None", " 1", "1", "1"]
    assert back(Category("x", ("True", "False")), [True, False]) == ["True", "False"]


def test_a_level_called_none_is_not_a_missing_value():
    assert back(Category("x", ("None", "nan"), missing=True), ["None", None, "nan", math.nan, ""]) == [
        "None", None, "nan", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("column", [Real("x", 0, 1), Integer("x", 0, 1), Category("x", ("a", "b")), Boolean("x")])
@pytest.mark.parametrize("gap", [None, math.nan, np.float64("nan"), np.datetime64("NaT"), *MISSING_TEXTS])
def test_missing_values(column, gap):
    good = column.levels[1] if column.kind == "category" else 1
    with pytest.raises(InputError, match=r"^column 'x': row 8 has no value; .*missing = true$"):
        one(column, [good, gap], first_row=7)
    allowed = type(column)(**{**vars(column), "missing": True})
    assert back(allowed, [good, gap])[0] == good
    assert one(allowed, [good, gap]).codes[:, 0].tolist() == [
        allowed.cardinality - 2,
        allowed.cardinality - 1,
    ]


WRONG = [
    (Real("x", 0, 1), "a number", ["secret", "1,5", "0x1", b"1", 1j, [1.0], np.datetime64(1, "D"), np.timedelta64(1)]),
    (Integer("x", 0, 9), "a whole number", ["secret", "1.5", 2.5, "--", b"1"]),
    (Category("x", ("a", "b")), "one of its levels", ["secret", "A", " a", 1, ["a"], b"a"]),
    (Category("x", ("a", "b"), ordered=True), "one of its levels", ["secret", "ab"]),
    (Boolean("x"), "true or false", ["secret", 2, -1, 0.5, "truth"]),
]


@pytest.mark.parametrize(
    ("column", "wanted", "value"), [(column, wanted, value) for column, wanted, values in WRONG for value in values]
)
def test_what_cannot_be_read_is_placed_and_not_named(column, wanted, value):
    good = "a" if column.kind == "category" else 1
    values = np.empty(4, object)
    values[:] = [good, good, value, "another"]
    for unknown in ("error", "missing"):
        with pytest.raises(InputError) as caught:
            Schema((column,)).encode({"x": values}, 100, unknown)
        assert str(caught.value) == f"column 'x': row 102 cannot be read; it must be {wanted}"
        assert "secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None
    allowed = type(column)(**{**vars(column), "missing": True})
    with pytest.raises(InputError, match="row 102 cannot be read"):
        Schema((allowed,)).encode({"x": values}, 100)
    assert Schema((allowed,)).decode(Schema((allowed,)).encode({"x": values}, unknown="missing"))["x"][2] in (
        None,
        pytest.approx(math.nan, nan_ok=True),
    )


@pytest.mark.parametrize("column", [Real("x", 0, 1), Integer("x", 0, 9)])
@pytest.mark.parametrize("values", [np.array(["2020-01-01"], "M8[D]"), np.array([b"1"]), np.array([1j])])
def test_arrays_of_other_types(column, values):
    with pytest.raises(InputError, match="row 1 cannot be read"):
        Schema((column,)).encode({"x": values})


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "i8", "f4", "f8", "O", "U3"])
def test_arrays_of_numbers_of_any_type(kind):
    values = np.array([0, 1]).astype(kind) if kind != "?" else np.array([False, True])
    for column in (Real("x", 0, 1), Integer("x", 0, 1), Category("x", ("0", "1")), Boolean("x")):
        if kind == "?" and column.kind == "category":
            continue
        rows = Schema((column,)).encode({"x": values})
        assert np.hstack([rows.reals, rows.codes]).ravel().tolist() == [0, 1]


def test_columns_that_lack_or_differ():
    with pytest.raises(InputError, match=r"^the table has no column 'wage'; 'Wages' is nearest$"):
        MIXED.encode({"Wages": np.zeros(1)})
    many = {f"c{i}": np.zeros(1) for i in range(99)}
    with pytest.raises(InputError, match=r"^the table has no column 'wage'; its columns are 'c0', .*'c7', \.\.\.$"):
        MIXED.encode(many)
    with pytest.raises(InputError, match="differ in length"):
        Schema((Real("a", 0, 1), Real("b", 0, 1))).encode({"a": np.zeros(3), "b": np.zeros(1)})


def test_the_default_kernel_of_unrelated_rows_is_the_same_for_any_schema():
    rng = np.random.default_rng(5)
    for count in (1, 3, 10):
        reals = tuple(Real(f"r{i}", 0, 1) for i in range(count))
        codes = tuple(Category(f"c{i}", tuple(map(str, range(2 + i)))) for i in range(count))
        schema = Schema(reals + codes)
        kernel = schema.kernel()
        n = 20_000
        a, b = (
            Rows(rng.uniform(size=(n, count)), np.array([rng.integers(0, m, n) for m in schema.cardinalities]).T)
            for _ in range(2)
        )
        minus_log = ((a.reals - b.reals) ** 2) @ kernel.gamma - (a.codes != b.codes) @ np.log(kernel.rho)
        assert abs(minus_log.mean() - 4) < 5 * minus_log.std() / math.sqrt(n)


def test_kernel_settings():
    text = TEXT + "rho = 0.25\n[kernel]\ngamma = 3\nrho = 0.5\n"
    text = text.replace("high = 99", "high = 99\ngamma = 7.5")
    kernel = Schema.parse(text).kernel()
    assert kernel.gamma.tolist() == [3, 7.5, 3]
    assert kernel.rho.tolist() == [0.5, 0.5, 0.5, 0.25]


BAD = [
    ("", "the schema has no columns"),
    ("[columns]", "the schema has no columns"),
    ("columns = 3", "[columns] is not a table"),
    ("kernel = 3\n[columns.a]\ntype = 'boolean'", "[kernel] is not a table"),
    ("[colums.a]\ntype = 'boolean'", "unknown key 'colums'; 'columns' is nearest"),
    ("[columns]\na = 'real'", "column 'a' is not a table"),
    (
        "[columns.a]\nlow = 1",
        "column 'a': it has no type; its type must be real, integer, category, boolean, date",
    ),
    ("[columns.a]\ntype = 'int'", "column 'a': unknown type 'int'; 'integer' is nearest"),
    ("[columns.a]\ntype = 7", "column 'a': unknown type 7; the types are 'real'"),
    ("[columns.a]\ntype = 'boolean'\nlevls = 1", "column 'a': unknown key 'levls'; the keys are 'type', 'missing'"),
    ("[columns.a]\ntype = 'real'\nlow = 1\nhigh = 2\nmising = true", "unknown key 'mising'; 'missing' is nearest"),
    ("[columns.a.b]\ntype = 'real'", "column 'a': it has no type"),
    ("[columns.a]\ntype = 'real'\nhigh = 1", "column 'a': it has no low; write a public one: low = ..."),
    ("[columns.a]\ntype = 'real'\nlow = 1", "column 'a': it has no high"),
    ("[columns.a]\ntype = 'category'", "column 'a': it has no levels; write a public one: levels = ..."),
    ("[columns.a]\ntype = 'real'\nlow = 2\nhigh = 1", "column 'a': low 2 is not below high 1"),
    ("[columns.a]\ntype = 'real'\nlow = 1\nhigh = 1", "low 1 is not below high 1"),
    (
        "[columns.a]\ntype = 'real'\nlow = 0\nhigh = 1\nlog = true",
        "column 'a': log has bounds 0 and 1; low must be above 0",
    ),
    ("[columns.a]\ntype = 'real'\nlow = 1\nhigh = 9\nlog = 1", "column 'a': log is 1; it must be true or false"),
    ("[columns.a]\ntype = 'real'\nlow = 1\nhigh = inf", "column 'a': high is inf; low and high must be finite"),
    ("[columns.a]\ntype = 'real'\nlow = nan\nhigh = 1", "low is nan"),
    ("[columns.a]\ntype = 'real'\nlow = true\nhigh = 1", "low is True"),
    ("[columns.a]\ntype = 'real'\nlow = '0'\nhigh = 1", "low is '0'"),
    ("[columns.a]\ntype = 'real'\nlow = -1.7e308\nhigh = 1.7e308", "low and high are too far apart"),
    ("[columns.a]\ntype = 'integer'\nlow = 0.5\nhigh = 2", "low is 0.5, high is 2; they must be whole"),
    ("[columns.a]\ntype = 'integer'\nlow = 0\nhigh = 10000000000000000", "whole numbers of at most 10**15"),
    ("[columns.a]\ntype = 'category'\nlevels = []", "column 'a': it has no levels; it must have at least two"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x']", "column 'a': it has only one level"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x', 'y', 'x']", "column 'a': the level 'x' is listed twice"),
    ("[columns.a]\ntype = 'category'\nlevels = ['1', 1]", "the level '1' is listed twice"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x', '']", "a level is empty; write missing = true"),
    ("[columns.a]\ntype = 'category'\nlevels = 'xy'", "levels is not a list of texts"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x', true]", "levels is not a list of texts"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x', 'y']\nordered = 1", "ordered is 1; it must be true or false"),
    ("[columns.a]\ntype = 'boolean'\nmissing = 'no'", "column 'a': missing is 'no'; it must be true or false"),
    ("[columns.a]\ntype = 'category'\nlevels = ['x', 'y']\ngamma = 1", "gamma is for numbers; give rho"),
    ("[columns.a]\ntype = 'real'\nlow = 0\nhigh = 1\nrho = 0.5", "rho is for levels; give gamma"),
    ("[columns.a]\ntype = 'real'\nlow = 0\nhigh = 1\ngamma = 0", "column 'a': gamma is 0; it must be a number above 0"),
    ("[columns.a]\ntype = 'boolean'\nrho = 1", "column 'a': rho is 1; it must be at least 0 and below 1"),
    ("[columns.a]\ntype = 'boolean'\n[kernel]\ngamma = inf", "the kernel: gamma is inf"),
    ("[columns.a]\ntype = 'boolean'\n[kernel]\nrho = '1'", "the kernel: rho is '1'"),
    ("[columns.a]\ntype = 'boolean'\n[kernel]\ngama = 1", "[kernel]: unknown key 'gama'; 'gamma' is nearest"),
    ("[columns.'']\ntype = 'boolean'", "a column has no name"),
    ("[columns.a]\ntype = 'boolean'\n[columns.a]\ntype = 'boolean'", ":3: column 'a' is listed twice"),
    ("[columns]\na = {type = 'boolean'}\na = {type = 'boolean'}", ": it is not TOML: Cannot overwrite a value"),
    ("[columns.a\ntype = 'boolean'", ":1: it is not TOML: "),
    ("[kernel]\nrho = " + "9" * 5000, ": it is not TOML: "),
    ("x = " + "[" * 5000, ": it is not TOML: "),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_schemas_are_one_line_errors(text, message, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Schema.load(path)
    told = str(caught.value)
    assert told.startswith(f"{path}:")
    assert message in told
    assert "\n" not in told


def test_files_that_are_no_schema(tmp_path):
    with pytest.raises(InputError, match=r"no\.toml: it cannot be read \(No such file"):
        Schema.load(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b"[columns.\xe9]")
    with pytest.raises(InputError, match=r"latin\.toml: it is not UTF-8"):
        Schema.load(tmp_path / "latin.toml")
    (tmp_path / "good.toml").write_text("\ufeff" + TEXT, encoding="utf-8")
    assert Schema.load(tmp_path / "good.toml") == MIXED


def test_two_columns_of_one_name():
    with pytest.raises(InputError, match="column 'a': it is listed twice"):
        Schema((Boolean("a"), Real("a", 0, 1)))


def test_a_template_is_refused_until_it_is_complete():
    text = template({"age": "integer", "wage (EUR)": "real", "region": "text", "day": "date", "smokes": "boolean"})
    for fill, message in (
        (("# TODO low = ", "low = 0"), "column 'age': it has no low"),
        (("# TODO high = ", "high = 9"), "column 'age': it has no high"),
        (("# TODO low = \n", "low = 0.5\n"), "column 'wage (EUR)': it has no low"),
        (("# TODO high = \n", "high = 9\n"), "column 'wage (EUR)': it has no high"),
        (('# TODO type = "category" ', 'type = "category" '), "column 'region': it has no type"),
        (("# TODO levels = ", "levels = "), "column 'region': it has no levels"),
        (('["...", "..."]', '["a", "b"]'), "column 'region': the level '...' is listed twice"),
        (('# TODO low = "..." ', 'low = "2020-01-31" '), "column 'day': it has no low"),
        (('# TODO high = "..."', "high = 2020-02-01"), "column 'day': it has no high"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            Schema.parse(text)
        assert fill[0] in text
        text = text.replace(*fill, 1)
    assert Schema.parse(text).columns == (
        Integer("age", 0, 9),
        Real("wage (EUR)", 0.5, 9),
        Category("region", ("a", "b")),
        Date("day", "2020-01-31", "2020-02-01"),
        Boolean("smokes"),
    )


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5, unique=True))
def test_a_template_takes_any_name(names):
    assert Schema.parse(template(dict.fromkeys(names, "boolean"))).names == tuple(names)


def test_atoms_come_back_and_are_not_clamped():
    schema = Schema.parse(
        """
        [columns.spent]
        type = "real"
        low = 1
        high = 1e6
        log = true
        atoms = [0, 9999999]
        missing = true

        [columns.hours]
        type = "integer"
        low = 0
        high = 80
        atoms = [40, 99]
        """
    )
    assert Schema.parse(schema.to_toml()) == schema
    values = {"spent": np.array([0, 0.5, 100, 9999999, np.nan]), "hours": np.array([40, 99, 98, 41, 0])}
    rows = schema.encode(values)
    assert rows.codes.tolist() == [[1, 1], [0, 2], [0, 0], [2, 0], [3, 0]]
    assert rows.reals.min() >= 0
    assert rows.reals.max() <= 1
    found = schema.decode(rows)
    assert found["spent"][:4] == pytest.approx([0, 1, 100, 9999999])
    assert np.isnan(found["spent"][4])
    assert found["hours"].tolist() == [40, 99, 80, 41, 0]
    assert schema.columns[0].rounded(np.array([9999999, 123.45678])).tolist() == [9999999, 123.457]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atoms": (1, 0)}, "column 'x': the atoms do not rise"),
        ({"atoms": 0}, "column 'x': atoms is 0"),
        ({"atoms": ("0",)}, r"column 'x': atoms is \('0',\)"),
        ({"atoms": (math.nan,)}, "column 'x': atoms is"),
    ],
)
def test_atoms_that_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Real("x", 1, 10, **options)
    with pytest.raises(InputError, match="column 'x': atoms is"):
        Integer("x", 1, 10, atoms=(0.5,))
    with pytest.raises(InputError, match="'x' has atoms; leave them out"):
        Schema((Integer("x", 1, 10, atoms=(0,)), Integer("y", 1, 10)), rules=("x == y",))


TYPES = [column for kind in KINDS.values() for column in kind.examples()]


@pytest.mark.parametrize(
    "column", [*TYPES, Integer("a", 3, 9, True, (5, 20)), Real("a", 1, 50, log=True, atoms=(0.0, 7.5))]
)
def test_every_type_of_column_agrees_with_itself(column):
    schema, rng = Schema((column,)), np.random.default_rng(0)
    assert Schema.parse(schema.to_toml()) == schema
    rows = Rows(rng.random((99, schema.reals)), rng.integers(0, schema.cardinalities, (99, len(schema.cardinalities))))
    values = schema.decode(rows)[column.name]
    numbers = column.numbers(values)
    gaps = np.isnan(numbers)
    assert gaps.any() == column.missing
    assert np.array_equal(gaps, [value is None or value != value for value in values.tolist()])
    low, high = column.bounds
    assert low <= np.nanmin(numbers) < np.nanmax(numbers) <= high
    plain = ~gaps & ~np.isin(numbers, column.atoms)
    near, allowed = column.nearest(numbers)
    assert np.array_equal(near[plain], numbers[plain])
    assert allowed[plain].all()
    assert (allowed[gaps] == column.missing).all()
    assert not column.nearest(np.array([low - 1, high + 1]))[1].any()
    assert column.of_numbers(numbers[plain]).tolist() == values[plain].tolist()
    points, whole = column.points(256, None)
    assert (np.diff(points) > 0).all()
    assert points[[0, -1]].tolist() == [0, 1] if column.on_line else not len(points)
    assert np.all(np.diff(column.edges(7)) > 0)
    if column.size is None or column.size > 10**5:  # a second of a year: its domain is never listed
        return
    domain = column.domain()
    assert len(domain) == len(set(domain)) == column.size + len(column.beyond) + column.missing
    assert schema.decode(schema.encode({column.name: np.array(domain, object)}))[column.name].tolist() == domain
    assert not whole or column.size == len(points)
