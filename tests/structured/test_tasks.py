"""Tasks as spaces: labels, decisions against enumerated expected losses, losses, trees."""

import itertools

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.structured.tasks import BadRow, Task, Tree, kendall_tau

LABELS = ("a", "b", "c")
TASKS = [
    Task("multilabel", LABELS, "linear"),
    Task("multilabel", LABELS, "pairs"),
    Task("ranking", LABELS, "positions"),
    Task("ranking", LABELS, "ranks"),
    Task("ranking", LABELS, "orders"),
    Task("hierarchy", ("r", *LABELS), "nodes", (-1, 0, 0, 2)),
]


@pytest.fixture(params=TASKS, ids=lambda task: f"{task.name}-{task.features}")
def task(request):
    return request.param


def expected_losses(task, weights, loss):
    """All structures, and the expected loss of each under one weight vector."""
    rows = np.concatenate(list(task.space.blocks()))
    chances = np.exp(task.space.scores(rows, weights) - task.space.log_partition(weights[None]))
    return rows, np.array([loss(rows, np.broadcast_to(row, rows.shape)) @ chances for row in rows])


def squared(truth, found):
    return ((truth - found) ** 2).sum(axis=1).astype(float)


def test_decisions_make_expected_losses_least(task):
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(12, task.space.dimension))
    marginal = squared if task.name == "ranking" else (lambda truth, found: task.losses(truth, found)["hamming"])
    for decision, loss in (("map", lambda t, f: task.losses(t, f)["zero_one"]), ("marginal", marginal)):
        for one, found in zip(weights, task.decide(weights, decision), strict=True):
            rows, risks = expected_losses(task, one, loss)
            at = int((rows == found).all(axis=1).argmax())
            assert (rows[at] == found).all()
            assert risks[at] == pytest.approx(risks.min())


def test_labels_come_back(task):
    rows = np.concatenate(list(task.space.blocks()))
    labels = task.labels_of(rows)
    assert labels.min() == (1 if task.name == "ranking" else 0)
    np.testing.assert_array_equal(task.structures(labels.astype(float)), rows)


@pytest.mark.parametrize(
    ("name", "labels", "row", "message"),
    [
        ("multilabel", [[0, 1, 1], [0, 2, 1]], 1, "the labels 0, 2, 1 are not all 0 or 1"),
        ("multilabel", [[0, 0.5, 1]], 0, "are not all 0 or 1"),
        ("ranking", [[1, 2, 3], [3, 1, 2], [1, 1, 3]], 2, "the labels 1, 1, 3 are no permutation"),
        ("ranking", [[0, 1, 2]], 0, "each rank from 1, the best, to 3"),
        ("hierarchy", [[1, 0, 0, 0], [0, 0, 0, 0]], 1, "the root 'r' is 0"),
        ("hierarchy", [[1, 1, 0, 1]], 0, "'c' is 1 and its parent 'b' is 0"),
    ],
)
def test_rows_that_are_no_structures_are_refused(name, labels, row, message):
    task = next(task for task in TASKS if task.name == name)
    with pytest.raises(BadRow, match=message) as found:
        task.structures(np.array(labels, float))
    assert found.value.row == row


def test_features_of_another_task_are_refused():
    with pytest.raises(InputError, match="features pairs do not go with the task ranking; give positions or"):
        Task("ranking", LABELS, "pairs")


def test_losses_by_hand():
    tree = TASKS[-1]
    truth, found = np.array([[1, 1, 1, 1], [1, 0, 0, 0]]), np.array([[1, 1, 0, 0], [1, 0, 1, 1]])
    losses = tree.losses(truth, found)
    assert losses["zero_one"].tolist() == [1, 1]
    assert losses["hamming"].tolist() == [0.5, 0.5]
    assert losses["hierarchy"].tolist() == [1, 1]
    assert TASKS[2].losses(np.array([[0, 1, 2]] * 3), np.array([[0, 1, 2], [0, 2, 1], [2, 1, 0]]))[
        "kendall_tau"
    ].tolist() == pytest.approx([1, 1 / 3, -1])


def test_kendall_tau_counts_pairs():
    rows = np.array(list(itertools.permutations(range(4))))
    from scipy.stats import kendalltau

    expected = [kendalltau(rows[7], row).statistic for row in rows]
    np.testing.assert_allclose(kendall_tau(np.broadcast_to(rows[7], rows.shape), rows), expected)
    assert kendall_tau(np.zeros((2, 1), np.int64), np.zeros((2, 1), np.int64)).tolist() == [1, 1]


def test_a_tree_in_any_order_has_parents_before_children():
    tree = Tree.of([("c", "b"), ("b", "r"), ("a", "r"), ("r", "")])
    assert tree.names[0] == "r"
    assert {tree.names[k]: tree.names[p] for k, p in enumerate(tree.parents) if p >= 0} == {
        "a": "r",
        "b": "r",
        "c": "b",
    }
    assert all(parent < node for node, parent in enumerate(tree.parents))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b"), ("b", "a")], "node 'a' is on or below a cycle"),
        ([("r", ""), ("a", "b"), ("b", "a")], "node 'a' is on or below a cycle"),
        ([("a", "a")], "node 'a' is on or below a cycle"),
        ([("r", ""), ("s", "")], "'r' and 's' have no parent"),
        ([("r", ""), ("a", "x")], "the parent 'x' of 'a' is no node"),
        ([("r", ""), ("a", "r"), ("a", "r")], "node 'a' is named twice"),
    ],
)
def test_what_is_no_tree_is_refused(pairs, message):
    with pytest.raises(InputError, match=message):
        Tree.of(pairs)
