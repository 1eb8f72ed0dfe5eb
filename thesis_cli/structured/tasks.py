"""Label ranking, multi-label and hierarchical classification as structured prediction.

Each task has a space of structures (Vembu et al. section 4): subsets of the labels are vertices of
a hypercube, rankings are permutations, and sets of nodes that hold each node's parent are rooted
subtrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.structured import catalogue
from thesis_cli.structured.names import Decision, TaskName, Unranked
from thesis_cli.structured.observations import Known, Observed
from thesis_cli.structured.permutations import Permutations
from thesis_cli.structured.space import Space

SPACES: dict[TaskName, str] = {"multilabel": "hypercube", "ranking": "permutations", "hierarchy": "subtrees"}
"""The space of each task."""

MOST_PAIRED = 14
"""Most labels whose pairs have weights unless that is asked for."""


@dataclass(frozen=True)
class Tree:
    """A tree of named nodes.

    Attributes
    ----------
    names : names of the nodes, the root first and each node after its parent.
    parents : place of each node's parent, -1 for the root.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Tree:
        """The tree of pairs (node, parent), in any order; the root's parent is empty. Raises
        InputError if a node is named twice or has an unknown parent, there is not one root, or a
        cycle."""
        parent = dict(pairs)
        if len(parent) < len(pairs):
            twice = next(name for k, (name, _) in enumerate(pairs) if name in dict(pairs[:k]))
            raise InputError(f"node {twice!r} is named twice", "give each node one parent")
        for name, above in pairs:
            if above and above not in parent:
                raise InputError(f"the parent {above!r} of {name!r} is no node", "give it a line of its own")
        roots = [name for name, above in pairs if not above]
        if len(roots) > 1:
            raise InputError(
                f"{roots[0]!r} and {roots[1]!r} have no parent", "give one root, and each other node a parent"
            )
        names = list(roots)
        for name in names:  # grows while it is read
            names += [node for node, above in pairs if above == name]
        if len(names) < len(pairs):
            lost = next(name for name, _ in pairs if name not in set(names))
            raise InputError(f"node {lost!r} is on or below a cycle", "each node must descend from the root")
        place = {name: at for at, name in enumerate(names)}
        return cls(tuple(names), tuple(place.get(parent[name], -1) for name in names))


def feature_names(task: TaskName) -> list[str]:
    """Features that a task may have, the default first."""
    return catalogue.feature_names(SPACES[task])


def default_features(task: TaskName, labels: int, sampled: bool = False) -> str:
    """Features that a task of so many labels has unless others are asked for.

    Parameters
    ----------
    sampled : whether gradients are sampled, for which log-potentials must be linear.
    """
    if task == "multilabel":
        return "pairs" if labels <= MOST_PAIRED else "linear"
    return "plackett-luce" if task == "ranking" and not sampled else feature_names(task)[0]


class BadRow(InputError):
    """A row that has no structure.

    Attributes
    ----------
    row : its place, from 0.
    """

    row: int = 0

    @classmethod
    def at_row(cls, row: int, problem: str, remedy: str) -> BadRow:
        found = cls(problem, remedy)
        found.row = row
        return found


