"""`thesis-cli make-corpus`: random programs with examples, to learn from and to test on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus_arrays import Corpus
    from thesis_cli.synthesis.corpus_codes import Signature

EXAMPLES = """\b
Examples:
  thesis-cli make-corpus --length 3 --count 5000 --test 500 --seed 1
  thesis-cli make-corpus --length 4 --all-lengths --count 2000 --test 100 --seed 1 --out results/runs/lengths.npz
  thesis-cli make-corpus --length 2 --count 100 --inputs "[int],[int]" --seed 1
"""

SHOWN = 6
"""Attributes that the summary lists."""


def make_corpus(
    length: Annotated[int, typer.Option(min=1, max=5, help="T, lines of each program.")],
    count: Annotated[int, typer.Option(min=0, max=10**7, help="Programs to train on, of a length.")] = 10_000,
    test: Annotated[
        int, typer.Option(min=0, max=10**7, help="Programs to test on, of a length: none does what another does.")
    ] = 0,
    all_lengths: Annotated[
        bool, typer.Option("--all-lengths", help="As many of each shorter length, too, or all that there are.")
    ] = False,
    exhaustive: Annotated[
        bool,
        typer.Option(
            "--exhaustive", help="Go through all programs of 4 lines for equivalents of those of 5: a minute."
        ),
    ] = False,
    examples: Annotated[int, typer.Option(min=1, max=100, help="M, for each program.")] = 5,
    inputs: Annotated[
        list[str] | None,
        typer.Option(help="Types of inputs, such as int,[int]; give it again for more.", show_default="all of 1 to 3"),
    ] = None,
    apart_from: Annotated[
        Path | None, typer.Option(help="A corpus: no program does what one of its programs does.")
    ] = None,
    division: options.Division = "trunc",
    range: options.Range = (-256, 255),
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Where the corpus goes: .npz, beside it a .json.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Make distinct random programs of the DSL of DeepCoder, each with input-output examples.

    No two programs do the same, and none does what a shorter one does.
    """
    options.set_messages(quiet, verbose)
    out = out or Path("results/runs") / f"corpus-{length}.npz"
    check_writable("--out", out, ".npz")
    if apart_from is not None and apart_from.resolve() == out.resolve():
        raise InputError(f"--out {out} would overwrite the input", "another --out is wanted")

    import numpy as np

    from thesis_cli.base.files import to_json, write_atomic
    from thesis_cli.base.provenance import provenance
    from thesis_cli.synthesis import corpus
    from thesis_cli.synthesis.corpus_codes import SIGNATURES
    from thesis_cli.synthesis.corpus_file import dump_corpus, load_corpus
    from thesis_cli.synthesis.dsl import Semantics

    semantics = Semantics(division, *range)
    signatures = tuple(dict.fromkeys(map(_signature, inputs))) if inputs else SIGNATURES
    apart = load_corpus(apart_from).programs() if apart_from else ()
    seed = options.seed_or_fresh(seed)
    began = time.perf_counter()
    total = (count + test) * (length if all_lengths else 1)
    with options.telling_of_compilation(), options.progress(total, "programs", quiet) as tick:
        made = corpus.make_corpus(
            length,
            count,
            np.random.default_rng(seed),
            test,
            shorter=all_lengths,
            exhaustive=exhaustive,
            apart_from=apart,
            examples=examples,
            signatures=signatures,
            semantics=semantics,
            jobs=options.jobs_or_all(jobs),
            progress=tick,
        )
    seconds = time.perf_counter() - began

    settings = {
        "length": length,
        "count": count,
        "test": test,
        "all_lengths": all_lengths,
        "exhaustive": exhaustive,
        "examples": examples,
        "inputs": [_write(signature) for signature in signatures],
        "apart_from": apart_from and str(apart_from),
        "division": division,
        "range": list(range),
        "longest": semantics.longest,
        "seed": seed,
    }
    facts = _facts(made)
    content = dump_corpus(made)
    card = {"settings": settings, **facts, "seconds": round(seconds, 3), **provenance()}
    write_atomic({out: content, out.with_suffix(".json"): to_json(card)})
    if as_json:
        output.print_json({**settings, **facts, "seconds": round(seconds, 3), "out": str(out)})
    else:
        _print_summary(made, facts, f"seed {seed}, {seconds:.3f} s, {len(content) / 1e6:.1f} MB")
    options.logger.info("wrote %s", out)


def _signature(text: str) -> Signature:
    """Types of inputs from their notation, in any order."""
    from thesis_cli.synthesis.corpus_codes import SIGNATURES

    words = sorted(text.replace(" ", "").split(","), reverse=True)
    found = next((signature for signature in SIGNATURES if sorted(signature, reverse=True) == words), None)
    if found is None:
        raise InputError(f"--inputs {text}", f"one of {' '.join(map(_write, SIGNATURES))} is wanted")
    return found


def _write(signature: Sequence[str]) -> str:
    return ",".join(signature)


def _facts(made: Corpus) -> dict[str, Any]:
    """Counts and incidence, as the data card has them."""
    from thesis_cli.synthesis.corpus_arrays import TYPES
    from thesis_cli.synthesis.corpus_codes import SIGNATURES
    from thesis_cli.synthesis.dsl import ATTRIBUTES

    def counts(rows: Any) -> dict[str, int]:
        found = Counter(tuple(row) for row in made.types[rows, :-1].tolist())
        written = {_write([str(TYPES[code]) for code in row if code]): n for row, n in found.items()}
        return {_write(inputs): written[_write(inputs)] for inputs in SIGNATURES if _write(inputs) in written}

    lengths = [
        {
            "length": length,
            "looked_at": made.made["looked_at"][length],
            "distinct": made.made["distinct"][length],
            "train": counts((made.lengths == length) & ~made.test),
            "test": counts((made.lengths == length) & made.test),
        }
        for length in sorted(set(made.lengths.tolist()))
    ]
    incidence = dict(zip(ATTRIBUTES, made.incidence.round(4).tolist(), strict=True))
    return {"programs": len(made), "by_inputs": counts(slice(None)), "lengths": lengths, "incidence": incidence}


def _print_summary(made: Corpus, facts: dict[str, Any], cost: str) -> None:
    lines = []
    for of in facts["lengths"]:
        train, test = sum(of["train"].values()), sum(of["test"].values())
        found = f"{of['distinct']:,} distinct among {of['looked_at']:,} looked at"
        lines.append((f"length {of['length']}", f"{train:,} to train on, {test:,} to test on; {found}"))
    lines.append(("inputs", ", ".join(f"({types}) {n:,}" for types, n in facts["by_inputs"].items())))
    common = sorted(facts["incidence"].items(), key=lambda item: -item[1])[:SHOWN]
    lines.append(("incidence", ", ".join(f"{name} {part:.2f}" for name, part in common) + ", ..."))
    lines.append(("cost", cost))
    output.print_table(lines)
