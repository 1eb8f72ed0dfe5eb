"""Which section of the report a statement belongs to: a chapter of the thesis, or another source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from thesis_cli.reproduction.coverage import Coverage, mentions

SECTIONS: Mapping[str, str] = {
    "chapter-2": "Partition functions by perturb-and-MAP",
    "chapter-3": "Renyi entropies",
    "chapter-4": "Private releases of tables",
    "chapter-5": "Programs from examples",
    "perturb-max": "High-dimensional inference by perturbed maxima",
    "structured": "Structured predictors",
    "kernel-semantics": "Kernel semantics of probabilistic programs",
    "own": "Beyond the sources",
}
"""Titles of the sections by their ids, in their order."""

ORIGINS: Mapping[str, str] = {
    **{f"chapter-{number}": f"Thesis, chapter {number}" for number in (2, 3, 4, 5)},
    "perturb-max": "Hazan et al. 2019",
    "structured": "Vembu et al. 2009",
    "kernel-semantics": "Scibior and Schoelkopf 2015",
    "own": "this project",
}
"""What each section reproduces."""

_AUTHORS = {"Hazan": "perturb-max", "Vembu": "structured", "Scibior": "kernel-semantics"}
_OWN = re.compile(r"(this project|beyond|beside|goal)", re.IGNORECASE)
_PLACE = re.compile(r"\b([1-5]|[A-D])\.\d|\b([A-D])$|\b[Cc]hapter ([2-5])\b")
_APPENDICES = {"1": 2, "A": 2, "B": 3, "C": 4, "D": 5}


@dataclass(frozen=True)
class Sections:
    """Finds the section of a statement by what the coverage of the sources knows of its number."""

    coverage: Coverage

    @cached_property
    def _places(self) -> dict[tuple[str, str], str]:
        return {(entry.source, entry.number): entry.where for entry in self.coverage.entries}

    def of(self, source: str) -> str:
        """Section of a text such as `Thesis 2.3, Lemma 1` or `Hazan et al. Figure 4`.

        The first place that it names decides. What stands beside a source is this project's own.
        """
        if _OWN.match(source):
            return "own"
        first = next((section for name, section in _AUTHORS.items() if source.startswith(name)), "")
        if first:
            return first
        found = _chapter(re.findall(_PLACE, source.partition("Hazan")[0]))
        if found:
            return found
        places = (self._places.get(named, "") for named in mentions(source))
        return next(filter(None, (_chapter(re.findall(_PLACE, where)) for where in places)), "own")


def _chapter(places: Iterable[tuple[str, ...]]) -> str:
    for groups in places:
        place = "".join(groups)
        return f"chapter-{_APPENDICES.get(place, place)}"
    return ""
