"""Merge the results of an experiment's tasks, and decide whether the table takes the place of the
one that stands.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import describes, to_json, write_atomic
from thesis_cli.base.provenance import provenance
from thesis_cli.reproduction import comparison
from thesis_cli.reproduction.comparison import DIFFERS, IDENTICAL, Comparison
from thesis_cli.reproduction.digests import DIGEST, digest
from thesis_cli.reproduction.experiment import Experiment
from thesis_cli.reproduction.registry import Checkout
from thesis_cli.reproduction.store import Stored

NEW = "new"


@dataclass(frozen=True)
class Published:
    """What became of a recomputed table.

    Attributes
    ----------
    experiment : id.
    comparison : with the table that stood; None if there was none, or no readable one.
    replaced : why the new table has taken the place of one that stood; empty if it has not.
    beside : file of a new table that differs and has not taken the place.
    """

    experiment: str
    comparison: Comparison | None = None
    replaced: str = ""
    beside: Path | None = None

    @property
    def verdict(self) -> str:
        """`new`, `identical`, `equal` or `differs`."""
        return self.comparison.verdict if self.comparison else NEW

    def __str__(self) -> str:
        words = str(self.comparison or NEW)
        return f"{words}; replaced ({self.replaced})" if self.replaced else words

    def to_dict(self) -> dict[str, Any]:
        """JSON values: verdict, number of cells that differ, the largest of them, what was written."""
        found = self.comparison
        largest = found.largest if found else None
        return {
            "experiment": self.experiment,
            "verdict": self.verdict,
            "text": str(self),
            "cells": found.cells if found else 0,
            "largest": vars(largest) if largest else None,
            "shape": found.shape if found else "",
            "replaced": self.replaced,
            "beside": str(self.beside) if self.beside else None,
        }


def publish(
    experiment: Experiment,
    preset: str,
    checkout: Checkout,
    seed: int,
    results: Sequence[Stored],
    replace: bool = False,
) -> Published:
    """Merge results, and write the table and its record if they are to take the place of those that
    stand.

    A table that is equal within the tolerances of its columns does not. One that differs does if
    nothing committed would be lost (the preset is not `paper`, or the file is damaged), if its
    record describes other settings, another version or seed, or if `replace` is true; otherwise it
    goes to the store. The record of an identical table stays, unless `replace` is true and other
    code gave the table.

    Raises
    ------
    InputError : the tasks disagree on the columns.
    """
    merged = _merge(experiment, results)
    csv = checkout.results(preset) / f"{experiment.id}.csv"
    record = csv.with_suffix(".json")
    computation: dict[str, Any] = {
        "preset": preset,
        "settings": dict(experiment.settings(preset)),
        "version": experiment.version,
        "seed": seed,
    }
    what = {
        "experiment": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        **computation,
        "tasks": len(results),
    }
    found, reason = _against(csv, merged, experiment), ""
    beside = checkout.store / experiment.id / f"{preset}-{seed}.csv"
    beside.unlink(missing_ok=True)
    if found and found.verdict != IDENTICAL:
        changed = _changed(record, computation)
        scratch = "" if preset == "paper" or found.verdict != DIFFERS else "not committed"
        reason = "--replace" if replace else changed or scratch
        if not reason:
            if found.verdict == DIFFERS:
                write_atomic({beside: merged})
                return Published(experiment.id, found, beside=beside)
            return Published(experiment.id, found)
    code = sorted({result.code for result in results})
    recorded = describes(record, {**what, "code": code} if replace else what)
    if not (found and found.verdict == IDENTICAL and recorded):
        seconds = round(sum(result.seconds for result in results), 1)
        of_table = {"task_seconds": seconds, DIGEST: digest(merged.encode())}
        write_atomic({csv: merged, record: to_json({**what, "code": code, **of_table, **provenance(checkout.root)})})
    return Published(experiment.id, found, reason)


def _merge(experiment: Experiment, results: Sequence[Stored]) -> str:
    """One table of the results, without rounding noise about 0."""
    texts = [result.text for result in results]
    heading = texts[0].split("\n", 1)[0]
    for text in texts:
        if text.split("\n", 1)[0] != heading:
            raise InputError(f"the tasks of {experiment.id} have different columns", f"all must have {heading}")
    merged = heading + "\n" + "".join(text.split("\n", 1)[1] for text in texts)
    return comparison.without_noise(merged, experiment.tolerances)


def _against(csv: Path, merged: str, experiment: Experiment) -> Comparison | None:
    """The comparison with the table that stands, if it is one."""
    try:
        old = csv.read_bytes().decode()
        return comparison.compare(old, merged, experiment.tolerances, experiment.rows)
    except (FileNotFoundError, UnicodeDecodeError, comparison.NoTable):
        return None


def _changed(record: Path, computation: dict[str, Any]) -> str:
    """What a record describes otherwise, in words; empty if it describes this computation."""
    if describes(record, computation):
        return ""
    try:
        old = json.loads(record.read_text())
    except (OSError, ValueError):
        old = None
    if not isinstance(old, dict):
        return "it had no record"
    new = json.loads(to_json(computation))
    other = [name for name, value in new.items() if old.get(name) != value]
    return f"other {' and '.join(other)}"
