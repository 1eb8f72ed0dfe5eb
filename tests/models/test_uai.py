import math

import numpy as np
import pytest
from hypothesis import given

from tests.conftest import factor_graphs
from thesis_cli.base.errors import InputError
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.tokens import Tokens

GOOD = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 0.5 1\n\n6\n 1 2 3\n 4 5 0\n"


@given(factor_graphs())
def test_writing_and_reading_are_inverse(graph):
    again = uai.parse(uai.write(graph))
    assert again.cardinalities == graph.cardinalities
    assert [f.scope for f in again.factors] == [f.scope for f in graph.factors]
    for old, new in zip(graph.factors, again.factors, strict=True):
        np.testing.assert_allclose(new.table, old.table, rtol=4e-15, atol=1e-15)


def test_potentials_beyond_a_double_are_kept():
    graph = FactorGraph([3], [Factor((0,), np.array([1e5, -1e5, -740.0]))])
    np.testing.assert_allclose(uai.parse(uai.write(graph)).factors[0].table, graph.factors[0].table, rtol=4e-15)


def test_the_last_variable_changes_fastest():
    graph = uai.parse(GOOD)
    np.testing.assert_allclose(graph.factors[1].table[0], np.log([1, 2, 3]))
    assert graph.factors[1].table[1, 2] == -math.inf


def test_two_factors_over_one_scope_multiply():
    graph = uai.parse("MARKOV 1 2 2 1 0 1 0 2 1 2 2 3 5")
    np.testing.assert_allclose(graph.log_potential(np.array([[0], [1]])), np.log([3, 10]))


def test_entries_beyond_a_double_are_read():
    table = uai.parse("MARKOV 1 4 1 1 0 4 1e400 1e-400 0.0e-999 1e-310").factors[0].table
    np.testing.assert_allclose(table, [400 * math.log(10), -400 * math.log(10), -math.inf, -310 * math.log(10)])


def test_comments_and_any_white_space():
    one_line = " ".join(GOOD.split())
    assert uai.write(uai.parse("# first\n" + one_line + " # last")) == uai.write(uai.parse(GOOD))


BAD = [
    ("", 1, "the file ends before MARKOV or BAYES"),
    ("# only a comment\n", None, "the file ends"),
    (GOOD.replace("MARKOV", "MARKOW"), 1, "starts with 'MARKOW'"),
    (GOOD.replace("2\n2 3", "two\n2 3"), 2, "is 'two'"),
    (GOOD.replace("2 3\n2", "2 0\n2"), 3, "cardinality of variable 1 is 0"),
    (GOOD.replace("2 3\n2", "2 x\n2"), 3, "the cardinality of variable 1 is 'x'"),
    (GOOD.replace("1 0\n", "1 2\n"), 5, "it must be from 0 to 1"),
    (GOOD.replace("2 0 1\n", "2 1 1\n"), 6, "names a variable twice"),
    (GOOD.replace("\n6\n", "\n5\n"), 11, "5 entries; the cardinalities of its variables make 6"),
    (GOOD.replace(" 4 5 0", ""), 11, "factor 1 has 6 entries; but the file ends before that"),
    (GOOD.replace("0.5", "nan"), 9, "'nan' in a table"),
    (GOOD.replace("0.5", "-0.5"), 9, "in a table"),
    (GOOD.replace("4 5 0", "4 inf 0"), 13, "'inf' in a table"),
    (GOOD.replace("4 5 0", "4 x 0"), 13, "'x' is not a number"),
    (GOOD.replace("0.5 1", "0 0"), 9, "every entry of factor 0 is 0"),
    ("MARKOV 70 " + "1 " * 70 + "1 65 " + " ".join(map(str, range(65))) + " 1 1", 1, "it must be from 0 to 64"),
    (GOOD + "7\n", 14, "'7' follows"),
    ("MARKOV\n100000000000\n2 2\n", 2, "100000000000 cardinalities are promised"),
    *[
        (
            f"MARKOV\n{n}\n" + "2 " * n + f"\n1\n{n} " + " ".join(map(str, range(n))) + f"\n{2**n}\n1 1\n",
            6,
            f"factor 0 has {2**n} entries; but the file ends before that",
        )
        for n in (31, 40, 64)
    ],
    (
        GOOD.replace("2 3\n", "2 1073741825\n"),
        3,
        "cardinality of variable 1 is 1073741825; it must be from 1 to 1073741824",
    ),
    (GOOD.replace("2 3\n", f"2 {'9' * 4000}\n"), 3, "9..."),
    (GOOD.replace("2 3\n", f"2 {'9' * 5000}\n"), 3, "it must be a whole number"),
    (f"MARKOV {'9' * 4000} 2", 1, "9...; but the file ends before that"),
    (GOOD.replace("0.5", "1e9999999999999999999"), 9, "'1e9999999999999999999' in a table"),
    (GOOD.replace("0.5", "-1e400"), 9, "'-1e400' in a table"),
    (GOOD.replace("1 0\n", "1 \x1b[2J\n"), 5, r"is '\x1b[2J'; it must be a whole"),
    ("\x00\x01\x02", 1, r"starts with '\x00\x01\x02'"),
    (GOOD.replace("\n", "\r\n").replace("4 5", "4 x"), 13, "'x' is not a number"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[bad[-1] for bad in BAD])
def test_the_error_for_a_malformed_file_has_its_line(text, line, message):
    with pytest.raises(InputError) as caught:
        uai.parse(text, "model.uai")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"model.uai:{line}: " if line else "model.uai:")
    assert "\n" not in str(caught.value)


