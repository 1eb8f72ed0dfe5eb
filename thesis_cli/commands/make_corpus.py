"""`thesis-cli make-corpus`: make distinct random programs with examples, to learn from and to test
on."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress, Stopwatch
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option, seed_option, seed_or_fresh
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import NOT_SETTINGS, Result, command_of, presentation, record_of, written_by
from thesis_cli.commands.inputs.programs import (
    DivisionName,
    check_range,
    division_option,
    range_option,
    semantics_of,
)

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.balance import Feature
    from thesis_cli.synthesis.corpus.corpus import Corpus
    from thesis_cli.synthesis.corpus.shares import Shares
    from thesis_cli.synthesis.language.program_codes import Signature

    CorpusSource = str | Path | Corpus
else:
    CorpusSource = str

logger = logging.getLogger("thesis_cli")

SHARES = {
    "functions": ("function",),
    "lambdas": ("lambda",),
    "outputs": ("output", "examples"),
    "lines": ("length", "lines"),
}
"""Lines of the summary that list shares, and the kinds of properties of each."""


@dataclass(frozen=True, kw_only=True)
class MakeCorpusRequest(Request):
    """Make distinct random programs of the DSL of DeepCoder, each with input-output examples.

    No two programs do the same, and none does what a shorter one does.
    """

    usual = ("length", "count", "test", "examples", "tasks", "out", "seed")

    length: int = option(dataclasses.MISSING, "Lines of each program.", least=1, most=10)
    count: int = option(10_000, "Programs of each length to train on.", least=0, most=10**7)
    test: int = option(
        0, "Programs of each length to test on; no two programs of a corpus do the same.", least=0, most=10**7
    )
    all_lengths: bool = option(False, "Make --count programs of each shorter length too, or all that there are.")
    exhaustive: bool = option(False, "Compare longer programs with all of 4 lines, which takes a minute.")
    examples: int = option(5, "Examples of each program.", least=1, most=100)
    distinct_outputs: int | None = option(
        None,
        "Smallest number of different outputs among the examples of a program.",
        least=1,
        most=100,
        default_text="2, or 1 for one example",
    )
    max_empty_outputs: int | None = option(
        None,
        "Largest number of a program's examples that have an empty list as output.",
        least=0,
        most=100,
        default_text="all",
        alias="max_empty",
    )
    balance: tuple[str, ...] | None = option(
        None,
        "What to balance programs by instead of drawing them uniformly, separated by commas: "
        "output-type, function, or length, which implies --all-lengths.",
        metavar="LIST",
        default_text="nothing",
    )
    inputs: tuple[str, ...] | None = option(
        None, "Types of inputs, such as int,[int].", default_text="all of 1 to 3 inputs", metavar="TYPES"
    )
    apart_from: CorpusSource | None = option(
        None,
        "Corpus whose programs are left out, and all that do the same.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    division: DivisionName = division_option()
    range: tuple[int, int] = range_option()
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()
    out: Path | None = option(
        None,
        "Folder for the corpus, .corpus. The same command goes on from what is in it.",
        metavar="FOLDER",
        names="output",
        default_text="results/runs/make-corpus.corpus; Python writes no file",
    )
    tasks: bool = option(
        False, "Write the tasks as JSON Lines too, tasks.jsonl in the folder of the corpus.", recorded=False
    )
    overwrite: bool = option(
        False, "Replace a corpus that this command did not make with these settings.", recorded=False
    )

    def check(self) -> None:
        """Refuse a corpus of no program, bounds in the wrong order, and unknown words."""
        check_range(self.range)
        if self.count + self.test == 0:
            raise InputError("--count and --test are both 0", "one of them must be 1 or more")
        if self.distinct_outputs is not None and self.distinct_outputs > self.examples:
            problem = f"--distinct-outputs is {self.distinct_outputs}"
            raise InputError(problem, f"it must be at most the number of --examples, {self.examples}")
        _signatures(self.inputs)
        if self.balance:
            _features(self.balance)


@dataclass(frozen=True, kw_only=True, repr=False)
class MakeCorpusResult(Result):
    """The corpus. Its table counts programs by length, types of inputs, and use.

    Attributes
    ----------
    corpus : programs and examples as arrays.
    """

    corpus: Corpus

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Counts and shares."""
        facts = self.facts()
        lines = []
        for part in facts["lengths"]:
            train, test = sum(part["train"].values()), sum(part["test"].values())
            found = f"{part['distinct']:,} distinct among {part['looked_at']:,} examined"
            lines.append((f"length {part['length']}", f"{train:,} to train on, {test:,} to test on; {found}"))
        lines.append(("inputs", ", ".join(f"({types}) {n:,}" for types, n in facts["by_inputs"].items())))
        if "weighted_shares" in facts:
            size = f"as good as {facts['effective_size']:,.0f} uniform programs"
            lines.append(("weights", f"{size}; brackets hold the shares of a uniform corpus"))
        weighted = facts.get("weighted_shares", {})
        for name, kinds in SHARES.items():
            shares = {what: part for kind in kinds for what, part in facts["shares"][kind].items()}
            uniform = {what: part for kind in kinds for what, part in weighted.get(kind, {}).items()}
            lines.append((name, _in_words(shares, uniform)))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Counts and shares, as the data card has them."""
        from thesis_cli.synthesis.corpus.shares import effective_size, shares_of

        made, counts = self.corpus, self.columns.records()
        lengths: list[dict[str, Any]] = []
        for length in dict.fromkeys(row["length"] for row in counts):
            rows = [row for row in counts if row["length"] == length]
            found = {what: made.made[what][length] for what in ("looked_at", "distinct")}
            lengths.append({"length": length, **found, "train": _by(rows, "train"), "test": _by(rows, "test")})
        by_inputs = Counter[str]()
        for part in lengths:
            by_inputs += Counter(part["train"]) + Counter(part["test"])
        facts = {"programs": len(made), "by_inputs": dict(by_inputs), "lengths": lengths}
        plain, weighted = map(_rounded, shares_of(made))
        if self.settings["balance"]:
            size = round(effective_size(made.weights), 1)
            return {**facts, "shares": plain, "weighted_shares": weighted, "effective_size": size}
        return {**facts, "shares": plain}

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the corpus, a folder; it replaces another corpus of that name.

        Raises
        ------
        InputError : the name is that of something else.
        OSError : naming the file that could not be written.
        """
        from thesis_cli.synthesis.corpus.corpus_maker import split
        from thesis_cli.synthesis.corpus.corpus_shards import opened

        with opened(Path(path), _record(self.request, self.settings), overwrite=True) as folder:
            if not folder.complete:
                for part in islice(split(self.corpus), len(folder), None):
                    folder.add(part, self.settings["length"])
                folder.finish(self.sidecar())
        return [Path(path)]


