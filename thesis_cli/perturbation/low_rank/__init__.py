"""Noise on the states of variables: `low_rank.py` finds the maxima, `low_rank_bounds.py` bounds ln Z
by them, with intervals; `subsets.py`, `clamping.py` and `max_marginals.py` give other bounds,
`sequential.py` samples.
"""
