import tomllib

import numpy as np
import pandas as pd
import pytest

import thesis_cli
from thesis_cli.privacy.tables import table as privacy_table
from thesis_cli.privacy.tables.schema import Boolean, Category, Date, Integer, Real, Schema
from thesis_cli.privacy.tables.suggestions import suggested_rules

SCHEMA = Schema(
    (
        Integer("age", 0, 99),
        Integer("school years", 0, 30),
        Real("a", 0, 10, missing=True),
        Real("b", 0, 10),
        Real("c", 0, 20, missing=True),
        Category("job", ("none", "clerk", 'the "boss"')),
        Boolean("minor"),
        Date("came", "2000-01-01", "2020-12-31"),
        Date("left", "2000-01-01", "2020-12-31"),
    )
)


def table(count, seed, *, dependent):
    """Public rows whose columns depend on each other, or do not."""
    rng = np.random.default_rng(seed)
    age, a, b, c = rng.integers(0, 100, count), *(rng.random(count).round(3) * 10 for _ in range(3))
    job, minor = rng.choice(SCHEMA.columns[5].levels, count), rng.random(count) < 0.3
    school = rng.integers(0, 31, count)
    days = rng.integers(0, 7000, (2, count))
    if dependent:
        school, c, minor, days = np.minimum(school, age), a + b, age < 18, np.sort(days, axis=0)
        job = np.where(minor, "none", job)
        a, c = np.where(age % 9 == 0, np.nan, a), np.where(age % 7 == 0, np.nan, c)
    came, left = (np.datetime64("2000-01-01") + d.astype("m8[D]") for d in days)
    columns = {"age": age, "school years": school, "a": a, "b": b, "c": c, "job": job, "minor": minor}
    return pd.DataFrame({**columns, "came": came.astype(str), "left": left.astype(str)})


def encoded(frame, schema=SCHEMA):
    return schema.encode({name: frame[name].to_numpy() for name in frame})


def test_rules_that_public_rows_obey_and_no_other():
    found = suggested_rules(SCHEMA, encoded(table(600, 1, dependent=True)))
    assert set(found) == {
        "c == a + b",
        "a <= c",
        "b <= c",
        "`school years` <= age",
        "came <= left",
        'not (job == "clerk" and minor)',
        'not (job == "the \\"boss\\"" and minor)',
    }
    rules = Schema(SCHEMA.columns, rules=found)
    assert not rules.between.broken(rules.between.data(SCHEMA.decode(encoded(table(200, 2, dependent=True))))).any()


def test_independent_columns_suggest_nothing():
    """Of some hundred rules, each with a chance of a millionth, in many tables; four rows suggest none."""
    for seed in range(20):
        assert suggested_rules(SCHEMA, encoded(table(int(3.0 + 20 * seed), seed, dependent=False))) == ()
    assert suggested_rules(SCHEMA, encoded(table(4, 1, dependent=True))) == ()


def test_rules_of_the_schema_are_not_suggested_again():
    schema = Schema(SCHEMA.columns, rules=("came <= left", "c == a + b"))
    found = suggested_rules(schema, encoded(table(600, 1, dependent=True), schema))
    assert [rule for rule in found if not rule.startswith("not")] == ["`school years` <= age"]


def test_the_command_reads_public_rows_alone(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(600, 1, dependent=True).to_csv("public.csv", index=False)
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    opened = []
    monkeypatch.setattr(privacy_table, "CsvTable", lambda *given: opened.append(given[0]) or csv(*given))
    words = "dp-release", "--public", "public.csv", "--schema", "s.toml", "--init-schema", "new.toml"
    result = cli(*words)
    assert (result.status, result.err) == (0, "")
    assert opened == ["public.csv"]
    assert "new.toml: 7 rules that all public rows obey" in result.out
    text = (tmp_path / "new.toml").read_text()
    assert Schema.parse(text) == SCHEMA
    comments = [line.removeprefix("# ") for line in text.splitlines() if line.startswith('# "')]
    rules = tomllib.loads(f"rules = [{''.join(comments)}]")["rules"]
    assert Schema(SCHEMA.columns, rules=tuple(rules)).rules == tuple(rules)
    found = thesis_cli.dp_release(public="public.csv", schema="s.toml", init_schema="again.toml")
    assert found.template == text
    for bad in (("dp-release", "public.csv", *words[1:]), words[:3] + words[5:], words[:1] + words[3:]):
        refused = cli(*bad)
        assert refused.status == 2
        assert "give --schema and --public, without TABLE" in refused.err


csv = privacy_table.CsvTable


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_rows(count, tmp_path):
    frame = table(5, 1, dependent=True)[:count]
    assert suggested_rules(SCHEMA, encoded(frame)) == ()
