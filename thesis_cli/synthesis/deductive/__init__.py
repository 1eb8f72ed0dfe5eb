"""Searches that stand in for the source's baselines: from the output backward, and by an SMT solver.

`deductive_search.py` is in place of lambda^2 (rules in `goal_rules.py`, sets in `number_sets.py`),
`smt_search.py` in place of Sketch (formulas in `smt_formulas.py`). May import `search` and `language`.
"""
