"""Structures to learn to predict, derived from data sets that come with scikit-learn.

No data set of label ranking, multi-label or hierarchical classification comes with scikit-learn.
These are derived from measurements and classes, so that nothing is invented but the question.
`python -m thesis_cli.studies.structured.datasets FOLDER` writes the example files of `data/labels`.

Rankings, as Cheng, Huehn and Huellermeier (2009) derive them: a naive Bayes classifier is fitted to
all observations, and the classes of each are ordered by its probabilities.

* `iris ranking`, `wine ranking`: 3 classes; `digits ranking`: 10 classes, 400 images.

Multi-label:

* `tumours`: of breast tumours, whether each of 10 measurements of the worst cells is above its
  median, from means and standard errors of these measurements over all cells.
* `pixels`: of handwritten digits, the 8 pixels of the fifth row from the four rows above it.
* `segments`: of handwritten digits, the 7 segments that a display lights for that digit.

Hierarchies:

* `levels`: four measurements of the worst cells of a tumour, each above its median, its 75 % and its
  90 % quantile or not, which are three nodes on one path.
* `digits tree`: digits below groups of digits (loops, strokes, curves); `wine tree`: two of three
  cultivars below one node.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.base.files import write_atomic
from thesis_cli.structured.tasks import Task, Tree

IMAGES = 400
"""Handwritten digits that are ranked; the other data sets have all 1,797."""

BRIGHT = 8
"""Brightness, of 0 to 16, from which a pixel is 1."""

SEGMENTS = ("abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg")
"""Lit segments of each digit: a is the top, then clockwise; g is the middle."""

GROUPS = {"loops": (0, 6, 8, 9), "strokes": (1, 4, 7), "curves": (2, 3, 5)}

LEVELS = (50, 75, 90)
"""Quantiles in %."""

MEASURED = ("radius", "texture", "smoothness", "concavity")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Observations of structures.

    Attributes
    ----------
    task : task with the default features.
    inputs : shape (m, p).
    input_names : names of the columns.
    structures : shape (m, width).
    """

    name: str
    task: Task
    inputs: Floats
    input_names: tuple[str, ...]
    structures: Ints


@cache
def dataset(name: str) -> Dataset:
    """A data set by its name, one of `NAMES`."""
    return _MAKERS[name](name)


def _bunch(name: str) -> tuple[Floats, Ints, tuple[str, ...]]:
    """Inputs, classes and names of the inputs of a data set of scikit-learn."""
    from sklearn import datasets

    found: Any = getattr(datasets, f"load_{name}")()
    names = tuple(str(text).split(" (")[0].replace(" ", "_").replace("/", "_") for text in found.feature_names)
    return np.asarray(found.data, float), np.asarray(found.target, np.int64), names


def _class_names(name: str) -> tuple[str, ...]:
    if name == "digits":
        return tuple(f"digit_{digit}" for digit in range(10))
    return ("barolo", "grignolino", "barbera") if name == "wine" else ("setosa", "versicolor", "virginica")


def _ranking(name: str) -> Dataset:
    from sklearn.naive_bayes import GaussianNB

    source = name.split()[0]
    inputs, classes, names = _bunch(source)
    if source == "digits":
        inputs, classes = inputs[:IMAGES], classes[:IMAGES]
    model = GaussianNB(var_smoothing=1e-2 if source == "digits" else 1e-9).fit(inputs, classes)
    order = np.argsort(-model.predict_joint_log_proba(inputs), axis=1, kind="stable")
    return Dataset(name, Task("ranking", _class_names(source), "positions"), inputs, names, np.argsort(order, axis=1))


def _tumours(name: str) -> Dataset:
    inputs, _, names = _bunch("breast_cancer")
    bits = (inputs[:, 20:] > np.median(inputs[:, 20:], axis=0)).astype(np.int64)
    labels = tuple(text.replace("worst_", "") for text in names[20:])
    return Dataset(name, Task("multilabel", labels, "linear"), inputs[:, :20], names[:20], bits)


def _pixels(name: str) -> Dataset:
    inputs, _, names = _bunch("digits")
    bits = (inputs[:, 32:40] >= BRIGHT).astype(np.int64)
    return Dataset(name, Task("multilabel", names[32:40], "linear"), inputs[:, :32], names[:32], bits)


