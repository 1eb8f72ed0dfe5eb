import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.privacy.mechanisms.test_unit_stages import Exact, Held
from tests.privacy.tables.test_linked import HOUSEHOLDS, LINK, PERSONS, households, persons, rows
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import SecretStages, StagedNoise, Unit, total_rho
from thesis_cli.privacy.release.copula import CopulaStages
from thesis_cli.privacy.release.files import parse_record
from thesis_cli.privacy.release.linked import (
    linked_guarantee,
    linked_plans,
    linked_records,
    linked_releases,
)
from thesis_cli.privacy.release.record import rows_columns
from thesis_cli.privacy.release.release import ReleasePlan
from thesis_cli.privacy.tables.linked import Link
from thesis_cli.privacy.tables.schema import Schema

BUDGET = Budget(1.0, 1e-6)
PLAN = ReleasePlan(PERSONS, BUDGET, "copula", entropy=7)
CLEAR = replace(PLAN, budget=Budget(1e4, 1e-6))


def pair(count, seed=0):
    """Rows of households of no to four persons, whose age depends on the size."""
    size = np.arange(count) % 5
    homes, people = (
        households([f"h{i}" for i in range(count)], seed),
        persons([f"h{i}" for i in np.repeat(range(count), size)], seed),
    )
    return rows(people.assign(age=20 * np.repeat(size, size)), homes)


def spent_nothing(budget, rho):
    """Charges no ledger."""


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.01, 1e-9), Budget(10.0, 1e-3)], ids=str)
def test_both_records_stay_within_the_budget_which_is_charged_once(budget):
    charged = []
    plan = replace(PLAN, budget=budget)
    records = linked_records(plan, LINK, pair(200), lambda *given: charged.append(given))
    assert charged == [(budget, total_rho(budget))]
    parts = [record.mechanism for record in records]
    assert all(isinstance(part, StagedNoise) for part in parts)
    assert sum(part.rho for part in parts) <= total_rho(budget)
    guarantee, rho = linked_guarantee(*records)
    assert (rho, guarantee.delta) == (sum(part.rho for part in parts), budget.delta)
    assert budget.epsilon * 0.999 < guarantee.epsilon <= budget.epsilon
    assert all(record.promise.epsilon < budget.epsilon for record in records)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_searched_household_spends_more_than_the_rho_of_both_records(neighbours):
    """The rho that the noisy vectors of both records spend on the distance of a pair of neighbours.

    Households of every region and rent, with no to two persons above the bound at the corners of their
    columns, in place of each other and beside none. The worst spends two thirds or more: two that
    are replaced and have as many persons have one size.
    """
    link = Link("home", 3, Schema((PERSONS.columns[1],)), Schema((HOUSEHOLDS.columns[0],)))
    plans = linked_plans(replace(PLAN, unit=Unit(neighbours)), link)
    rest = households(["x", "y"]), persons(["x", "y", "y"])
    tables = [rows(rest[1], rest[0], link)]
    for region, count, employed in itertools.product("ns", range(link.most + 3), (True, False, None)):
        own = pd.DataFrame({"home": ["k"], "region": [region]})
        people = pd.DataFrame({"home": ["k"] * count, "employed": [employed] * count}, dtype=object)
        tables.append(rows(pd.concat([people, rest[1]]), pd.concat([rest[0], own]), link))
    spent, whole = np.zeros((len(tables), len(tables))), 0.0
    for i, plan in enumerate(plans):
        rho, reference = total_rho(plan.budget), pair_of(link, 200)[i]

        def plan_of(count, rho, plan=plan):
            return CopulaStages(plan.schema, count, rho, plan.favour, known=plan.known)

        stages = SecretStages(plan_of, plan.unit, rho)
        vectors = []
        while (stage := stages.stage(vectors)) is not None:
            values = np.array([stage.mean([table[i]]) for table in tables])
            apart = ((values[:, None] - values) ** 2).sum(2) / stage.l2_sensitivity(0) ** 2
            assert apart[0].max() <= 1
            spent += apart * rho * stage.share
            whole += rho * stage.share
            vectors.append(stage.mean([reference]))
    searched = spent if neighbours == "replace" else spent[0]
    assert whole <= total_rho(BUDGET)
    assert 2 / 3 * whole < searched.max() <= whole


