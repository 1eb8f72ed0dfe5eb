"""The release method `copula`: counts of columns, then of pairs of columns.

Start with `copula.py`, its two stages. `cells.py` and `bins.py` divide columns, `columns.py` is the
first stage, `pairs.py` and `normal.py` the second, `rows.py` makes rows of the noisy tables.
"""
