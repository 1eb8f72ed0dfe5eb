"""Tendencies of guides that have them, and their figure."""

import numpy as np
import pandas as pd
import pytest

from thesis_cli.studies.synthesis.attribute_figures import confusion_figure, short
from thesis_cli.studies.synthesis.confusion import (
    ALL,
    COLUMNS,
    COMPARISONS,
    FEW,
    GROUPS,
    OTHERS,
    contrast,
    least_common,
    statement,
    tendencies,
)
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.training.corpora import held_out


@pytest.fixture(scope="module")
def truth():
    return held_out(3, 300).attributes


def measured(truth, predicted):
    frame = tendencies(predicted, truth, 30, np.random.default_rng(0))
    groups = frame[frame.part == "group"].set_index(["row", "column"])
    return frame, groups


def test_only_what_is_confused_stands_out(truth):
    predicted = np.full(truth.shape, 0.1)
    a, b = ATTRIBUTES.index("(**2)"), ATTRIBUTES.index("(*)")
    predicted[truth[:, a], b] = 0.4
    _, groups = measured(truth, predicted)
    for name in GROUPS:
        row = groups.loc[(name, ALL)]
        assert row.value == pytest.approx(0.4 if name == "(**2) as (*)" else 0.1, abs=0.005)
    row = groups.loc[("(**2) as (*)", COLUMNS)]
    assert (row.value, row.average) == (pytest.approx(0.4), pytest.approx(0.1))


def test_common_attributes_are_compared_in_each_row(truth):
    predicted = np.full(truth.shape, 0.125)
    predicted[:, ATTRIBUTES.index("MIN")] = 0.3
    frame, groups = measured(truth, predicted)
    rows = frame[frame.part == "row"].set_index("row")
    assert (rows["count"] == truth.sum(axis=0)).all()
    assert rows.loc["MAX"].value - rows.loc["MAX"].average == pytest.approx(0.175 / 9)  # one column of 9
    assert rows.loc["MIN"].value == rows.loc["MIN"].average == 0.125
    assert groups.loc[("common", ALL)].value > groups.loc[("common", ALL)].average


@pytest.mark.long
def test_the_figure_has_all_cells(truth):
    predicted = np.full(truth.shape, 0.125)
    predicted[:, ATTRIBUTES.index("MIN")] = 0.3
    frame = measured(truth, predicted)[0]
    cells = frame[frame.part == "cell"]
    assert len(cells) == 34 * 33
    shown = [text.get_text() for text in confusion_figure(cells).axes[0].texts]
    assert shown.count(".30") == 33
    assert f"({cells['count'].max():.0f})" in shown


def test_numbers_are_short():
    assert [short(p) for p in (0.0, 0.123, 0.996, 1.0, np.nan)] == [".00", ".12", "1.", "1.", ""]


def test_claims_read_the_rows():
    rows = [
        ("group", "(+), (-)", ALL, 0.5, 0.2, 2, 0.01),
        ("row", "HEAD", OTHERS, 0.5, 0.2, 40, 0.01),
        ("row", "LAST", OTHERS, 0.5, 0.4, 40, 0.05),
        ("row", "SUM", OTHERS, 0.1, 0.4, FEW - 1, 0.05),
    ]
    frame = pd.DataFrame(rows, columns=["part", "row", "column", "value", "average", "count", "standard_error"])
    assert contrast(frame, "(+), (-)", ALL) == (pytest.approx(0.3), 0.01)
    assert least_common(frame) == (pytest.approx(0.1), 0.05)  # not SUM, which few programs have
    assert len(COMPARISONS) == 2 * len(GROUPS) - 1
    assert "average of the same columns" in statement("(+), (-)", COLUMNS)
