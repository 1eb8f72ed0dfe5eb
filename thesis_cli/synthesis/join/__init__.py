"""Search that meets in the middle: a bank of values forward, goals backward from the output.

Start with `join.py`: joins of lists of the bank by ZIPWITH, below operations that can be inverted and below
others, in turn with depth-first search. `backward.py` goes back from the output. May import `search` and
`language`.
"""
