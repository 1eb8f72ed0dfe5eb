"""A* sampling of continuous targets: `a_star.py`, on the tree of `boxes.py`."""
