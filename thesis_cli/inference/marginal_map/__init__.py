"""Marginal MAP: the maximum over some variables of the sum over all the others.

Start with `marginal_map.py`. `simplify.py` makes the model smaller and divides it, `elimination.py`
eliminates sums before maxima, `passes.py` bounds the answer by mini-buckets where tables are too large,
`search.py` is the branch and bound on these bounds, `sums.py` the exact sum for given maximising states.
May import `mini_bucket`, `zeros` and `elimination`.
"""
