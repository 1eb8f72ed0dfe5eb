"""Searches along the predictions of a network.

`beam_search.py` writes whole programs, `anytime_beam.py` builds them line by line, as a policy rates
their lines, and finishes them with `tails.py`. May import all rooms but `deductive` and `training`.
"""
