import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.expressions import LONGEST, Formula, read_columns
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema

SCHEMA = Schema(
    (
        Real("x", -5, 5, missing=True),
        Integer("n", 1, 9, missing=True),
        Category("c", ("a", "b", "it's"), missing=True),
        Category("d", ("b", "a"), missing=True),
        Category("o", ("low", "mid", "high"), ordered=True, missing=True),
        Boolean("t", missing=True),
        Boolean("u", missing=True),
        Real("hours per week", 0, 80),
        Real("class", 0, 1),
    )
)
TRIPLE = [False, True, None]


def frame(rows=60, seed=0, gaps=True):
    """Columns as `Schema.decode` returns them, without missing values unless `gaps`."""
    rng = np.random.default_rng(seed)
    columns = {
        "x": rng.uniform(-5, 5, rows),
        "n": rng.integers(1, 10, rows).astype(object),
        "c": rng.choice(np.array(["a", "b", "it's"], object), rows),
        "d": rng.choice(np.array(["a", "b"], object), rows),
        "o": rng.choice(np.array(["low", "mid", "high"], object), rows),
        "t": rng.choice(np.array([True, False], object), rows),
        "u": rng.choice(np.array([True, False], object), rows),
        "hours per week": rng.uniform(0, 80, rows),
        "class": rng.uniform(0, 1, rows),
    }
    if gaps:
        for name in ("x", "n", "c", "d", "o", "t", "u"):
            columns[name][rng.random(rows) < 0.2] = np.nan if name == "x" else None
    return columns


def evaluate(text, **options):
    decoded = frame(**options)
    return Formula(text).value(read_columns(SCHEMA.columns, decoded)).data, decoded


numbers = st.deferred(
    lambda: (
        st.sampled_from(["x", "n", "`hours per week`", "2", "0.5", "(t * 1.0)"])
        | st.tuples(numbers, st.sampled_from(["+", "-", "*"]), numbers).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | st.tuples(numbers, numbers).map(lambda p: f"({p[0]} / (1 + abs({p[1]})))")
        | numbers.map(lambda a: f"(-{a})")
        | numbers.map(lambda a: f"sqrt(abs({a}))")
        | numbers.map(lambda a: f"exp(-abs({a}))")
        | numbers.map(lambda a: f"log(1 + abs({a}))")
    )
)
conditions = st.deferred(
    lambda: (
        st.sampled_from(["t", "u", "c == 'a'", 'c != "b"', "c in ('a', 'b')", "c not in ['a']", "c == d", "0 < x < n"])
        | st.tuples(numbers, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers).map(lambda p: " ".join(p))
        | st.tuples(conditions, st.sampled_from(["and", "or"]), conditions).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | conditions.map(lambda a: f"(not ({a}))")
    )
)


