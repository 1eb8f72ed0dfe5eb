"""Statistics of a private table, measured with noise: `measure.py` spends the budget, `plan.py` reads
the queries into parts (`parts.py`, `quantiles.py`, bounds by `ranges.py`), `intervals.py` says how far
the answers may be off.
"""
