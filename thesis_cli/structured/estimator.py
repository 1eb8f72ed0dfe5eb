"""Structured predictors with the interface of scikit-learn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.structured.learning_data import LARGEST, REMEDY, Cells, Table, items_of, observed, read_table
from thesis_cli.structured.names import Decision, FeatureName, Interactions, TaskName, Unranked
from thesis_cli.structured.observations import Observed
from thesis_cli.structured.predictor import Predictor
from thesis_cli.structured.tasks import Task, default_features
from thesis_cli.structured.training import learnt, prepared

PREFERENCES = "preferences"
"""Column of rankings as text in the tables that the estimator makes."""


class StructuredPredictor(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predict label sets, rankings or paths of a hierarchy (Vembu et al. eq. 1).

    Parameters are those of `structured train` and `structured predict`. Inputs are standardised.

    Parameters
    ----------
    task : what is predicted.
    features : model; by default pairs of up to 14 labels, else independent labels; Plackett-Luce; nodes.
    interactions : whether what trees predict is a further input of each row.
    regularisation : weight of the squared norm of the parameters; `auto` for cross-validation.
    categories : names of inputs whose numbers stand for categories; x0, x1, ... if X has no names.
    parents : place of each node's parent, -1 for node 0, the root; for a hierarchy.
    unranked : where items without a rank may be.
    decision : the most probable structure, or the one that makes expected loss least.

    Attributes
    ----------
    predictor_ : what was learnt, as `structured train` gives it.
    regularisation_ : that was given or chosen.
    labels_ : names of labels, items or nodes: columns of y, or y0, y1, ...
    classes_ : for multilabel, a list of the two values of each label, of which the second one applies; the values
        themselves if y has no columns.
    n_features_in_, feature_names_in_ : number of inputs, and their names if X has some.
    """

    def __init__(
        self,
        task: TaskName = "multilabel",
        *,
        features: FeatureName | None = None,
        interactions: Interactions = "trees",
        regularisation: float | str = "auto",
        categories: Sequence[str] = (),
        parents: Sequence[int] | None = None,
        unranked: Unranked = "anywhere",
        decision: Decision = "map",
    ) -> None:
        self.task = task
        self.features = features
        self.interactions = interactions
        self.regularisation = regularisation
        self.categories = categories
        self.parents = parents
        self.unranked = unranked
        self.decision = decision

    def fit(self, X: Any, y: Any) -> StructuredPredictor:
        """Learn from rows of inputs and of what is observed.

        Parameters
        ----------
        X : array or DataFrame of numbers or text, with nan or None where a value is missing, shape (n, p).
        y : two values of each label; ranks of items from 1, the best, equal for ties and nan where one is
            missing; 0 and 1 of each node; shape (n, d). Or preferences such as `a > b = c`, shape (n,).

        Raises
        ------
        InputError : a row makes no structure; a kind of ValueError.
        ModelTooLarge : the structures have no exact sums.
        """
        self._check_words()
        inputs = self._inputs(X, reset=True)
        labels = _labels(y)
        check_consistent_length(inputs.cells[0], labels.cells[0])
        if self.task == "multilabel":
            check_classification_targets(np.asarray(y))
            self._two = _classes(y, labels)
            self.classes_ = self._two[0] if np.asarray(y).ndim == 1 else self._two
            labels = self._as_bits(labels)
        task = self._task(labels)
        ready = prepared(inputs, task, inputs.names, self.categories, self.interactions, labels=labels)
        strength = None if self.regularisation == "auto" else float(self.regularisation)
        found = learnt(ready, strength)
        self.predictor_ = Predictor(task, ready.encoding, found.fit.parameters)
        self.regularisation_, self.labels_ = found.regularisation, task.labels
        self.n_iter_ = found.fit.trace.count
        return self

    def predict(self, X: Any) -> Any:
        """Values of the labels, ranks of the items or bits of the nodes, shape (n, d); (n,) if y had no
        columns."""
        task, weights = self._weights(X)
        found = self._values(task.decide(weights, self.decision))
        return found[:, 0] if self._flat else found

    def predict_proba(self, X: Any) -> Floats:
        """Probability that each label or node applies, shape (n, d), or of each item at each rank,
        shape (n, d, d); of each of two classes, shape (n, 2), if y had no columns."""
        task, weights = self._weights(X)
        found = task.marginals(weights)
        return np.hstack([1 - found, found]) if self._flat else found

    def predict_best(self, X: Any, count: int = 5) -> tuple[Any, Floats]:
        """The most probable structures of each row, as `predict` gives them, shape (n, count, d), and their
        probabilities, shape (n, count)."""
        if count != int(count) or count < 1:
            raise InputError(f"count is {count!r}", "it must be a whole number, 1 or more")
        task, weights = self._weights(X)
        values, found = task.space.best(weights, int(count))
        return self._values(found), np.exp(values - task.space.sums(weights)[0][:, None])

    def score(self, X: Any, y: Any) -> float:
        """Share of rows whose structure is right; of rankings the mean of Kendall's tau."""
        task, weights = self._weights(X)
        truth = self._truth(y, task)
        losses = task.losses(truth.structures, task.decide(weights, self.decision)[truth.rows], truth.known)
        return float(losses["kendall_tau"].mean() if task.name == "ranking" else 1 - losses["zero_one"].mean())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.target_tags.required = tags.target_tags.multi_output = True
        if self.task != "ranking":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        return tags

    def _check_words(self) -> None:
        """Refuse parameters that are not among the words for them, and a regularisation that is no number."""
        words = (("task", TaskName), ("interactions", Interactions), ("unranked", Unranked), ("decision", Decision))
        for name, known in words:
            if getattr(self, name) not in get_args(known):
                problem = f"{name} is {getattr(self, name)!r}"
                raise InputError(problem, f"it must be one of: {', '.join(get_args(known))}")
        if isinstance(self.regularisation, str) and self.regularisation != "auto":
            raise InputError(f"regularisation is {self.regularisation!r}", "it must be auto, or a number above 0")

    def _inputs(self, X: Any, reset: bool) -> Table:
        """A table of the inputs; `reset` in training, which later inputs must agree with."""
        frame = hasattr(X, "iloc")
        how = {"dtype": None, "ensure_all_finite": "allow-nan", "input_name": "X", "estimator": self}
        array = X if frame else check_array(X, **how)
        validate_data(self, array, reset=reset, skip_check_array=True)
        if frame:
            return read_table(X)
        names = tuple(f"x{at}" for at in range(array.shape[1]))
        return Table(names, tuple(_cells(array[:, at]) for at in range(array.shape[1])), "X")

    def _weights(self, X: Any) -> tuple[Task, Floats]:
        check_is_fitted(self)
        return self.predictor_.task, self.predictor_.weights(self._inputs(X, reset=False))

    def _task(self, labels: Table) -> Task:
        """The task of some labels."""
        names, preferences = labels.names, ""
        if self.task == "ranking" and names == (PREFERENCES,):
            names, preferences = items_of(labels, PREFERENCES), PREFERENCES
        features = self.features or default_features(self.task, len(names))
        return Task(self.task, names, features, tuple(self.parents or ()), preferences, self.unranked)

    def _truth(self, y: Any, task: Task) -> Observed:
        labels = _labels(y)
        return observed(self._as_bits(labels) if task.name == "multilabel" else labels, task)

    def _as_bits(self, labels: Table) -> Table:
        """Labels as 0 and 1."""
        bits = []
        for name, cells, two in zip(labels.names, labels.cells, self._two, strict=True):
            values = [str(value) if cells.dtype == object else value for value in two]
            if not np.isin(cells, values).all():
                raise InputError(f"label {name!r} has other values than {values}", "give those of the training")
            bits.append((cells == values[-1]).astype(float) * (len(two) > 1))
        return dataclasses.replace(labels, cells=tuple(bits))

    @property
    def _flat(self) -> bool:
        """Whether y was the values of one label without columns."""
        return self.task == "multilabel" and not isinstance(self.classes_, list)

    def _values(self, structures: Ints) -> Any:
        """Structures as rows of y."""
        task = self.predictor_.task
        if task.name != "multilabel":
            return task.labels_of(structures)
        columns = [two[structures[..., at] * (len(two) - 1)] for at, two in enumerate(self._two)]
        return np.stack(columns, axis=-1)


