"""Spent budgets of all releases of a table: `ledger.py`, the sums in `account.py`, the chain of digests in
`chain.py`. Tables are known by name and content (`identity.py`). May import `mechanisms` and `tables`.
"""
