"""Folders of corpora: whole, cut short at any moment, damaged, and of other kinds."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing import damaged
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus import corpus_maker, corpus_shards
from thesis_cli.synthesis.corpus.corpus import join
from thesis_cli.synthesis.corpus.corpus_file import load_corpus, write_tasks
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, parts, split
from thesis_cli.synthesis.corpus.corpus_shards import ARRAYS, opened
from thesis_cli.synthesis.language.dsl import INT, LIST, Semantics

PLAN = CorpusPlan(4, 40, 9, True, semantics=Semantics("floor", -99, 99, 12), signatures=[(LIST,), (INT, LIST)])
RECORD = {"made_from": {"seed": 0}, "made_by": {"thesis-cli": "1"}}


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_maker, "PART", 20)
        yield


@pytest.fixture(scope="module")
def made():
    return list(parts(PLAN, np.random.default_rng(0)))


def write(path, made, record=RECORD, **settings):
    """Write what is missing; returns how much was there."""
    with opened(path, record, **settings) as folder:
        there = len(folder)
        for part in made[there:]:
            folder.add(part, 4)
        folder.finish({"more": 1})
    return there


def contents(path):
    return {file.relative_to(path): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_what_is_written_is_read(tmp_path, made):
    whole = join(made)
    made = [*made[:-1], corpus_shards.Corpus(**{**vars(made[-1]), "weights": np.linspace(0.5, 2, len(made[-1]))})]
    write(tmp_path / "c.corpus", made)
    found = load_corpus(tmp_path / "c.corpus")
    for name in ("codes", "types", "test"):
        array = getattr(found, name)
        assert np.array_equal(array, getattr(whole, name))
        assert array.dtype == getattr(whole, name).dtype
    assert np.array_equal(found.numbers, whole.numbers)
    assert np.array_equal(found.weights, join(made).weights)
    assert found.weights[-1] == 2
    assert (found.semantics, found.made) == (whole.semantics, whole.made)
    assert found.labelled() == whole.labelled()
    assert all(isinstance(shard.numbers, np.memmap) for shard in found.shards())
    assert [len(shard) for shard in found.shards()] == [len(part) for part in made]
    rows = np.array([60, 1, 60, 22])
    assert found.subset(rows).labelled() == whole.subset(rows).labelled()
    assert [part.labelled() for part in split(found)] == [part.labelled() for part in made]
    write_tasks(found, tmp_path / "a.jsonl")
    write_tasks(join(made), tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [row["weight"] for row in rows] == found.weights.tolist()


class Kill(BaseException):
    pass


def test_a_corpus_that_was_killed_goes_on_and_loses_one_shard_at_most(tmp_path, made, monkeypatch):
    write(tmp_path / "whole.corpus", made)
    path = tmp_path / "c.corpus"
    for step in range(3 * len(made) + 2):
        left, before = [step], done_shards(path)
        with monkeypatch.context() as patch:
            for owner, name in ((corpus_shards, "write_atomic"), (Path, "rename"), (np, "save")):
                patch.setattr(owner, name, killing(getattr(owner, name), left))
            with contextlib.suppress(Kill):
                write(path, made)
        if before > 1:  # lose what was made, and go on from what is left
            assert done_shards(path) >= before - 1
    assert write(path, made) == len(made)
    assert contents(path) == contents(tmp_path / "whole.corpus")


def done_shards(path):
    return len(json.loads((path / "corpus.json").read_text())["shards"]) if (path / "corpus.json").exists() else 0


def killing(function, left):
    def call(*arguments, **settings):
        if not left[0]:
            raise Kill
        left[0] -= 1
        return function(*arguments, **settings)

    return call


def test_a_damaged_shard_is_made_again_with_all_after_it(tmp_path, made):
    path = tmp_path / "c.corpus"
    write(path, made)
    before = contents(path)
    file = path / "shard-00002" / "numbers.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert write(path, made) == 2
    assert contents(path) == before


def test_another_corpus_is_kept_unless_it_may_be_replaced(tmp_path, made):
    path = tmp_path / "c.corpus"
    write(path, made)
    other = {**RECORD, "made_from": {"seed": 1}}
    with pytest.raises(InputError, match="holds another corpus"):
        write(path, made[::-1], other)
    assert write(path, made[:2], other, overwrite=True) == 0
    assert sorted(entry.name for entry in path.iterdir()) == ["corpus.json", "shard-00000", "shard-00001"]
    assert len(load_corpus(path)) == len(made[0]) + len(made[1])


def test_another_version_does_not_go_on(tmp_path, made):
    path = tmp_path / "c.corpus"
    later = {**RECORD, "made_by": {"thesis-cli": "2"}}
    with opened(path, RECORD) as folder:
        folder.add(made[0], 4)
    with pytest.raises(InputError, match="other versions"), opened(path, later):
        pass
    write(path, made)
    assert write(path, made, later) == len(made)  # what is complete stays


def test_a_folder_without_a_corpus_is_left_alone(tmp_path, made):
    (tmp_path / "c.corpus").mkdir()
    (tmp_path / "c.corpus" / "thesis.tex").write_text("text")
    (tmp_path / "d.corpus").write_text("text")
    for path, message in (
        (tmp_path / "c.corpus", "without a corpus"),
        (tmp_path / "d.corpus", "is no folder"),
        (tmp_path / "c.npz", "does not end in .corpus"),
    ):
        with pytest.raises(InputError, match=message), opened(path, RECORD, overwrite=True):
            pass
        assert_refused(path)


def test_what_is_not_complete_is_not_loaded(tmp_path, made):
    with opened(tmp_path / "c.corpus", RECORD) as folder:
        folder.add(made[0], 4)
        assert folder.corpus().labelled() == made[0].labelled()
    assert_refused(tmp_path / "c.corpus", "it is not complete")


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays_are_refused(tmp_path, made, name):
    path = tmp_path / "c.corpus"
    write(path, made)
    file = path / "shard-00001" / f"{name}.npy"
    array, data = np.load(file), file.read_bytes()
    for content in (array[:-1], array.astype(np.float32), array[None]):
        np.save(file, content)
        assert_refused(path, "does not fit")
    file.write_bytes(data[:-1])
    assert_refused(path, "not a whole NPY file")
    file.unlink()
    assert_refused(path, "cannot be read")


@pytest.mark.parametrize("change", [(0, 0, 99), (0, 1, 4), (0, 2, -2), (0, 0, -1), (3, 1, 9)])
def test_lines_that_are_no_programs_are_refused(tmp_path, made, change):
    path = tmp_path / "c.corpus"
    write(path, made)
    file = path / f"shard-{len(made) - 1:05}" / "lines.npy"
    line, place, value = change
    array = np.load(file)
    array[5, line, place] = value
    np.save(file, array)
    assert_refused(path, "hold no programs")


@pytest.mark.parametrize("types", [(2, 1, 0, 2), (0, 2, 0, 2), (2, 0, 2, 2), (0, 0, 0, 2), (2, 0, 0, 0), (3, 2, 0, 2)])
def test_inputs_in_another_order_are_refused(tmp_path, made, types):
    path = tmp_path / "c.corpus"
    write(path, made)
    file = path / "shard-00000" / "types.npy"
    array = np.load(file)
    array[5] = types
    np.save(file, array)
    assert_refused(path, "hold no programs")


def test_a_damaged_card_is_refused(tmp_path, made):
    path = tmp_path / "c.corpus"
    write(path, made)
    text = (path / "corpus.json").read_bytes()
    for seed in range(examples(30)):
        (path / "corpus.json").write_bytes(damaged(text, np.random.default_rng(seed), text=True))
        with contextlib.suppress(InputError):  # a count may be another number
            load_corpus(path)


def assert_refused(path, message="."):
    with pytest.raises(InputError, match=message) as caught:
        load_corpus(path)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)
