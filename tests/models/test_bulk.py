"""Long files are read as the same files word by word are, or left to that."""

import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import MODELS, factor_graphs
from tests.fuzzing import damaged
from tests.models import test_fg, test_uai
from tests.tiers import is_long
from thesis_cli.base.errors import InputError
from thesis_cli.models import bulk, fg, tokens, uai
from thesis_cli.models.tokens import Irregular

COMMENTS = "# one\n" + test_uai.GOOD.replace("2 3\n", "2 3 # two\n") + "# three"
MARKOV = [test_uai.GOOD, COMMENTS, (MODELS / "asia.uai").read_text(), "markov 2 1 2 3 0 1 0 2 0 1 1 2. 1 .5 2 0 1e-400"]


def outcome(parse, text):
    """All that a graph holds, to the last bit; or None."""
    try:
        graph = parse(text)
    except (InputError, Irregular):
        return None
    tables = [
        (f.scope, f.table.shape, f.table.dtype, f.table.tobytes(), f.table.flags.c_contiguous) for f in graph.factors
    ]
    return graph.cardinalities, graph.observed, graph.unobserved, graph.names, tables


def hard_words(rng):
    """Decimal numbers of all lengths and sizes, many near to the middle between two doubles."""
    x = rng.random() * 10.0 ** rng.randint(-30, 30)
    middle = (Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2
    odd = (2 * rng.randint(2**52, 2**53) + 1) * 2 ** rng.randint(0, 9)
    return [
        repr(x),
        f"{x:.{rng.randint(0, 25)}e}",
        f"{x:.{rng.randint(0, 25)}f}",
        f"{middle:.{rng.randint(15, 24)}e}",
        f"{middle:.60e}",
        f"{rng.randint(0, 10 ** rng.randint(1, 25))}",
        f"{odd}{rng.choice(['', '.', '.0', '.000000001', 'E+1'])}",
        f"{rng.randint(0, 9**9)}.{rng.randint(0, 9**9)}e{rng.randint(-340, 330)}",
    ]


def test_numbers_are_rounded_as_float_rounds_them():
    rng = random.Random(1)
    words = [word for _ in range(10_000 if is_long() else 500) for word in hard_words(rng)]
    values = bulk.Numbers("\n".join(words)).values
    expected = np.array(list(map(float, words)))
    read = ~np.isnan(values)
    np.testing.assert_array_equal(values[read], expected[read])
    usual = np.array([float(word) == 0 or (len(word) < 25 and 1e-240 < float(word) < 1e240) for word in words])
    assert read[usual].mean() > 0.8
    assert read[::8].all()  # what Python and this package write


_PLAIN = ["1", "0007", "1.0", "1e0", "0", "0.00"]
_ODD = ["+1", "-1", "1_0", "0x10", "nan", "inf", ".", "e5", "1e", "1e+", "1.2.3", "1,5", "1e5x", "\0"]
_ODD += ["1e400", "1e-400", "0e12345"]


def test_what_is_no_plain_number_is_left_for_a_closer_look():
    numbers = bulk.Numbers(" ".join(_PLAIN + _ODD))
    assert numbers.values[:6].tolist() == [1, 7, 1, 1, 0, 0]
    assert np.isnan(numbers.values[6:]).all()
    assert numbers.whole.tolist() == [True, True, False, False, True] + [False] * (len(_ODD) + 1)


@given(factor_graphs(), st.integers(0, 999))
def test_both_ways_to_read_agree(graph, label):
    text = uai.write(graph)
    assert outcome(uai.parse_at_once, text) == outcome(uai.parse, text) is not None
    text = test_fg.write(graph, [3 * i + label for i in range(len(graph.cardinalities))])
    assert outcome(fg.parse_at_once, text) == outcome(fg.parse, text)


@pytest.mark.parametrize(("reader", "text"), [*[(uai, text) for text in MARKOV], (fg, test_fg.GOOD)])
def test_a_damaged_file_is_never_read_otherwise(reader, text):
    assert outcome(reader.parse_at_once, text) == outcome(reader.parse, text) is not None
    rng = np.random.default_rng(2)
    for _ in range(10_000 if is_long() else 60):
        wrong = damaged(text.encode(), rng, text=True).decode(errors="replace")
        assert outcome(reader.parse_at_once, wrong) in (None, outcome(reader.parse, wrong))


@pytest.mark.parametrize(("reader", "bad"), [(uai, test_uai.BAD), (fg, test_fg.BAD)])
def test_a_malformed_file_is_read_word_by_word(reader, bad, monkeypatch):
    monkeypatch.setattr(tokens, "LONG", 0)
    for text, _, message in bad:
        with pytest.raises(InputError) as caught:
            reader.parse(text)
        assert message in str(caught.value)


def test_a_scope_of_all_axes_is_read_word_by_word():
    text = "MARKOV 64 " + "1 " * 64 + "1 64 " + " ".join(map(str, range(64))) + " 1 5"
    assert outcome(uai.parse_at_once, text) is None
    assert uai.parse(text).factors[0].table.ndim == 64
