"""What the committed results took, and which of them hold times: a paragraph of `docs/reproduce.md`.

`make docs` runs this module; a test fails if the page is out of date.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.registry import Checkout, load

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- costs -->", "<!-- end of costs -->"


def paragraph(checkout: Checkout) -> str:
    """Hours of the tasks of the paper preset, from the records, and experiments with cells that no
    second run repeats."""
    seconds, timed = 0.0, []
    for name, path in checkout.files().items():
        experiment = load(path)
        if not experiment.shares:  # its tasks are another one's
            record = checkout.results("paper") / f"{name}.json"
            seconds += json.loads(record.read_text(encoding="utf-8"))["task_seconds"]
        with (checkout.results("paper") / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            declared = [*experiment.tolerances.values(), *map(experiment.rows, csv.DictReader(file))]
        if any(tolerance and tolerance.relative == math.inf for tolerance in declared):
            timed.append(f"`{name}`")
    return (
        f"The tasks of the committed results took {seconds / 3600:.1f} hours of one core. {len(timed)} experiments "
        f"have columns or rows that no second run repeats, most of them times: {', '.join(timed)}."
    )


def page(checkout: Checkout) -> tuple[Path, str]:
    """The page, and its text as it should be."""
    path = checkout.root / "docs" / "reproduce.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    return path, f"{before}{BEGIN}\n{paragraph(checkout)}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Bring the page up to date."""
    path, text = page(Checkout(ROOT))
    if path.read_text(encoding="utf-8") != text:
        write_atomic({path: text})
        sys.stderr.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