def run(request: MakeCorpusRequest, progress: Progress) -> MakeCorpusResult:
    """Draw programs and examples."""
    import numpy as np

    from thesis_cli.synthesis.corpus import corpus_maker
    from thesis_cli.synthesis.corpus.corpus import join
    from thesis_cli.synthesis.corpus.corpus_file import load_corpus, write_tasks
    from thesis_cli.synthesis.corpus.corpus_shards import TASKS, opened

    semantics = semantics_of(request.division, request.range)
    signatures = _signatures(request.inputs)
    other = request.apart_from
    if isinstance(other, str | Path):
        other = load_corpus(other)
    if request.tasks and request.out is None:
        raise InputError("--tasks needs the folder of the corpus", "give --out, or leave --tasks out")
    watch = Stopwatch()
    seed = _seed(request)
    features = _features(request.balance)
    shorter = request.all_lengths or "length" in features
    total = (request.count + request.test) * (request.length if shorter else 1)
    plan = corpus_maker.CorpusPlan(
        length=request.length,
        count=request.count,
        test=request.test,
        shorter=shorter,
        exhaustive=request.exhaustive,
        examples=request.examples,
        distinct=request.distinct_outputs,
        empty=request.max_empty_outputs,
        balance=features,
        signatures=signatures,
        semantics=semantics,
    )
    names = [_text(s) for s in signatures]
    settings = settings_of(request, inputs=names, balance=list(features), longest=semantics.longest, seed=seed)
    if other is not None:
        settings = {**settings, "apart_from_sha256": other.digest}

    def parts(done: Iterable[Corpus] = ()) -> Iterator[Corpus]:
        with progress(total, "programs") as tick:
            rng, jobs = np.random.default_rng(seed), jobs_or_all(request.jobs)
            yield from corpus_maker.parts(plan, rng, other or (), jobs, tick, done)

    def result(made: Corpus) -> MakeCorpusResult:
        times = {"seconds": watch.seconds, "compilation": watch.compilation}
        return MakeCorpusResult(columns=_counts(made), request=request, settings=settings, corpus=made, **times)

    if request.out is None:
        return result(join(list(parts())))
    with opened(request.out, _record(request, settings), request.overwrite) as folder:
        if len(folder):
            logger.info("%s programs are there from before", f"{len(folder.corpus()):,}")
        if not folder.complete:
            for part in parts(folder.parts()):
                folder.add(part, request.length)
        made = result(folder.corpus())
        if not folder.complete:
            folder.finish(made.sidecar())
        if request.tasks:
            write_tasks(made.corpus, request.out / TASKS)
    return made


