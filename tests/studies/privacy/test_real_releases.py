"""Releases of a small table by each method, with seeded noise."""

import numpy as np
import pytest

from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.tables.schema import Schema
from thesis_cli.studies.privacy.real_releases import COPULA, HISTOGRAMS, SECOND, TABLE, THIRD, released
from thesis_cli.studies.privacy.utility import SOURCES, RealTable

SCHEMA = Schema.parse("""
[columns.size]
type = "real"
low = 0
high = 1

[columns.place]
type = "category"
levels = ["a", "b", "c"]
""")


def small():
    rng = np.random.default_rng(7)
    place = rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    rows = Rows((place[:, None] + rng.random((400, 1))) / 3, place[:, None].astype(np.int64))
    return RealTable("small", SOURCES["cps1988"], SCHEMA, rows, rows[:50])


@pytest.mark.parametrize("method", [COPULA, THIRD, SECOND, *HISTOGRAMS, TABLE])
def test_a_release_without_noise_is_like_the_table(method):
    table = small()
    parts = released(method, table, Budget(1000, 1e-6), 60, 40, np.random.default_rng(1))
    assert [len(part) for part in parts] == ([400, 60] if method in (COPULA, TABLE) else [60])
    for part in parts:
        shares = np.bincount(part.codes[:, 0], minlength=3) / len(part)
        assert np.abs(shares - [0.6, 0.3, 0.1]).max() < 5 * np.sqrt(0.25 / 60)
        assert 0 <= part.reals.min() <= part.reals.max() <= 1


def test_noise_follows_the_seed():
    table, budget = small(), Budget(1, 1e-6)
    first, again, other = (released(COPULA, table, budget, 60, 0, np.random.default_rng(s))[1] for s in (1, 1, 2))
    assert (first.reals == again.reals).all()
    assert (first.reals != other.reals).any()
