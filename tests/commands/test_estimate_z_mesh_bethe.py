import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError

ASIA, ISING, ZIPF = (MODELS / n for n in ("asia.uai", "ising-4x4.uai", "zipf-1000.csv"))


def test_the_row_is_a_bound_and_the_meaning_says_how_good():
    found = tc.estimate_z(ISING, method="mesh-bethe", seed=1, exact=True)
    exact, bound = found.estimates
    assert (bound.kind, bound.low, bound.high) == ("lower bound", bound.value, bound.value)
    assert exact.value - 0.5 < bound.value < exact.value
    start, upper = found.meaning.removesuffix(", and ln Z may be above it").rsplit(" ", 1)
    assert start == f"ln Z >= {bound.value:.6g} for certain; the best Bethe approximation is at most"
    assert bound.value - 1e-4 <= float(upper) <= bound.value + 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ZIPF}, "--method mesh-bethe takes models with variables, not a vector; use full-rank"),
        ({"model": ASIA}, "factor 5 has 3 variables"),
        ({"samples": 5}, "--samples does not go with --method mesh-bethe"),
        ({"uai": "a.PR"}, "--uai does not go with --method mesh-bethe"),
    ],
)
def test_refusals_are_one_line(options, message):
    with pytest.raises(InputError) as raised:
        tc.estimate_z(**{"model": ISING, "method": "mesh-bethe", **options})
    assert message in str(raised.value)
