"""Structured predictors beside those that people use, ten-fold, on data that anybody can have.

`python benchmarks/structured.py [--folds K] [--page docs/structured.md] [TABLE ...]`. Tables derived from data sets
of scikit-learn, and generated ones. Each cell is the mean over folds of held-out rows, and the processor time to
learn and predict, after a first call that loads code. Rankings: Kendall's tau of `tc.StructuredPredictor("ranking")`;
a forest that predicts ranks; ranking by pairwise comparison, a logistic regression for each pair; ten nearest
neighbours, whose ranks are averaged. Label sets: right sets, and wrong labels, of `tc.StructuredPredictor()` with
trees and without; a chain of logistic regressions; a class for each set; a logistic regression for each label; a
forest. Peers have scikit-learn's defaults and standardised inputs, and predict a label that is constant in training.
A star marks those within a standard error of the best, by paired differences over folds.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thesis_cli as tc
from thesis_cli.structured.orderings import Known
from thesis_cli.studies.structured.datasets import dataset, folds

BEGIN, END = "<!-- comparison -->", "<!-- end of comparison -->"


def ranks(scores):
    """Ranks from 1, largest score first."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable") + 1


def bayes(name):
    """Classes of a data set by the probabilities of naive Bayes, as the experiment `structured-learning` has them."""
    found = dataset(name)
    return found.inputs, found.structures + 1


def tumour_measures():
    """Six measurements of the worst cells of a tumour, standardised and ranked, from means and errors of all cells."""
    inputs = datasets.load_breast_cancer().data
    worst = StandardScaler().fit_transform(inputs[:, [20, 21, 24, 25, 28, 29]])
    return inputs[:, :20], ranks(worst)


def diabetes_serum():
    """Six blood values of patients, ranked, from age, sex, body mass and blood pressure."""
    inputs = datasets.load_diabetes().data
    return inputs[:, :4], ranks(inputs[:, 4:])


def lines():
    """Utilities linear in eight inputs, with Gumbel noise."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(500, 8))
    return inputs, ranks(inputs @ rng.normal(size=(8, 6)) + rng.gumbel(size=(500, 6)))


def curves():
    """Utilities with products, bends and steps of six inputs, with Gumbel noise."""
    rng = np.random.default_rng(0)
    x = rng.random((600, 6))
    columns = (
        *(2 * np.sin(np.pi * x[:, 0] * x[:, 1]), 8 * (x[:, 2] - 0.5) ** 2, 2 * x[:, 3], 1.2 * x[:, 4] + 0.4),
        np.where(x[:, 0] > 0.5, x[:, 5], 2 - 2 * x[:, 5]),
    )
    utilities = np.stack(columns, axis=1)
    return x, ranks(3 * utilities + rng.gumbel(size=utilities.shape))


def bits(name):
    found = dataset(name)
    return found.inputs, found.structures


def counts():
    """Counts of 100 words in documents of 14 topics, by scikit-learn."""
    inputs, labels = datasets.make_multilabel_classification(1918, 100, n_classes=14, n_labels=4, random_state=0)
    return inputs, labels


def factors():
    """14 thresholds of linear functions of 100 inputs, with noise of three common factors and of their own."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(1918, 100))
    slopes = 0.6 * rng.normal(size=(100, 14)) * (rng.random((100, 14)) < 0.15)
    common = rng.normal(size=(1918, 3)) @ (1.2 * rng.normal(size=(3, 14)))
    return inputs, (inputs @ slopes + common + rng.normal(size=(1918, 14)) > 0.8).astype(int)


