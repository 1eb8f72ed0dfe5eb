"""Methods of ln Z and of entropies, and what the commands on them share.

Start with `methods.py`, one row for each method of ln Z. `bounds.py`, `baselines.py` and `full_rank.py` carry them
out, `portfolio.py` is `--method auto` of `estimate-z`, `estimates.py` holds their answers and the units, and
`entropies.py` the methods of `renyi`.
"""
