"""The shell: turns commands into Typer commands, runs them, writes files and prints.

`app.py` finds commands and turns exceptions into one-line errors; `build.py` makes Typer options
from the fields of a request, and those that all commands share, chooses and checks files, and prints
messages and summaries.
"""
