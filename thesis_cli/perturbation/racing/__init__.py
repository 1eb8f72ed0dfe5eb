"""Maxima of few states with many factors, which are subsampled: `racing.py`, on `race_arrays.py`."""