@dataclass(frozen=True)
class Task:
    """Labels and features of a task. Raises InputError if the features are not of this task, or there are too
    few labels; ModelTooLarge if there are more features than a space may have.

    Attributes
    ----------
    name : name of the task.
    labels : names of labels, ranked items or nodes.
    features : features of the structures.
    parents : place of each node's parent as in `Tree`, for a hierarchy; empty otherwise.
    preferences : column that holds rankings as text; empty if each item has a column for its rank.
    unranked : where items without a rank may be: anywhere, or last.
    """

    name: TaskName
    labels: tuple[str, ...]
    features: str
    parents: tuple[int, ...] = ()
    preferences: str = ""
    unranked: Unranked = "anywhere"

    def __post_init__(self) -> None:
        known = feature_names(self.name)
        if self.features not in known:
            remedy = f"give {' or '.join(known)}"
            raise InputError(f"features {self.features} do not go with the task {self.name}", remedy)
        _ = self.space  # which refuses what makes none

    @cached_property
    def space(self) -> Space:
        """The space of its structures."""
        parents = self.parents if self.name == "hierarchy" else None
        return catalogue.space(SPACES[self.name], len(self.labels), self.features, parents)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table that hold what is predicted."""
        return (self.preferences,) if self.preferences else self.labels

    def observed(self, labels: Floats) -> Observed:
        """Structures of rows of labels, shape (m, d): bits, or ranks from 1, the best, equal for ties and nan for
        items without one. Raises BadRow for the first row with a label that is no bit, a node without
        its parent, or a rank that is none."""
        rows = np.arange(len(labels))
        if self.name == "ranking":
            known, d = ~np.isnan(labels), labels.shape[1]
            ranks = np.where(known, labels, 0.0)
            wrong = (known & ((ranks < 1) | (ranks > d) | (ranks % 1 != 0))).any(axis=1)
            _refuse(wrong, labels, "are no ranks", f"give whole numbers from 1, the best, to {d}, equal ones for ties")
            return Observed.ranked(ranks.astype(np.int64) - 1, self.unranked, rows)
        wrong = ~np.isin(labels, (0.0, 1.0)).all(axis=1)
        _refuse(wrong, labels, "are not all 0 or 1", "give 1 for the labels that apply, 0 for the others")
        structures = labels.astype(np.int64)
        if self.name == "hierarchy":
            self._check_hierarchy(structures)
        return Observed(structures, rows)

    def labels_of(self, structures: Ints) -> Ints:
        """Rows of labels for rows of the space."""
        return structures + 1 if self.name == "ranking" else structures

    def decide(self, weights: Floats, decision: Decision = "map") -> Ints:
        """A structure for each weight vector, shape (n, dimension) -> (n, width). Raises
        ModelTooLarge if the space has no algorithm for it.

        Parameters
        ----------
        decision : `map` for the most probable structure. `marginal` for the one that makes an
            expected loss least: bits with a probability above 1/2 (Hamming loss; no node is more
            probable than its parent, so that these make a subtree), or items sorted by expected
            position (squared differences of positions).
        """
        if decision == "map":
            return self.space.maximise(weights).structures
        if isinstance(self.space, Permutations):
            order = np.argsort(self.space.expected_positions(weights), axis=1, kind="stable")
            return np.argsort(order, axis=1, kind="stable").astype(np.int64)
        found = (self.marginals(weights) > 0.5).astype(np.int64)
        for node, parent in enumerate(self.parents):  # rounding may put a node above its parent
            found[:, node] = found[:, node] & found[:, parent] if parent >= 0 else 1
        return found

    def marginals(self, weights: Floats) -> Floats:
        """Probability of each label, shape (n, d), or of each item at each position, (n, d, d). Raises
        ModelTooLarge if the space has no algorithm for it."""
        if isinstance(self.space, Permutations):
            return self.space.chances(weights)
        return self.space.sums(weights)[1][:, : len(self.labels)]

    def losses(self, truth: Ints, found: Ints, known: Known | None = None) -> dict[str, Floats]:
        """Losses of each row by name, shape (n,), of structures that were decided on; `known` is what is
        known of rankings, if not all.

        zero_one : whether the structure is wrong; a ranking, whether it contradicts what is known.
        hamming : share of wrong bits.
        hierarchy : number of wrong nodes whose ancestors are all right (Cesa-Bianchi et al., 2006,
            with all costs 1).
        kendall_tau : Kendall's tau of two rankings, over the pairs whose order is known, from 1 if they
            agree to -1; no loss, larger is better.
        """
        if self.name == "ranking":
            agreeing, pairs = (known or Known(truth)).agreement(found)
            tau = np.where(pairs > 0, agreeing / np.maximum(pairs, 1), 1.0)
            return {"zero_one": (agreeing < pairs).astype(float), "kendall_tau": tau}
        wrong = truth != found
        measured = {"zero_one": wrong.any(axis=1).astype(float)}
        measured["hamming"] = wrong.mean(axis=1)
        if self.name == "hierarchy":
            above = [max(parent, 0) for parent in self.parents]  # the root is always right
            # of two subtrees, a node below a wrong one whose parent is right is right as well
            measured["hierarchy"] = (wrong & ~wrong[:, above]).sum(axis=1).astype(float)
        return measured

    def _check_hierarchy(self, structures: Ints) -> None:
        for node, parent in enumerate(self.parents):
            above = structures[:, parent] if parent >= 0 else structures[:, node]
            wrong = (structures[:, node] > above) if parent >= 0 else above == 0
            if wrong.any():
                name, remedy = (
                    repr(self.labels[node]),
                    "a node that applies needs its parent, and the root always applies",
                )
                problem = (
                    f"{name} is 1 and its parent {self.labels[parent]!r} is 0"
                    if parent >= 0
                    else f"the root {name} is 0"
                )
                raise BadRow.at_row(int(wrong.argmax()), problem, remedy)


def _refuse(wrong: ArrayLike, labels: Floats, problem: str, remedy: str) -> None:
    if np.any(wrong):
        at = int(np.argmax(wrong))
        raise BadRow.at_row(at, f"the labels {', '.join(f'{x:g}' for x in labels[at])} {problem}", remedy)
