"""Arrays that count as one are indexed as their concatenation."""

import numpy as np
import pytest

from thesis_cli.base.chained import Chained

PARTS = [np.arange(n * 12, dtype=np.int16).reshape(n, 3, 4) + 100 * n for n in (3, 0, 5, 2)]
WHOLE = np.concatenate(PARTS)

KEYS = [
    0,
    -1,
    np.int64(7),
    slice(None),
    slice(2, 9),
    slice(-3, None),
    slice(8, 2),
    slice(None, None, -2),
    [9, 0, 3, 3, -1],
    np.zeros(0, dtype=np.int64),
    np.arange(10) % 3 == 0,
    (slice(None), slice(None), slice(1, 3)),
    (slice(1, 5), 2),
    ([4, 1], slice(None), 3),
    (5, 1, 2),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices_are_those_of_numpy(key):
    found = Chained(PARTS)[key]
    assert np.array_equal(found, WHOLE[key])
    assert np.shape(found) == np.shape(WHOLE[key])


def test_it_passes_for_an_array():
    chained = Chained(PARTS)
    assert (len(chained), chained.shape, chained.ndim, chained.dtype) == (10, (10, 3, 4), 3, np.int16)
    assert np.array_equal(np.asarray(chained), WHOLE)
    for key in (10, [0, 10], np.ones(9, dtype=bool)):
        with pytest.raises(IndexError):
            chained[key]
