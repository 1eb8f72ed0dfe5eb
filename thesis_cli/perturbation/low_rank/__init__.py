"""Noise on the states of variables: `low_rank.py` finds the maxima, `low_rank_bounds.py` bounds ln Z
by them; `subsets.py`, `clamping.py` and `max_marginals.py` give other bounds, `concentration.py`
intervals, `sequential.py` samples.
"""
