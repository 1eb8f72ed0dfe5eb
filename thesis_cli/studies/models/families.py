"""Networks that look like those of the public inference competitions (UAI 2006 to 2014).

`python -m thesis_cli.studies.models.families FOLDER` (`make families`) writes them all as UAI
files, `NAME.uai`, with evidence in `NAME.evid` where there is some, and lists them. Each has a seed
of its own, made of its name. What each family resembles, and its shape, stands at its generator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.files import write_atomic
from thesis_cli.models import uai
from thesis_cli.studies.models.layered_networks import causes, dynamic, lineage, segmentation
from thesis_cli.studies.models.logical_networks import (
    friends_and_smokers,
    satisfiability,
    transitive_friends,
    transport,
)
from thesis_cli.studies.models.network import (
    ObservedModel,
    bipartite,
    circuit,
    deterministic_grid,
    diagnosis,
    grid,
    multiplier,
    pedigree,
    regular,
    torus,
)


@dataclass(frozen=True)
class Member:
    """One network of a family: its generator and the arguments for it."""

    family: str
    name: str
    generator: Callable[..., ObservedModel]
    arguments: tuple[Any, ...]

    def network(self) -> ObservedModel:
        """The network, the same each time."""
        return self.generator(*self.arguments, np.random.default_rng(list(self.name.encode())))


MEMBERS = tuple(
    Member(family, f"{family}-{name}", generator, arguments)
    for family, generator, sizes in (
        (
            "grid",
            grid,
            {
                "mixed-10": (10, 1.0, "mixed"),
                "attractive-15": (15, 1.0, "attractive"),
                "mixed-20": (20, 2.0, "mixed"),
                "attractive-20": (20, 0.5, "attractive"),
                "strong-20": (20, 10.0, "mixed"),
                "mixed-30": (30, 1.0, "mixed"),
            },
        ),
        ("torus", torus, {"10": (10, 2.0), "13": (13, 2.0)}),
        (
            "ratio",
            deterministic_grid,
            {"50-12": (12, 0.5), "50-18": (18, 0.5), "75-20": (20, 0.75), "90-24": (24, 0.9), "90-34": (34, 0.9)},
        ),
        (
            "regular",
            regular,
            {
                "30x10": (30, 3, 10, 1.0),
                "24x16": (24, 3, 16, 1.0),
                "40x10": (40, 3, 10, 1.0),
                "60x16": (60, 3, 16, 1.0),
                "40x20": (40, 4, 20, 0.5),
            },
        ),
        ("bipartite", bipartite, {"20x40": (20, 40, 1.0), "24x60": (24, 60, 0.5), "40x40": (40, 40, 0.5)}),
        (
            "circuit",
            circuit,
            {"100": (20, 80, 20), "200": (36, 164, 40), "400": (60, 340, 60)},
        ),
        ("multiplier", multiplier, {"6": (6,), "9": (9,)}),
        (
            "diagnosis",
            diagnosis,
            {"20x30": (20, 30, 5), "40x40": (40, 40, 4), "30x20-full": (30, 20, 12), "60x80": (60, 80, 14)},
        ),
        (
            "pedigree",
            pedigree,
            {
                "200": (5, 9, 3, 3, 0.5),
                "300": (6, 12, 5, 3, 0.35),
                "500": (10, 20, 4, 3, 0.35),
                "600": (8, 15, 6, 4, 0.5),
                "1000": (8, 20, 8, 5, 0.35),
            },
        ),
        ("smokers", friends_and_smokers, {"10": (10, 0.2), "20": (20, 0.2), "28": (28, 0.0)}),
        (
            "transitive",
            transitive_friends,
            {"9": (9, 1.0), "12": (12, 1.0), "hard-9": (9, np.inf)},
        ),
        ("transport", transport, {"4x8": (4, 1, 3, 8), "6x10": (6, 2, 4, 10), "8x12": (8, 2, 6, 12)}),
        (
            "lineage",
            lineage,
            {"15x8": (15, 8, 2, 2, 0.2), "15x20": (15, 20, 2, 2, 0.1), "40x20": (40, 20, 2, 2, 0.1)},
        ),
        ("dbn", dynamic, {"20x6": (20, 6, 2, 2), "40x8": (40, 8, 2, 3), "20x6-4": (20, 6, 4, 2)}),
        ("promedas", causes, {"2x60": (2, 60, 8, 0.3), "3x40": (3, 40, 6, 0.5), "3x120": (3, 120, 10, 0.2)}),
        ("segments", segmentation, {"6": (6, 20, 0.8, 1.0), "12": (12, 20, 0.6, 1.0), "15": (15, 20, 0.9, 1.0)}),
        ("sat", satisfiability, {"50-3": (50, 3.0), "75-3.5": (75, 3.5), "120-4": (120, 4.0)}),
    )
    for name, arguments in sizes.items()
)
"""All networks; sizes of each family from easy to hard."""


def files(member: Member) -> dict[str, str]:
    """Name -> content of the files of a network."""
    network = member.network()
    found = {f"{member.name}.uai": uai.write(network.graph)}
    if network.evidence:
        pairs = "".join(f"{i} {state}\n" for i, state in network.evidence.items())
        found[f"{member.name}.evid"] = f"{len(network.evidence)}\n{pairs}"
    return found


def main() -> int:
    """Write the networks into the folder that is named on the command line."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m thesis_cli.studies.models.families FOLDER\n")
        return 2
    for member in MEMBERS:
        network = member.network()
        write_atomic({Path(sys.argv[1], name): text for name, text in files(member).items()})
        observed = f", {len(network.evidence)} observed" if network.evidence else ""
        sys.stdout.write(f"{member.name:18} {network.graph.describe()}{observed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
