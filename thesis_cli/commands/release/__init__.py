"""What `dp-release` is made of: its budget, the checks before anything is spent, a preview, the run, the
result.
"""
