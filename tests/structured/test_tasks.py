"""Tasks as spaces: labels, decisions against enumerated expected losses, losses, trees."""

import itertools

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.structured.observations import Known
from thesis_cli.structured.tasks import BadRow, Task, Tree

LABELS = ("a", "b", "c")
TASKS = [
    Task("multilabel", LABELS, "linear"),
    Task("multilabel", LABELS, "pairs"),
    Task("ranking", LABELS, "positions"),
    Task("ranking", LABELS, "ranks"),
    Task("ranking", LABELS, "orders"),
    Task("ranking", LABELS, "plackett-luce"),
    Task("ranking", LABELS, "mallows"),
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
    seen = task.observed(labels.astype(float))
    np.testing.assert_array_equal(seen.structures, rows)
    assert seen.known is None
    np.testing.assert_array_equal(seen.rows, np.arange(len(rows)))


@pytest.mark.parametrize(
    ("name", "labels", "row", "message"),
    [
        ("multilabel", [[0, 1, 1], [0, 2, 1]], 1, "the labels 0, 2, 1 are not all 0 or 1"),
        ("multilabel", [[0, 0.5, 1]], 0, "are not all 0 or 1"),
        ("ranking", [[1, 2, 3], [3, 1, 2], [1, 1.5, 3]], 2, "the labels 1, 1.5, 3 are no ranks"),
        ("ranking", [[0, 1, 2]], 0, "give whole numbers from 1, the best, to 3, equal ones for ties"),
        ("ranking", [[4, 1, 2]], 0, "are no ranks"),
        ("hierarchy", [[1, 0, 0, 0], [0, 0, 0, 0]], 1, "the root 'r' is 0"),
        ("hierarchy", [[1, 1, 0, 1]], 0, "'c' is 1 and its parent 'b' is 0"),
    ],
)
def test_rows_that_are_no_structures_are_refused(name, labels, row, message):
    task = next(task for task in TASKS if task.name == name)
    with pytest.raises(BadRow, match=message) as found:
        task.observed(np.array(labels, float))
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
    task = Task("ranking", ("a", "b", "c", "d"), "ranks")
    found = task.losses(np.broadcast_to(rows[7], rows.shape), rows)["kendall_tau"]
    np.testing.assert_allclose(found, expected)
    one = Task("ranking", ("a",), "ranks")
    assert one.losses(np.zeros((2, 1), np.int64), np.zeros((2, 1), np.int64))["kendall_tau"].tolist() == [1, 1]


RANKS = np.array([[1, 2, 3], [2, 2, 1], [np.nan, 1, np.nan], [1, np.nan, 3], [np.nan] * 3])


def test_ranks_may_be_tied_or_missing():
    anywhere = TASKS[2].observed(RANKS)
    assert anywhere.known.levels.tolist() == [[0, 1, 2], [1, 1, 0], [0, -1, 1]]
    assert anywhere.rows.tolist() == [0, 1, 3]  # what says nothing is left out
    np.testing.assert_allclose(anywhere.expected_positions(), [[0, 1, 2], [1.5, 1.5, 0], [1 / 3, 1, 5 / 3]])
    last = Task("ranking", LABELS, "positions", unranked="last").observed(RANKS)
    assert last.known.levels.tolist() == [[0, 1, 2], [1, 1, 0], [1, 0, 1], [0, 2, 1]]
    assert last.rows.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(last.expected_positions()[2], [1.5, 0, 1.5])
    assert not len(TASKS[2].observed(RANKS[4:]).rows)


def test_losses_count_the_pairs_whose_order_is_known():
    known = Known(np.array([[1, 1, 0], [0, -1, 1], [-1, -1, -1]]))
    found = TASKS[2].losses(np.zeros((3, 3), np.int64), np.array([[0, 2, 1], [1, 0, 2], [0, 1, 2]]), known)
    assert found["zero_one"].tolist() == [1, 0, 0]
    assert found["kendall_tau"].tolist() == [0, 1, 1]


def test_marginals_are_those_of_an_enumeration(task):
    weights = np.random.default_rng(4).normal(size=(3, task.space.dimension))
    rows = np.concatenate(list(task.space.blocks()))
    for vector, found in zip(weights, task.marginals(weights), strict=True):
        chances = np.exp(task.space.scores(rows, vector) - task.space.log_partition(vector[None]))
        places = [chances @ (rows == place) for place in range(len(LABELS))]
        expected = np.stack(places, axis=1) if task.name == "ranking" else chances @ rows
        np.testing.assert_allclose(found, expected, atol=1e-12)


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
