"""The measurements of the release method `copula`: counts of columns, then of pairs of columns.

Start with `copula.py`, its two stages. `cells.py` divides columns, `vectors.py` has the vectors of
both stages, `rows.py` makes rows of the noisy tables, with `kernels.py`. May import `mechanisms`,
`embedding` and `tables`.
"""