def pair_of(link, count):
    """Rows of many households, from which later stages are planned."""
    size = np.arange(count) % 4
    homes = [f"h{i}" for i in range(count)]
    return rows(persons(np.repeat(homes, size), 4), households(homes, 4), link)


def test_not_a_byte_of_records_and_rows_changes_where_the_noise_does_not():
    """Other households, persons, numbers of both, and none at all."""
    found, seen = set(), set()
    for private in (pair(60), pair(61, 1), pair(7, 2), rows(persons([]), households([]))):
        noise = Held()
        records = linked_records(PLAN, LINK, private, spent_nothing, noise=noise)
        made = linked_releases(*records)
        found.add((*(r.to_json() for r in records), *(rows_columns(m, weighted=False).csv() for m in made)))
        seen.add(tuple(noise.vectors))
    assert len(found) == 1
    assert len(seen) == 4


def test_records_are_read_again_and_rows_of_the_pair_are_linked():
    records = linked_records(PLAN, LINK, pair(300), spent_nothing)
    assert [parse_record(record.to_json()) for record in records] == list(records)
    for count in (None, 5, 300):
        homes, people = (pd.DataFrame(dict(rows_columns(r, weighted=False))) for r in linked_releases(*records, count))
        assert homes.home.tolist() == list(range(1, len(homes) + 1))
        assert homes["size"].max() <= LINK.most
        assert people.groupby("home").size().reindex(homes.home, fill_value=0).tolist() == homes["size"].tolist()
        both = people.merge(homes, on="home", suffixes=("", "_"))
        assert len(both) == len(people)
        for name in ("region", "rent", "size"):
            assert (both[name].eq(both[f"{name}_"]) | (both[name].isna() & both[f"{name}_"].isna())).all()
    for other in (
        records[::-1],
        (records[0], replace(records[1], entropy=8)),
        (replace(records[0], link=None), records[1]),
    ):
        with pytest.raises(InputError, match="not those of two linked tables"):
            linked_releases(*other)


def test_the_columns_of_households_are_not_measured_twice():
    """Their distributions among persons are those of the first record: a damaged one is refused."""
    _, people = linked_records(CLEAR, LINK, pair(2000), spent_nothing, noise=Exact())
    sizes = np.array(people.output.known[-1])
    assert sizes == pytest.approx(np.array([0, 1, 2, 6]) / 9, abs=1e-3)
    own = json.loads(people.to_json())
    for known, message in (
        (own["known"] * 2, "known has 6 columns"),
        ([*own["known"][:2], [1.0]], r"known\[2\] has 1 numbers"),
        ([*own["known"][:2], [-1.0, 1.0, 1.0, 1.0]], r"known\[2\] is no distribution"),
    ):
        damaged = {k: v for k, v in {**own, "known": known}.items() if k != "sha256"}
        with pytest.raises(InputError, match=message):
            parse_record(json.dumps(damaged))


def test_without_noise_sizes_are_kept_and_ages_follow_them():
    """An age is 20 times the number of persons, of whom three count at most."""
    private = pair(2000)
    records = linked_records(CLEAR, LINK, private, spent_nothing, noise=Exact())
    homes, people = (release.columns for release in linked_releases(*records))
    assert np.bincount(homes["size"].astype(int)).tolist() == [400, 400, 400, 800]
    assert len(people["age"]) == 400 * (1 + 2 + 3 + 3)
    assert (people["size"] == np.minimum(people["age"] // 20, 3)).mean() > 0.99


def test_a_pair_whose_households_have_no_persons():
    records = linked_records(CLEAR, LINK, rows(persons([]), households(["a", "b"])), spent_nothing, noise=Exact())
    homes, people = linked_releases(*records)
    assert (homes.columns["size"].tolist(), len(people.points)) == ([0, 0], 0)
    assert rows_columns(people, weighted=False).csv() == "home,age,employed,region,rent,size\n"
