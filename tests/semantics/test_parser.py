"""The parser: what expressions mean, and errors with their places."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.semantics.parser import DEEPEST, HIGHEST, LONGEST, parse
from thesis_cli.semantics.syntax import Call, Let, Number, Variable


def shown(node) -> str:
    """An expression with all its parentheses."""
    match node:
        case Number():
            return f"{node.value:g}"
        case Variable():
            return node.name
        case Call():
            return f"{node.name}({' '.join(map(shown, node.arguments))})"
        case Let():
            bindings = " ".join(f"{name}:{shown(value)}" for name, value in node.bindings)
            given = "".join(f" | {shown(c)}" for c in node.observations)
            return f"let({bindings}{given}; {shown(node.body)})"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1 + 2 * 3 - 4 / 5", "-(+(1 *(2 3)) /(4 5))"),
        ("-2 ** 2", "negative(**(2 2))"),
        ("2 ** -3 ** 2", "**(2 negative(**(3 2)))"),
        ("1 - 2 - 3", "-(-(1 2) 3)"),
        ("not 1 < 2 and 3 == 4 or 5 != 6", "or(and(not(<(1 2)) ==(3 4)) !=(5 6))"),
        ("max(1, 2, .5e1)", "max(max(1 2) 5)"),
        ("normal(0, 1) # a comment\n + pi", "+(normal(0 1) 3.14159)"),
        ("let x = 1 in let y = x in x * y", "let(x:1; let(y:x; *(x y)))"),
        ("let x = 1, y = x + 1 given x > 0, y == 2 in y", "let(x:1 y:+(x 1) | >(x 0) | ==(y 2); y)"),
        ("let x = let y = 2 in y, z = 3 in x", "let(x:let(y:2; y) z:3; x)"),
        ("if(1 > 0, 2, 3)", "if(>(1 0) 2 3)"),
        ("- -1 + +2", "+(1 2)"),
        ("let `a b` = 1 in `a b`", "let(a b:1; a b)"),
    ],
)
def test_meaning(text, meaning):
    assert shown(parse(text)) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the expression is empty"),
        ("1 +", "1:4: the end stands where an expression must be"),
        ("let x = 1 in\n  x + y", "2:7: unknown variable 'y'; the variables are 'x'"),
        ("x", "1:1: unknown variable 'x'; let binds variables"),
        ("norml(0, 1)", "1:1: unknown function 'norml'; 'normal' is nearest"),
        ("normal(0)", "1:1: normal has 1 argument; write normal(mean, deviation)"),
        ("exp(1, 2)", "1:1: exp has 2 arguments; write exp(x)"),
        ("normal", "1:1: normal has no arguments; write normal(mean, deviation)"),
        ("1 < 2 < 3", "1:7: comparisons do not chain"),
        ("let x = 1 in x = 2", "1:16: '=' binds names of let only"),
        ("let 3 = 1 in 2", "1:5: '3' is no name"),
        ("let exp = 1 in 2", "1:5: 'exp' has a meaning of its own"),
        ("let x = x in x", "1:9: unknown variable 'x'"),
        ("let x = 1 x", "1:11: 'x' stands where 'in' must be"),
        ("(1", "1:3: the end stands where ')' must be"),
        ("1 2", "1:3: '2' is left over"),
        ("1 $ 2", "1:3: '$' is no part of the language"),
        ("1e999", "1:1: 1e999 is too large"),
        ("let x = 1 in in", "1:14: 'in' stands where an expression must be"),
        ("(" * (DEEPEST + 1), f"1:{DEEPEST + 1}: parts are nested more than {DEEPEST} deep"),
        ("2" + "**2" * (DEEPEST + 1), f"parts are nested more than {DEEPEST} deep"),
        ("*".join("1" * (HIGHEST + 1)), f"{HIGHEST} operations depend on each other"),
        ("1" * (LONGEST + 1), "characters"),
    ],
)
def test_errors_name_the_place(text, message):
    with pytest.raises(InputError) as error:
        parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_long_sums_are_joined_by_halves():
    """The value stays, and the tree is low enough to be walked."""
    rng = np.random.default_rng(0)
    for count in (31, 32, 33, 400):
        numbers, signs = rng.integers(0, 100, count), rng.choice(["+", "-"], count - 1)
        text = str(numbers[0]) + "".join(f" {sign} {number}" for sign, number in zip(signs, numbers[1:], strict=True))
        exact = numbers[0] + (np.where(signs == "+", 1, -1) * numbers[1:]).sum()
        assert expected(parse(text)) == exact


def expected(node) -> float:
    """The value of a sum of numbers."""
    if isinstance(node, Number):
        return node.value
    left, right = map(expected, node.arguments)
    return left + right if node.name == "+" else left - right


def test_categories_are_compared_with_texts():
    levels = {"region": ("east", "north"), "a b": ("", "x")}
    names = ["region", "a b", "age"]
    assert shown(parse("region == 'north' and \"east\" != region", names, levels)) == "and(==(region 1) !=(region 0))"
    assert shown(parse("`a b` == '' or age > 2", names, levels)) == "or(==(a b 0) >(age 2))"
    assert shown(parse("let region = 3 in region + 1", names, levels)) == "let(region:3; +(region 1))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "region + 1",
            "1:1: the column 'region' is a category; compare it with one of its levels, as in region == 'a'",
        ),
        ("region < 'a'", "1:1: the column 'region' is a category"),
        ("region == 'c'", "1:11: 'region' has no level 'c'; "),
        ("age == 'a'", "1:8: 'a' is compared with 'age'; only a category is compared with a text"),
        ("let region = 1 in region == 'a'", "only a category is compared with a text"),
        ("'a'", "1:1: 'a' stands where an expression must be"),
        ("1 + 'a'", "1:5: 'a' stands where an expression must be"),
    ],
)
def test_categories_are_nothing_but_compared(text, message):
    with pytest.raises(InputError) as error:
        parse(text, ["region", "age"], {"region": ("a", "b")})
    assert message in str(error.value)


def test_free_variables():
    assert parse("let x = a in x + b", ["a", "b"]).free == {"a", "b"}
    assert parse("let x = 1, y = x given y > c in x", ["c"]).free == {"c"}


@given(st.text("let in given xy=+-*/()<>,.01\n normal", max_size=40))
@settings(max_examples=examples(40), deadline=None)
def test_any_text_is_read_or_refused(text):
    with suppress(InputError):
        parse(text)