def _seed(request: MakeCorpusRequest) -> int:
    """The seed, which is that of the corpus to go on from if there is one."""
    if request.seed is None and request.out is not None and written_by(record_of(request.out), request):
        settings = json.loads(record_of(request.out).read_text())["settings"]
        return int(settings["seed"])
    return seed_or_fresh(request.seed)


def _record(request: Request, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Entries that the card of a corpus has before programs are made."""
    from thesis_cli.base.provenance import provenance

    versions = provenance()["versions"]
    assert isinstance(versions, dict)
    return {
        "command": command_of(request),
        "asked": settings_of(request),
        "settings": settings,
        "made_from": {name: value for name, value in settings.items() if name not in NOT_SETTINGS},
        "made_by": {name: versions[name] for name in ("thesis-cli", "numpy")},
    }


def _signatures(inputs: Sequence[str] | None) -> tuple[Signature, ...]:
    """Types of inputs from their notation, in any order; all if none are given."""
    from thesis_cli.synthesis.language.program_codes import SIGNATURES

    if inputs is None:
        return SIGNATURES
    known = {tuple(sorted(map(str, signature))): signature for signature in SIGNATURES}
    found = []
    for text in inputs:
        words = tuple(sorted(text.replace(" ", "").split(",")))
        if words not in known:
            raise InputError(f"--inputs is {text}", f"it must be one of {' '.join(map(_text, SIGNATURES))}")
        found.append(known[words])
    return tuple(dict.fromkeys(found))


def _features(balance: Sequence[str] | None) -> tuple[Feature, ...]:
    """Parts to balance by, from words separated by commas, each once."""
    from thesis_cli.synthesis.corpus.balance import FEATURES

    words = [word.strip() for text in balance or () for word in text.split(",")]
    for word in words:
        if word not in FEATURES:
            raise InputError(f"--balance has {word!r}", f"it must be some of {', '.join(FEATURES)}")
    return tuple(name for name in FEATURES if name in words)


def _rounded(shares: Shares) -> Shares:
    return {kind: {name: round(part, 4) for name, part in parts.items()} for kind, parts in shares.items()}


def _in_words(shares: Mapping[str, float], uniform: Mapping[str, float]) -> str:
    """Shares from the largest, and those of a uniform corpus in brackets, if there are any."""
    parts = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {part:.2f}" + (f" ({uniform[name]:.2f})" if uniform else "") for name, part in parts)


def _text(signature: Sequence[str]) -> str:
    return ",".join(signature)


def _counts(made: Corpus) -> Columns:
    """Programs by length and types of inputs: columns length, inputs, train, test."""
    from thesis_cli.synthesis.corpus.corpus import TYPES
    from thesis_cli.synthesis.language.program_codes import SIGNATURES

    types = map(tuple, made.types[:, :-1].tolist())
    found = Counter(zip(made.lengths.tolist(), types, made.test.tolist(), strict=True))
    rows = []
    for length in sorted(set(made.lengths.tolist())):
        for signature in SIGNATURES:
            codes = (*map(TYPES.index, signature), *(0,) * (len(TYPES) - len(signature)))
            train, test = found[length, codes, False], found[length, codes, True]
            if train or test:
                rows.append({"length": length, "inputs": _text(signature), "train": train, "test": test})
    return Columns(rows)


def _by(counts: Sequence[Mapping[str, Any]], column: str) -> dict[str, int]:
    """Programs by types of inputs."""
    return {row["inputs"]: row[column] for row in counts if row[column]}


COMMAND = Command(
    MakeCorpusRequest,
    run,
    examples=(
        "make-corpus --length 3 --count 5000 --test 500 --seed 1",
        "make-corpus --length 4 --all-lengths --count 2000 --test 100 --seed 1 --out results/runs/lengths.corpus",
        "make-corpus --length 4 --count 5000 --balance output-type,function --max-empty-outputs 1 --seed 1",
        'make-corpus --length 2 --count 100 --inputs "[int],[int]" --seed 1',
    ),
    suffix=".corpus",
    not_swept="it writes a corpus, not a table",
)
