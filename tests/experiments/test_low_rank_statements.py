"""The experiment on all alphas of the low-rank bounds, on one model of each kind."""

import numpy as np

from tests.experiments.runs import assert_near, rows, whole


def test_probabilities_and_derivatives_add_up_and_bounds_are_on_their_side():
    frame = whole("low-rank-statements", samples=1000)
    for _, model in frame.groupby(["kind", "strength", "model"]):
        q = rows(model, quantity="probability")
        assert abs(q.value.sum() - 1) < 1e-9
        slopes = rows(model, quantity="derivative")
        assert abs(slopes.value.sum() - 1) < 0.01  # both sides of a tie count half
        assert_near(slopes.value, np.hypot(slopes.standard_error, q.standard_error), q.value)
        lower = rows(model, quantity="L")
        slack = rows(model, quantity="Proposition 15")
        assert (lower.value < -5 * lower.standard_error).all()
        assert (slack.value[slack.alpha < -0.4] > 0.1).all()
        assert (np.diff(rows(model, quantity="change").value) < 0).all()
    assert_near(*[frame[frame.quantity == "U limit at 0"][c] for c in ("value", "standard_error")], 0)
