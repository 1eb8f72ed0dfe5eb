import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import Totals, Unit
from thesis_cli.privacy.tables.schema import Integer, Real, Schema
from thesis_cli.privacy.tables.table import bounded_rows, open_table, person_rows

KEY = b"key"
SCHEMA = Schema((Real("x", 0, 1), Integer("n", 0, 9)))


def parts(identifiers, size=3):
    """Rows whose first coordinate is their number in the table."""
    rows = Rows.of_reals(np.arange(len(identifiers), dtype=float)[:, None])
    for start in range(0, len(identifiers), size):
        stop = min(start + size, len(identifiers))
        yield identifiers[start:stop], rows[start:stop]


def kept(identifiers, most, key=KEY, **options):
    """Numbers of the rows that count, by person."""
    found = defaultdict(set)
    for rows in bounded_rows(parts(identifiers, **options), most, key):
        for n in rows.reals[:, 0].astype(int).tolist():
            found[identifiers[n]].add(n)
    return found


def test_at_most_so_many_rows_of_a_person_count_and_each_has_its_share():
    rng = np.random.default_rng(0)
    identifiers = [str(i) for i in rng.integers(0, 40, 300)]
    rows = Counter(identifiers)
    for most in (1, 2, 5, 400):
        found = kept(identifiers, most)
        assert {i: len(own) for i, own in found.items()} == {i: min(most, n) for i, n in rows.items()}
        assert found == kept(identifiers, most, size=1) == kept(identifiers, most, size=1000)
    assert [len(rows) for rows in bounded_rows(parts(identifiers), 1, KEY, chunk=30)] == [30, 10]


def test_the_rows_of_a_person_depend_on_no_other_person():
    """Each person alone, in a crowd, and in the same crowd in another order keeps the same rows."""
    rng = np.random.default_rng(1)
    identifiers = [str(i) for i in rng.integers(0, 12, 200)]
    whole = kept(identifiers, 3)
    for person in set(identifiers):
        own = [n for n, identifier in enumerate(identifiers) if identifier == person]
        alone = kept([person] * len(own), 3)[person]
        assert {own[n] for n in alone} == whole[person]
        without = [identifier for identifier in identifiers if identifier != person]
        rest = [n for n, identifier in enumerate(identifiers) if identifier != person]
        for other, found in kept(without, 3).items():
            assert {rest[n] for n in found} == whole[other]
    ranks = rng.permutation(12)
    order = sorted(range(200), key=lambda n: (ranks[int(identifiers[n])], n))
    moved = kept([identifiers[n] for n in order], 3)
    assert {i: {order[n] for n in own} for i, own in moved.items()} == whole


def test_every_row_of_a_person_is_as_likely_to_count():
    most, rows, persons = 3, 8, 1500
    counts, pairs = np.zeros(rows), Counter()
    for own in kept([str(p) for p in range(persons) for _ in range(rows)], most, size=5000).values():
        numbers = sorted(n % rows for n in own)
        counts[numbers] += 1
        pairs.update(itertools.combinations(numbers, 2))
    share, pair = most / rows, most * (most - 1) / rows / (rows - 1)
    assert np.abs(counts / persons - share).max() < 5 * math.sqrt(share * (1 - share) / persons)
    assert len(pairs) == rows * (rows - 1) // 2
    assert max(abs(n / persons - pair) for n in pairs.values()) < 5 * math.sqrt(pair * (1 - pair) / persons)
    assert kept(["a"] * 50, 3) != kept(["a"] * 50, 3, b"other")


def test_identifiers_are_compared_as_texts(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("who,x,n\n7,.1,1\n07,.2,1\n7,.3,1\n 7,.4,1\nA,.5,1\na,.6,1\n")
    found = list(person_rows(open_table(file), SCHEMA, "who", chunk=4))
    assert [who for identifiers, _ in found for who in identifiers] == ["7", "07", "7", " 7", "A", "a"]
    used = Rows.concatenate(list(bounded_rows(found, 1, KEY)))
    assert len(used) == 5
    assert used.reals.shape[1] == SCHEMA.reals
    frame = pd.read_csv(file, dtype={"who": str, "n": int, "x": float})
    assert [who for who, _ in person_rows(open_table(frame), SCHEMA, "who")] == [["7", "07", "7", " 7", "A", "a"]]


@pytest.mark.parametrize("gap", ["", "  ", "NA", "nan"])
def test_a_row_without_a_person_is_an_error_with_its_place(tmp_path, gap):
    file = tmp_path / "t.csv"
    file.write_text(f"x,n,who\n.1,1,a\n.1,1,b\n.2,1,{gap}\n")
    with pytest.raises(InputError, match=r"t.csv: column 'who': row 3 has no value; each row must name"):
        list(person_rows(open_table(file), SCHEMA, "who", chunk=2))


def test_bad_columns(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x,n\n.1,1\n")
    with pytest.raises(InputError, match="no column 'who'"):
        person_rows(open_table(file), SCHEMA, "who")
    with pytest.raises(InputError, match="the schema has the column 'n' of persons"):
        person_rows(open_table(file), SCHEMA, "n")


@pytest.mark.parametrize("unit", [Unit("replace", 2), Unit("add-remove", 2)], ids=str)
def test_no_searched_person_moves_the_totals_by_more_than_the_sensitivity(unit):
    """Persons with up to four rows, at both ends of the table and between, beside two others."""
    totals = Totals(Features(np.full((4, 1), math.pi), ()), unit)
    others = ["a", "b", "b", "b"], [0.0, 0.3, 1.0, 0.6]

    def vector(identifier, own, place):
        identifiers, values = [*others[0]], [*others[1]]
        identifiers[place:place], values[place:place] = [identifier] * len(own), own
        rows = Rows.of_reals(np.array(values)[:, None])
        return totals.vector(bounded_rows([(identifiers, rows)], 2, KEY))

    tables = [
        vector(identifier, own, place)
        for count in range(5)
        for own in itertools.product((0.0, 1.0), repeat=count)
        for identifier, place in (("p", 0), ("q", 2), ("r", 4))
    ]
    without = tables[0]
    pairs = itertools.combinations(tables, 2) if unit.neighbours == "replace" else ((without, t) for t in tables)
    apart = max(math.dist(a, b) for a, b in pairs)
    assert apart <= totals.l2_sensitivity()
    assert apart == pytest.approx(totals.l2_sensitivity(), rel=1e-6)
