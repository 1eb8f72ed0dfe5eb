"""The release itself: a record of a table, and rows of the record.

`release.py` is the whole, from a `ReleasePlan` (`plan.py`); `record.py` and `files.py` are what is
published; `expected.py` predicts errors; `linked.py` releases two tables that a key links. A method is
one file and one row of `methods.py`, behind the interface of `implementation.py`: `copula.py`,
`features.py` and `subspace.py` (`vectors.py` is what both share), `marginals.py`, `exponential.py`. May
import `copula`, `mechanisms`, `embedding` and `tables`.
"""
