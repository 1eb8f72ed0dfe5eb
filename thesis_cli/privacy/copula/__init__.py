"""The measurements of the release method `copula`: counts of columns, of pairs, of triples.

Start with `CopulaStages` in `release/copula.py`, the stages. `cells.py` divides columns, `vectors.py` has the
vectors of the first two stages, `relations.py` those of the last two, `rows.py` makes rows of the noisy
tables, with `kernels.py`. May import `mechanisms`, `embedding` and `tables`.
"""
