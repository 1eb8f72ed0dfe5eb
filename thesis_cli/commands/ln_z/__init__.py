"""What commands on ln Z and entropies share: methods and their options, how time is divided among them.

`portfolio.py` is `--method auto`, `low_rank.py` the bounds, `rivals.py` the baselines, `full_rank.py`
the tricks, `entropies.py` those of `renyi`; `quantity.py` turns ln Z into what was asked for.
"""
