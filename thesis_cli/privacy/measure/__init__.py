"""Statistics of a private table, measured with noise: `measure.py` reads the
queries into parts (`parts.py`, `quantiles.py`, bounds by `ranges.py`) and spends the budget,
`intervals.py` says how far the answers may be off.
"""
