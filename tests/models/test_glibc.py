import ctypes
import platform

import numpy as np
import pytest

from thesis_cli.models.glibc import RAND_MAX, GlibcRand


def reference(seed, count):
    """The recurrence in plain Python, by its definition on the whole history."""
    r = [seed or 1]
    signed = r[0] - 2**32 * (r[0] >= 2**31)
    for _ in range(30):
        signed = 16807 * signed % RAND_MAX
        r.append(signed)
    r += r[:3]
    for i in range(34, 344 + count):
        r.append((r[i - 3] + r[i - 31]) % 2**32)
    return [word >> 1 for word in r[344:]]


SEEDS = [0, 1, 2, 12345, RAND_MAX - 1, RAND_MAX, 2**31, 3 * 10**9, 2**32 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_generator_equals_the_plain_one(seed):
    assert GlibcRand(seed).draw(3000).tolist() == reference(seed, 3000)


def test_the_first_numbers_of_srand_0():
    """Any program with the GNU C library prints these."""
    assert GlibcRand(0).draw(5).tolist() == [1804289383, 846930886, 1681692777, 1714636915, 1957747793]


@pytest.mark.parametrize("parts", [[1] * 100, [31, 31, 38], [3, 28, 0, 69], [100]])
def test_the_stream_does_not_depend_on_the_sizes_of_draws(parts):
    stream = GlibcRand(7)
    assert np.concatenate([stream.draw(n) for n in parts]).tolist() == reference(7, 100)


def test_skipping_equals_drawing():
    stream = GlibcRand(7)
    stream.skip(200_001)
    assert stream.draw(10).tolist() == reference(7, 200_011)[-10:]
    stream.skip(0)
    assert stream.draw(1).size == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_generator_equals_that_of_the_c_library():
    library = ctypes.CDLL(None)
    for seed in SEEDS:
        library.srand(ctypes.c_uint(seed))
        assert [library.rand() for _ in range(100)] == GlibcRand(seed).draw(100).tolist()
