"""Rows of claims and tests that check each numbered statement of the sources.

`data/coverage/SOURCE.csv` has an entry for each number: what it says in one line, and the rows that
judge it, the tests that check it, the number of another source that it repeats, or the reason for
having none of these. Rows whose column `source` names the number are found without being listed.
`data/coverage/numbers.json` lists the numbers as they occur in the sources, independently of the
entries. `make docs` runs this module, which writes `docs/coverage.md`; a test fails if the page is
out of date, or if a number has no entry.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.claims import VERDICTS, counts, tally
from thesis_cli.reproduction.experiment import is_own

ROOT = Path(__file__).resolve().parents[2]

SOURCES = {
    "thesis": "M. Balog, *Converting to Optimization in Machine Learning*, PhD thesis, 2020",
    "gumbel": "M. Balog et al., *Lost Relatives of the Gumbel Trick*, ICML 2017",
    "perturb-max": "T. Hazan et al., *High Dimensional Inference with Random Maximum A-Posteriori Perturbations*, 2019",
    "structured": "S. Vembu et al., *Probabilistic Structured Predictors*, UAI 2009",
    "kernel-semantics": "A. Scibior and B. Schoelkopf, *Reproducing Kernel Hilbert Space Semantics for Probabilistic "
    "Programs*, 2015",
}
"""Titles by name; the name is that of the file of entries."""

SHORT = {
    "thesis": "Thesis",
    "gumbel": "Balog et al. 2017",
    "perturb-max": "Hazan et al.",
    "structured": "Vembu et al.",
    "kernel-semantics": "Scibior and Schoelkopf",
}
"""Names of the sources in the columns of the table of claims."""

COLUMNS = ["number", "where", "says", "rows", "tests", "same", "reason"]
MOST_NAMES = 12
"""Rows of one experiment that are named one by one."""
_NUMBER = r"(?:[0-9A-D]\.)?\d+(?:''|'|[a-z])?(?!\.?\w)"
_PLURALS = {
    "eqs.": "Equation",
    "Theorems": "Theorem",
    "Propositions": "Proposition",
    "Lemmas": "Lemma",
    "Corollaries": "Corollary",
    "Figures": "Figure",
}
_MENTION = re.compile(
    r"(?P<other>Hazan et al\.|Balog et al\. 2017|Vembu et al\.|Scibior and Schoelkopf)|(?P<thesis>[Tt]hesis\b)|"
    r"(?P<kind>Theorem|Proposition|Lemma|Corollary|Definition|Example|Algorithm|Figure|Table|Program|eq\.) "
    rf"(?P<one>{_NUMBER})|"
    rf"(?P<kinds>{'|'.join(map(re.escape, _PLURALS))}) (?P<many>{_NUMBER}(?:(?:, and|,| and| to) {_NUMBER})*)"
)
_ELSEWHERE = {
    "Hazan et al.": "perturb-max",
    "Balog et al. 2017": "",
    "Vembu et al.": "structured",
    "Scibior and Schoelkopf": "kernel-semantics",
}


@dataclass(frozen=True)
class JudgedClaim:
    """A row of the table of claims."""

    experiment: str
    claim: str
    source: str
    verdict: str

    @property
    def own(self) -> bool:
        """Whether it judges no statement of a source."""
        return is_own(self.source)

    @cached_property
    def mentions(self) -> frozenset[tuple[str, str]]:
        """Source and number of the statements that the column `source` names."""
        return frozenset(() if self.own else mentions(self.source))


@dataclass(frozen=True)
class NumberedStatement:
    """Rows and tests that check one numbered statement of a source.

    Attributes
    ----------
    source : name of the source.
    number : kind and number, such as `Proposition 11`; remarks have the number of their section.
    where : section.
    says : the statement in one line.
    rows : `experiment` for all its rows on a source, or `experiment: claim`, where * stands for any
        text.
    tests : `tests/path.py::name`.
    same : `source: number` of the statement that this one repeats, or empty.
    reason : why there is neither row nor test, or what they leave out.
    """

    source: str
    number: str
    where: str
    says: str
    rows: tuple[str, ...]
    tests: tuple[str, ...]
    same: str
    reason: str


@dataclass(frozen=True)
class NotReproduced:
    """A result of a source that could not be computed again.

    Attributes
    ----------
    experiments : ids of the experiments that come nearest to it.
    """

    what: str
    source: str
    experiments: tuple[str, ...]
    reason: str


def not_reproduced(root: Path, some: Iterable[str] | None = None) -> list[NotReproduced]:
    """Results of `data/coverage/not-reproduced.csv` that could not be computed again; none without that file."""
    path = root / "data" / "coverage" / "not-reproduced.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = [(each, tuple(filter(None, each["experiments"].split("; ")))) for each in csv.DictReader(file)]
    found = [NotReproduced(each["what"], each["source"], ids, each["reason"]) for each, ids in lines]
    chosen = None if some is None else set(some)
    return [each for each in found if chosen is None or chosen.intersection(each.experiments)]


@dataclass(frozen=True)
class Coverage:
    """The entries, the numbers of the sources and the table of claims of a checkout."""

    root: Path
    numbers: Mapping[str, Mapping[str, Sequence[str]]]
    entries: tuple[NumberedStatement, ...]
    rows: tuple[JudgedClaim, ...]

    @cached_property
    def _judged(self) -> dict[NumberedStatement, list[JudgedClaim]]:
        found = {}
        for entry in self.entries:
            named = (entry.source, entry.number)
            listed = set[JudgedClaim]().union(*(matching(pattern, self.rows) for pattern in entry.rows))
            found[entry] = [row for row in self.rows if row in listed or named in row.mentions]
        return found

    def judges(self, entry: NumberedStatement) -> list[JudgedClaim]:
        """The rows that name the number, and those that the entry lists, in the order of the table."""
        return self._judged[entry]

    def verdicts(self, entry: NumberedStatement) -> dict[tuple[str, str], str]:
        """Verdicts on an entry and on the number that it repeats, by experiment and claim."""
        found: dict[tuple[str, str], str] = {}
        by_name = {f"{each.source}: {each.number}": each for each in self.entries}
        name, passed = f"{entry.source}: {entry.number}", set[str]()
        while name in by_name and name not in passed:
            passed.add(name)
            found |= {(row.experiment, row.claim): row.verdict for row in self.judges(by_name[name])}
            name = by_name[name].same
        return found

    def faults(self) -> list[str]:
        """Missing entries and names that do not exist, one line each."""
        known = {(entry.source, entry.number) for entry in self.entries}
        occur = {
            (source, f"{kind} {number}")
            for source, kinds in self.numbers.items()
            for kind, numbers in kinds.items()
            for number in numbers
        }
        twice = Counter((entry.source, entry.number) for entry in self.entries)
        found = [f"{source}: {number} has {n} entries" for (source, number), n in twice.items() if n > 1]
        found += [f"{source}: {number} has no entry" for source, number in sorted(occur - known)]
        found += [f"{source}: {number} is not in numbers.json" for source, number in sorted(known - occur)]
        for entry in self.entries:
            found += (f"{entry.source}: {entry.number}: {fault}" for fault in self._faults_of(entry, known))
        for row in self.rows:
            for source, number in row.mentions - known:
                found.append(f"{row.experiment}: {row.claim} names {number} of {source}, which has no entry")
        return found

    def _faults_of(self, entry: NumberedStatement, known: set[tuple[str, str]]) -> Iterator[str]:
        for pattern in entry.rows:
            if not matching(pattern, self.rows):
                yield f"no row {pattern!r}"
        for test in entry.tests:
            if not self._is_test(test):
                yield f"no test {test}"
        if entry.same and tuple(entry.same.split(": ", 1)) not in known:
            yield f"no number {entry.same!r}"
        if not (self.judges(entry) or entry.tests or entry.same or entry.reason):
            yield "neither row nor test nor reason"
        if not (entry.where and entry.says):
            yield "no section or no words"

    def _is_test(self, test: str) -> bool:
        path, _, name = test.partition("::")
        file = self.root / path
        return file.is_file() and re.search(rf"^def {re.escape(name)}\(", file.read_text(), re.MULTILINE) is not None


def standing(coverage: Coverage) -> str:
    """How many rows on the sources, and how many of the project's own, have each verdict, in two sentences."""
    parts = [[row.verdict for row in coverage.rows if row.own == own] for own in (False, True)]
    (sources, first), (own, second) = ((len(rows), tally(counts(rows))) for rows in parts)
    missing = len(not_reproduced(coverage.root))
    return (
        f"{sources} checks of {len(SOURCES)} sources: {first}; not reproduced: {missing} figures, tables or parts of "
        f"them. {own} checks of this project's own: {second}."
    )


