from itertools import chain

import numpy as np
import pytest

from thesis_cli.perturbation.tricks.full_rank import GROUPS, groups, rounds, streams


@pytest.mark.parametrize("count", [1, 5, 32, 33, 1000])
@pytest.mark.parametrize("most", [1, 7, 10**6])
def test_rounds_cover_each_group_in_order(count, most):
    whole = groups(count)
    assert len(whole) == min(GROUPS, count) == len(streams(count, np.random.SeedSequence(1)))
    assert list(chain(*(range(g.start, g.stop) for g in whole))) == list(range(count))
    seen = [[] for _ in whole]
    for parts in rounds(count, most):
        for own, part in zip(seen, parts, strict=False):
            assert 1 <= part.stop - part.start <= most
            own += range(part.start, part.stop)
    assert [list(range(g.start, g.stop)) for g in whole] == seen
