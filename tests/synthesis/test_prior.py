"""The prior that ships."""

import numpy as np

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.dsl import ATTRIBUTES


def test_the_table_agrees_with_a_smaller_corpus():
    shipped = np.array(prior.load().probabilities)
    programs = 1500
    rows = [line.split(",") for line in prior.make(programs).splitlines()]
    assert rows[0] == ["attribute", "probability"]
    assert [row[0] for row in rows[1:]] == list(ATTRIBUTES)
    found = np.array([float(row[1]) for row in rows[1:]])
    error = np.sqrt(shipped * (1 - shipped) * (1 / programs + 1 / prior.PROGRAMS))
    assert (np.abs(found - shipped) < 5 * error + 1e-4).all()
    assert prior.make(100) == prior.make(100)


def test_it_is_an_order():
    assert len(set(prior.load().operations)) == 38
    assert prior.load() is prior.load()