def rules():
    """Six labels that products, bounds and an exclusive or of eight inputs tell, each wrong in 5 %."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(800, 8))
    product, total = x[:, 0] * x[:, 1] > 0, x[:, 5] + x[:, 6] > 0
    labels = (product, (x[:, 2] > 0) & (x[:, 3] > 0), np.abs(x[:, 4]) > 0.7, total, product ^ total, x[:, 2] > 0.5)
    found = np.stack(labels, axis=1)
    return x, (found ^ (rng.random(found.shape) < 0.05)).astype(int)


RANKINGS = {
    **{name.split()[0]: partial(bayes, name) for name in ("iris ranking", "wine ranking", "digits ranking")},
    **{"measures": tumour_measures, "serum": diabetes_serum, "lines": lines, "curves": curves},
}
LABELS = {
    **{name: partial(bits, name) for name in ("tumours", "segments", "pixels")},
    **{"rules": rules, "counts": counts, "factors": factors},
}


class Logistic(LogisticRegression):
    """Logistic regression, or the only class."""

    def fit(self, inputs, labels):
        self.only_ = labels[0] if (labels == labels[0]).all() else None
        if self.only_ is None:
            return super().fit(inputs, labels)
        self.classes_ = np.array([self.only_])
        return self

    def predict(self, inputs):
        return np.full(len(inputs), self.only_) if self.only_ is not None else super().predict(inputs)


def logistic():
    return Logistic(max_iter=1000)


class Fitted:
    """A peer that predicts by an estimator of scikit-learn on standardised inputs."""

    def __init__(self, estimator, decode=lambda found: found):
        self.model, self.decode = make_pipeline(StandardScaler(), estimator), decode

    def fit(self, inputs, labels):
        self.model.fit(inputs, labels)
        return self

    def predict(self, inputs):
        return self.decode(self.model.predict(inputs))


class Pairwise:
    """Ranking by pairwise comparison (Huellermeier et al., 2008)."""

    def fit(self, inputs, labels):
        self.scale, self.models = StandardScaler().fit(inputs), {}
        inputs, self.items = self.scale.transform(inputs), labels.shape[1]
        for i, j in zip(*np.triu_indices(self.items, 1), strict=True):
            first = labels[:, i] < labels[:, j]
            self.models[i, j] = float(first[0]) if first.all() or not first.any() else logistic().fit(inputs, first)
        return self

    def predict(self, inputs):
        inputs, wins = self.scale.transform(inputs), np.zeros((len(inputs), self.items))
        for (i, j), model in self.models.items():
            chance = model if isinstance(model, float) else model.predict_proba(inputs)[:, 1]
            wins[:, i] += chance
            wins[:, j] += 1 - chance
        return ranks(wins)


class Powerset:
    """A class for each label set."""

    def fit(self, inputs, labels):
        self.sets, which = np.unique(labels, axis=0, return_inverse=True)
        self.model = Fitted(logistic(), lambda found: self.sets[found]).fit(inputs, which.ravel())
        return self

    def predict(self, inputs):
        return self.model.predict(inputs)


RANKERS = {
    "ours": lambda: tc.StructuredPredictor("ranking"),
    "no trees": lambda: tc.StructuredPredictor("ranking", interactions="none"),
    "forest": lambda: Fitted(RandomForestRegressor(random_state=0), lambda found: ranks(-found)),
    "pairwise": Pairwise,
    "neighbours": lambda: Fitted(KNeighborsRegressor(10), lambda found: ranks(-found)),
}
LABELLERS = {
    "ours": tc.StructuredPredictor,
    "no trees": lambda: tc.StructuredPredictor(interactions="none"),
    "chain": lambda: Fitted(ClassifierChain(logistic(), random_state=0)),
    "powerset": Powerset,
    "separate": lambda: Fitted(MultiOutputClassifier(logistic())),
    "forest": lambda: Fitted(RandomForestClassifier(random_state=0)),
}


def compared(inputs, labels, methods, measures, count):
    """Measures of each method in each fold, (measures, folds), and its mean seconds."""
    found = {}
    parts = folds(len(inputs), 10, np.random.default_rng(0))[:count]
    for name, method in methods.items():
        measured, seconds = [], []
        method().fit(inputs[:60], labels[:60]).predict(inputs[:5])
        for test in parts:
            train = np.setdiff1d(np.arange(len(inputs)), test)
            began = time.process_time()
            predicted = method().fit(inputs[train], labels[train]).predict(inputs[test])
            seconds.append(time.process_time() - began)
            measured.append([measure(labels[test], predicted).mean() for measure in measures])
        found[name] = np.array(measured).T, float(np.mean(seconds))
    return found


def tau(truth, found):
    agreeing, pairs = Known(truth - 1).agreement(found)
    return agreeing / pairs


def right(truth, found):
    return 100.0 * (truth == found).all(axis=1)


def wrong(truth, found):
    return -100.0 * (truth != found).mean(axis=1)


def starred(measured, at):
    """Methods within a standard error of the best, by paired differences over folds."""
    best = max(measured, key=lambda name: measured[name][0][at].mean())
    kept = set()
    for name, (values, _) in measured.items():
        apart = measured[best][0][at] - values[at]
        if apart.mean() <= apart.std(ddof=1) / len(apart) ** 0.5 or name == best:
            kept.add(name)
    return kept


def table(tables, methods, measures, form, count):
    """Lines of a table in Markdown."""
    yield "| table | " + " | ".join(methods) + " |"
    yield "| --- " * (1 + len(methods)) + "|"
    for name, make in tables.items():
        inputs, labels = make()
        found = compared(inputs, labels, methods, measures, count)
        stars = [starred(found, at) for at in range(len(measures))]
        cells = []
        for method, (values, seconds) in found.items():
            shown = [form.format(abs(row.mean())) + "\\*" * (method in stars[at]) for at, row in enumerate(values)]
            cells.append(f"{', '.join(shown)} ({seconds:.2f} s)")
        yield f"| {name} ({inputs.shape[0]:,} x {inputs.shape[1]}, {labels.shape[1]}) | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--folds", type=int, default=10, help="folds of ten that are computed, 2 or more")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced")
    parser.add_argument("tables", nargs="*", help="names; by default all")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    lines = []
    for heading, tables, methods, measures, form in (
        ("Kendall's tau (seconds):", RANKINGS, RANKERS, [tau], "{:.3f}"),
        ("% of label sets right, % of labels wrong (seconds):", LABELS, LABELLERS, [right, wrong], "{:.1f}"),
    ):
        chosen = {name: tables[name] for name in arguments.tables or tables if name in tables}
        for line in (heading, "", *table(chosen, methods, measures, form, arguments.folds), ""):
            print(line, flush=True)
            lines.append(line)
    if arguments.page:
        before, rest = arguments.page.read_text(encoding="utf-8").split(BEGIN)
        page = before + BEGIN + "\n".join(["", *lines]) + END + rest.split(END)[1]
        arguments.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
