"""The arrays of an encoder: the same from a corpus and from its tasks."""

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, Semantics
from thesis_cli.synthesis.language.task import Example, Task, load_tasks, tasks_of
from thesis_cli.synthesis.networks.feed_forward import encode

NARROW = Semantics(low=-99, high=70, longest=12)


@pytest.mark.parametrize("semantics", [DEFAULT, NARROW])
def test_a_corpus_and_its_tasks_make_the_same_arrays(tmp_path, semantics):
    plan = CorpusPlan(2, 40, examples=3, semantics=semantics, signatures=[(LIST,), (INT, LIST), (LIST, LIST)])
    corpus = make_corpus(plan, np.random.default_rng(0))
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{labelled.task.to_json()}\n" for labelled in corpus.labelled()))
    for examples in (None, 2, 5):
        one = encode(corpus, examples=examples)
        other = encode(load_tasks(path, semantics), semantics, examples)
        for name in ("types", "numbers", "present", "weights"):
            array, same = getattr(one, name), getattr(other, name)
            assert (array.dtype, array.shape, array.tobytes()) == (same.dtype, same.shape, same.tobytes())
        assert one.numbers.shape == (40, examples or 3, 4, semantics.longest)
        assert one.size == other.size
        assert one.numbers.max() < one.size
    assert np.array_equal(one.attributes, corpus.attributes)
    assert other.attributes is None


def test_each_number_has_a_row_of_the_embedding():
    task = Task("t", (Example(((-256, 255), 3), ()), Example(((0,), 20), (7,))))
    made = encode([task])
    assert made.size == 513
    assert made.types[0].tolist() == [[1, 0], [0, 1], [0, 0], [0, 1]]  # numbers first, as in a corpus
    rows = [[list(row[row > 0] - 257) for row in example] for example in made.numbers[0]]
    assert rows == [[[3], [-256, 255], [], []], [[20], [0], [], [7]]]
    assert (made.numbers[0, 0, 1] == [1, 512, *[0] * 18]).all()
    assert made.types.dtype == np.float32
    assert made.numbers.dtype == np.int32


def test_tasks_may_have_fewer_examples_than_others():
    tasks = tasks_of([{"examples": [[[[1]], 1]] * n} for n in (1, 3)])
    made = encode(tasks)
    assert made.present.tolist() == [[True, False, False], [True, True, True]]
    assert not made.numbers[0, 1:].any()


def test_a_range_of_16_bits_fits():
    wide = Semantics(low=-32766, high=32766)
    made = encode([Task("t", (Example(((-32766, 32766),), 0),))], wide)
    assert made.numbers[0, 0, 0, :3].tolist() == [1, 65533, 0]


@pytest.mark.parametrize("value", [(256,), (1,) * 21, -257])
def test_values_beyond_the_semantics_are_refused(value):
    with pytest.raises(InputError, match="task t has the value"):
        encode([Task("t", (Example(((1,),), value),))])


def test_a_corpus_of_another_range_is_refused():
    corpus = make_corpus(CorpusPlan(1, 5, semantics=NARROW), np.random.default_rng(0))
    with pytest.raises(InputError, match="another range"):
        encode(corpus, DEFAULT)
