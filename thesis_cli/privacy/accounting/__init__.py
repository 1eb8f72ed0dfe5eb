"""Spent budgets of all releases of a table: `ledger.py`, the sums in `account.py`, the chain of digests
in `chain.py`. Tables are known
by content (`identity.py`) and name (`names.py`). May import `mechanisms` and `tables`.
"""
