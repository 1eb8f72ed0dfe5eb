import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.release.test_record import record_of
from tests.privacy.tables.test_schema import schemas
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.files import read_record, read_release
from thesis_cli.privacy.release.record import Release, rows_text
from thesis_cli.privacy.release.vectors import NoisyVector
from thesis_cli.privacy.tables.schema import Category, Integer, Real, Schema

SCHEMA = Schema((Real("x", 0, 100), Integer("n", 0, 9, missing=True), Category("c", ("a", "b, c"))))


def made(schema, count, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    record = record_of(schema, NoisyVector(tuple(rng.normal(size=4).tolist())))
    return Release(schema, Rows(rng.random((count, schema.reals)), codes), rng.normal(size=count), record)


def write(release, path, weighted):
    path.write_text(rows_text(release, weighted=weighted), newline="")
    path.with_suffix(".json").write_text(release.record.to_json())
    return path


@settings(max_examples=examples(10))
@given(schema=schemas(), seed=st.integers(0, 99), weighted=st.booleans(), by_record=st.booleans())
def test_what_is_written_is_read(tmp_path_factory, schema, seed, weighted, by_record):
    if "weight" in schema.names:
        return
    release = made(schema, 6, seed)
    path = write(release, tmp_path_factory.mktemp("r") / "r.csv", weighted)
    found = read_release(path.with_suffix(".json") if by_record else path)
    assert (found.schema, found.record) == (schema, release.record)
    np.testing.assert_array_equal(found.weights, release.weights if weighted else np.full(6, 1 / 6))
    for column in schema.columns:
        before, after = release.columns[column.name], found.columns[column.name]
        if isinstance(column, Real):
            np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5 * (column.high - column.low))
        else:
            assert after.tolist() == before.tolist()


def test_numbers_are_written_short():
    release = Release(
        Schema((Real("x", 0, 3000), Real("y", 1e-3, 1e6, log=True), Real("z", 0, 1, missing=True))),
        Rows(np.array([[1 / 3, 0.5, 1 / 7]] * 2), np.array([[0], [1]])),
        np.array([0.25, 0.75]),
        record_of(SCHEMA),
    )
    assert rows_text(release, weighted=True) == ("x,y,z,weight\n1000.0,31.6228,0.14286,0.25\n1000.0,31.6228,,0.75\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.json", None, "the record of the release cannot be read"),
        ("r.json", "{", "not the record of a release"),
        ("r.json", "[]", "not the record of a release"),
        ("r.json", json.dumps({"format": "other"}), "not the record of a release"),
        ("r.csv", None, "no such file"),
        ("r.csv", "x,n,c,weight\n", "the release has no rows"),
        ("r.csv", "x,n,c\n1,2,e\n", "column 'c': row 1 cannot be read"),
        ("r.csv", "x,n,c,weight\n1,2,a,heavy\n", "a weight is not a number"),
        ("r.csv", "x,n,c,weight\n1,2,a,nan\n", "a weight is not a number"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    path = write(made(SCHEMA, 2), tmp_path / "r.csv", True)
    file = tmp_path / name
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_release(path)
    if name == "r.json":
        with pytest.raises(InputError, match=message):
            read_record(path)
