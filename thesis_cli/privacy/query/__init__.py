"""Statistics of a release, at no cost of privacy.

`query.py` answers, on rows of `weighted_sample.py`; `regression.py` fits, `replicates.py` gives
intervals by repeating the release, `two_sample.py` compares two tables. May import `release`, `tables`,
`embedding` and `mechanisms`.
"""