def matching(pattern: str, rows: Iterable[JudgedClaim]) -> list[JudgedClaim]:
    """The rows that an entry lists by `experiment` or `experiment: claim`."""
    return [row for row in rows if _matches(pattern, row)]


def _matches(pattern: str, row: JudgedClaim) -> bool:
    experiment, _, claim = pattern.partition(": ")
    if row.experiment != experiment:
        return False
    if not claim:
        return not row.own
    return re.fullmatch(".*".join(map(re.escape, claim.split("*"))), row.claim) is not None


def mentions(text: str) -> Iterator[tuple[str, str]]:
    """Source and number of each statement that a text names; the thesis unless it names another."""
    source = "thesis"
    for found in _MENTION.finditer(text):
        if found["other"]:
            source = _ELSEWHERE[found["other"]]
        elif found["thesis"]:
            source = "thesis"
        elif source and found["kind"]:
            yield source, f"{'Equation' if found['kind'] == 'eq.' else found['kind']} {found['one']}"
        elif source:
            for number in _expanded(found["many"]):
                yield source, f"{_PLURALS[found['kinds']]} {number}"


def _expanded(text: str) -> Iterator[str]:
    """Numbers of a list such as `3.2, 3.5 to 3.7 and 3.9`."""
    for first, last in re.findall(rf"({_NUMBER})(?: to ({_NUMBER}))?", text):
        start, end = (re.fullmatch(r"(.*?)(\d+)(\D*)", number) for number in (first, last or first))
        assert start is not None
        assert end is not None
        yield first
        yield from (f"{start[1]}{n}" for n in range(int(start[2]) + 1, int(end[2]) + 1))


