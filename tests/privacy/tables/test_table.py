import csv
import importlib
import os
import re
import sqlite3
import subprocess
import sys
import traceback
import tracemalloc
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.privacy.conftest import PASSWORD, free_port
from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import how_to_install
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.schema import Boolean, Category, Date, DateTime, Integer, Real, Schema
from thesis_cli.privacy.tables.table import encoded_rows, open_table

SCHEMA = Schema((Integer("age", 0, 100), Category("region", ("01", "1", "x,y")), Boolean("smokes", missing=True)))
PEOPLE = [("50", "01", "true"), ("100", "1", ""), ("-7", "x,y", "no"), ("25", "1", "1")]
ENCODED = ([[0.5], [1.0], [0.0], [0.25]], [[0, 1], [1, 2], [2, 0], [1, 1]])
TYPED = {"age": [50, 100, -7, 25], "region": ["01", "1", "x,y", "1"], "smokes": [True, None, False, True]}


def write_csv(path, people=PEOPLE, header=("age", "region", "smokes")):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *people])
    return str(path)


def write_parquet(path, columns=TYPED, **options):
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def write_sqlite(path, people=PEOPLE):
    with sqlite3.connect(path) as base:
        base.execute("create table people (age integer, region text, smokes text)")
        base.executemany("insert into people values (?, ?, ?)", people)
    base.close()
    return f"sqlite:///{path}"


def problem_of(source, query=None):
    """The error: one line, without the password, which the traceback does not have either."""
    with pytest.raises(InputError) as caught:
        list(open_table(source, query).chunks())
    told = str(caught.value)
    assert "\n" not in told
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    return told


