"""Ways around the account of a table: each is refused, or charged to it."""

import json
import stat

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.accounting import chain
from thesis_cli.privacy.accounting.identity import account_key, content_of, likeness, skeleton
from thesis_cli.privacy.accounting.ledger import Ledger
from thesis_cli.privacy.mechanisms.mechanism import Budget

KEY, LIMIT, EACH = bytes(32), Budget(1.0, 1e-6), Budget(0.25)


def people(count=1500, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, count),
        "region": rng.choice(["north", "south", "west"], count).astype(object),
        "income": rng.lognormal(8, 1, count),
        "born": np.array([f"19{y}-0{m}-11" for y, m in rng.integers((10, 1), (99, 9), (count, 2))], object),
        "smoker": rng.random(count) < 0.3,
    }


def without(table, *names):
    return {name: values for name, values in table.items() if name not in names}


def chosen(table, rows):
    return {name: values[rows] for name, values in table.items()}


def joined(one, other):
    return {name: np.concatenate([one[name], other[name]]) for name in one}


def as_text(table):
    """A copy as a CSV file of another program has it."""
    found = {name: np.array([str(x) for x in values.tolist()], object) for name, values in table.items()}
    found["age"] = np.array([f"{x}.0" for x in table["age"]], object)
    found["income"] = np.array([f"{x:.6e}".replace(".", ",") for x in table["income"]], object)
    found["region"] = np.array([f" {x.upper()} " for x in table["region"]], object)
    found["born"] = np.array([f"{x} 00:00:00" for x in table["born"]], object)
    return found


def noisy(table):
    return {**table, "income": table["income"] * (1 + 1e-7 * np.random.default_rng(5).normal(size=len(table["age"])))}


def of(table, key=KEY, size=400):
    count = len(next(iter(table.values())))
    return content_of((chosen(table, slice(i, i + size)) for i in range(0, count, size)), key)


def hidden(table):
    """Every cell with characters that nobody sees, and whole numbers in Arabic digits."""
    digits = str.maketrans("0123456789", "".join(chr(0x660 + i) for i in range(10)))
    return {
        name: np.array(
            [f"\u200b{str(x).translate(digits if isinstance(x, int) else {})}\u00ad" for x in v.tolist()], object
        )
        for name, v in table.items()
    }


ORDER = np.random.default_rng(3).permutation(1500)
COPIES = {
    "in another order": lambda t: chosen(t, ORDER),
    "one row more": lambda t: joined(t, people(1, 9)),
    "a third of the rows": lambda t: chosen(t, ORDER[:500]),
    "a hundredth of the rows": lambda t: chosen(t, ORDER[:15]),
    "as many rows of others": lambda t: joined(t, people(1400, 9)),
    "written by another program": as_text,
    "columns renamed and turned": lambda t: {f"c{i}": t[name] for i, name in enumerate(reversed(t))},
    "a column less and 5 % of rows": lambda t: chosen(without(t, "born"), slice(75, None)),
    "two columns less": lambda t: without(t, "region", "smoker"),
    "a column more": lambda t: chosen({**t, "number": np.arange(1500)}, slice(9, None)),
    "a column in other numbers": lambda t: {**chosen(t, slice(9, None)), "age": np.arange(9, 1500)},
    "numbers moved in the eighth digit": noisy,
    "every row twice": lambda t: joined(t, t),
    "invisible characters and other digits": lambda t: chosen(hidden(t), slice(9, None)),
}


@pytest.fixture(scope="module")
def known():
    return of(people())


@pytest.mark.parametrize("how", COPIES)
def test_copies_are_recognised(known, how):
    share, words = likeness(of(COPIES[how](people())), known)
    assert share > 0.5
    assert words


def test_another_table_is_another_and_another_key_says_nothing(known):
    for seed in range(1, 4):
        assert likeness(of(people(seed=seed)), known) == (0.0, "")
    assert likeness(of(people(), bytes([1] * 32)), known) == (0.0, "")
    assert of(people()).digest == of(people(), size=77).digest == known.digest
    assert of(joined(people(), people(1, 9))).digest != known.digest
    assert of(COPIES["every row twice"](people())).digest != known.digest


@pytest.mark.parametrize(("rows", "share"), [(1485, 0.99), (900, 0.6)])
def test_the_share_is_that_of_the_rows(known, rows, share):
    """Sketches of 1024 of up to 2,100 distinct rows: a standard error of at most 0.02."""
    found, _ = likeness(of(joined(chosen(people(), slice(0, rows)), people(1500 - rows, 9))), known)
    assert found == pytest.approx(share, abs=0.08)


def spend(ledger, name, table=None, **options):
    content = None if table is None else lambda key: of(table, key)
    return ledger.spend(name, EACH, limit=LIMIT, content=content, **options)