def read(root: Path = ROOT) -> Coverage:
    """Read the files of a checkout.

    Raises
    ------
    ValueError : a file of entries has other columns.
    """
    folder, entries = root / "data" / "coverage", list[NumberedStatement]()
    for source in SOURCES:
        path = folder / f"{source}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames != COLUMNS:
                raise ValueError(f"{path}: the columns must be {', '.join(COLUMNS)}")
            entries += (_entry(source, line) for line in reader)
    with (root / "results" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            JudgedClaim(line["experiment"], line["claim"], line["source"], line["verdict"])
            for line in csv.DictReader(file)
        ]
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    return Coverage(root, numbers, tuple(entries), tuple(rows))


def _entry(source: str, line: Mapping[str, str]) -> NumberedStatement:
    rows, tests = (tuple(part.strip() for part in line[name].split(";") if part.strip()) for name in ("rows", "tests"))
    return NumberedStatement(
        source, line["number"], line["where"], line["says"], rows, tests, line["same"], line["reason"]
    )


HEAD = """# Coverage of the sources

What checks each numbered statement, table and figure of the sources, and the numbered equations of
the thesis that state a result: the rows of [results/claims.csv](../results/claims.csv) that judge
it, the tests that check it, or the reason for having neither. The name of an experiment alone
stands for all its rows on the sources. [Reproduce](reproduce.md#claims) says what the verdicts
mean, and [errata](errata.md) where a source is wrong. Remarks that a source does not number have
the number of their section. This page is generated from `data/coverage/` and the table of claims by
`make docs`.
"""


def page(coverage: Coverage) -> str:
    """The page in Markdown."""
    parts = [HEAD, standing(coverage) + "\n", _missing(coverage), _summary(coverage)]
    for source, title in SOURCES.items():
        lines = [f"## {source}", "", f"{title}.", ""]
        lines += ["| number | section | what it says | verdicts | checked by |", "| --- | --- | --- | --- | --- |"]
        for entry in coverage.entries:
            if entry.source == source:
                verdicts = _count(coverage.verdicts(entry).values())
                cells = entry.number, entry.where, entry.says, verdicts, _checks(coverage, entry)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _others(coverage)])