@pytest.fixture(scope="module")
def people(postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute(
            "create table people (age int, region text, smokes bool, wage numeric, height float4, born date)"
        )
        connection.execute("create sequence number")
        connection.execute("create table many as select i as age, i % 7 as x from generate_series(1, 20000) i")
        for age, region, smokes in zip(*TYPED.values(), strict=True):
            row = (age, region, smokes, Decimal("1.5"), 1.25, date(1990, 1, 2))
            connection.execute("insert into people values (%s, %s, %s, %s, %s, %s)", row)
    return postgres


@pytest.fixture(params=["csv", "parquet", "sqlite", "postgres"])
def table(request, tmp_path):
    if request.param == "csv":
        return open_table(write_csv(tmp_path / "people.csv"))
    if request.param == "parquet":
        return open_table(write_parquet(tmp_path / "people.parquet", row_group_size=3))
    if request.param == "sqlite":
        return open_table(write_sqlite(tmp_path / "people.db"), "select * from people")
    return open_table(request.getfixturevalue("people"), "select age, region, smokes from people;")


@pytest.mark.parametrize("size", [1, 2, 3, 4, 99])
def test_all_kinds_of_storage_give_the_same_rows(table, size):
    assert list(table.columns) == ["age", "region", "smokes"]
    blocks = list(encoded_rows(table, SCHEMA, size))
    assert max(map(len, blocks)) <= size
    found = Rows.concatenate(blocks)
    assert found.reals.tolist() == ENCODED[0]
    assert found.codes.tolist() == ENCODED[1]
    assert table.count() == 4


def test_passes_of_different_part_sizes_agree(table):
    for size in (3, 1, 4, 99):
        assert sum(len(block["age"]) for block in table.chunks(size)) == 4
    assert table.count() == 4
    assert table.count() == sum(len(block["smokes"]) for block in table.chunks(2, ["smokes"]))


def test_only_the_columns_asked_for_are_read(table):
    assert [list(block) for block in table.chunks(99, ["smokes", "age"])] == [["smokes", "age"]]


def test_rows_reads_the_columns_of_the_schema_alone(table, monkeypatch):
    asked, plain = [], table._blocks
    monkeypatch.setattr(table, "_blocks", lambda size, names: asked.append(names) or plain(size, names))
    list(encoded_rows(table, Schema((Boolean("smokes", missing=True),))))
    assert asked == [("smokes",)]


def test_the_nearest_column_is_named_at_once(table):
    with pytest.raises(InputError) as caught:
        encoded_rows(table, Schema((Boolean("Smoke"),)))
    assert str(caught.value) == f"{table.source}: the table has no column 'Smoke'; 'smokes' is nearest"


def test_a_wrong_value_is_placed_in_the_table_and_not_named(table):
    schema = Schema((Category("region", ("01", "1")),))
    with pytest.raises(InputError) as caught:
        list(encoded_rows(table, schema, 2))
    assert str(caught.value) == f"{table.source}: column 'region': row 3 cannot be read; it must be one of its levels"
    allowed = Schema((Category("region", ("01", "1"), missing=True),))
    assert Rows.concatenate(list(encoded_rows(table, allowed, 2, "missing"))).codes[:, 0].tolist() == [0, 1, 2, 1]


def test_types_of_storage(tmp_path, people):
    assert set(open_table(write_csv(tmp_path / "a.csv")).columns.values()) == {"text"}
    assert set(open_table(write_sqlite(tmp_path / "a.db"), "select * from people").columns.values()) == {"text"}
    types = open_table(people, "select * from people").columns
    assert types == {
        "age": "integer",
        "region": "text",
        "smokes": "boolean",
        "wage": "real",
        "height": "real",
        "born": "date",
    }
    columns = {
        "i": pa.array([1], pa.int16()),
        "u": pa.array([1], pa.uint64()),
        "f": pa.array([1], pa.float32()),
        "n": pa.array([Decimal("1.50")]),
        "b": [True],
        "s": ["x"],
        "c": pa.array(["x"]).dictionary_encode(),
        "d": [date(2020, 1, 1)],
        "l": [[1, 2]],
        "a.b": [1],
    }
    table = open_table(write_parquet(tmp_path / "a.pq", columns))
    assert list(table.columns.values()) == [
        "integer", "integer", "real", "real", "boolean", "text", "text", "date", "text", "integer",
    ]  # fmt: skip
    (block,) = table.chunks()
    assert [block[name][0] for name in "iufnbsc"] == [1, 1, 1, Decimal("1.50"), True, "x", "x"]
    assert block["a.b"].tolist() == [1]
    list(table.chunks())


def test_whole_numbers_beside_gaps_stay_whole(tmp_path):
    ages = pa.array([2**53 + 1, None, 7, 8])
    table = open_table(write_parquet(tmp_path / "a.parquet", {"age": ages, "x": [1.5, None, float("nan"), 0.0]}))
    assert [list(block["age"]) for block in table.chunks(2)] == [[2**53 + 1, None], [7, 8]]
    list(table.chunks(3))  # equal to the first pass
    schema = Schema((Category("age", ("7", "8"), missing=True), Real("x", 0, 2, missing=True)))
    found = Rows.concatenate(list(encoded_rows(table, schema, 2, "missing")))
    assert found.codes.tolist() == [[2, 0], [2, 1], [0, 1], [1, 0]]


BEYOND = "select unnest('{{{{2020-01-01,73111-01-01}}}}'::{}[]) as x"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_numbers_and_dates_of_postgresql(scheme, people):
    schema = Schema((Real("wage", 0, 3), Real("height", 0, 5)))
    table = open_table(people.replace("postgresql:", f"{scheme}:"), "select * from people")
    assert Rows.concatenate(list(encoded_rows(table, schema))).reals.tolist() == [[0.5, 0.25]] * 4
    with pytest.raises(InputError, match="'born': row 1 cannot be read; it must be a number"):
        list(encoded_rows(table, Schema((Real("born", 0, 1),))))
    levels = Schema((Category("born", ("1990-01-02", "?")),))
    assert Rows.concatenate(list(encoded_rows(table, levels))).codes.tolist() == [[0]] * 4
    dates = Schema((Date("born", "1990-01-01", "1990-01-05"), DateTime("at", "1990-01-01", "1990-01-05")))
    query = "select born, (born + time '12:00') at time zone 'UTC' as at from people"
    found = Rows.concatenate(list(encoded_rows(open_table(people, query), dates)))
    assert found.reals.tolist() == [[0.25, 0.375]] * 4


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_dates_of_postgresql_beyond_those_of_python(kind, people):
    ends = open_table(people, f"select unnest('{{infinity,-infinity}}'::{kind}[]) as x")
    schema = Schema((Date("x", "2020-01-01", "2020-01-02"),))
    assert Rows.concatenate(list(encoded_rows(ends, schema))).reals.tolist() == [[1], [0]]
    for column in (*schema.columns, Real("x", 0, 1), Category("x", ("a", "b"))):
        with pytest.raises(InputError, match=r"column 'x': row [12] cannot be read") as caught:
            list(encoded_rows(open_table(people, BEYOND.format(kind)), Schema((column,))))
        assert "73111" not in "".join(traceback.format_exception(caught.value))


def test_a_query_is_streamed_and_may_hold_percent_signs_and_colons(people):
    query = "select age, x, '%s :name' as s, x::float8 as f from many where 'a' like 'a%'"
    table = open_table(people, query)
    sizes = [len(block["age"]) for block in table.chunks(6000)]
    assert sizes == [6000, 6000, 6000, 2000]
    first = next(table.chunks(10))
    assert first["s"].tolist() == ["%s :name"] * 10


def test_the_order_of_rows_is_free(people):
    table = open_table(people, "select * from many order by random()")
    for _ in range(2):
        for _ in table.chunks():
            pass


CHANGES = [PEOPLE[:-1], [*PEOPLE, PEOPLE[0]], [*PEOPLE[:-1], ("26", "1", "1")], [*PEOPLE[:-1], ("25", "1", "")], []]


@pytest.mark.parametrize("changed", CHANGES)
def test_a_file_that_changes_between_two_passes_is_noticed(changed, tmp_path):
    table = open_table(write_csv(tmp_path / "people.csv"))
    list(encoded_rows(table, SCHEMA))
    write_csv(tmp_path / "people.csv", changed)
    with pytest.raises(InputError, match=r"people\.csv: the table changed while it was read;"):
        list(encoded_rows(table, SCHEMA))
    write_csv(tmp_path / "people.csv", PEOPLE[::-1])
    list(encoded_rows(table, SCHEMA))


def test_columns_that_change_places_between_two_passes_are_noticed(tmp_path):
    """Before any value was read, too: they would be released under each other's names."""
    table = open_table(write_csv(tmp_path / "a.csv", [("1", "2"), ("3", "4")], ("a", "b")))
    assert table.count() == 2
    write_csv(tmp_path / "a.csv", [("2", "1"), ("4", "3")], ("b", "a"))
    with pytest.raises(InputError, match="the table changed while it was read"):
        list(table.chunks())


def test_watched_columns_may_not_change_after_a_pass_over_all_columns(tmp_path):
    for watched, caught in (((), False), (("age", "region"), True)):
        table = open_table(write_csv(tmp_path / "people.csv"))
        table.watch(watched)
        list(table.chunks())
        assert sum(len(block["age"]) for block in table.chunks(2, ("age", "region"))) == 4
        table = open_table(write_csv(tmp_path / "people.csv"))
        table.watch(watched)
        list(table.chunks())
        write_csv(tmp_path / "people.csv", CHANGES[2])
        if caught:
            with pytest.raises(InputError, match="the table changed while it was read"):
                list(table.chunks(2, ("age", "region")))
        else:
            assert len(list(table.chunks(2, ("age", "region")))) == 2


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_file_whose_place_a_pipe_takes_is_refused_without_waiting(write, tmp_path):
    path = tmp_path / f"people.{write.__name__.removeprefix('write_')}"
    table = open_table(write(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="it is no regular file"):
        list(table.chunks())


def test_a_database_that_changes_between_two_passes_is_noticed(tmp_path, people):
    import psycopg

    url = write_sqlite(tmp_path / "people.db")
    table = open_table(url, "select * from people")
    assert table.count() == 4
    with sqlite3.connect(tmp_path / "people.db") as base:
        base.execute("delete from people where age = 50")
    base.close()
    with pytest.raises(InputError, match="the table changed while it was read"):
        list(encoded_rows(table, SCHEMA))
    other = open_table(people, "select age from many")
    list(other.chunks())
    with psycopg.connect(people) as connection:
        connection.execute("update many set age = 20001 where age = 1")
    with pytest.raises(InputError, match="the table changed while it was read"):
        list(other.chunks(100))


def test_the_order_within_a_row_counts(tmp_path):
    table = open_table(write_csv(tmp_path / "a.csv", [("1", "2"), ("3", "4")], ("a", "b")))
    list(table.chunks())
    write_csv(tmp_path / "a.csv", [("1", "4"), ("3", "2")], ("a", "b"))
    with pytest.raises(InputError, match="the table changed"):
        list(table.chunks())


def test_memory_does_not_grow_with_the_table(tmp_path):
    peaks = []
    for count in (2_000, 20_000):
        table = open_table(write_csv(tmp_path / f"{count}.csv", [PEOPLE[i % 4] for i in range(count)]))
        tracemalloc.start()
        assert sum(map(len, encoded_rows(table, SCHEMA, 500))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_csv_file_as_it_may_come(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeff\r\n"a b",c\r\n"x\r\ny",01\r\n\r\nü,"1,""2"""\r\n'.encode())
    table = open_table(str(path))
    assert list(table.columns) == ["a b", "c"]
    assert [{k: v.tolist() for k, v in block.items()} for block in table.chunks(1)] == [
        {"a b": ["x\r\ny"], "c": ["01"]},
        {"a b": [], "c": []},
        {"a b": ["ü"], "c": ['1,"2"']},
    ]
    assert table.count() == 2


def test_a_table_without_rows(tmp_path):
    table = open_table(write_csv(tmp_path / "a.csv", []))
    assert table.count() == 0
    assert list(encoded_rows(table, SCHEMA)) == []


BAD_FILES = [
    (b"", "a.csv: the file is empty"),
    (b"\n\n", "a.csv: the file is empty"),
    (b"34,north,2.5\n35,south,2\n", "a.csv:1: the header has a number in it"),
    (b"a,NaN\n1,2\n", "a.csv:1: the header has a number"),
    (b"a,b,a\n1,2,3\n", "a.csv: two columns have one name"),
    (b"a,b\n1,2\n1,2,3\n", "a.csv:3: 3 cells where the header has 2"),
    (b"a,b\n\n'1\n', 2\n1\n", "a.csv:3: 1 cell where the header has 2"),
    (b'a,b\n"1\n",2\n1\n', "a.csv:4: 1 cell where the header has 2"),
    (b'a,b\n1,2\n"1"3,2\n', "a.csv:3: ',' expected after '\"'"),
    (b'a,b\n1,"2\n', "a.csv:2: unexpected end of data"),
    (b"a,b\n1,\xff\xfe\n", "a.csv:2: it is not UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_bad_csv_files(content, message, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    assert problem_of(str(tmp_path / "a.csv")).startswith(f"{tmp_path}/{message}")


def test_bad_sources(tmp_path):
    assert re.search(r"none\.csv: no such file; give a CSV", problem_of(f"{tmp_path}/none.csv"))
    assert "it is not a file" in problem_of(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not")
    assert "a.parquet: it cannot be read; it must be a Parquet file" in problem_of(f"{tmp_path}/a.parquet")
    whole = Path(write_parquet(tmp_path / "b.parquet", {"x": [str(i) for i in range(9999)]})).read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:4] + b"\xff" * 2000 + whole[2004:])
    assert "b.parquet: it cannot be read" in problem_of(f"{tmp_path}/b.parquet")
    csv_file = write_csv(tmp_path / "a.csv")
    assert "--query is for a database" in problem_of(csv_file, "select 1")


def test_a_file_that_goes_away_or_is_cut(tmp_path):
    path = Path(write_csv(tmp_path / "a.csv"))
    table = open_table(str(path))
    path.unlink()
    with pytest.raises(InputError, match=r"a\.csv: it cannot be read \(No such file"):
        table.count()


def test_bad_urls():
    for url in (
        f"mysql://u:{PASSWORD}@host/base",
        f"postgresql:/u:{PASSWORD}@host/base",
        f"postgresql://u:{PASSWORD}@host:port/base",
        f"nosuch+driver://u:{PASSWORD}@host/base",
    ):
        told = problem_of(url, "select 1")
        assert "known kind of database; give sqlite:///FILE or postgresql://USER" in told, url
        assert PASSWORD not in told
    assert "postgresql://u:***@h/b: a database needs --query" in problem_of(f"postgresql://u:{PASSWORD}@h/b")
    told = problem_of(f"postgresql://127.0.0.1:{free_port()}/b?password={PASSWORD}", "select 1")
    assert "Connection refused" in told
    assert "the database must be reachable" in told
    assert "the query failed" in problem_of(f"postgresql://127.0.0.1/b?nosuch={PASSWORD}", "select 1")


def test_passwords_that_a_driver_repeats_are_hidden():
    told = problem_of(f"postgresql://u@127.0.0.1:1/b?sslmode={PASSWORD}&password={PASSWORD}", "select 1")
    assert "***" in told
    told = problem_of(f"postgresql://u:{PASSWORD}@127.0.0.1:1/b?sslmode={PASSWORD}", "select 1")
    assert "***" in told


def test_sqlite_is_only_read(tmp_path):
    url = write_sqlite(tmp_path / "a.db")
    before = (tmp_path / "a.db").read_bytes()
    for query in ("drop table people", "delete from people", "delete from people returning age"):
        assert "a.db: attempt to write a readonly database; give one SELECT" in problem_of(url, query)
    assert (tmp_path / "a.db").read_bytes() == before
    assert "no such file" in problem_of(f"sqlite:///{tmp_path}/none.db", "select 1")
    assert not (tmp_path / "none.db").exists()
    assert "no such file" in problem_of("sqlite://", "select 1")


def test_bad_queries_of_sqlite(tmp_path):
    url = write_sqlite(tmp_path / "a.db")
    assert "a.db: no such column: aeg; give one SELECT" in problem_of(url, "select aeg from people")
    assert "syntax error" in problem_of(url, "selec age from people")
    assert "the query returns no rows" in problem_of(url, "pragma cache_size = 3")
    assert "two columns have one name" in problem_of(url, "select age, age from people")
    (tmp_path / "b.db").write_bytes(b"not a database" * 100)
    assert "file is not a database" in problem_of(f"sqlite:///{tmp_path}/b.db", "select * from x")


def test_bad_queries_of_postgresql(people):
    assert 'column "aeg" does not exist; give one SELECT' in problem_of(people, "select aeg from people")
    assert 'relation "none" does not exist' in problem_of(people, "select 1 from none")
    for query in ("delete from many", "drop table many", "update many set age = 1 returning age", "commit"):
        assert "syntax error" in problem_of(people, query)
    assert "data-modifying" in problem_of(people, "with gone as (delete from many returning age) select * from gone")
    assert "read-only transaction" in problem_of(people, "select setval('number', 3)")
    assert open_table(people, "select * from many").count() == 20000
    told = problem_of(people, f"select cast(region || '{PASSWORD}' as int) from people")
    assert "the query failed (22P02)" in told
    assert "01" not in re.sub(r"@\S*:\d+/", "", told)  # of a value; the port may have any digits


def test_bad_logins(people):
    assert "password authentication failed" in problem_of(people.replace(PASSWORD, f"{PASSWORD}x"), "select 1")
    assert 'database "nobase" does not exist' in problem_of(people.replace("/postgres", "/nobase"), "select 1")


@pytest.mark.parametrize(
    ("missing", "source"),
    [("sqlalchemy", "sqlite:///a.db"), ("pyarrow", "a.parquet"), ("psycopg", "postgresql://u@127.0.0.1/b")],
)
def test_missing_packages_are_named(missing, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.parquet").touch()
    load = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    told = problem_of(source, None if missing == "pyarrow" else "select 1")
    assert told == f"{missing} is not installed; {how_to_install(missing)}"


def test_reading_a_csv_file_needs_no_library(tmp_path):
    source = write_csv(tmp_path / "a.csv")
    code = (
        "import sys; from thesis_cli.privacy.tables.table import open_table\n"
        f"assert open_table({source!r}).count() == 4\n"
        "print([m for m in ('pandas', 'pyarrow', 'sqlalchemy', 'scipy', 'numba', 'opendp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_arrays_are_of_rows(table):
    for block in table.chunks(3):
        assert {type(v) for v in block.values()} == {np.ndarray}
        assert len({v.shape for v in block.values()}) == 1


def test_a_dataframe_reads_as_the_csv_file_of_it(tmp_path):
    frame = pd.DataFrame(
        {
            "height": [1.5, np.nan, 2.0],
            "children": pd.array([1, None, 3], dtype="Int64"),
            "region": pd.Categorical(["north", None, "south"]),
            "smoker": [True, False, True],
        },
        index=[7, 7, 9],
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema(
        (
            Real("height", 1.0, 2.5, missing=True),
            Integer("children", 0, 3, missing=True),
            Category("region", ("north", "south"), missing=True),
            Boolean("smoker"),
        )
    )
    table = open_table(frame)
    assert table.columns == {"height": "real", "children": "integer", "region": "text", "smoker": "boolean"}
    assert table.count() == 3
    found = Rows.concatenate(list(encoded_rows(table, schema, chunk=2)))
    expected = Rows.concatenate(list(encoded_rows(open_table(str(tmp_path / "t.csv")), schema)))
    np.testing.assert_array_equal(found.reals, expected.reals)
    np.testing.assert_array_equal(found.codes, expected.codes)


@pytest.mark.parametrize(
    ("source", "query", "problem"),
    [
        (pd.DataFrame({"a": [1]}), "SELECT 1", "--query is for a database"),
        (pd.DataFrame([[1]]), None, "name"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "one name"),
        (7, None, "<int> is not a table"),
    ],
)
def test_objects_that_are_not_tables(source, query, problem):
    with pytest.raises(InputError, match=problem):
        open_table(source, query)
