"""Real mechanisms pass and planted broken ones do not; either verdict is wrong less than once in a
million runs.

Planted mechanisms draw from NumPy.
"""

import json
import math
from functools import cache

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit_runs import SCHEMA, audit_scalar, audit_whole, most_repeats
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.mechanism import Budget, OpenDPGaussian, OpenDPLaplace

SURE = 1 - 1e-7
"""High enough not to accuse a real mechanism; planted ones fail at 0.95 by at least 7 standard
errors.
"""
SCALAR, WHOLE = 200_000, 10_000
REAL_SCALAR, REAL_WHOLE = 40_000, 2_000
"""Of OpenDP, whose draws are slow."""
SCALAR_BUDGET, WHOLE_BUDGET = Budget(1.0, 0.1), Budget(1.0, 0.3)
"""At a large delta mu is large, and few runs detect a shortfall."""


def recording(base, kept):
    """Noise of OpenDP that records its draws."""

    class Recording(base):
        def _draw(self, vector, found):
            values = super()._draw(vector, found)
            kept.append(values - vector)
            return values

    return Recording


def planted(base, factor=1.0):
    """Noise of the right law, times a factor, always the same."""
    rng = np.random.default_rng(1)
    law = rng.laplace if base is OpenDPLaplace else rng.normal

    class Planted(base):
        def _draw(self, vector, found):
            return vector + factor * law(0, found.scale, vector.shape)

    return Planted


class Seeded(OpenDPGaussian):
    """Correct noise, except that each release restarts its generator."""

    def _draw(self, vector, found):
        return vector + found.scale * np.random.default_rng(0).normal(size=vector.size)


@cache
def scalar():
    kept = []
    return audit_scalar(recording(OpenDPGaussian, kept), SCALAR_BUDGET, REAL_SCALAR, confidence=SURE), kept


def test_the_real_gaussian_holds_on_the_scalar_path():
    found, kept = scalar()
    assert (found.path, found.verdict, found.contradictions) == ("scalar", "holds", [])
    assert (found.runs, sum(map(len, kept))) == (REAL_SCALAR, REAL_SCALAR)
    assert found.mu == found.calibration.sensitivity / found.calibration.scale
    assert 0.7 * found.mu < found.gdp.mu <= found.mu
    assert found.clopper_pearson.epsilon > 0.25


@pytest.mark.parametrize("factor", [0.9, math.sqrt(0.5)])
def test_less_noise_breaks_the_claim_on_the_scalar_path(factor):
    found = audit_scalar(planted(OpenDPGaussian, factor), SCALAR_BUDGET, SCALAR)
    assert found.verdict == "BROKEN"
    assert found.contradictions[0] == f"mu is at least {found.gdp.mu:.4g}, not {found.mu:.4g}"
    assert len(found.contradictions) == 1 + (factor < 0.9)  # a tenth is less than OpenDP's slack at this delta
    assert found.repeats <= found.most_repeats


def test_the_real_laplace_holds_and_less_noise_breaks_the_claim():
    found = audit_scalar(OpenDPLaplace, Budget(1.0), REAL_SCALAR, confidence=SURE)
    assert (found.verdict, found.mu, found.clopper_pearson.delta) == ("holds", None, 0.0)
    assert 0.7 < found.clopper_pearson.epsilon <= 1
    for factor in (0.9, math.sqrt(0.5)):
        broken = audit_scalar(planted(OpenDPLaplace, factor), Budget(1.0), SCALAR)
        assert len(broken.contradictions) == 1
        assert broken.contradictions[0].startswith("epsilon is at least 1.")


def test_a_delta_that_laplace_noise_does_not_spend_is_no_part_of_its_claim():
    found = audit_scalar(planted(OpenDPLaplace, 0.9), Budget(1.0, 0.5), SCALAR)
    assert found.contradictions


def test_the_real_gaussian_holds_on_the_whole_path():
    kept = []
    found = audit_whole(recording(OpenDPGaussian, kept), WHOLE_BUDGET, REAL_WHOLE, confidence=SURE)
    assert (found.path, found.verdict, found.contradictions) == ("whole", "holds", [])
    assert (found.runs, len(kept), kept[0].shape) == (REAL_WHOLE, REAL_WHOLE, (8,))
    assert found.gdp.mu <= found.mu
    assert found.calibration.sensitivity == pytest.approx(2 / 100, rel=1e-9)
    assert found.repeats == 0


def test_less_noise_breaks_the_claim_on_the_whole_path():
    found = audit_whole(planted(OpenDPGaussian, math.sqrt(0.5)), WHOLE_BUDGET, WHOLE)
    assert found.verdict == "BROKEN"
    assert found.gdp.mu > found.mu


