"""Search that meets in the middle: a bank of values forward, goals backward from the output.

`join.py` joins lists of the bank by ZIPWITH (`inverses.py` goes back through what can be inverted);
`roots.py` does so below operations that cannot be inverted
(`root_chains.py`); `turns.py` takes turns between them and depth-first search. May
import `search` and `language`.
"""