def test_a_ledger_charges_a_copy_to_its_account_or_asks(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json")
    spend(ledger, "people", people())
    changed = joined(chosen(people(), slice(0, 1490)), people(20, 9))
    for _ in range(2):
        with pytest.raises(InputError, match=r"shares about (9\d|100)% of its rows with table people; .*--name people"):
            spend(ledger, "clients", changed)
    assert spend(ledger, "people", changed).epsilon == 0.5
    assert spend(Ledger(ledger.storage.source, new=True), "clients", changed).epsilon == 0.25
    assert spend(ledger, "clients", changed).epsilon == 0.5  # it is its own by now
    assert spend(ledger, "houses", people(seed=4)).epsilon == 0.25
    book = ledger.book()
    assert (book.breaks, book.entries[2].spend.note) == ((), "; --new-account")
    assert len({entry.content.digest for entry in book.entries}) == 3
    found = json.loads(ledger.storage.source.read_text())
    assert [len(entry["content"]) > 2 for entry in found["entries"]] == [True, True, False, False, True]
    assert stat.S_IMODE(ledger.storage.source.stat().st_mode) == 0o600
    ledger.storage.source.write_text(json.dumps({**found, "key": "00" * 32}))
    assert "the key of the ledger" in ledger.book().breaks[0]


SAME = [
    "\uff30eople",
    "PEOPLE",
    "peo\u200bple",
    "peo\u00adple",
    "\ufeffpeople ",
    "people\u2060",
    "p\U000e0065eople",
    "peop\u034fle",
    "\U0001d429eople",
    "people\ufe0f",
]
ALIKE = ["pe\u043eple", "\u0440eople", "pe0ple", "p\u0435ople", "peopl\u00e9", "peop|e", "p e o p l e"]
ALIKE += [
    "people_",
    ".people",
    "peop\u0142e",
    "pe\u0275ple",
    "\u1d18\u1d07\u1d0f\u1d18\u029f\u1d07",
    "\ua4d1eople",
    "\u13e2eople",
    "peopl\u212e",
]


def test_names_that_are_one_share_an_account_and_those_that_look_alike_ask(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.spend("people", Budget(0.01), limit=LIMIT)
    for name in SAME:
        ledger.spend(name, Budget(0.01))
    assert [len(account.spent) for account in ledger.accounts().values()] == [1 + len(SAME)]
    for name in ALIKE:
        assert account_key(name) != "people"
        with pytest.raises(InputError, match="looks like people; give --name people, or --new-account"):
            ledger.spend(name, Budget(0.01), limit=LIMIT)
    Ledger(ledger.storage.source, new=True).spend(ALIKE[0], Budget(0.01), limit=LIMIT)
    for other in ("modern-2021", "modern-202", "modern2020", "modern-202\u014b"):
        assert skeleton("modern-2020") != skeleton(other)


def test_a_ledger_of_format_2_keeps_its_heads_and_gets_a_key(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.json")
    with monkeypatch.context() as earlier:
        earlier.setattr(chain, "account_key", chain.earlier_key)
        earlier.setattr("thesis_cli.privacy.accounting.ledger.account_key", chain.earlier_key)
        heads = [ledger.spend("people", EACH, limit=LIMIT).head]
        heads.append(Ledger(ledger.storage.source, new=True).spend("\uff30eople", EACH, limit=Budget(0.9, 1e-6)).head)
    found = json.loads(ledger.storage.source.read_text())
    del found["key"]
    found["format"] = chain.FORMAT_2
    ledger.storage.source.write_text(json.dumps(found))
    ledger.storage.source.chmod(0o644)
    assert (ledger.book().breaks, ledger.book().key) == ((), "")
    assert ledger.accounts()["people"].limit.epsilon == 0.9
    with pytest.raises(InputError, match="would exceed"):
        ledger.spend("people", Budget(0.45))
    assert ledger.spend("people", Budget(0.3), content=lambda key: of(people(), key)).epsilon == 0.8
    book = ledger.book()
    assert (list(book.digests[:2]), book.breaks, len(book.key)) == (heads, (), 64)
    assert stat.S_IMODE(ledger.storage.source.stat().st_mode) == 0o640


def test_a_promise_to_persons_is_charged_to_rows_and_not_the_other_way(tmp_path):
    file = tmp_path / "ledger.json"
    Ledger(file).spend("people", EACH, limit=LIMIT)
    assert Ledger(file, unit="person who, replace").spend("people", EACH).epsilon == 0.5
    rows = Ledger(file, unit="row, add-remove")
    assert rows.spend("people", Budget(0.125)).epsilon == 0.75  # a replaced row is one removed and one added
    assert rows.book().entries[-1].stronger == "row, add-remove"
    wide = Budget(5.0)
    for name, unit, limit in (("a", "row, add-remove", wide), ("b", "person who, add-remove", wide)):
        Ledger(file, unit=unit).spend(name, EACH, limit=limit)
    Ledger(file, unit="row, add-remove").spend("c", Budget(0.25, 1e-6), limit=Budget(5.0, 1e-4))
    two = Ledger(file, unit="person who, add-remove").spend("c", Budget(0.5, 1e-6))
    assert (two.epsilon, two.delta) == (1.25, pytest.approx(1e-6 * (2 + np.exp(0.5))))
    assert Ledger(file, unit="person who, replace").spend("b", EACH).epsilon == 0.5
    for unit in ("row, replace", "person other, replace", "row, add-remove"):
        with pytest.raises(InputError, match=r"unit of privacy \(person who, add-remove\); a release for \("):
            Ledger(file, unit=unit).spend("b", EACH)
    with pytest.raises(InputError, match="row, add-remove"):
        Ledger(file).spend("a", EACH)
    assert Ledger(file).book().breaks == ()


def test_a_read_only_ledger_and_a_folder_of_everybody_take_no_spend(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.spend("people", EACH, limit=LIMIT)
    before = ledger.storage.source.read_bytes()
    ledger.storage.source.chmod(0o444)
    for charge in (ledger.check, ledger.spend):
        with pytest.raises(InputError, match="read-only"):
            charge("people", EACH)
    ledger.storage.source.chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="all users may replace files in"):
        ledger.spend("people", EACH)
    assert ledger.storage.source.read_bytes() == before
    tmp_path.chmod(0o1777)
    ledger.spend("people", EACH)