class Unpaired(Features):
    """Features sqrt(2/J) cos(w . x + b) of the thesis, of norms up to sqrt 2, that claim 2 / N."""

    def mean(self, blocks, jobs=1, progress=None):
        (rows,) = blocks
        return math.sqrt(2 / self.count) * np.tile(np.cos(rows.reals @ self.frequencies.T - math.pi / 4), 2).mean(0)


def test_features_longer_than_claimed_break_the_claim():
    embedding = Unpaired(np.full((4, 1), 2 * math.pi), ())
    assert np.linalg.norm(embedding.mean([SCHEMA.encode({"x": np.array([0.125])})])) == pytest.approx(math.sqrt(2))
    noise = planted(OpenDPGaussian)
    found = audit_whole(noise, WHOLE_BUDGET, WHOLE, embedding=embedding)
    assert found.verdict == "BROKEN"
    assert found.gdp.mu > found.mu
    fair = audit_whole(planted(OpenDPGaussian), WHOLE_BUDGET, WHOLE, confidence=SURE)
    assert 0.4 * fair.mu < fair.gdp.mu <= fair.mu


def test_a_generator_that_starts_from_a_seed_is_found_by_repeats():
    for found, repeats in (
        (audit_scalar(Seeded, SCALAR_BUDGET, 4000), 2000),
        (audit_whole(Seeded, WHOLE_BUDGET, 400), 398),
    ):
        assert found.repeats == repeats > found.most_repeats
        assert found.contradictions[-1] == f"{repeats} of {found.runs} releases repeat an earlier one"


def test_the_tables_are_the_worst_pair_for_either_norm():
    """For any number of features and rows, the distance of the vectors is the sensitivity."""

    class Exact(OpenDPLaplace):
        def _draw(self, vector, found):
            seen.append((vector, found.sensitivity))
            return vector + np.random.default_rng(len(seen)).normal(size=vector.size)

    for rows, features in ((1, 2), (3, 8), (100, 20)):
        seen = []
        audit_whole(Exact, Budget(1.0), 40, rows=rows, features=features)
        (one, claimed), other = seen[0], seen[-1][0]
        assert np.abs(one - other).sum() == pytest.approx(claimed, rel=1e-9)
        assert np.linalg.norm(one - other) == pytest.approx(2 / rows, rel=1e-9)


def test_repeats_by_chance_are_allowed_for():
    """On a grid as coarse as the noise, 100 draws repeat as often as their law predicts."""
    rng, runs = np.random.default_rng(0), 200
    for noise in (OpenDPGaussian(), OpenDPLaplace()):
        found = noise.calibrate(1, 1.0, Budget(1.0, 0.1))
        coarse = type(found)(**{**vars(found), "granularity": found.scale / 2000})
        draw = rng.laplace if found.norm == 1 else rng.normal
        pairs = []
        for _ in range(2000):
            grid = np.rint(draw(0, 2000, (2, runs // 2)))
            pairs.append(sum(runs // 2 - len(np.unique(row)) for row in grid))
        for confidence in (0.5, 0.95, 0.999):
            above = np.mean(np.array(pairs) > most_repeats(runs, coarse, confidence))
            level = 1 - confidence
            assert above <= level + 5 * math.sqrt(level * (1 - level) / 2000)
        below = np.mean(np.array(pairs) >= most_repeats(runs, coarse, 0.95))
        assert below > 0.05
    assert most_repeats(200_000, noise.calibrate(1, 1.0, Budget(1.0)), 0.95) <= 1


def test_progress_counts_every_release():
    done = []
    audit_scalar(Seeded, SCALAR_BUDGET, 50, tick=done.append)
    audit_whole(Seeded, WHOLE_BUDGET, 41, tick=done.append)
    assert sum(done) == 50 + 40


def test_the_summary_is_json():
    found, _ = scalar()
    summary = json.loads(json.dumps(found.summary()))
    assert (summary["path"], summary["verdict"], summary["mu"]) == ("scalar", "holds", found.mu)
    assert summary["gdp"]["mu"] == found.gdp.mu
    assert summary["sensitivity"] == 1.0


def test_what_is_refused():
    with pytest.raises(InputError, match="runs is 39; it must be at least 40"):
        audit_scalar(Seeded, SCALAR_BUDGET, 39)
    for options, message in (
        ({"runs": 39}, "runs is 39; "),
        ({"rows": 0}, "^the table has 0 rows; "),
        ({"features": 3}, "features is 3; it must be even"),
        ({"confidence": 1.0}, "confidence is 1; "),
    ):
        with pytest.raises(InputError, match=message):
            audit_whole(Seeded, WHOLE_BUDGET, **{"runs": 40, **options})
    with pytest.raises(InputError, match="delta is 0 with Gaussian noise"):
        audit_scalar(Seeded, Budget(1.0), 40)
