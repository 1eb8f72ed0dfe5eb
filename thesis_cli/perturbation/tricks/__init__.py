"""Noise on every configuration: `full_rank.py` finds the maxima, `tricks.py` turns them into
estimates by one of the tricks, with their errors and the posterior of Z (tricks are found by name in
`trick_rows.py`, with the ranges of `parameters.py`).
"""
