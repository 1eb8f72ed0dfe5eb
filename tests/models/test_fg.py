import itertools
import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import InputError
from thesis_cli.models import fg, uai
from thesis_cli.models.files import load_model

GOOD = """# two factors
2

2
5 3
2 3
3
0 0.5
1 2
5 1e-400

1
3
3
2
0 1
2 4
"""
"""Variable 5 has 2 states, variable 3 has 3.

The lines of a block are size, labels, cardinalities, count, entries.
"""


def write(graph, labels):
    """The text of a file, from the definition: the index of a state is sum_a x_a prod_{b < a} k_b."""
    blocks = [f"{len(graph.factors)}\n"]
    for factor in graph.factors:
        lines = []
        for state in itertools.product(*map(range, factor.table.shape)):
            index = sum(x * math.prod(factor.table.shape[:a]) for a, x in enumerate(state))
            if factor.table[state] > -np.inf:
                lines.append(f"{index} {Decimal(float(factor.table[state])).exp(Context(prec=20))}")
        names = " ".join(str(labels[i]) for i in factor.scope)
        shape = " ".join(map(str, factor.table.shape))
        blocks.append("\n".join([str(len(factor.scope)), names, shape, str(len(lines)), *lines, ""]))
    return "\n".join(blocks)


@given(factor_graphs(), st.randoms(use_true_random=False))
def test_writing_and_reading_are_inverse(graph, random):
    """Labels do not matter; variables that no factor names are left out."""
    labels = sorted(random.sample(range(1000), len(graph.cardinalities)))
    named = sorted({i for factor in graph.factors for i in factor.scope})
    text = write(graph, labels)
    if not named:
        with pytest.raises(InputError, match="no factor has a variable"):
            fg.parse(text, "m.fg")
        return
    again = fg.parse(text, "m.fg")
    assert again.cardinalities == tuple(graph.cardinalities[i] for i in named)
    states = all_states(again)
    whole = np.zeros((len(states), len(graph.cardinalities)), int)
    whole[:, named] = states
    np.testing.assert_allclose(again.log_potential(states), graph.log_potential(whole), rtol=1e-13, atol=1e-13)


def test_the_first_variable_of_a_factor_changes_fastest():
    graph = fg.parse(GOOD)
    assert graph.cardinalities == (3, 2)  # labels 3 and 5
    assert [f.scope for f in graph.factors] == [(1, 0), (0,)]
    expected = np.full((2, 3), -np.inf)
    expected[0, 0], expected[1, 0], expected[1, 2] = math.log(0.5), math.log(2), -400 * math.log(10)
    np.testing.assert_allclose(graph.factors[0].table, expected)
    np.testing.assert_allclose(graph.factors[1].table, [0, -np.inf, math.log(4)])


@pytest.mark.parametrize(
    "text", [" ".join(GOOD.split("\n")[1:]), GOOD.replace("\n", "\r\n"), GOOD.replace("\n", " # so\n"), "\t\n" + GOOD]
)
def test_comments_and_any_white_space(text):
    assert uai.write(fg.parse(text)) == uai.write(fg.parse(GOOD))


def test_factors_over_one_scope_multiply_and_an_empty_scope_is_a_constant():
    graph = fg.parse("3  1  7  2  2  0 2  1 3    1  7  2  2  1 5  0 4    0  1  0 10")
    np.testing.assert_allclose(graph.log_potential(np.array([[0], [1]])), np.log([80, 150]))


def test_a_listed_zero_is_impossible():
    np.testing.assert_allclose(fg.parse("1 1 0 3 2 0 0 2 1").factors[0].table, [-np.inf, -np.inf, 0])


def test_a_factor_of_many_variables_with_one_state():
    graph = fg.parse("1 64 " + " ".join(map(str, range(64))) + " 1" * 63 + " 2 2 0 1 1 3")
    assert graph.factors[0].table.ndim == 64
    assert graph.size == 2


def dense(variables):
    labels = " ".join(map(str, range(variables)))
    return f"1\n\n{variables}\n{labels}\n{'2 ' * variables}\n1\n0 1\n"


def lines(*changes):
    """`GOOD` with some lines (counted from 1) replaced."""
    text = GOOD.split("\n")
    for number, line in changes:
        text[number - 1] = line
    return "\n".join(text)


