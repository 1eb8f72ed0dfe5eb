import numpy as np
import pytest

from thesis_cli.studies.synthesis.goals import PUBLISHED, median, published, share


def test_the_error_of_a_median_is_that_of_the_choice_of_tasks():
    """Of n uniform numbers, the median has the standard deviation 1 / (2 sqrt(n))."""
    found, error = median(np.random.default_rng(1).random(400))
    assert found == pytest.approx(0.5, abs=5 / 40)
    assert error == pytest.approx(1 / 40, rel=0.5)
    assert median([3, 1, 10])[0] == 3


def test_a_share_has_an_error_even_if_all_are_solved():
    assert share(40, 100) == (0.4, pytest.approx(np.sqrt(0.24 / 100), rel=0.02))
    found, error = share(100, 100)
    assert found == 1
    assert 0.005 < error < 0.02


def test_published_times_grow_with_the_share_and_shrink_with_the_network():
    for name in PUBLISHED:
        (_, prior, alone), (_, network, guided) = published(name)
        assert (prior, network) == (False, True)
        for points in (alone, guided):
            seconds, shares = zip(*points, strict=True)
            assert list(seconds) == sorted(seconds)
            assert list(shares) == sorted(shares)
        assert all(one < two for (one, _), (two, _) in zip(guided, alone, strict=True))
