"""The program that was meant: of all programs that fit the examples, the most probable one.

`classes.py` collects the programs that fit, in classes of equal behaviour on the inputs of
`inputs.py`; `posterior.py` gives each class its probability, with weights that `fitting.py` has
learnt; `meaning.py` takes the most probable one, finds the inputs that would settle the rest, and examples that
look mistaken. `kinds.py` makes tasks whose program is known. May import `search`, `corpus` and `language`.
"""
