"""Options of tricks, and what tricks make of perturbed maxima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.common import confidence_option
from thesis_cli.commands.core.fields import Request, option
from thesis_cli.commands.ln_z.estimates import (
    PILOT_CALLS,
    PilotedMaxima,
    QuantityName,
    alpha_option,
    check_tricks,
    debias_option,
    full_rank_estimates,
    quantity_option,
    samples_option,
    threshold_option,
    trick_option,
)
from thesis_cli.perturbation.tricks.trick_rows import TRICKS, TrickChoice


@dataclass(frozen=True, kw_only=True)
class Plain(Request):
    trick: TrickChoice | None = trick_option()
    alpha: float | None = alpha_option()
    threshold: float | None = threshold_option()
    samples: int | None = samples_option()
    quantity: QuantityName = quantity_option()
    debias: bool = debias_option()
    confidence: float = confidence_option()
    exact: bool = option(False, "Exact.")

    def check(self):
        check_tricks(self)


class Known(PilotedMaxima):
    """Maxima whose ln Z is 5."""

    drawn = 0

    def draw(self, count, seed, tick):
        self.drawn += count
        return np.random.default_rng(seed).gumbel(5 - np.euler_gamma, 1, count)


@pytest.mark.parametrize("trick", [*TRICKS, "all"])
def test_estimates_are_right_and_count_the_pilot(trick):
    maxima = Known(1)
    found, posterior = full_rank_estimates(Plain(trick=trick, samples=2000), maxima, lambda done: None)
    assert [e.method.split("(")[0] for e in found] == ([trick] if trick != "all" else list(TRICKS))
    for e in found:
        assert abs(e.value - 5) < 5 * e.standard_error
        assert e.map_calls == 2000 + PILOT_CALLS * TRICKS[e.method.split("(")[0]].scaled
    assert maxima.drawn == 2000 + PILOT_CALLS * (trick == "all" or TRICKS[trick].scaled)
    assert posterior.shape == 2000


def test_a_given_threshold_needs_no_pilot():
    maxima = Known(1)
    (found,), _ = full_rank_estimates(Plain(trick="tail", threshold=0.01), maxima, lambda done: None)
    assert (found.map_calls, maxima.drawn) == (100, 100)


def test_the_pilot_is_independent_of_the_values():
    maxima = Known(1)
    values = maxima.values(PILOT_CALLS, lambda done: None)
    assert maxima.log_z() != values.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.5}, "--alpha does not go with --trick gumbel; it is for weibull, frechet"),
        ({"trick": "all", "alpha": 0.5}, "--alpha does not go with --trick all"),
        ({"trick": "weibull", "alpha": -0.5}, "--alpha is -0.5"),
        ({"trick": "frechet", "alpha": 0.5}, "--alpha is 0.5"),
        ({"threshold": 1}, "--threshold does not go with --trick gumbel; it is for tail"),
        ({"samples": 0}, "--samples is 0; add --exact"),
        ({"samples": 0, "exact": True, "confidence": 0.9}, "--confidence does not go with --samples 0"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(InputError) as refusal:
        Plain(**options)
    assert str(refusal.value).startswith(message)


def test_options_that_go_together():
    Plain(trick="all", threshold=2.0)
    Plain(trick="weibull", alpha=1.0)
    Plain(samples=0, exact=True, quantity="Z")
