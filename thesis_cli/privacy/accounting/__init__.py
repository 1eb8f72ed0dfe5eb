"""What all releases of a table have spent: `ledger.py`, the sums in `account.py`, the chain of digests
in `chain.py`. May import `mechanisms`.
"""
