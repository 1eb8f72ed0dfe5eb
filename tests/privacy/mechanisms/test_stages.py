import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.privacy.release.test_record import SCHEMA, record_of
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms import stages as stages_module
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import OpenDPStages, Passes, StagedNoise, release_stages, total_rho
from thesis_cli.privacy.release.copula import CopulaVectors
from thesis_cli.privacy.release.files import parse_record, read_record

BUDGET = Budget(1, 1e-6)


@dataclass
class Wave:
    """Mean of cos and sin of some multiple of the first coordinate."""

    name: str
    share: float
    frequency: float
    count: int = 2

    def mean(self, blocks, jobs=1, progress=None):
        x = np.concatenate([block.reals[:, 0] for block in blocks]) * self.frequency
        return np.array([math.fsum(np.cos(x)), math.fsum(np.sin(x))]) / len(x)

    def l2_sensitivity(self, rows):
        return 2 / rows + 2.0**-50


class Two:
    """Two stages; the frequency of the second is the first noisy number."""

    def __init__(self, first=0.3, second=0.7):
        self.shares, self.received = (first, second), ()

    def stage(self, vectors):
        self.received = vectors
        if len(vectors) == 2:
            return None
        return Wave("wave", self.shares[len(vectors)], 1 + vectors[0][0] if vectors else 1.0)


class Held(OpenDPStages):
    """Answers that do not depend on the vector."""

    def __init__(self):
        self.vectors = []

    def add(self, vector, scale, granularity):
        self.vectors.append(vector)
        return np.full(vector.size, 0.25 * len(self.vectors))


def reals(seed, count=40):
    return Rows.of_reals(np.random.default_rng(seed).random((count, 1)))


def free(budget, rho):
    pass


def read(plan, table):
    return plan.mean(table)


def release(rows, stages=None, noise=None, spend=free, budget=BUDGET, count=None, blocks=None):
    count = count or len(rows)
    passes = Passes([rows[:7], rows[7:]] if blocks is None else blocks, count, 1)
    plans = stages or Two()
    return release_stages(lambda rho: plans, passes, count, budget, spend, noise or OpenDPStages(), read)


def record(how, found):
    return record_of(SCHEMA, CopulaVectors(favour="rows", stages=found), method="copula", mechanism=how)


def test_no_byte_depends_on_the_table_but_through_the_noisy_vectors():
    texts, vectors, received = set(), set(), set()
    for row in (0.1, 0.9):
        rows = reals(0)
        rows.reals[3] = row
        noise, stages = Held(), Two()
        texts.add(record(*release(rows, stages, noise)).to_json())
        vectors.add(tuple(v.tobytes() for v in noise.vectors))
        received.add(tuple(v.tobytes() for v in stages.received))
    assert len(vectors) == 2
    assert len(texts) == len(received) == 1


def test_later_features_are_made_of_earlier_noisy_vectors():
    rows, noise, stages = reals(0), Held(), Two()
    _, found = release(rows, stages, noise)
    assert [tuple(v) for v in stages.received] == [(0.25, 0.25), (0.5, 0.5)] == [stage.vector for stage in found]
    np.testing.assert_array_equal(noise.vectors[1], Wave("", 1, 1.25).mean([rows]))


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.1, 1e-9), Budget(10, 1e-3)])
def test_the_stages_stay_within_the_budget_and_use_it(budget):
    """By the definition of zCDP of Gaussian noise, and by OpenDP's conversion of the sum."""
    spent = []
    how, found = release(reals(0), spend=lambda *given: spent.append(given), budget=budget)
    total = total_rho(budget)
    assert spent == [(budget, total)]
    for stage in found:
        assert stage.sensitivity**2 / (2 * stage.scale**2) <= stage.rho <= stage.share * total * (1 + 1e-15)
        assert stage.rho == pytest.approx(stage.share * total, rel=1e-9)
    assert math.fsum(stage.rho for stage in found) <= how.rho <= total
    assert how.epsilon <= budget.epsilon
    assert how.epsilon == pytest.approx(budget.epsilon, rel=1e-6)
    assert mechanism.zcdp_epsilon(total * 1.001, budget.delta) > budget.epsilon
    one = mechanism.OpenDPGaussian().calibrate(2, 0.05, budget)
    assert total == pytest.approx(one.rho, rel=1e-6)


