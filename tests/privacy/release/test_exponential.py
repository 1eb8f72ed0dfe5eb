import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.privacy.embedding.test_means import kernel_and_rows
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Choice
from thesis_cli.privacy.release import exponential
from thesis_cli.privacy.release.exponential import (
    Selection,
    candidate,
    databases,
    enumerate_domain,
    images,
    scores,
    small_database,
)
from thesis_cli.privacy.release.subspace import uniform_weights
from thesis_cli.privacy.tables.schema import Boolean, Category, Integer, Real, Schema
from thesis_cli.studies.privacy.evaluation import squared_distance

SCHEMA = Schema(
    (
        Category("colour", ("red", "green", "blue"), missing=True),
        Boolean("smoker"),
        Integer("children", 0, 2, missing=True),
        Category("grade", ("low", "high"), ordered=True),
    )
)


class Chooser:
    """Mechanism that records its arguments and chooses a fixed index."""

    def __init__(self, index=0):
        self.index, self.calls = index, []

    def __call__(self, scores, sensitivity, epsilon):
        self.calls.append((scores, sensitivity, epsilon))
        return Choice(self.index, 2 * sensitivity / epsilon, epsilon, "fixed")


def tiny(size, seed=0, scale=1.0):
    """A kernel and a domain of distinct rows, whose first and last are far apart."""
    kernel, domain = kernel_and_rows(seed, 1, (2,), size, scale=scale)
    return replace(kernel, gamma=np.array([0.7])), domain


def test_the_domain_is_every_row():
    domain = enumerate_domain(SCHEMA)
    assert len(domain) == 4 * 2 * 4 * 2
    decoded = SCHEMA.decode(domain)
    rows = set(zip(*(column.tolist() for column in decoded.values()), strict=True))
    colours, numbers = ("red", "green", "blue", None), (0, 1, 2, None)
    assert rows == set(itertools.product(colours, (False, True), numbers, ("low", "high")))
    assert SCHEMA.encode(decoded).reals.tobytes() == domain.reals.tobytes()


@pytest.mark.parametrize(("size", "count"), [(1, 1), (1, 4), (2, 1), (2, 5), (3, 3), (5, 2), (6, 3), (4, 7)])
@pytest.mark.parametrize("block", [1, 13, 2**21])
def test_scores_are_those_of_every_multiset(size, count, block, monkeypatch):
    monkeypatch.setattr(exponential, "BLOCK", block)
    kernel, domain = tiny(size)
    table = domain[np.random.default_rng(1).integers(0, size, 7)]
    found = scores(images(kernel, domain), exponential._histogram(domain, [table[:3], table[3:]]), count)
    multisets = list(itertools.combinations_with_replacement(range(size), count))
    assert len(found) == databases(size, count) == len(multisets)
    seen = [tuple(candidate(index, size, count).tolist()) for index in range(len(found))]
    assert sorted(seen) == multisets
    for members, score in zip(seen, found, strict=True):
        release = domain[np.array(members)]
        squared = squared_distance(kernel, table, uniform_weights(table), release, uniform_weights(release))
        assert score**2 == pytest.approx(squared, rel=1e-12, abs=1e-14)
        assert score <= 0


def test_the_table_itself_has_a_score_of_0_without_loss_of_digits():
    kernel, domain = tiny(20)
    members = [3, 3, 7, 19]
    histogram = np.bincount(members, minlength=20)
    found = scores(images(kernel, domain), histogram, 4)
    assert candidate(int(found.argmax()), 20, 4).tolist() == members
    assert -1e-14 < found.max() <= 0
    assert np.sort(found)[-2] < -1e-3


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_the_sensitivity_covers_every_pair_of_neighbours(rows, count, scale):
    """Over all tables of the domain, all neighbours and all candidates, with the scores that the
    mechanism gets.
    """
    kernel, domain = tiny(4, scale=scale)
    sent, chooser = {}, Chooser()
    for members in itertools.combinations_with_replacement(range(4), rows):
        small_database(kernel, domain, [domain[np.array(members)]], rows, count, 1.0, choose=chooser)
        sent[members] = chooser.calls[-1][0]
    (sensitivity,) = {call[1] for call in chooser.calls}
    worst = 0.0
    for one in sent:
        for place, other in itertools.product(range(rows), range(4)):
            neighbour = tuple(sorted([*one[:place], other, *one[place + 1 :]]))
            worst = max(worst, np.abs(sent[one] - sent[neighbour]).max())
    farthest = math.sqrt(2 - 2 * kernel.matrix(domain, domain).min())
    assert worst <= sensitivity
    assert sensitivity <= math.sqrt(2) / rows * (1 + 1e-9)
    assert sensitivity == pytest.approx(farthest / rows, rel=1e-6)
    if count % rows == 0:  # a candidate is the table itself
        assert worst == pytest.approx(sensitivity, rel=1e-6)


