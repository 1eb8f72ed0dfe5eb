"""Files of corpora: NPZ files of the first format, whole and damaged, and tasks as JSON Lines."""

import contextlib
import io
import json

import numpy as np
import pytest

from tests.fuzzing import damaged
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus_file import load_corpus, write_tasks
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of
from thesis_cli.synthesis.language.task import load_tasks


@pytest.fixture(scope="module")
def made():
    return make_corpus(
        CorpusPlan(3, 60, 9, shorter=True, semantics=Semantics("floor", -99, 99, 12)), np.random.default_rng(0)
    )


def format_1(corpus):
    """A file of the first format: three bits a variable, values without padding."""
    there = corpus.numbers != NULL
    semantics = corpus.semantics
    about = {
        "format": "thesis-cli corpus 1",
        **{name: getattr(semantics, name) for name in ("division", "low", "high", "longest")},
        "made": corpus.made,
    }
    x, y = arguments_of(corpus.codes)
    codes = np.where(corpus.codes < 0, -1, operation_of(corpus.codes) << 6 | x << 3 | y)
    file = io.BytesIO()
    np.savez_compressed(
        file,
        about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        codes=codes.astype(np.int16),
        types=corpus.types,
        sizes=np.count_nonzero(there, axis=-1).astype(np.int8),
        numbers=corpus.numbers[there],
        test=corpus.test,
    )
    return file.getvalue()


def test_files_of_the_first_format_are_read(tmp_path, made):
    (tmp_path / "c.npz").write_bytes(format_1(made))
    found = load_corpus(tmp_path / "c.npz")
    for name in ("codes", "types", "numbers", "test"):
        array = getattr(found, name)
        assert np.array_equal(array, getattr(made, name))
        assert array.dtype == getattr(made, name).dtype
    assert (found.semantics, found.made) == (made.semantics, made.made)
    assert found.labelled() == made.labelled()


def test_tasks_are_written_as_json_lines(tmp_path, made):
    write_tasks(made, tmp_path / "t.jsonl")
    assert load_tasks(tmp_path / "t.jsonl", made.semantics) == [labelled.task for labelled in made.labelled()]
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [row["program"] for row in rows] == [program.one_line for program in made.programs()]
    assert [row["test"] for row in rows] == made.test.tolist()


def test_damage_is_refused_in_one_line(tmp_path, made):
    data = format_1(made)
    path = tmp_path / "c.npz"
    rng = np.random.default_rng(0)
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        assert_refused(path)
    for at in rng.integers(0, len(data) - 1, 40):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with contextlib.suppress(InputError):  # what does not count in the format, such as a date, may change
            assert format_1(load_corpus(path)) == data


def test_a_damaged_description_is_refused(tmp_path, made):
    with np.load(io.BytesIO(format_1(made))) as file:
        arrays = dict(file)
    about = arrays.pop("about").tobytes()
    for seed in range(examples(20)):
        text = damaged(about, np.random.default_rng(seed), text=True)
        np.savez(tmp_path / "c.npz", about=np.frombuffer(text, np.uint8), **arrays)
        with contextlib.suppress(InputError):  # a count may be another number
            load_corpus(tmp_path / "c.npz")


@pytest.mark.parametrize("change", ["codes", "types", "sizes", "numbers", "test", "about", "dtype", "none"])
def test_arrays_that_do_not_fit_are_refused(tmp_path, made, change):
    with np.load(io.BytesIO(format_1(made))) as file:
        arrays = dict(file)
    if change in arrays:
        arrays[change] = arrays[change][:-1]
    elif change == "dtype":
        arrays["numbers"] = arrays["numbers"].astype(float)
    else:
        del arrays["types"]
    np.savez(tmp_path / "c.npz", **arrays)
    assert_refused(tmp_path / "c.npz")


@pytest.mark.parametrize(("name", "value"), [("codes", 10_000), ("types", 3), ("numbers", 100), ("sizes", 13)])
def test_values_out_of_bounds_are_refused(tmp_path, made, name, value):
    with np.load(io.BytesIO(format_1(made))) as file:
        arrays = dict(file)
    arrays[name].flat[0] = value
    np.savez(tmp_path / "c.npz", **arrays)
    assert_refused(tmp_path / "c.npz")


def test_other_files_are_refused(tmp_path):
    assert_refused(tmp_path / "none.npz")
    assert_refused(tmp_path)
    (tmp_path / "t.npz").write_text("text")
    assert_refused(tmp_path / "t.npz")
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert_refused(tmp_path / "a.npy")


def assert_refused(path):
    with pytest.raises(InputError) as caught:
        load_corpus(path)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)
