"""Methods of ln Z and of entropies, and what the commands on them share.

Start with `methods.py`, one row for each method of ln Z. `bounds.py` and `baselines.py` carry them
out, `portfolio.py` is `--method auto` of `estimate-z`, `estimates.py` holds the full-rank estimates, and the answers
and units of all; `entropies.py` has the methods of `renyi`.
"""
