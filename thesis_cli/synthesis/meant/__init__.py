"""The program that was meant: of all programs that fit the examples, the most probable one.

`classes.py` collects the programs that fit, in classes of equal behaviour on the inputs of
`inputs.py`; `posterior.py` gives each class its probability, with weights that `fitting.py` has
learnt; `questions.py` finds the inputs that tell the classes apart. May import `search`, `corpus` and `language`.
"""
