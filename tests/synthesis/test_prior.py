"""The prior that ships."""

import numpy as np

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.training.corpora import held_out


def test_the_table_agrees_with_a_smaller_corpus():
    shipped = np.array(prior.load().probabilities)
    programs = 150
    rows = [line.split(",") for line in prior.make(programs).splitlines()]
    assert rows[0] == ["attribute", "probability"]
    assert [row[0] for row in rows[1:]] == list(ATTRIBUTES)
    found = np.array([float(row[1]) for row in rows[1:]])
    error = np.sqrt(shipped * (1 - shipped) * (1 / programs + 1 / prior.PROGRAMS))
    assert (np.abs(found - shipped) < 5 * error + 1e-4).all()
    assert prior.make(30) == prior.make(30)


def test_the_table_counts_the_programs_that_use_each():
    """Held-out programs of 4 lines, of another seed, by the names in their listings."""
    shipped, corpus = np.array(prior.load().probabilities), held_out(prior.LENGTH)
    words = [set(str(corpus.program(row)).split()) for row in range(len(corpus))]
    found = np.array([np.mean([name in of for of in words]) for name in ATTRIBUTES])
    assert len(corpus) >= 400
    error = np.sqrt(shipped * (1 - shipped) / len(corpus))
    assert (np.abs(found - shipped) < 5 * error + 1 / len(corpus)).all()
    assert found.max() > 0.2


def test_it_is_an_order():
    assert len(set(prior.load().operations)) == 38
    assert prior.load() is prior.load()
