"""Measurements from a table of error summaries, on one that is small enough to see them."""

import numpy as np
import pandas as pd
import pytest

from thesis_cli.reproduction import error_measurements as measure
from thesis_cli.studies.perturbation.error_summary import COLUMNS, summary


def test_measurements_take_the_weakest_cell():
    rows = [
        {"method": "a", "less": "", **summary(np.array(v), np.ones(3)), "settled": 0.5, "seconds": s}
        for v, s in (([1.0, 2.0, 3.0], 2.0), ([5.0, 5.5, 6.0], 4.0))
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(kind="mixed", field=1.0, coupling=[1.0, 2.0])
    assert measure.least_mean("a")(frame).value == pytest.approx(2)
    assert measure.least_mean("a", sign=-1.0)(frame).value == pytest.approx(5.5)
    assert measure.least_mean("a", couplings=(1.5, 3.0))(frame).value == pytest.approx(5.5)
    assert measure.pooled_mean("a")(frame).value == pytest.approx(3.75)
    assert measure.extreme(["a"], "lowest")(frame).value == 1
    assert measure.extreme(["a"], "highest", kind="attractive")(frame) is None
    assert measure.share("a", "settled", one_less=True)(frame).value == pytest.approx(0.5)
    assert measure.time_ratio(("a", "mixed"), ("a", "mixed"), scale=3.0)(frame).value == pytest.approx(3)
    assert measure.nearer("a", "a", kind="mixed", couplings=measure.ALL)(frame).value == pytest.approx(7.5)
    assert measure.pooled_mean("a", field=0.1)(frame) is None
    assert measure.least_mean("b")(frame) is None