def test_noise_is_drawn_at_the_scale_of_each_stage():
    class Wide(Wave):
        def mean(self, blocks, jobs=1, progress=None):
            return np.zeros(self.count)

    class Wides(Two):
        def stage(self, vectors):
            return Wide("wide", (0.2, 0.8)[len(vectors)], 1.0, 4000) if len(vectors) < 2 else None

    _, found = release(reals(0), Wides())
    for stage in found:
        drawn = np.array(stage.vector)
        assert drawn.std() == pytest.approx(stage.scale, rel=5 / math.sqrt(2 * 4000))
        np.testing.assert_array_equal(drawn, np.rint(drawn / stage.granularity) * stage.granularity)
    assert found[0].scale == pytest.approx(2 * found[1].scale, rel=1e-6)


def test_the_budget_is_spent_once_after_the_first_reading_and_before_the_first_noise():
    order = []

    class Noise(Held):
        def add(self, *given):
            order.append("noise")
            return super().add(*given)

    class Told(list):
        def __iter__(self):
            yield from super().__iter__()
            order.append("read")

    release(reals(0), noise=Noise(), spend=lambda *given: order.append("spent"), blocks=Told([reals(0)]))
    assert order == ["read", "spent", "noise", "noise"]


def test_what_refuses_the_budget_stops_the_release():
    def refuse(budget, rho):
        raise InputError("no more", "less")

    noise = Held()
    with pytest.raises(InputError, match="no more"):
        release(reals(0), noise=noise, spend=refuse)
    assert noise.vectors == []


@pytest.mark.parametrize("shares", [(0.5, 0.51), (1.0, 0.1), (0.0, 1.0), (-0.5, 1.0)])
def test_shares_beyond_the_budget_draw_no_noise_of_theirs(shares):
    noise = Held()
    with pytest.raises(ValueError, match="shares"):
        release(reals(0), Two(*shares), noise)
    assert len(noise.vectors) == (shares[0] > 0)


def test_noise_that_exceeds_its_share_is_refused():
    class Weak(Held):
        def calibrate(self, size, sensitivity, rho):
            return super().calibrate(size, sensitivity, 4 * rho)

    noise = Weak()
    with pytest.raises(ValueError, match="exceeds its share"):
        release(reals(0), Two(0.5, 0.5), noise)
    assert noise.vectors == []


# Passes over the table


def test_a_small_table_is_read_once_and_a_large_one_once_a_stage(monkeypatch):
    for held, passes in ((10**6, 1), (39, 2)):
        monkeypatch.setattr(stages_module, "HELD", held)
        read_rows = []

        class Told(list):
            def __iter__(self):
                read_rows.append(len(self))  # noqa: B023
                return super().__iter__()

        release(reals(0), blocks=Told([reals(0)]))
        assert len(read_rows) == passes


def test_a_small_table_may_come_from_an_iterator_and_a_large_one_may_not(monkeypatch):
    release(reals(0), blocks=iter([reals(0)]))
    monkeypatch.setattr(stages_module, "HELD", 1)
    with pytest.raises(InputError, match="only once"):
        release(reals(0), blocks=iter([reals(0)]))


def test_the_rows_of_every_pass_are_counted(monkeypatch):
    """A table that changes between two passes may not change its number of rows."""
    monkeypatch.setattr(stages_module, "HELD", 1)

    class Shrinking(list):
        def __iter__(self):
            yield self.pop()

    noise = Held()
    with pytest.raises(InputError, match="39 rows and not 40"):
        release(reals(0), noise=noise, blocks=Shrinking([reals(0, 39), reals(0)]))
    assert len(noise.vectors) == 1


@pytest.mark.parametrize("count", [40, None])
def test_a_table_is_held_as_the_stages_see_it_and_one_of_a_secret_number_of_rows_always(count, monkeypatch):
    monkeypatch.setattr(stages_module, "HELD", 40 if count else 1)
    rows, seen = reals(0), []

    def packed(block):
        seen.append(len(block))
        return block[::-1]

    passes = Passes(iter([rows[:7], rows[7:]]), count, 1, packed)
    for _ in range(2):
        found = Rows.concatenate(list(passes))
        np.testing.assert_array_equal(found.reals, np.concatenate([rows.reals[6::-1], rows.reals[:6:-1]]))
    assert seen == [7, 33]


def test_a_budget_without_delta_is_refused():
    with pytest.raises(InputError, match="delta is 0"):
        release(reals(0), budget=Budget(1))


# The record


def test_a_record_of_stages_is_read_as_it_was_written():
    written = read_record(ROOT / "data" / "releases" / "people.json")
    again = parse_record(written.to_json())
    assert again == written
    assert isinstance(again.mechanism, StagedNoise)
    assert again.to_json() == written.to_json()
    with pytest.raises(InputError, match="mechanism does not belong"):
        parse_record(replace(written, method="features").to_json())
    with pytest.raises(InputError, match="copula has stages"):
        parse_record(replace(written, output=CopulaVectors(favour="rows", stages=None)).to_json())
