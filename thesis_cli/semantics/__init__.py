"""Probabilistic expressions denoted by weighted expansions in a reproducing kernel Hilbert space."""
