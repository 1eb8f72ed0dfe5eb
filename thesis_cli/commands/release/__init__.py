"""Parts of `dp-release`, some of which `dp-measure` shares: budget, checks before anything is spent,
preview, result.
"""