@settings(max_examples=examples(10))
@given(numbers | conditions, st.integers(0, 3))
def test_expressions_without_missing_values_are_those_of_pandas(text, seed):
    found, decoded = evaluate(text, seed=seed, gaps=False)
    table = pd.DataFrame({name: pd.Series(values).infer_objects() for name, values in decoded.items()})
    table[["t", "u"]] = table[["t", "u"]].astype(bool)
    expected = np.broadcast_to(table.eval(text, engine="python"), found.shape)
    np.testing.assert_allclose(found, np.asarray(expected, np.float64), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t and u", lambda t, u: t & u),
        ("t or u", lambda t, u: t | u),
        ("not t", lambda t, u: ~t),
        ("not (t or not u)", lambda t, u: ~(t | ~u)),
        ("t == u", lambda t, u: t == u),
        ("missing(t) and u", lambda t, u: t.isna() & u),
    ],
)
def test_truth_is_kleenes(text, expected):
    pairs = [(a, b) for a in TRIPLE for b in TRIPLE]
    schema = Schema((Boolean("t", missing=True), Boolean("u", missing=True)))
    t, u = (np.array(side, object) for side in zip(*pairs, strict=True))
    found = Formula(text).truth(read_columns(schema.columns, {"t": t, "u": u}))
    wanted = expected(pd.array(t, "boolean"), pd.array(u, "boolean"))
    assert [None if math.isnan(x) else bool(x) for x in found] == [None if x is pd.NA else x for x in wanted]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + n", lambda f: f["x"] + f["n"].astype(float)),
        ("max(x, n, 3)", lambda f: np.maximum(np.maximum(f["x"], f["n"].astype(float)), 3)),
        ("min(x, 0)", lambda f: np.minimum(f["x"], 0)),
        ("7 // n % 2 ** 2", lambda f: 7 // f["n"].astype(float) % 4),
        ("log(x)", lambda f: np.where(f["x"] > 0, np.log(np.abs(f["x"])), np.nan)),
        ("sqrt(x)", lambda f: np.where(f["x"] >= 0, np.sqrt(np.abs(f["x"])), np.nan)),
        ("1 / (n - 3)", lambda f: [np.nan if k in (3, None) else 1 / (k - 3) for k in f["n"]]),
        ("exp(1000 * (n > 5))", lambda f: [np.nan if k is None or k > 5 else 1.0 for k in f["n"]]),
        ("`class` * `hours per week`", lambda f: f["class"] * f["hours per week"]),
        ("missing(x) or missing(c)", lambda f: np.isnan(f["x"]) | np.equal(f["c"], None)),
        ("o not in ('mid', 'low')", lambda f: [math.nan if k is None else k == "high" for k in f["o"]]),
        ("o >= 'mid'", lambda f: [math.nan if k is None else k != "low" for k in f["o"]]),
        ("'high' > o", lambda f: [math.nan if k is None else k != "high" for k in f["o"]]),
        ('c == "it\'s"', lambda f: [math.nan if k is None else k == "it's" for k in f["c"]]),
        (
            "c == d",
            lambda f: [math.nan if None in pair else pair[0] == pair[1] for pair in zip(f["c"], f["d"], strict=True)],
        ),
        (
            "d != c",
            lambda f: [math.nan if None in pair else pair[0] != pair[1] for pair in zip(f["c"], f["d"], strict=True)],
        ),
        ("True and 1 < 2", lambda f: 1),
    ],
)
def test_what_is_missing_stays_missing(text, expected):
    found, decoded = evaluate(text)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.asarray(expected(decoded), np.float64))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'': it cannot be read at its end ("),
        ("x +", "x +: it cannot be read at "),
        ("x y", "x y: it cannot be read at 'y' ("),
        ("`hours per week", "`hours per week: it cannot be read at '`hours per week' ("),
        ("`hours per week` < < 3", "cannot be read at '< 3' ("),
        ("y", "y: unknown column 'y'; the columns are 'x', 'n', 'c', 'd', 'o', 't', 'u', "),
        ("`hour per week`", "unknown column 'hour per week'; 'hours per week' is nearest"),
        ("`class` + quoted_0_", "unknown column 'quoted_0_'"),
        ("sqr(x)", "unknown function 'sqr' in an expression; 'sqrt' is nearest"),
        ("c == 'A'", "c has no level 'A'; 'a' is nearest"),
        ("'zz' in ('a', 'b')", "'zz' and 'a' are texts; one must be a column"),
        ("x == 'a'", "x is a number; it must be a category"),
        ("x == c", "x is a number; it must be a category, as c is"),
        ("c < 'b'", "c and 'b' have no common order"),
        ("o < c", "o and c have no common order"),
        ("c in d", "d is not a list"),
        ("c in ()", "() is not a list"),
        ("c + 1", "c is a category; it must be a number or a truth value"),
        ("x and t", "x is a number; it must be a condition"),
        ("(x > 1) & t", "(x > 1) & t has &, | or ~; write `and`"),
        ("~t", "~t has &, | or ~"),
        ("t is True", "t is True has `is`; write =="),
        ("max(x)", "max(x) has fewer than two arguments; give two or more (extremes"),
        ("abs(x, n)", "abs(x, n) has 2 arguments"),
        ("'a'", "the text 'a' stands alone"),
        ("1e999", "1e999 is too large"),
        ("1" + "0" * 400, "is too large; it must be at most 1e+150"),
        ("x" * (LONGEST + 1), "xxx...: it has more than 10,000 characters"),
        ("1+" * 3000 + "1", "it cannot be read"),
        ("-" * 3000 + "1", "it cannot be read"),
        ("x\0", "it cannot be read"),
    ],
)
def test_errors_are_one_line(text, message):
    with pytest.raises(InputError) as error:
        evaluate(text)
    assert message in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "x.real",
        "x[0]",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "(lambda: 1)()",
        "x if t else n",
        "(x := 3)",
        "f'{x}'",
        "b'x'",
        "2j",
        "None",
        "...",
        "(x, n)",
        "{1: 2}",
        "x @ n",
        "x << 2",
        "abs(x=1)",
        "abs(x, n=1)",
        "abs(*x)",
        "__import__('os')",
        "().__class__",
        "abs.__globals__['os'].system('ls')",
        "yield_(x)",
        "await_ (x)",
        "exec('1')",
    ],
)
def test_nothing_else_of_python_is_in_the_language(text):
    with pytest.raises(InputError):
        evaluate(text)
