"""The default random number generator of the GNU C library, which drew the published models."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RAND_MAX = 2**31 - 1

_DISCARDED = 310
"""Number of words that seeding discards."""

_BLOCK = 2**16


class GlibcRand:
    """The numbers that `rand()` returns after `srand(seed)`.

    The generator is an additive feedback generator with 31 words of state. Seeding fills the state
    with a Lehmer generator, s_i = 16807 s_{i-1} mod 2^31 - 1.

    Parameters
    ----------
    seed : a number from 0 to 2^32 - 1; seed 0 gives the same numbers as seed 1.
    """

    def __init__(self, seed: int) -> None:
        word = seed or 1
        words = [word]
        word -= 2**32 * (word >= 2**31)  # the library holds the seed in a signed word
        for _ in range(30):
            word = 16807 * word % RAND_MAX
            words.append(word)
        self._state = np.array(words, np.uint32)
        self._oldest = 3  # the next three words repeat the first three, which leaves the state as it is
        self.skip(_DISCARDED)

    def draw(self, count: int) -> npt.NDArray[np.int32]:
        """Draw the next numbers, from 0 to `RAND_MAX`, shape (count,)."""
        from thesis_cli.models.glibc_kernels import draw

        out = np.empty(count, np.int32)
        self._oldest = draw(self._state, self._oldest, out)
        return out

    def skip(self, count: int) -> None:
        """Discard the next numbers."""
        for start in range(0, count, _BLOCK):
            self.draw(min(_BLOCK, count - start))
