"""Faults in single stages and types of columns are contradicted by few releases, and right releases are not."""

import numpy as np
import pytest

from benchmarks.audit_faults import BUDGET, planted
from thesis_cli.privacy.audit.cases import CASES, QUERIES, WIDE, release_case
from thesis_cli.privacy.audit.stages import Case, ChoiceStage, Stage, stage_audit
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import Unit
from thesis_cli.privacy.release.methods import METHODS
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


def test_a_part_without_noise_is_contradicted_and_noise_on_a_grid_is_not():
    """The noise of all coordinates together is right in both."""
    rng = np.random.default_rng(0)

    def noises(parts, bare, step):
        stages = []
        for _ in range(40):
            vector, noise = rng.normal(size=60), 2.0 * rng.normal(size=60)
            noise[bare] = 0.0
            stages.append(
                Stage(vector, vector + (np.rint(noise / step) * step if step else noise), 2.0, step, 9.0, parts)
            )
        return Stage.noise(stages, 1e-5)

    pooled, least = noises((), slice(0), 0.0)
    assert 1 < pooled < 1.08
    assert 1 < least < 1.6
    assert noises((), slice(7, 8), 0.0)[1] == 0
    assert noises((5, 55), slice(0, 5), 0.0)[1] == 0
    assert noises((5, 55), slice(3, 4), 0.0)[1] > 1
    assert noises((), slice(0), 1.0)[1] > 1


def test_vectors_beyond_their_sensitivity_are_contradicted():
    rng = np.random.default_rng(0)

    def release(rows, held):
        vector = np.zeros(9)
        vector[0] = rows
        return [Stage(vector, held[0].noisy if held else vector + rng.normal(size=9), 1.0, sensitivity=0.9)]

    found = stage_audit(Case("far", 9.0, release, (0, 1), 0), 40, 0.999)
    assert found.contradictions == ["vectors 1 of two neighbours are 1.111 sensitivities apart"]


def test_choices_are_audited_by_their_scale_and_their_distributions():
    """For two candidates whose scores move by 1 each, the relative entropy is ln cosh (1 / scale)."""
    rng = np.random.default_rng(0)
    scores, moved = np.zeros((1, 2)), np.array([[1.0, -1.0]])
    found = ChoiceStage(scores, np.zeros((1, 1), int), 2.0).divergence(
        ChoiceStage(moved, np.zeros((1, 1), int), 2.0), 1.0
    )
    assert found == pytest.approx(np.log(np.cosh(0.5)))
    for factor, times in ((1.0, 2000), (0.9, 4000)):
        stages = []
        for _ in range(times):
            values = -np.abs(rng.integers(0, 30, (1, 50))) * 1.0
            chosen = np.argmax(values + 3.0 * factor * rng.gumbel(size=values.shape), 1)[:, None]
            stages.append(ChoiceStage(values, chosen, 3.0))
        bound, _ = ChoiceStage.noise(stages, 1e-5)
        assert factor < bound < factor * (1 + 8 / np.sqrt(times))


def test_every_type_of_column_is_audited():
    assert {column.kind for column in WIDE.columns} == set(KINDS)
    assert {column.missing for column in WIDE.columns} == {True, False}
    assert len(QUERIES) == 6


def test_every_noise_of_every_method_is_audited():
    audited = {(method, law) for method, _, law in (name.partition(", ") for name in CASES)}
    assert {method for method, _ in audited} == {name for name, row in METHODS.items() if row.noises} | {"dp-measure"}
    laplace = {name for name, row in METHODS.items() if "laplace" in row.noises} | {"dp-measure"}
    assert {method for method, law in audited if law == "Laplace"} == laplace


def test_right_releases_are_not_contradicted_and_prove_most_of_the_claim(wide):
    found = stage_audit(wide, 16, SURE)  # the share is 0.896 with a standard error of 0.008
    assert found.contradictions == []
    assert 0.85 < found.share <= 1
    assert len(found.noise) == 3


