"""The commands, one file each: a request, `run(request, progress)`, a result.

The shell, sweeps, the Python functions of `thesis_cli` and the option tables in `docs/` are made
from these files. `core/` holds the framework (fields, request, result, list of commands); what several
commands share is in `ln_z/`, `release/`, `inputs/`, `outputs/` and `figures/`. Start with
`map_state.py`, the shortest command, and `core/command.py`. To add a command, add a file here whose
first sentence reads like that of `map_state.py`, and a page in `docs/`.
"""
