"""Solvers of other projects, each in a process of its own that can be stopped.

`cost_function_search.py` has toulbar2 find the MAP; `model_counting.py` has Ganak compute ln Z of a
formula, which `weighted_cnf.py` writes. `*_process.py` is what the processes run. May import
`message_passing`, for a first configuration.
"""
