"""Searches along the predictions of a network.

`guide.py` gives each task an order of its own, `policy.py` rates the next lines of partial programs;
`beam_search.py` writes whole programs, `anytime_beam.py` builds them line by line and finishes them
with `tails.py`. May import all rooms but `deductive` and `training`.
"""