BAD = [
    ("", 1, "the file ends before the number of factors"),
    ("# only a comment\n", None, "the file ends"),
    ("0\n", 1, "no factor has a variable; at least one"),
    ("1\n0\n1\n0 2\n", 4, "no factor has a variable"),
    ("two\n", 1, "the number of factors is 'two'"),
    (lines((2, "-1")), 2, "the number of factors is -1"),
    (lines((2, "1")), 12, "the model is complete, but '1' follows"),
    (lines((2, "3")), 17, "the file ends before the number of variables of factor 2"),
    (lines((2, "1000000000000")), 2, "1000000000000 factors are promised; but the file ends before that"),
    (lines((4, "-1")), 4, "the number of variables of factor 0 is -1; it must be from 0 to 64"),
    (dense(65), 3, "the number of variables of factor 0 is 65; it must be from 0 to 64"),
    (dense(28), 5, "factor 0 has 268435456 entries, over 28 variables; all tables together"),
    (dense(31), 5, "factor 0 has 2147483648 entries, over 31 variables; all tables together"),
    (dense(64), 5, f"has {2**64} entries, over 64 variables"),
    ("2\n1 0 134217727 1 0 1\n1 1\n2 1 0 1\n", 4, "factor 1 has 2 entries, over 1 variable;"),
    (lines((5, "5 -3")), 5, "a variable of factor 0 is -3"),
    (lines((5, "5 x")), 5, "a variable of factor 0 is 'x'"),
    (lines((5, "5 5")), 5, "factor 0 names a variable twice"),
    (lines((6, "2 0")), 6, "a cardinality in factor 0 is 0; it must be from 1 to"),
    (lines((6, "2 1073741825")), 6, "is 1073741825; it must be from 1 to 1073741824"),
    (lines((14, "4")), 14, "variable 3 has 4 states in factor 1, 3 before"),
    (lines((7, "0")), 7, "the number of nonzero entries of factor 0 is 0; it must be from 1 to 6"),
    (lines((7, "7")), 7, "the number of nonzero entries of factor 0 is 7; it must be from 1 to 6"),
    (lines((15, "3")), 15, "factor 1 has 3 nonzero entries; but the file ends before that"),
    (lines((17, "2")), 15, "factor 1 has 2 nonzero entries; but the file ends before that"),
    (lines((9, "6 2")), 9, "an index of factor 0 is 6; it must be from 0 to 5"),
    (lines((9, "-1 2")), 9, "an index of factor 0 is -1"),
    (lines((9, "1.5 2")), 9, "an index of factor 0 is '1.5'; it must be a whole"),
    (lines((10, "1 2")), 10, "factor 0 lists entry 1 twice"),
    (lines((9, "1 nan")), 9, "'nan' in a table"),
    (lines((9, "1 inf")), 9, "'inf' in a table"),
    (lines((17, "2 -4")), 17, "'-4' in a table"),
    (lines((17, "2 1e9999999999999999999")), 17, "'1e9999999999999999999' in a table"),
    (lines((16, "0 one")), 16, "'one' is not a number"),
    (lines((16, "0 0"), (17, "2 0")), 16, "every entry of factor 1 is 0"),
    (lines((9, "1 2 # in\t"), (10, "5 \x1b[2J")), 10, r"'\x1b[2J' is not a number"),
    (GOOD + "8\n", 18, "the model is complete, but '8' follows"),
    (GOOD.replace("\n", "\r\n").replace("2 4\r", "2 x\r"), 17, "'x' is not a number"),
    ("\x00\x01", 1, r"the number of factors is '\x00\x01'"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[bad[-1] for bad in BAD])
def test_the_error_for_a_malformed_file_has_its_line(text, line, message):
    with pytest.raises(InputError) as caught:
        fg.parse(text, "m.fg")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"m.fg:{line}: " if line else "m.fg:")
    assert str(caught.value).isprintable()


def test_text_truncated_anywhere_is_refused():
    words = GOOD.split("\n", 1)[1].split()
    for end in range(len(words)):
        with pytest.raises(InputError, match="file ends"):
            fg.parse(" ".join(words[:end]), "m.fg")


def test_format_by_extension_by_option_and_with_evidence(tmp_path):
    (tmp_path / "m.fg").write_text(GOOD)
    (tmp_path / "model").write_text(GOOD[GOOD.index("\n") + 1 :])
    (tmp_path / "e.evid").write_text("1 1 0")
    graph = load_model(tmp_path / "m.fg", evidence=tmp_path / "e.evid")
    assert graph.cardinalities == (3, 1)
    assert graph.observed == {1: 0}
    assert uai.write(load_model(tmp_path / "model", "fg")) == uai.write(fg.parse(GOOD))


def test_labels_with_gaps_are_names():
    named = fg.parse("1\n2\n5 3\n2 2\n1\n0 1\n")
    assert [named.variable_name(i) for i in range(2)] == ["3", "5"]
    assert fg.parse("1\n2\n1 0\n2 2\n1\n0 1\n").names is None