def test_rounding_is_counted():
    """Twice the error of a score, by extended precision; with so many rows the diameter is
    negligible.
    """
    kernel, domain = tiny(30)
    vectors = images(kernel, domain)
    rng = np.random.default_rng(0)
    for _ in range(20):
        histogram = rng.integers(0, 10**6, 30)
        exact = vectors.astype(np.longdouble)
        target = histogram.astype(np.longdouble) @ exact / histogram.sum()
        found = scores(vectors, histogram, 2)
        members = np.array([candidate(i, 30, 2) for i in range(len(found))])
        true = -np.sqrt(((exact[members].mean(1) - target) ** 2).sum(1))
        error = 2 * np.abs(found - true).max()
        rounding = exponential.score_sensitivity(vectors, 10**30)
        assert 0 < error <= rounding < 1e-12


def test_what_the_mechanism_is_given_and_what_is_released():
    kernel, domain = tiny(6)
    table = domain[np.array([0, 0, 0, 2, 5, 5])]
    chooser = Chooser(17)
    found, selection = small_database(kernel, domain, [table[:1], table[1:]], 6, 3, 0.5, choose=chooser)
    [(given, sensitivity, epsilon)] = chooser.calls
    assert (len(given), epsilon) == (math.comb(8, 3), 0.5)
    assert selection == Selection(3, 6, math.comb(8, 3), "fixed", 4 * sensitivity, 0.5, 0.0, sensitivity)
    expected = domain[candidate(17, 6, 3)]
    assert (found.reals.tolist(), found.codes.tolist()) == (expected.reals.tolist(), expected.codes.tolist())


def test_no_byte_released_changes_with_the_table_while_the_choice_is_held():
    domain = enumerate_domain(SCHEMA)
    kernel, rng = SCHEMA.kernel(), np.random.default_rng(4)
    released = set()
    for _ in range(4):
        table = domain[rng.integers(0, len(domain), 50)]
        rows, selection = small_database(kernel, domain, [table], 50, 2, 1.0, choose=Chooser(1234))
        released.add(rows.reals.tobytes() + rows.codes.tobytes() + repr(selection).encode())
    assert len(released) == 1


def test_the_real_mechanism_prefers_near_tables():
    """A large budget chooses the best table, and a tiny one any table."""
    kernel, domain = tiny(5)
    table = domain[np.array([1, 1, 4, 4] * 25)]
    found, selection = small_database(kernel, domain, [table], 100, 4, 1e4)
    assert found.reals.tolist() == domain[np.array([1, 1, 4, 4])].reals.tolist()
    assert selection.epsilon <= 1e4
    assert "permute-and-flip" in selection.mechanism
    drawn = {small_database(kernel, domain, [table], 100, 4, 1e-3)[0].reals.tobytes() for _ in range(60)}
    assert len(drawn) > 10


def test_what_is_refused():
    kernel, domain = tiny(6)
    table, chooser = domain[np.array([0, 1])], Chooser()

    def refused(match, domain=domain, table=table, rows=2, count=2, **options):
        with pytest.raises(InputError, match=match) as caught:
            small_database(kernel, domain, [table], rows, count, 1.0, choose=chooser, **options)
        assert "\n" not in str(caught.value)

    elsewhere = Rows(domain.reals[:2] + 0.5, domain.codes[:2])
    refused("^the table has a row that is not in the domain;", table=elsewhere)
    refused("^the table has 2 rows and not 3;", rows=3)
    refused("^the table has 0 rows;", rows=0)
    refused("rows is 0;", count=0)
    refused("^the domain has 0 rows;", domain=domain[:0])
    refused("^the domain has a row twice;", domain=Rows.concatenate([domain, domain[2:3]]))
    refused("^2 rows of a domain of 6 make 21 candidates; there may be 20", limit=20)
    many = Rows.of_reals(np.linspace(0, 1, exponential.LARGEST_DOMAIN + 1)[:, np.newaxis])
    refused("^the domain has 501 rows;", domain=many)
    assert chooser.calls == []
    real = Schema((Boolean("b"), Real("height", 0.0, 1.0)))
    with pytest.raises(InputError, match=r"^column 'height' is real; all columns must be"):
        enumerate_domain(real)
    wide = Schema((Integer("income", 0, 10**12), Boolean("b")))
    with pytest.raises(InputError, match=r"^the schema allows 2,000,000,000,002 rows; it may allow 500"):
        enumerate_domain(wide)


def test_zeros_of_either_sign_are_one_row():
    domain = Rows.of_reals(np.array([[0.0], [1.0]]))
    kernel = RowKernel(np.ones(1), np.zeros(0))
    chooser = Chooser()
    small_database(kernel, domain, [Rows.of_reals(np.array([[-0.0]]))], 1, 1, 1.0, choose=chooser)
    assert chooser.calls[0][0][0] == 0
