"""The release itself: a record of a table, and rows of the record.

`release.py` is the whole; `record.py` and `files.py` are what is published (`checks.py` reads it with
suspicion); `rows.py` makes rows, which anyone may repeat. Methods: `staged.py` (adaptive Gaussian
stages, `unit_stages.py` for persons), `subspace.py` (Algorithm 2), `exponential.py`, `marginals.py`
(OpenDP's MST and AIM); the copula has a room of its own. `expected.py` predicts errors.
"""
