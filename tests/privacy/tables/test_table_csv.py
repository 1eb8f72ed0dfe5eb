"""CSV as it may come: other delimiters, gzip, standard input, and names that are numbers."""

import gzip
import io
import os
import stat

import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables import table_kinds as module
from thesis_cli.privacy.tables.table import is_csv, open_table

ROWS = [["50", "x;y"], ["7", "ü"]]


def rows_of(table, size=1):
    return [list(row) for block in table.chunks(size) for row in zip(*block.values(), strict=True)]


@pytest.fixture
def file(tmp_path):
    def write(content, name="a.csv"):
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return write


@pytest.fixture
def standard_input(monkeypatch):
    def give(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.parametrize(
    ("content", "names", "delimiter"),
    [
        ('a;b\n50;"x;y"\n7;ü\n', (), ""),
        ("a\tb\n50\tx;y\n7\tü\n", (), ""),
        ("a,b\n50,x;y\n7,ü\n", (), ""),
        ("\n\na|b\n50|x;y\n7|ü\n", (), "|"),
        ("a\tb\n50\tx;y\n7\tü\n", (), "tab"),
    ],
)
def test_delimiters(content, names, delimiter, file):
    table = open_table(file(content), names=names, delimiter=delimiter)
    assert list(table.columns) == ["a", "b"]
    assert rows_of(table) == ROWS


def test_the_schema_decides_between_delimiters(file):
    header = 'a,b;c\td,"e;f"'
    names = {("a", "b;c\td"): 3, ("a,b",): 3, ('d,"e;f"',): 2, ("none",): None, (): None}
    path = file(f"{header}\n")
    for chosen, width in names.items():
        if width is None:
            with pytest.raises(InputError, match=r"a\.csv:1: the header has ',' and ';' and a tab; give --delimiter"):
                open_table(path, names=chosen)
        else:
            assert len(open_table(path, names=chosen).columns) == width
    assert len(open_table(path, names=("a",), delimiter=";").columns) == 3
    assert list(open_table(file("a;b\n"), names=("a;b",)).columns) == ["a;b"]
    assert list(open_table(file('"a;b"\n')).columns) == ["a;b"]
    assert list(open_table(file('"a\n;b";c\n')).columns) == ["a\n;b", "c"]


def test_values_never_decide(file):
    for rows in ("1;2;3\n", "1\t2\t3\n", ""):
        assert list(open_table(file("a,b,c\n" + rows)).columns) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "delimiter", "fault"), [("a,b\n1,2\n", ";", "',' and no ';'"), ("a\tb\n", ",", "a tab and no ','")]
)
def test_another_delimiter_than_that_of_the_file(content, delimiter, fault, file):
    with pytest.raises(InputError, match=rf"a\.csv:1: the header has {fault}; give another --delimiter"):
        open_table(file(content), delimiter=delimiter)
    assert list(open_table(file("a,b\n1\n"), names=("a,b",), delimiter=";").columns) == ["a,b"]


@pytest.mark.parametrize("delimiter", [";;", "a", '"', "\n", "\0"])
def test_no_delimiter(delimiter, file):
    with pytest.raises(InputError, match="--delimiter is"):
        open_table(file("a,b\n"), delimiter=delimiter)


def test_names_that_are_numbers(file):
    path = file("person,2019,2020\n1,2,3\n")
    with pytest.raises(InputError, match=r":1: the header has a number in it; .*those of the schema"):
        open_table(path)
    with pytest.raises(InputError, match="the header has a number"):
        open_table(path, names=("2019", "2021"))
    table = open_table(path, names=("2020", "person"))
    assert list(table.columns) == ["person", "2019", "2020"]
    assert table.count() == 1


def test_gzip_is_seen_by_its_content(file):
    data = gzip.compress(b'a;b\n50;"x;y"\n7;\xc3\xbc\n')
    for name in ("a.csv.gz", "b.csv"):
        table = open_table(file(data, name))
        assert rows_of(table) == rows_of(table, 9) == ROWS
    for bad in (data[:-9], data[:12], data[:-12] + b"\xff" * 12):
        with pytest.raises(InputError, match=r"c\.csv\.gz.*: it is (damaged; .*whole file in gzip|not UTF-8)"):
            open_table(file(bad, "c.csv.gz")).count()


def test_what_a_small_file_unpacks_to_is_bounded(file, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    monkeypatch.setattr(module, "MOST_UNPACKED", 5000)
    with pytest.raises(InputError, match=r":2: the line has more than 1,000 characters"):
        open_table(file(gzip.compress(b"a\n" + b"," * 10**6))).count()
    rows = b"a\n" + b"1\n" * 10**4
    with pytest.raises(InputError, match="it holds more than 5,000 characters; unpack it"):
        open_table(file(gzip.compress(rows))).count()
    assert open_table(file(rows)).count() == 10**4


@pytest.mark.parametrize("memory", [2**26, 4])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_can_be_read_several_times(memory, pack, standard_input, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", memory)
    standard_input(pack(b'a;b\n50;"x;y"\n7;\xc3\xbc\n'))
    table = open_table("-")
    assert table.count() == 2
    both = zip(table.chunks(1), open_table("-").chunks(1), strict=True)  # at once, each with a place of its own
    assert [(one["a"][0], two["b"][0]) for one, two in both] == [(row[0], row[1]) for row in ROWS]
    standard_input(b"")
    with pytest.raises(InputError, match="<standard input>: the file is empty"):
        open_table("-")


def test_long_standard_input_is_kept_where_nobody_else_reads_it(standard_input, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "IN_MEMORY", 4)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    standard_input(b"a\n" + b"1\n" * 99)
    open_table("-")
    kept = os.fstat(module._spool().fileno())
    assert stat.S_IMODE(kept.st_mode) & 0o077 == 0
    assert kept.st_nlink == 0
    assert list(tmp_path.iterdir()) == []


def test_no_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="there is no standard input"):
        open_table("-")


def test_what_is_csv():
    assert [is_csv(x) for x in ("a.csv", "-", "a.csv.gz", "a.PQ", "sqlite:///a.csv", 3)] == [True] * 3 + [False] * 3
