"""Experiments on hard problems turned into optimisation problems."""

__version__ = "0.1.0"