def _missing(coverage: Coverage) -> str:
    """List the figures and tables that could not be computed again."""
    found = not_reproduced(coverage.root)
    lines = [f"* {SHORT[each.source]}, {each.what}: {each.reason}." for each in found]
    return "\n".join(["Not reproduced:" if found else "All was reproduced.", "", *lines]) + "\n"


def _others(coverage: Coverage) -> str:
    """The rows that judge no number, by what their column `source` names."""
    numbered = {row for entry in coverage.entries for row in coverage.judges(entry)}
    by_source: dict[str, list[JudgedClaim]] = {}
    for row in coverage.rows:
        if row not in numbered:
            by_source.setdefault(row.source, []).append(row)
    lines = ["## Rows on the text of a section, and of this project", ""]
    lines += ["Rows that judge no numbered statement, by their source.", ""]
    lines += ["| source | verdicts | rows |", "| --- | --- | --- |"]
    for source, rows in sorted(by_source.items()):
        cells = source, _count(row.verdict for row in rows), _names(coverage, rows)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _summary(coverage: Coverage) -> str:
    """Counts of numbers of each source that have rows, tests alone, or neither."""
    lines = [
        "| source | numbers | judged by rows | by tests alone | as another number | neither | verdicts |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for source in SOURCES:
        entries = [entry for entry in coverage.entries if entry.source == source]
        judged = {entry.number: coverage.judges(entry) for entry in entries}
        by_test = sum(not judged[e.number] and bool(e.tests) for e in entries)
        same = sum(not judged[e.number] and not e.tests and bool(e.same) for e in entries)
        by_row = sum(map(bool, judged.values()))
        verdicts = {claim: verdict for entry in entries for claim, verdict in coverage.verdicts(entry).items()}
        counts = len(entries), by_row, by_test, same, len(entries) - by_row - by_test - same
        lines.append(f"| [{source}](#{source}) | {' | '.join(map(str, counts))} | {_count(verdicts.values())} |")
    return "\n".join(lines) + "\n"


def _count(verdicts: Iterable[str]) -> str:
    """Verdicts and how often each occurs."""
    counts = Counter(verdicts)
    order = sorted(counts, key=lambda word: (VERDICTS.index(word) if word in VERDICTS else len(VERDICTS), word))
    return ", ".join(f"{word} {counts[word]}" for word in order)


def _checks(coverage: Coverage, entry: NumberedStatement) -> str:
    """Rows, tests, the other number and the reason, as one cell."""
    parts = ["as " + entry.same.replace(": ", ", ")] if entry.same else []
    if judged := coverage.judges(entry):
        parts.append(_names(coverage, judged))
    for test in entry.tests:
        path, _, name = test.partition("::")
        parts.append(f"[{name}](../{path})")
    return "; ".join([*parts, entry.reason] if entry.reason else parts)


def _names(coverage: Coverage, rows: Iterable[JudgedClaim]) -> str:
    """Names of rows behind links to their experiments; a link alone for all rows on the sources."""
    by_experiment: dict[str, list[JudgedClaim]] = {}
    for row in rows:
        by_experiment.setdefault(row.experiment, []).append(row)
    parts = []
    for experiment, some in by_experiment.items():
        link = f"[{experiment}](../experiments/{experiment.replace('-', '_')}.py)"
        of = [row for row in coverage.rows if row.experiment == experiment]
        if len(some) > MOST_NAMES:
            listed = f"{len(some)} of its {len(of)} rows"
        else:
            listed = "; ".join(f"`{row.claim}`" for row in some)
        parts.append(link if some == [row for row in of if not row.own] else f"{link}: {listed}")
    return "; ".join(parts)


def main() -> int:
    """Bring the page up to date; the exit status is 1 if an entry is faulty."""
    coverage = read()
    path, text = ROOT / "docs" / "coverage.md", page(coverage)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomic({path: text})
        sys.stderr.write(f"wrote {path.relative_to(ROOT)}\n")
    faults = coverage.faults()
    sys.stderr.writelines(f"error: {fault}\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
