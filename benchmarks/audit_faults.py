"""Power of the audit of stages: how often it contradicts each planted fault.

    python benchmarks/audit_faults.py [AUDITS] [RUNS] [RELEASE]

RELEASE is one of `CASES`; all by default. That of `marginals` needs the extra `marginals`, and 80 s an
audit. `own` audits data/tables/people.csv by canaries, with less noise than epsilon 1 needs.

Faults are planted in this process alone, by `planted`; the audit is that of `dp-audit` with its default
budget and confidence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np

from thesis_cli.commands.inputs.tables import read_rows
from thesis_cli.privacy.audit.cases import CASES
from thesis_cli.privacy.audit.one_run import one_run_audit
from thesis_cli.privacy.audit.stages import stage_audit
from thesis_cli.privacy.copula.vectors import ColumnStage, PairStage
from thesis_cli.privacy.measure import quantiles
from thesis_cli.privacy.measure.measure import Plan
from thesis_cli.privacy.measure.parts import ONE, CellCounts, Mean
from thesis_cli.privacy.mechanisms import mechanism, stages
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import CountStage, OpenDPStages
from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.release import ReleasePlan
from thesis_cli.privacy.tables import table
from thesis_cli.privacy.tables.expressions import Formula
from thesis_cli.privacy.tables.schema import Schema

BUDGET, CONFIDENCE = Budget(20.0, 1e-6), 0.999
FACTORS = (1.0, 0.3, 0.1, 0.03, 0.0)
RELEASES, PERSONS, SECRET = "copula, all types", "copula, persons", "copula, secret N"
VECTORS = "features, vector", "features, Laplace", "subspace, vector", "subspace, Laplace", "dp-measure, Laplace"
SUMS, CHOICES, OF_PERSONS = "dp-measure", "dp-measure, quantiles", "dp-measure, persons"


def _less_noise(factor: float) -> list[Any]:
    add, draw, choose = OpenDPStages.add, mechanism._OpenDPNoise._draw, quantiles.opendp_choose
    return [
        patch.object(quantiles, "opendp_choose", lambda scores, scale, law: choose(scores, factor * scale, law)),
        patch.object(OpenDPStages, "add", lambda self, v, *rest: v + factor * (add(self, v, *rest) - v)),
        patch.object(mechanism._OpenDPNoise, "_draw", lambda self, v, found: v + factor * (draw(self, v, found) - v)),
    ]


def _raw_plan() -> list[Any]:
    """The second stage is planned from the first one without noise."""
    raw: list[Any] = []
    mean, stage = ColumnStage.mean, CopulaStages.stage

    def seen(self: ColumnStage, *rest: Any) -> Any:
        raw[:] = [mean(self, *rest)]
        return raw[0]

    def planned(self: CopulaStages, vectors: Any) -> Any:
        return stage(self, [*raw, *vectors[1:]] if vectors else vectors)

    return [patch.object(ColumnStage, "mean", seen), patch.object(CopulaStages, "stage", planned)]


def _halved(kind: type, chosen: Callable[[Any], bool]) -> list[Any]:
    """The sensitivity of a stage is halved if a column is of one type."""
    right = kind.l2_sensitivity

    def wrong(self: Any, rows: int) -> float:
        return float(right(self, rows) * (0.5 if any(map(chosen, self.cells)) else 1))

    return [patch.object(kind, "l2_sensitivity", wrong)]


def _doubled(chosen: Callable[[Any], bool]) -> list[Any]:
    """The counts of columns of one type are doubled in the first stage."""
    mean = ColumnStage.mean

    def wrong(self: ColumnStage, *rest: Any) -> Any:
        parts = [np.full(int(groups.max()) + 1, 1 + chosen(self.cells[i])) for i, groups, _ in self.histograms]
        return mean(self, *rest) * np.concatenate(parts)

    return [patch.object(ColumnStage, "mean", wrong)]


def _times(kind: type, name: str, factor: float) -> list[Any]:
    right = getattr(kind, name)
    return [patch.object(kind, name, lambda self, *rest: right(self, *rest) * factor)]


def _counts_with(factor: float, chosen: Callable[[tuple[str, ...]], bool], told: bool) -> list[Any]:
    """Noise of some marginals times a factor, which the record tells or not."""
    right = marginals.opendp_marginals

    def wrong(cells: Any, sizes: Any, *rest: Any) -> Any:
        found = []
        for m in right(cells, sizes, *rest):
            exact = marginals.counts_of(m.columns, cells, sizes)
            counts = exact + factor * (np.array(m.counts) - exact)
            less = replace(m, counts=tuple(counts.tolist()), deviation=m.deviation * (factor if told else 1))
            found.append(less if chosen(m.columns) else m)
        return found

    return [patch.object(marginals, "opendp_marginals", wrong)]


def _pairs_by_counts() -> list[Any]:
    """The pairs of marginals are those that depend most in the table, without noise."""
    right = marginals.opendp_marginals

    def wrong(cells: Any, sizes: Any, *rest: Any) -> Any:
        found, rng = right(cells, sizes, *rest), np.random.default_rng()
        exact = {pair: marginals.counts_of(pair, cells, sizes) for pair in combinations(sizes, 2)}
        single = {name: marginals.counts_of((name,), cells, sizes) / len(cells) for name in sizes}
        apart = {p: np.abs(x - len(cells) * np.outer(*(single[n] for n in p)).ravel()).sum() for p, x in exact.items()}
        chosen = iter(sorted(apart, key=lambda pair: -apart[pair]))
        for i, m in enumerate(found):
            if len(m.columns) > 1:
                counts = (x := exact[pair := next(chosen)]) + np.rint(m.deviation * rng.normal(size=x.size))
                found[i] = replace(m, columns=pair, counts=tuple(counts.tolist()))
        return found

    return [patch.object(marginals, "opendp_marginals", wrong)]


def _rows_that_count(change: Callable[[int], int]) -> list[Any]:
    """Another number of rows of a person counts than the one that is claimed."""
    right = table.bounded_rows
    return [patch.object(table, "bounded_rows", lambda parts, most, *rest: right(parts, change(most), *rest))]


def _unclipped() -> list[Any]:
    """Neither `clamp` nor the means of `dp-measure` clip numbers to their public bounds."""
    called = Formula._called

    def contributions(self: Any, sample: Any) -> Any:
        x = sample.number(self.query, self.query.arguments[0])
        scaled = (np.where(np.isnan(x), self.centre, x) - self.centre) / self.radius
        return np.rint(scaled * ONE).astype(np.int64), ~np.isnan(x)

    def wrong(self: Formula, node: Any, name: str, columns: Any) -> Any:
        return self.value(columns, node.args[0]) if name == "clamp" else called(self, node, name, columns)

    return [patch.object(Mean, "contributions", contributions), patch.object(Formula, "_called", wrong)]


def _bare_count() -> list[Any]:
    """The number of rows has no noise."""
    add = OpenDPStages.add
    return [patch.object(OpenDPStages, "add", lambda self, v, *rest: v if v.size == 1 else add(self, v, *rest))]


def _public_bit() -> list[Any]:
    """The public part of a record has a bit of the table."""
    right = marginals.MarginalsMethod.release

    def wrong(self: Any, plan: Any, private: Any) -> Any:
        blocks = list(private.blocks)
        found = right(self, plan, replace(private, blocks=blocks))
        return replace(found, size=found.size + int(blocks[0].reals[0].sum() > 1))

    return [patch.object(marginals.MarginalsMethod, "release", wrong)]


TYPES: dict[str, Callable[[Any], bool]] = {
    "whole numbers": lambda cells: bool(cells.whole and 2 < cells.line <= 256),
    "real numbers": lambda cells: bool(cells.line and not cells.whole),
    "missing numbers": lambda cells: bool(cells.gap),
    "categories": lambda cells: not cells.line and cells.count < 40,
    "long categories": lambda cells: not cells.line and cells.count >= 40,
    "dates": lambda cells: bool(cells.whole and cells.line > 1000),
}
"""Columns of a type, by their cells."""

FAULTS: dict[str, tuple[tuple[str, ...], Callable[[], list[Any]]]] = {
    "none": (tuple(CASES), list),
    "noise times 0.01": ((RELEASES,), lambda: _less_noise(0.01)),
    "noise times 0.01 ": ((CHOICES,), lambda: _less_noise(0.01)),
    "noise times 0.9": ((RELEASES,), lambda: _less_noise(0.9)),
    "noise times 0.9 ": ((SUMS, CHOICES, OF_PERSONS, *VECTORS), lambda: _less_noise(0.9)),
    "noise times 0.97": ((RELEASES,), lambda: _less_noise(0.97)),
    "second stage planned from the first without noise": ((RELEASES,), _raw_plan),
    **{
        f"sensitivity of the first stage halved for {name}": (
            (RELEASES,),
            lambda chosen=chosen: _halved(ColumnStage, chosen),
        )
        for name, chosen in TYPES.items()
    },
    **{
        f"counts doubled for {name}": ((RELEASES,), lambda chosen=chosen: _doubled(chosen))
        for name, chosen in TYPES.items()
    },
    **{
        f"sensitivity of the second stage over {factor}": (
            (RELEASES,),
            lambda factor=factor: _times(PairStage, "l2_sensitivity", 1 / factor),
        )
        for factor in (1.2, 1.5)
    },
    "sensitivity of persons without the bound": (
        (PERSONS,),
        lambda: [patch.object(stages, "_factor", lambda unit: 1.0)],
    ),
    "sensitivity of persons without the bound ": (
        (OF_PERSONS,),
        lambda: [patch.object(Plan, "most", 1)],
    ),
    "contribution bound ignored": ((PERSONS, OF_PERSONS), lambda: _rows_that_count(lambda most: 100)),
    "contribution bound off by one": (
        (PERSONS, OF_PERSONS),
        lambda: _rows_that_count(lambda most: most + 1),
    ),
    "number of rows without noise": ((SECRET,), _bare_count),
    "sensitivity of the number of rows over 20": ((SECRET,), lambda: _times(CountStage, "l2_sensitivity", 0.05)),
    "noise times 0.9  ": (("marginals",), lambda: _counts_with(0.9, lambda columns: True, told=False)),
    "one contribution of a replaced row instead of two": (
        ("marginals",),
        lambda: [patch.object(marginals, "REPLACED", 1)],
    ),
    "sensitivity of counts halved for one of five columns": (
        ("marginals",),
        lambda: _counts_with(0.5, lambda columns: "day" in columns, told=True),
    ),
    "sensitivity of counts over 3 for one of five columns": (
        ("marginals",),
        lambda: _counts_with(1 / 3, lambda columns: "day" in columns, told=True),
    ),
    "a record with one bit of the table": (("marginals",), _public_bit),
    **{
        f"counts of a column of {levels} levels without noise": (
            ("marginals",),
            lambda name=name: _counts_with(0.0, lambda columns: columns == (name,), told=False),
        )
        for name, levels in (("place", 40), ("flag", 2))
    },
    "pairs chosen by counts without noise": (("marginals",), _pairs_by_counts),
    "sensitivity of counts halved": ((SUMS,), lambda: _times(CellCounts, "sensitivity", 0.5)),
    "sensitivity of means halved": ((SUMS,), lambda: _times(Mean, "sensitivity", 0.5)),
    "numbers not clipped": ((SUMS,), _unclipped),
    "sensitivity of a choice halved": ((CHOICES,), lambda: [patch.object(quantiles, "SENSITIVITY", 0.5)]),
}
"""Kinds of releases to audit, and patches, by fault."""


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """The program with one fault, while the body runs."""
    with ExitStack() as stack:
        for one in FAULTS[fault][1]():
            stack.enter_context(one)
        yield


def found(fault: str, name: str, runs: int) -> list[str]:
    """Contradictions of a search and an audit, under a fault."""
    with planted(fault):
        return stage_audit(CASES[name](name, BUDGET), runs, CONFIDENCE).contradictions


def main(audits: int, runs: int, release: str = "") -> None:
    """Print the table of faults, of one kind of release or of all."""
    print("| fault | release | contradicted |\n| --- | --- | --- |")
    for fault, (names, _) in FAULTS.items():
        for name in names if not release else {release} & set(names):
            start = time.process_time()
            count = sum(bool(found(fault, name, runs)) for _ in range(audits))
            print(f"| {fault.strip()} | {name} | {count} of {audits} |", flush=True)
            print(f"  {(time.process_time() - start) / audits:.1f} s an audit", file=sys.stderr)


def own(audits: int) -> None:
    """Print the bounds that one release by copula proves, by number of canaries and noise."""
    schema = Schema.load("data/tables/people.toml")
    rows, rng = read_rows("data/tables/people.csv", schema), np.random.default_rng()
    print(f"| canaries | {' | '.join(f'noise times {factor:g}' for factor in FACTORS)} |")
    print("| --- |" + " --- |" * len(FACTORS))
    plan = ReleasePlan(schema, Budget(1.0, 1e-6), "copula")
    for canaries in (100, 300):
        shown = []
        for factor in FACTORS:
            with ExitStack() as stack:
                for one in _less_noise(factor):
                    stack.enter_context(one)
                found = [one_run_audit(rows, plan, canaries, CONFIDENCE, rng).proven for _ in range(audits)]
            shown.append(f"{np.median(found):.2f}, {sum(x > 1 for x in found)} of {audits}")
        print(f"| {canaries:,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    numbers = list(map(int, sys.argv[1:3])) or [10, 100]
    if sys.argv[3:] == ["own"]:
        own(numbers[0])
    else:
        main(*numbers, *sys.argv[3:])
