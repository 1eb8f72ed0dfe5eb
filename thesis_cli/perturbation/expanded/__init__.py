"""Copies of variables (Hazan et al. III-B): `expanded.py` has the lower bound, `blocks.py` and
`pairs.py` upper bounds on the expanded maximum, `copies.py` the noise.
"""
