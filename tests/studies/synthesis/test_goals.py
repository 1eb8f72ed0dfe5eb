from thesis_cli.studies.synthesis.published_speedups import PUBLISHED, published


def test_published_times_grow_with_the_share_and_shrink_with_the_network():
    for name in PUBLISHED:
        (_, prior, alone), (_, network, guided) = published(name)
        assert (prior, network) == (False, True)
        for points in (alone, guided):
            seconds, shares = zip(*points, strict=True)
            assert list(seconds) == sorted(seconds)
            assert list(shares) == sorted(shares)
        assert all(one < two for (one, _), (two, _) in zip(guided, alone, strict=True))
