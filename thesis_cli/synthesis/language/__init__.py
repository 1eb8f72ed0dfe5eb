"""The language of programs, and examples.

`dsl.py` is the language as two tables, and the plain reference of all compiled code; `program.py` has
notation, interpreter and which programs do the same, `task.py` the examples to fit.
`lanes.py` and `packing.py` lay values out for compiled code, `program_codes.py` programs;
`operation_kernels.py` are the operations, `input_range_kernels.py` the inputs that keep a program in its
range. Imports no other room.
"""
