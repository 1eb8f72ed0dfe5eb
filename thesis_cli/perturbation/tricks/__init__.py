"""Noise on every configuration: `full_rank.py` finds the maxima, `estimators.py` turns them into
estimates by one of the tricks (`tricks.py`, by name in `trick_rows.py`), `mse.py` and `posterior.py`
say how far they may be off.
"""
