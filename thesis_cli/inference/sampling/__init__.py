"""Samples: exact ones (`draws.py`, `coupling.py`), and Markov chains (`gibbs.py`) that `annealing.py` turns into ln Z.

Imports no other room.
"""
