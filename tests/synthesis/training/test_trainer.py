"""Training: it learns, goes on from a checkpoint, and hands its weights to inference."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import Corpus
from thesis_cli.synthesis.networks import weights
from thesis_cli.synthesis.networks.feed_forward import FeedForward
from thesis_cli.synthesis.training.corpora import Stream, TrainingData, held_out, training_corpus

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from thesis_cli.synthesis.training.feed_forward import FeedForwardLearner  # noqa: E402
from thesis_cli.synthesis.training.trainer import (  # noqa: E402
    Checkpoints,
    TrainingPlan,
    TrainingState,
    train,
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    found = held_out(2).subset(slice(100))
    found.test[:] = False
    return found


def data_of(corpus: Corpus) -> TrainingData:
    rows = np.arange(len(corpus))
    return TrainingData(corpus, rows, rows[:20])


def learner_of(data: TrainingData) -> FeedForwardLearner:
    return FeedForwardLearner(data, seed=3, embedding=10, units=32)


def test_it_overfits_100_programs(corpus: Corpus) -> None:
    data = data_of(corpus)
    course = train(learner_of(data), data, TrainingPlan(20_000, batch=50, rate=2e-2, half=False, evaluations=4))
    assert course.curve[0]["training"] > 5
    assert course.curve[-1]["training"] < 1.5


@pytest.mark.parametrize("half", [False, True])
def test_it_goes_on_from_a_checkpoint_to_the_same_weights(corpus: Corpus, tmp_path: Path, half: bool) -> None:
    data, plan = data_of(corpus), TrainingPlan(1_200, batch=40, evaluations=5, half=half)
    whole = learner_of(data)
    course = train(whole, data, plan)
    checkpoints = Checkpoints(tmp_path / "one.checkpoint", {"seed": 3}, every=0)
    train_until(13, data, plan, checkpoints)
    resumed = learner_of(data)
    again = train(resumed, data, plan, Checkpoints(checkpoints.path, {"seed": 3}))
    assert all(np.array_equal(array, resumed.arrays()[name]) for name, array in whole.arrays().items())
    assert without_seconds(course) == without_seconds(again)


def train_until(step: int, data: TrainingData, plan: TrainingPlan, checkpoints: Checkpoints) -> None:
    """Train until a step that is not finished."""
    done = []

    def tick(programs: int) -> None:
        done.append(programs)
        if len(done) == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(learner_of(data), data, plan, checkpoints, tick)


def without_seconds(course: TrainingState) -> list[dict[str, float]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in course.curve]


def test_training_stops_early_and_keeps_the_best_weights(corpus: Corpus) -> None:
    rows = np.arange(len(corpus))
    data = TrainingData(corpus, rows[:30], rows[60:])  # too few to learn anything that holds for others
    learner = learner_of(data)
    course = train(learner, data, TrainingPlan(20_000, batch=30, rate=1e-2, evaluations=40, patience=3, half=False))
    losses = [row["validation"] for row in course.curve]
    assert course.stopped
    assert len(losses) == losses.index(min(losses)) + 4
    assert learner.metrics(data.validation)["loss"] == pytest.approx(min(losses), rel=1e-4)


def test_training_that_diverges_is_one_line(corpus: Corpus) -> None:
    data = data_of(corpus)
    with pytest.raises(InputError, match="--rate"):
        train(learner_of(data), data, TrainingPlan(150, batch=50, rate=1e36, half=False))


def test_inference_gives_the_logits_of_training(corpus: Corpus, tmp_path: Path) -> None:
    data = data_of(corpus)
    learner = learner_of(data)
    path = tmp_path / "one.safetensors"
    weights.save(path, learner.arrays(), learner.kind, weights.config_of(corpus.semantics, **learner.sizes), {})
    loaded = weights.load(path)
    learner.module.load_state_dict({name: torch.from_numpy(array) for name, array in loaded.arrays.items()})
    with torch.no_grad():
        expected = learner.module(*learner.batch(data.train, None)[:-1]).numpy()
    found = FeedForward.of(loaded).logits(data.encoded(data.train, None))
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "not a whole checkpoint"),
        (lambda data: b"", "not a whole checkpoint"),
        (lambda data: data, "other settings"),
    ],
)
def test_checkpoints_that_cannot_be_used(
    corpus: Corpus, tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    data = data_of(corpus)
    path = tmp_path / "one.checkpoint"
    train(learner_of(data), data, TrainingPlan(40, batch=40), Checkpoints(path, {"seed": 1}))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        Checkpoints(path, {"seed": 2 if message == "other settings" else 1}).load()


def test_the_stream_shows_every_program_once_in_each_epoch() -> None:
    rows = np.arange(10, 17)
    stream = Stream(rows, 5, seed=1)
    seen = np.concatenate([stream.rows(step) for step in range(7)])
    assert all(sorted(seen[start : start + 7]) == rows.tolist() for start in range(0, 35, 7))
    assert Stream(rows, 5, seed=1).rows(4).tolist() == stream.rows(4).tolist()


def test_few_programs_hold_back_examples_and_many_hold_back_programs() -> None:
    few = TrainingData.split(training_corpus(1, examples=12), seed=0)
    assert few.by_examples
    held = few.draw(few.train, None).numbers
    drawn = few.draw(few.train, np.random.default_rng(0)).numbers
    assert np.array_equal(held, few.corpus.numbers[:, :5])
    kept = few.corpus.numbers[:, 5:]
    assert all((drawn[:, m, None] == kept).all(axis=(2, 3)).any(axis=1).all() for m in range(5))
    with pytest.raises(InputError, match="6 examples"):
        TrainingData.split(training_corpus(1, examples=6), seed=0)
    many = TrainingData.split(training_corpus(2, examples=6), seed=0)
    assert not set(many.train) & set(many.validation)
    assert len(many.train) + len(many.validation) == len(many.corpus)
