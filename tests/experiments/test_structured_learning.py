"""The experiment on learning structures, at sizes of milliseconds."""

import math

import pytest

from tests.experiments.runs import one, rows, whole

SIZES = {"folds": 5, "regularisations": [0.1, 0.01]}


def test_every_claim_reads_the_table_and_bounds_are_closed_forms():
    sampled = {"draws": 3, "passes": 2, "regularisation": 0.1}
    found = whole("structured-learning", losses={"wine tree": SIZES}, traced=["wine tree"], sampled=sampled)
    fits = rows(found, kind="fit", data="wine tree", method="nodes")
    assert len(fits) == 10
    assert fits.bound_c1.tolist() == pytest.approx([math.sqrt(math.log(10) / w) for w in fits.regularisation])
    assert fits.bound_gradient.tolist() == pytest.approx((fits.radius / fits.regularisation).tolist())
    assert (fits.norm < fits[["bound_c1", "bound_gradient"]].min(axis=1)).all()
    losses = rows(found, kind="loss", method="nodes", decision="map", loss="zero_one", regularisation=0.01)
    assert (losses.test * 178 / 5 < 8).all()  # of 35 or 36 wines
    first = one(found, kind="trace", method="L-BFGS", passes=1)
    assert first.left == pytest.approx(1)
    assert len(rows(found, kind="trace", method="online, 1 sample")) == 6
    assert rows(found, kind="check").difference.max() < 1e-5