@pytest.mark.parametrize(
    ("fault", "runs", "said"),
    [
        ("noise times 0.9", 6, "the noise of vector 1 is at most 0.9"),
        ("second stage planned from the first without noise", 6, "depends on the table, not on noisy vectors alone"),
        ("sensitivity of the first stage halved for dates", 6, "rho is at least"),
        pytest.param("counts doubled for missing numbers", 16, "rho is at least", marks=pytest.mark.long),
        pytest.param("sensitivity of the second stage over 1.5", 8, "rho is at least", marks=pytest.mark.long),
    ],
)
def test_planted_faults_are_contradicted(wide, fault, runs, said):
    """By bounds that lie six standard deviations of an audit above the claim, or more."""
    with planted(fault):
        contradictions = stage_audit(wide, runs, 0.999).contradictions
    assert any(said in text for text in contradictions)


def test_faults_of_measurements_are_contradicted():
    """At epsilon 1; sums of all types of columns."""
    case = CASES["dp-measure"]("dp-measure", Budget(1.0, 1e-6))
    right = stage_audit(case, 20, SURE)
    assert right.contradictions == []
    assert 0.8 < right.share < 1
    with planted("noise times 0.9 "):
        assert stage_audit(case, 60, 0.9).noise[0] < 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("none", ""),
        ("contribution bound off by one", "sensitivities apart"),
        pytest.param("contribution bound ignored", "sensitivities apart", marks=pytest.mark.long),
        ("sensitivity of persons without the bound ", "rho is at least"),
    ],
)
def test_rows_of_persons_are_bounded_within_the_audit(fault, said):
    with planted(fault):
        found = stage_audit(CASES["dp-measure, persons"]("dp-measure, persons", BUDGET), 20, 0.999).contradictions
    assert any(said in text for text in found) if said else not found


def test_choices_of_quantiles_are_audited():
    case = CASES["dp-measure, quantiles"]("dp-measure, quantiles", BUDGET)
    right = stage_audit(case, 5, SURE)
    assert right.contradictions == []
    assert 0.5 < right.share < 1
    with planted("noise times 0.01 "):
        assert stage_audit(case, 5, 0.999).noise[0] < 0.02


def test_laplace_noise_of_measurements_is_audited():
    """Without delta; the measured scale has a standard error of 1 %."""
    case = CASES["dp-measure, Laplace"]("dp-measure, Laplace", Budget(1.0, 1e-6))
    right = stage_audit(case, 100, SURE)
    assert right.contradictions == []
    assert 0.85 < right.share < 1
    with planted("noise times 0.9 "):
        assert "the noise of vector 1 is at most 0.9" in stage_audit(case, 100, 0.999).contradictions[0]


@pytest.mark.parametrize(
    "name",
    [
        *("features, vector", "subspace, Laplace"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("features, Laplace", "subspace, vector")),
    ],
)
def test_vectors_of_whole_rows_reach_their_claim(name):
    """All of it, but for what the bound on the noise leaves open."""
    right = stage_audit(CASES[name](name, Budget(1.0, 1e-6)), 14, SURE)
    assert right.contradictions == []
    assert 0.99 < right.share * right.noise[0] <= 1
    assert 1 < right.noise[0] < 1.4


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("none", ""),
        ("noise times 0.9  ", "the noise of vector 2 is at most 0.9"),
        ("sensitivity of counts halved for one of five columns", "rho is at least"),
        ("counts of a column of 40 levels without noise", "the noise of vector 1 is at most 0.9"),
        ("a record with one bit of the table", "the record depends on the table: "),
    ],
)
def test_marginals_are_audited_by_their_counts(counted, fault, said):
    """Of neighbours with two rows more, as OpenDP has them."""
    with planted(fault):
        found = stage_audit(CASES["marginals"]("marginals", BUDGET), 100, 0.999)
    assert found.runs == 5
    if said:
        assert any(said in text for text in found.contradictions)
    else:
        assert found.contradictions == []
        assert 0.75 < found.share <= 1