def _labels(y: Any) -> Table:
    """A table of y: columns of a DataFrame or an array, or preferences as text."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if hasattr(y, "columns"):
        return read_table(y)
    array = check_array(y, dtype=None, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
    if array.ndim == 1 and array.dtype.kind in "OUS" and all(">" in str(cell) or not cell for cell in array):
        return Table((PREFERENCES,), (_cells(array),), "y")
    array = array.reshape(len(array), -1)
    return Table(tuple(f"y{at}" for at in range(array.shape[1])), tuple(map(_cells, array.T)), "y")


def _cells(column: Any) -> Cells:
    """A column as numbers, or as text if it holds other objects."""
    try:
        values = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        missing = [cell is None or cell != cell for cell in column]
        return np.array(["" if no else str(cell) for cell, no in zip(column, missing, strict=True)], object)
    if (np.abs(values) > LARGEST).any():
        raise InputError(f"X has the number {values[np.abs(values) > LARGEST][0]:g}", REMEDY)
    return values


def _classes(y: Any, labels: Table) -> list[Any]:
    """The two values of each label, or the one; 0 and 1 if it has no others."""
    frame = hasattr(y, "columns")
    columns = [y.iloc[:, at].to_numpy() for at in range(y.shape[1])] if frame else np.atleast_2d(np.asarray(y).T)
    found = []
    for name, column in zip(labels.names, columns, strict=True):
        values = np.unique(column)
        if len(values) > 2:
            problem = f"Only binary classification is supported: label {name!r} has {len(values)} values"
            raise InputError(problem, "a label has two: it applies or not")
        bits = values.dtype.kind in "biuf" and np.isin(values, (0, 1)).all()
        found.append(np.array([0, 1], values.dtype) if bits else values)
    return found
