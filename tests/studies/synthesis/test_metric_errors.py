import numpy as np
import pytest

from thesis_cli.studies.synthesis.predictions import metric_errors
from thesis_cli.synthesis.language.dsl import ATTRIBUTES


def test_the_error_of_the_loss_is_that_of_a_mean_over_programs():
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0.05, 0.95, (60, len(ATTRIBUTES)))
    attributes = rng.random(probabilities.shape) < probabilities
    each = -np.log(np.where(attributes, probabilities, 1 - probabilities)).sum(axis=1)
    loss, precision = metric_errors(probabilities, attributes, rng, 60)
    # The deviation of 60 resamples has a relative standard error of 1 / sqrt(120).
    assert loss == pytest.approx(each.std() / 60**0.5, rel=5 / 120**0.5)
    assert 0 < precision < 0.1
    sure = metric_errors(np.where(attributes, 0.9, 0.1), attributes, rng, 10)
    assert sure == pytest.approx((0.0, 0.0), abs=1e-12)
