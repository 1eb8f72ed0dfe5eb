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
HEADINGS = {
    "A model": ("estimate-z", "bound", "marginals", "map", "sample", "renyi", "spin-glass", "posterior", "race"),
    "A private table": ("dp-release", "dp-measure", "dp-query", "dp-test", "dp-ledger", "dp-audit"),
    "Programs from examples": ("synthesize", "explain", "run-program", "make-corpus", "train-guide"),
    "Structures, images, expressions": (
        *("structured ln-z", "structured sample", "structured train", "structured predict"),
        *("train-denoiser", "denoise", "kernel-eval"),
    ),
    "Files": ("example",),
}
"""Commands in the order of the help, by the heading there."""
CLASSES = {"StructuredPredictor": "thesis_cli.structured.estimator"}
"""Classes of Python that do what commands do, by their modules."""
OTHER = "Other"
"""The heading of commands that are under none."""


class CommandEntry(NamedTuple):
    """A command by its names, the shell's, of one word or two, and Python's; and where the help lists it."""

    shell: str
    function: str
    help: str
    heading: str


@cache
def entries() -> dict[str, CommandEntry]:
    """All commands by their names in the shell, in the order of the help."""
    places = {name: heading for heading, names in HEADINGS.items() for name in names}
    order = list(places)
    found = []
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        with open(file, encoding="utf-8") as text:
            head = " ".join(text.read(HEAD).split())
        match = re.match(r'"""`thesis-cli (\S+(?: \S+)?)`: (.+?\.)["\s]', head)
        if match is None:
            raise InputError("the file begins with no sentence that names its command", source=file)
        help = match[2][0].upper() + match[2][1:]
        found.append(CommandEntry(match[1], file.stem, help, places.get(match[1], OTHER)))
    found.sort(key=lambda e: order.index(e.shell) if e.shell in places else len(order))
    return {entry.shell: entry for entry in found}
