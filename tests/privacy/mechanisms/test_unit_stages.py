import itertools
import math

import numpy as np
import pytest

from tests.privacy.mechanisms.test_units import UNITS, tables
from tests.privacy.release.test_release import MIXED, corners, free, request, table
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import COUNT_SHARE, OpenDPStages, SecretStages, Unit, total_rho
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.release.record import PrivacyGuarantee, rows_text
from thesis_cli.privacy.release.release import private_record, synthetic


class Held(OpenDPStages):
    """Noise that forgets what it is given: each vector becomes one of its own."""

    def __init__(self):
        self.vectors = []

    def add(self, vector, scale, granularity):
        self.vectors.append(vector.tobytes())
        rng = np.random.default_rng(len(self.vectors))
        return 40 * rng.random(vector.size) if vector.size > 1 else np.array([60.0])


class Exact(OpenDPStages):
    """Noise of 0."""

    def add(self, vector, scale, granularity):
        return vector


def stages(unit, private):
    """The stages of a release by copula, with the vectors of `private` without noise."""
    running = SecretStages(lambda rows, rho: CopulaStages(MIXED, rows, rho), unit, 0.5)
    vectors = []
    while (stage := running.stage(vectors)) is not None:
        yield stage
        vectors.append(stage.mean([private]))


@pytest.mark.parametrize("unit", [Unit("add-remove"), Unit("replace", 2)], ids=str)
def test_no_searched_neighbour_is_farther_away_than_the_sensitivity_of_a_stage(unit):
    every, rest = corners(MIXED), table(MIXED, 2, 3)
    private = [Rows.concatenate([rows]) for _, rows in tables(unit, every[::4], rest)]
    found = list(stages(unit, table(MIXED, 200, 1)))
    assert [stage.name for stage in found] == ["number of rows", "columns", "pairs"]
    assert sum(stage.share for stage in found) == pytest.approx(1, abs=1e-12)
    for stage in found:
        vectors = np.array([stage.mean([rows]) for rows in private])
        others = vectors if unit.neighbours == "replace" else stage.mean([rest])[None]
        apart = max(float(np.linalg.norm(vectors - other, axis=1).max()) for other in others)
        assert apart <= stage.l2_sensitivity(0)
        assert apart > 0.5 * stage.l2_sensitivity(0)


def test_a_row_is_no_longer_than_a_sum_allows():
    """Its norm is at most D / sqrt(2), which adding or removing rests on."""
    unit = Unit("add-remove")
    for stage in stages(unit, table(MIXED, 200, 1)):
        norms = [np.linalg.norm(stage.mean([corners(MIXED)[n : n + 1]])) for n in range(48)]
        assert max(norms) <= stage.l2_sensitivity(0)


@pytest.mark.parametrize("unit", UNITS[:3], ids=str)
def test_no_byte_depends_on_the_number_of_rows_but_through_the_noise(unit):
    found, vectors = set(), set()
    for count, seed in ((50, 0), (51, 0), (0, 1)):
        fake, spent = Held(), []
        asked = request("copula", unit=unit)
        private = table(MIXED, count, seed)
        record = private_record([private], None, asked, lambda *given, to=spent: to.append(given), noise=fake)
        found.add((record.to_json(), rows_text(synthetic(record, 9), weighted=False), *spent))
        vectors.add(tuple(fake.vectors))
    assert len(vectors) == 3
    assert len(found) == 1
    assert record.promise == PrivacyGuarantee(1, 1e-6, unit.text, None)
    assert parse_record(record.to_json()) == record


def test_the_stages_of_the_record_are_those_of_means_and_stay_within_the_budget():
    private, unit = table(MIXED, 300, 0), Unit("replace", 3)
    asked = request("copula", unit=unit)
    record = private_record([private], None, asked, free, noise=Exact())
    public = private_record([private], 300, request("copula"), free, noise=Exact())
    np.testing.assert_allclose(record.output.stages[0].vector, public.output.stages[0].vector, rtol=0, atol=1e-15)
    assert (record.count.rows, record.count.contribution_bound, record.count.effective) == (300, 3, 100)
    fewer = CopulaStages(MIXED, 100, total_rho(asked.budget) * (1 - COUNT_SHARE))
    assert record.output.stages[0].scale == pytest.approx(fewer.noise(fewer.stage([])), rel=1e-3)
    assert record.count.deviation == pytest.approx(3 / math.sqrt(2 * COUNT_SHARE * total_rho(asked.budget)), rel=1e-6)
    assert record.mechanism.epsilon <= asked.budget.epsilon
    assert record.mechanism.rho <= total_rho(asked.budget)


def test_methods_without_totals_are_refused():
    for method, unit in itertools.product(("marginals", "exponential"), (Unit("add-remove"), Unit("replace", 2))):
        with pytest.raises(InputError, match=f"a release by {method} has a public number of rows"):
            private_record([table(MIXED, 5, 0)], None, request(method, MIXED, unit=unit), free)
