"""Programs from examples: a small language of lists (DeepCoder's), searches, networks that guide
them, and corpora of programs.

Start with `language`, then `search/solver.py` (what every solver takes and returns) and `solvers.py`
(all solvers by name). Rooms, from the ground up: `language`; `corpus` (random programs with
examples); `search` (forward searches) ; `join` (forward and backward at once); `deductive` (backward
only, and SMT); `networks` (predictions, in NumPy); `guided` (searches along a network); `training`
(PyTorch). `auto.py` runs several searches in turn, `journal.py` keeps the solutions of a batch,
`prior.py` says what a guide is, and gives the order of a search without a network. `make lint` holds
which room may import which.
"""