def _segments(name: str) -> Dataset:
    inputs, classes, names = _bunch("digits")
    lit = np.array([[int(letter in letters) for letter in "abcdefg"] for letters in SEGMENTS])
    return Dataset(name, Task("multilabel", tuple("abcdefg"), "linear"), inputs, names, lit[classes])


def _levels(name: str) -> Dataset:
    inputs, _, names = _bunch("breast_cancer")
    pairs, columns = [("tumour", "")], {"tumour": np.ones(len(inputs), np.int64)}
    for measure in MEASURED:
        values, above = inputs[:, names.index(f"worst_{measure}")], "tumour"
        for level in LEVELS:
            node = f"{measure}_{level}"
            pairs.append((node, above))
            columns[node], above = (values > np.percentile(values, level)).astype(np.int64), node
    return _hierarchy(name, Tree.of(pairs), columns, inputs[:, :20], names[:20])


def _digits_tree(name: str) -> Dataset:
    inputs, classes, names = _bunch("digits")
    pairs, columns = [("digit", "")], {"digit": np.ones(len(inputs), np.int64)}
    for group, members in GROUPS.items():
        pairs += [(group, "digit"), *((f"digit_{member}", group) for member in members)]
        columns[group] = np.isin(classes, members).astype(np.int64)
        columns |= {f"digit_{member}": (classes == member).astype(np.int64) for member in members}
    return _hierarchy(name, Tree.of(pairs), columns, inputs, names)


def _wine_tree(name: str) -> Dataset:
    inputs, classes, names = _bunch("wine")
    pairs = [("wine", ""), ("barolo", "wine"), ("others", "wine"), ("grignolino", "others"), ("barbera", "others")]
    columns = {"wine": np.ones(len(inputs), np.int64), "others": (classes > 0).astype(np.int64)}
    columns |= {label: (classes == at).astype(np.int64) for at, label in enumerate(_class_names("wine"))}
    return _hierarchy(name, Tree.of(pairs), columns, inputs, names)


def _hierarchy(
    name: str, tree: Tree, columns: dict[str, Ints], inputs: Floats, input_names: tuple[str, ...]
) -> Dataset:
    bits = np.column_stack([columns[node] for node in tree.names])
    return Dataset(name, Task("hierarchy", tree.names, "nodes", tree.parents), inputs, input_names, bits)


_MAKERS = {
    "iris ranking": _ranking,
    "wine ranking": _ranking,
    "digits ranking": _ranking,
    "tumours": _tumours,
    "pixels": _pixels,
    "segments": _segments,
    "levels": _levels,
    "digits tree": _digits_tree,
    "wine tree": _wine_tree,
}

NAMES = tuple(_MAKERS)

EXAMPLES = {"iris-ranking": "iris ranking", "tumours": "tumours", "wine-tree": "wine tree"}
"""Example files by the beginning of their names."""


def folds(count: int, number: int, rng: np.random.Generator) -> list[Ints]:
    """Disjoint random parts of the observations, of sizes that differ by at most 1."""
    return [np.sort(part) for part in np.array_split(rng.permutation(count), number)]


def example_files() -> dict[str, str]:
    """Contents of the example files by name: each data set in two parts, and the tree."""
    found: dict[str, str] = {}
    for stem, name in EXAMPLES.items():
        data = dataset(name)
        test = folds(len(data.inputs), 3, np.random.default_rng(0))[0]
        train = np.setdiff1d(np.arange(len(data.inputs)), test)
        found |= {f"{stem}-{part}.csv": _text(data, rows) for part, rows in (("train", train), ("test", test))}
    task = dataset("wine tree").task
    lines = [f"{node},{task.labels[parent] if parent >= 0 else ''}" for node, parent in _edges(task)]
    return {**found, "wine-tree.csv": "\n".join(["node,parent", *lines, ""])}


def _edges(task: Task) -> list[tuple[str, int]]:
    return list(zip(task.labels, task.parents, strict=True))


def _text(data: Dataset, rows: Ints) -> str:
    labels = data.task.labels_of(data.structures[rows])
    columns = {name: data.inputs[rows, at] for at, name in enumerate(data.input_names)}
    return Columns({**columns, **{name: labels[:, at] for at, name in enumerate(data.task.labels)}}).csv()


def main(arguments: Sequence[str]) -> int:
    """Write the example files into a folder."""
    (folder,) = map(Path, arguments)
    write_atomic({folder / name: text for name, text in example_files().items()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
