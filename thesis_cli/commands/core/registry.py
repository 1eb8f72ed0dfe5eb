"""The commands there are: each file of `thesis_cli/commands/` is one, found by its name.

The first sentence of the file reads `\"\"\"`thesis-cli NAME`: what it does.\"\"\"`, where NAME is a word, or
a group and a word. Listing the commands reads these sentences and imports nothing.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from thesis_cli.base.errors import InputError

FOLDER = Path(__file__).resolve().parents[1]
HEAD = 400
"""Characters of a file in which its first sentence ends."""
FIRST = (
    *("estimate-z", "bound", "posterior", "race", "marginals", "map", "sample", "spin-glass", "renyi"),
    *(
        "dp-release",
        "dp-measure",
        "dp-query",
        "dp-test",
        "dp-ledger",
        "dp-audit",
        "synthesize",
        "explain",
        "run-program",
        "make-corpus",
        "train-guide",
        "train-denoiser",
        "denoise",
        "structured ln-z",
        "structured sample",
        "structured train",
        "structured predict",
        "kernel-eval",
    ),
)
"""The order in which commands are listed; those that are not here come last."""


class CommandEntry(NamedTuple):
    """A command by its names: the shell's, of one word or two, and Python's."""

    shell: str
    function: str
    help: str


@cache
def entries() -> dict[str, CommandEntry]:
    """All commands by their names in the shell, in the order of the help."""
    found = []
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        with open(file, encoding="utf-8") as text:
            head = " ".join(text.read(HEAD).split())
        match = re.match(r'"""`thesis-cli (\S+(?: \S+)?)`: (.+?\.)["\s]', head)
        if match is None:
            raise InputError("the file begins with no sentence that names its command", source=file)
        found.append(CommandEntry(match[1], file.stem, match[2][0].upper() + match[2][1:]))
    found.sort(key=lambda e: FIRST.index(e.shell) if e.shell in FIRST else len(FIRST))
    return {entry.shell: entry for entry in found}
