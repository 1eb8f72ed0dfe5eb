"""Parts of a command: fields, a request, a result, and the list of all commands.

A command is one file of `thesis_cli/commands/`. Its request is a frozen dataclass whose fields come
from `fields.option` and `fields.argument`; `run(request, progress)` does the work and returns a
`Result`. The shell (`thesis_cli/cli/build.py`), sweeps (`thesis_cli/reproduction/`), the Python
functions (`thesis_cli/__init__.py`) and the tables of options in `docs/` are made from it.
Start with `command.py`, then read `thesis_cli/commands/map_state.py` as an example.
"""
