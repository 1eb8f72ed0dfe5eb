"""The table of methods of ln Z."""

import re
from typing import get_args

import pytest

from thesis_cli.commands import bound, estimate_z
from thesis_cli.commands.core.fields import fields_of
from thesis_cli.commands.ln_z.method import Guarantee
from thesis_cli.commands.ln_z.methods import HEADINGS, METHODS, OWN_OPTIONS, method_help, methods_of
from thesis_cli.commands.ln_z.portfolio import SHARES

REQUESTS = {"estimate-z": estimate_z.EstimateZRequest, "bound": bound.BoundRequest}


@pytest.mark.parametrize("command", REQUESTS)
def test_requests_are_made_from_the_rows(command):
    fields = fields_of(REQUESTS[command])
    assert fields["method"].choices == ("auto", *methods_of(command))
    for name in methods_of(command):
        row = METHODS[name]
        assert set(row.own) <= set(OWN_OPTIONS)
        for option in (*row.heeds, *row.own):
            assert option in fields
            assert not fields[option].about.methods or name in fields[option].about.methods


def test_each_option_belongs_to_a_method():
    assert set(OWN_OPTIONS) == {name for row in METHODS.values() for name in row.own}


def test_the_last_method_of_the_portfolio_takes_what_is_left():
    turns = [METHODS[name].share.turn for name in SHARES]
    assert turns == sorted(set(turns))
    assert list(SHARES.values())[-1].most == 1.0


@pytest.mark.parametrize("command", ["estimate-z", "bound"])
def test_the_help_of_method_has_each_row_once(command):
    groups = re.findall(r"[A-Z][\w ]+: ([^.]+)\.", method_help(command, "chooses."))
    named = [re.sub(r" \(.*", "", part) for group in groups for part in re.split(r", (?![^(]*\))", group)]
    assert sorted(named) == sorted(methods_of(command))
    assert set(HEADINGS) == set(get_args(Guarantee))
