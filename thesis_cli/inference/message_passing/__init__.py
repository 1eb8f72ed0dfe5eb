"""Messages between variables: belief propagation and tree-reweighted bounds.

`belief_propagation.py` has max-product and sum-product on any factor graph, `trw.py` the upper bound on
ln Z, `trws.py` configurations and upper bounds on the maximum, `spins.py` its layout for binary
models, and `block_search.py` better configurations by moves of many variables. Imports no other room.
"""
