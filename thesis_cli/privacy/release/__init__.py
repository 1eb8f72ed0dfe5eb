"""The release itself: a record of a table, and rows of the record.

`release.py` is the whole: a `ReleasePlan`, the two steps, the interface `Implementation` of a method and
the errors that are expected; `record.py` and `files.py` are what is published; `linked.py` releases two
tables that a key links. A method is one file and one row of `methods.py`: `copula.py`, `features.py` and
`subspace.py` (`vectors.py` is what both share), `marginals.py`, `exponential.py`. May import `copula`,
`mechanisms`, `embedding` and `tables`.
"""
