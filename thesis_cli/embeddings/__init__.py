"""Distributions as weighted expansions in reproducing kernel Hilbert spaces."""
