"""Parts of `dp-release`, some of which `dp-measure` shares: `budget.py` has the checks before anything
is spent, and the charge; `result.py` has what a release and its dry run return.
"""
