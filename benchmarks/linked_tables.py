"""Errors of released households and persons beside those of another sample of their law.

    python benchmarks/linked_tables.py [DRAWS]

Each number is a mean total variation distance to the private tables, of `privacy.examples.households`:
of the sizes of households, of the ages (in tens of years) and employment of persons, of employment by
region, and of children by size of the household. `unlinked` gives the persons of a release to its
households at random.
"""

from __future__ import annotations

import io
import sys
import time

import numpy as np
import pandas as pd

import thesis_cli as tc
from thesis_cli.privacy.examples import HOUSEHOLDS, PERSONS, households
from thesis_cli.privacy.tables.schema import Schema

BOUND = 6
SCORES = "sizes", "ages", "employed", "employed x region", "child x size"


def tables(count: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Households and persons of the law."""
    found = [pd.read_csv(io.StringIO(text), dtype={"household": str}) for text in households(count, rng).values()]
    return found[0], found[1]


def released(of: tuple[pd.DataFrame, pd.DataFrame], epsilon: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Households and persons of a release."""
    found = tc.dp_release(
        of[1],
        schema=Schema.parse(PERSONS),
        households=of[0],
        household_schema=Schema.parse(HOUSEHOLDS),
        person="household",
        contribution_bound=BOUND,
        epsilon=epsilon,
        delta=1e-6,
        jobs=1,
    )
    return found.households.table, found.table[["household", "age", "employed"]]


def shares(of: tuple[pd.DataFrame, pd.DataFrame]) -> list[pd.Series]:
    """Distributions of `SCORES`."""
    own, persons = of[0].set_index("household"), of[1]
    size = persons.groupby("household").size().reindex(own.index, fill_value=0)
    employed = persons.employed.isin(["yes", True])
    region, number = own.region[persons.household].to_numpy(), size[persons.household].to_numpy()
    frames = [
        [size],
        [persons.age // 10],
        [employed],
        [employed, pd.Series(region, persons.index)],
        [persons.age < 18, pd.Series(number, persons.index)],
    ]
    counts = [pd.concat(columns, axis=1).value_counts(normalize=True) for columns in frames]
    return [count.rename_axis(range(count.index.nlevels)) for count in counts]


def errors(of: tuple[pd.DataFrame, pd.DataFrame], other: tuple[pd.DataFrame, pd.DataFrame]) -> list[float]:
    """Total variation distances of the `SCORES` of two pairs of tables."""
    return [float(a.sub(b, fill_value=0).abs().sum() / 2) for a, b in zip(shares(of), shares(other), strict=True)]


def unlinked(of: tuple[pd.DataFrame, pd.DataFrame], rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables with the persons in random households."""
    return of[0], of[1].assign(household=rng.permutation(of[1].household))


def main(draws: int) -> None:
    """Print the table of the page."""
    rng = np.random.default_rng(0)
    print(f"| households | rows | {' | '.join(SCORES)} |\n{'| --- ' * (2 + len(SCORES))}|")
    for count in (2_000, 20_000):
        kinds: dict[str, list[list[float]]] = {}
        start = time.process_time()
        for _ in range(draws):
            own = tables(count, rng)
            for epsilon in (0.1, 1.0, 10.0):
                made = released(own, epsilon)
                kinds.setdefault(f"epsilon = {epsilon:g}", []).append(errors(own, made))
            kinds.setdefault("epsilon = 10, unlinked", []).append(errors(own, unlinked(made, rng)))
            kinds.setdefault("another sample", []).append(errors(own, tables(count, rng)))
        for kind, found in kinds.items():
            print(f"| {count:,} | {kind} | {' | '.join(f'{x:.3f}' for x in np.mean(found, 0))} |", flush=True)
        print(f"{(time.process_time() - start) / draws:.1f} s of CPU a draw", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10)
