"""ln Z as an optimisation over marginals.

`frank_wolfe.py` bounds it from above by MAP calls (`entropy_objective.py` is what it maximises);
`bethe_mesh.py` finds the global maximum of the Bethe approximation. May import `graph_cut` and
`message_passing`.
"""
