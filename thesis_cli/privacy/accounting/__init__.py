"""Spent budgets of all releases of a table: `ledger.py`, the sums in `account.py`, the chain of digests
in `chain.py`. May import `mechanisms`.
"""