ONE_LINE = ["2 0 1 1 2", "2\n0 1\n1 2\n", "2 0\n1 1 2", "# two\n2 0 1 # x_0\n 1 2\n\n \n", "2\r\n0 1 1 2\r\n"]
SAMPLES = ["1\n2 0 1 1 2\n", "1 2 0 1 1 2", "1\n2\n0 1\n1 2", "\n1\r\n2 0 1 1 2\r\n\r\n", "1 2 0\n1 1 2"]
BOTH_FORMS = [(text, {0: 1, 1: 2}) for text in ONE_LINE + SAMPLES]
BOTH_FORMS += [("1\n1 1 0\n", {1: 0}), ("1\n1 0\n", {1: 0}), *[(text, {}) for text in ("0", "1\n0\n", "1 0", " 0\n\n")]]


@pytest.mark.parametrize(("text", "expected"), BOTH_FORMS)
def test_evidence(text, expected):
    assert uai.parse_evidence(text, (2, 3)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("1 2 0", "it must be from 0 to 1"),
        ("1 0 2", "it must be from 0 to 1"),
        ("2 0 1 0 1", "observed twice"),
        ("2 0 1", "but the file ends before that"),
        ("1 0 1 1 1", "'1' follows"),
        ("2\n1 0 1\n", "2 samples"),
        ("2\n1 0 1\n1 1 0\n", "e.evid:1: has 2 samples of evidence; keep one: "),
        ("2\n0\n1 1 1\n", "2 samples"),
        ("3\n1 0 1\n0\n1 0 0\n\n", "3 samples"),
        ("2 0 1 1", "2 observed variables are promised; but the file ends before that"),
        ("0\n0\n", "the number of samples is 0"),
        ("1\n1 x 1\n", "an observed variable is 'x'"),
    ],
)
def test_malformed_evidence(text, message):
    with pytest.raises(InputError, match=message):
        uai.parse_evidence(text, (2, 3), "e.evid")


def test_surplus_text_is_not_split():
    words = Tokens("1 2 3 " + "4 " * 10**6, "f")
    words.promise(2, "two")
    assert words[words.many(2, "two")] == ["1", "2"]
    with pytest.raises(InputError, match="f:1: it is complete, but '3' follows"):
        words.finish("it")
    assert len(words._words) < 5000
    assert words.count(10**7) == 10**6 + 1


def test_a_factor_without_variables_that_is_0_is_named():
    with pytest.raises(InputError, match=r"m\.uai:3: every entry of factor 1 is 0, which makes Z = 0"):
        uai.parse("MARKOV 1 2 2 1 0 0\n2 1 1\n1 0", "m.uai")


def test_the_examples_of_the_format():
    assert uai.partition_function(-0.2008 * math.log(10)) == "PR\n-0.20080000000000001\n"
    assert uai.explanation(np.array([0, 1, 0])) == "MPE\n3 0 1 0\n"
    tables = [np.array([0.1, 0.9]), np.array([0.3, 0.7]), np.array([0.2, 0.2, 0.6])]
    assert uai.marginals(tables) == "MAR\n3 2 0.1 0.9 2 0.3 0.7 3 0.2 0.2 0.6\n"


def test_no_configuration():
    assert uai.partition_function(-math.inf) == "PR\n-inf\n"


def test_marginal_explanation():
    assert uai.marginal_explanation([2, 3, 4], np.array([0, 1, 0])) == "MMAP\n3 2 0 3 1 4 0\n"
