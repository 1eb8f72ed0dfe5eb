import itertools

import numpy as np
import pandas as pd
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.linked import Link
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema
from thesis_cli.privacy.tables.table import open_table

PERSONS = Schema((Integer("age", 0, 99), Boolean("employed", missing=True)))
HOUSEHOLDS = Schema((Category("region", ("n", "s")), Real("rent", 0, 100, missing=True)), rules=("rent >= 0",))
LINK = Link("home", 3, PERSONS, HOUSEHOLDS)


def households(keys, seed=0):
    rng = np.random.default_rng(seed)
    region, rent = np.array(["n", "s"])[rng.integers(0, 2, len(keys))], rng.integers(0, 101, len(keys)) * 1.0
    return pd.DataFrame({"home": keys, "region": region, "rent": rent})


def persons(homes, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"home": homes, "age": rng.integers(0, 100, len(homes)), "employed": rng.random(len(homes)) < 0.5}
    )


def rows(persons, households, link=LINK, entropy=7):
    return link.rows([open_table(persons), open_table(households)], entropy)


def sorted_rows(found):
    """The rows as a multiset."""
    return sorted(map(tuple, np.hstack([found.reals, found.codes]).tolist()))


def test_households_have_their_size_and_persons_their_household():
    """As a join by pandas, where no household is above the bound."""
    homes, people = households(["a", "b", "c", "d"]), persons(["b", "a", "b", "d", "b"])
    sized, joined = rows(people, homes)
    size = people.groupby("home").size().reindex(homes.home, fill_value=0)
    homes = homes.assign(size=size.to_numpy())
    assert LINK.sized.decode(sized)["size"].tolist() == [1, 3, 0, 1]
    assert sorted_rows(sized) == sorted_rows(LINK.sized.encode(homes.to_dict("series")))
    merged = people.merge(homes, on="home").to_dict("series")
    assert sorted_rows(joined) == sorted_rows(LINK.joined.encode({k: v.to_numpy() for k, v in merged.items()}))
    assert [len(found) for found in rows(people[:0], homes)] == [4, 0]
    assert [len(found) for found in rows(people[:0], homes[:0])] == [0, 0]


def test_neither_names_of_keys_nor_order_of_rows_count_within_the_bound():
    rng = np.random.default_rng(3)
    homes = households([f"h{i}" for i in range(40)])
    people = persons([f"h{i}" for i in np.repeat(np.arange(40), np.arange(40) % 4)])
    first = list(map(sorted_rows, rows(people, homes)))
    names = dict(zip(homes.home, (f"{x:09d}" for x in rng.permutation(40)), strict=True))
    renamed = [frame.assign(home=frame.home.map(names)) for frame in (people, homes)]
    for other in ((people, homes), renamed):
        moved = [frame.sample(frac=1, random_state=5) for frame in other]
        assert list(map(sorted_rows, rows(*moved))) == first
        assert list(map(sorted_rows, rows(*other, entropy=8))) == first


def test_a_household_above_the_bound_changes_nothing_of_others():
    """Its persons are drawn by its key and a public key; the rest are the same rows without it."""
    homes = households(["a", "b", "c"])
    people = persons(["a"] * 5 + ["b"] * 7 + ["c"] * 2)
    sized, joined = rows(people, homes)
    assert LINK.sized.decode(sized)["size"].tolist() == [3, 3, 2]
    without = [sorted_rows(x) for x in rows(people[people.home != "b"], homes[homes.home != "b"])]
    whole = [sorted_rows(sized), sorted_rows(joined)]
    for fewer, more, most in zip(without, whole, (1, 3), strict=True):
        assert not set(fewer) - set(more)
        assert len(more) - len(fewer) == most
    drawn = {tuple(sorted_rows(rows(people, homes, entropy=entropy)[1])) for entropy in range(8)}
    assert len(drawn) > 1


def test_no_changed_household_changes_more_than_a_row_and_as_many_as_count():
    """Each of many households, of up to two persons above the bound, in place of each other one."""
    rest = households(["x", "y"]), persons(["x", "y", "y"])
    found = []
    for key, count in itertools.product("kz", range(LINK.most + 3)):
        own = households([key], seed=count), persons([key] * count, seed=count)
        found.append(rows(pd.concat([own[1], rest[1]]), pd.concat([rest[0], own[0]])))
    for one, other in itertools.combinations(found, 2):
        for a, b, most in zip(one, other, (1, LINK.most), strict=True):
            left, right = sorted_rows(a), sorted_rows(b)
            for row in list(left):
                if row in right:
                    left.remove(row)
                    right.remove(row)
            assert len(left) <= most
            assert len(right) <= most


@pytest.mark.parametrize(
    ("people", "homes", "message"),
    [
        (["a", "private"], ["a"], "<DataFrame>: column 'home': row 2 has a key that no row has of <DataFrame>"),
        (
            ["a"],
            ["a", "b", "a"],
            "<DataFrame>: column 'home': row 3 has the key of an earlier row; each household must",
        ),
        (["a", ""], ["a"], "column 'home': row 2 has no value"),
        (["a"], ["a", None], "column 'home': row 2 has no value"),
    ],
)
def test_keys_that_do_not_link(people, homes, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")) as error:
        rows(persons(people), households(homes))
    assert "private" not in str(error.value)


def test_a_table_without_the_key():
    with pytest.raises(InputError, match="the table has no column 'home'"):
        rows(persons(["a"]), households(["a"]).drop(columns="home"))
    with pytest.raises(InputError, match="the table has no column 'home'"):
        rows(persons(["a"]).drop(columns="home"), households(["a"]))


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (("home", 3, Schema((Boolean("size"),)), HOUSEHOLDS), "a schema has a column 'size'"),
        (("home", 3, Schema((Boolean("rent"),)), HOUSEHOLDS), "both schemas have the column 'rent'"),
        (("rent", 3, PERSONS, HOUSEHOLDS), "the key 'rent' is a column that would be released"),
    ],
)
def test_columns_of_one_name(link, message):
    with pytest.raises(InputError, match=message):
        Link(*link)
