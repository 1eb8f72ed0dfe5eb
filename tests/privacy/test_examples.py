from pathlib import Path

import pandas as pd

from thesis_cli.privacy.examples import cps1988, files
from thesis_cli.privacy.tables.schema import Schema
from thesis_cli.privacy.tables.table import encoded_rows, open_table

TABLES = Path(__file__).parents[2] / "data" / "tables"


def test_the_files_are_what_the_command_writes():
    for name, content in files().items():
        assert (TABLES / name).read_text() == content


def test_each_table_is_of_its_schema(tmp_path):
    (tmp_path / "cps1988.csv").write_text(cps1988())
    for table, count in ((TABLES / "people.csv", 10_000), (tmp_path / "cps1988.csv", 28_155)):
        schema = Schema.load(TABLES / f"{table.stem}.toml")
        assert sum(map(len, encoded_rows(open_table(str(table)), schema))) == count


def test_what_the_people_are_like():
    people = pd.read_csv(TABLES / "people.csv")
    assert 0.07 < people.income.isna().mean() < 0.09
    assert people.groupby("education").income.median().idxmax() == "tertiary"
