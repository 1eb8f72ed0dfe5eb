"""Faults in single stages and types of columns are contradicted by few releases, and right releases are not."""

import numpy as np
import pytest

from benchmarks.audit_faults import BUDGET, planted
from thesis_cli.privacy.audit.cases import CASES, QUERIES, WIDE, release_case
from thesis_cli.privacy.audit.stages import Case, Stage, stage_audit
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.units import Unit
from thesis_cli.privacy.tables.columns import KINDS
from thesis_cli.privacy.tables.schema import Schema

SURE = 1 - 1e-7


@pytest.fixture(scope="module")
def wide():
    """The worst neighbours of a few of the columns, searched for once."""
    chosen = tuple(column for column in WIDE.columns if column.name in ("scale", "place", "day", "flag"))
    return release_case("some types", Schema(chosen), BUDGET, Unit())


def invented(rng, shift=1.0, noise=1.0, scale=2.0, depends=False):
    """Releases of one vector of 50 coordinates, whose neighbours are a shift apart."""

    def release(rows, held):
        vector = np.zeros(50)
        vector[0] = shift * rows
        noisy = held[0].noisy if held else vector + noise * scale * rng.normal(size=50)
        return [Stage(vector, noisy, scale * (1 + depends * rows))]

    return Case("invented", shift**2 / (2 * scale**2), release, (0, 1), 2)


def test_bounds_are_those_of_the_noise():
    """50 coordinates of 80 releases: a standard error of 1.1 % of the noise."""
    rng = np.random.default_rng(0)
    right = stage_audit(invented(rng), 80, 0.999)
    assert right.contradictions == []
    assert 1 < right.noise[0] < 1.09
    assert 0.92 < right.share < 1
    less = stage_audit(invented(rng, noise=0.9), 80, 0.999)
    assert less.noise[0] < 0.98
    assert len(less.contradictions) == 2 - (less.proven <= less.rho)
    far = invented(rng)
    wrong = stage_audit(Case("far", far.rho / 1.4, far.release, far.tables, far.far), 80, 0.999)
    assert wrong.contradictions == [f"rho is at least {wrong.proven:.4g}, not {wrong.rho:.4g}"]
    leaks = stage_audit(invented(rng, depends=True), 80, 0.999)
    assert "the scale of vector 1 depends on the table" in leaks.contradictions[-1]


def test_every_type_of_column_is_audited():
    assert {column.kind for column in WIDE.columns} == set(KINDS)
    assert {column.missing for column in WIDE.columns} == {True, False}
    assert len(QUERIES) == 6


def test_right_releases_are_not_contradicted_and_prove_most_of_the_claim(wide):
    found = stage_audit(wide, 16, SURE)  # the share is 0.896 with a standard error of 0.008
    assert found.contradictions == []
    assert 0.85 < found.share <= 1
    assert len(found.noise) == 3


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("noise times 0.9", "the noise of vector 1 is at most 0.9"),
        ("second stage planned from the first without noise", "depends on the table, not on noisy vectors alone"),
        ("sensitivity of the first stage halved for dates", "rho is at least"),
        ("counts doubled for missing numbers", "rho is at least"),
        ("sensitivity of the second stage over 1.5", "rho is at least"),
    ],
)
def test_planted_faults_are_contradicted(wide, fault, said):
    with planted(fault):
        contradictions = stage_audit(wide, 16 if said == "rho is at least" else 6, 0.999).contradictions
    assert any(said in text for text in contradictions)


def test_faults_of_measurements_are_contradicted():
    """At epsilon 1; sums of all types of columns."""
    case = CASES["dp-measure"](Budget(1.0, 1e-6))
    right = stage_audit(case, 20, SURE)
    assert right.contradictions == []
    assert 0.8 < right.share < 1
    with planted("noise times 0.9 "):
        assert stage_audit(case, 60, 0.9).noise[0] < 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("none", ""),
        ("noise times 0.9  ", "the noise of vector 2 is at most 0.9"),
        ("sensitivity of counts over 3 for one of five columns", "rho is at least"),
        ("a record with one bit of the table", "the record depends on the table: "),
    ],
)
def test_marginals_are_audited_by_their_counts(counted, fault, said):
    """Right ones reach half of the claimed rho, since OpenDP's noise is for twice the square of a replaced
    row.
    """
    with planted(fault):
        found = stage_audit(CASES["marginals"](BUDGET), 100, 0.999)
    assert found.runs == 5
    if said:
        assert any(said in text for text in found.contradictions)
    else:
        assert found.contradictions == []
        assert 0.6 < found.share <= 0.708
