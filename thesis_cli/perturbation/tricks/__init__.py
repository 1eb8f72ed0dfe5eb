"""Noise on every configuration: `full_rank.py` finds the maxima, `estimators.py` turns them into
estimates by one of the tricks (`tricks.py`, with their errors and the posterior of Z; by name in
`trick_rows.py`, with the ranges of `parameters.py`).
"""
