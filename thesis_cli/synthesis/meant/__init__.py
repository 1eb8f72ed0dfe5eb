"""The program that was meant: of all programs that fit the examples, the most probable one.

`classes.py` collects the programs that fit, in classes of equal behaviour on inputs of the task's own kind;
`meaning.py` gives each class its probability, takes the most probable one, finds the inputs that would settle
the rest, and examples that look mistaken. `fitting.py` learns the weights from tasks whose program is known;
`outputs_kernels.py` runs programs. May import `search`, `corpus` and `language`.
"""
