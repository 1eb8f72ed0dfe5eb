"""ln Z as an optimisation over marginals.

`frank_wolfe.py` bounds it from above by MAP calls; `bethe_mesh.py` finds the global maximum of the
Bethe approximation. May import `graph_cut` and `message_passing`.
"""
