"""What holds for every command: the shell, Python and the docs say the same."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex

import pytest

import thesis_cli
from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.command import Command, command_named, entries
from thesis_cli.commands.core.fields import OptionField
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.documents import hint_text, own_functions

NAMES = list(entries())


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def asked(monkeypatch):
    """The requests that would have been carried out."""
    seen = []

    def execute(self, request, progress):
        seen.append(request)
        raise InputError("carried out")

    monkeypatch.setattr(Command, "execute", execute)
    return seen


def value_of(field: OptionField) -> object:
    """A value that is not the default, as Python has it."""
    if field.choices:
        one = next(c for c in reversed(field.choices) if c != field.default)
    elif field.kind is bool:
        return not field.default
    elif field.kind in (int, float):
        a = field.about
        low = max(a.least, a.above)
        high = min(a.most, a.below)
        one = low + 1 if low > -1e300 else min(1, high)
        if not one < high:
            one = (low + high) / 2
        one = field.kind(one) if one != field.default else field.kind(one + (high - one) / 2 if high < 1e300 else 3)
    else:
        one = "word"
    return one if field.many == 1 else (one,) * max(1, field.many)


def words_of(field: OptionField, value: object) -> list[str]:
    if field.kind is bool:
        return [field.shell_name if value else f"--no-{field.shell_name[2:]}"]
    values = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
    if field.about.positional:
        return values
    if field.many == 0:
        return [word for one in values for word in (field.shell_name, one)]
    return [field.shell_name, *values]


def attempt(command: Command, values: dict[str, object]) -> object:
    try:
        return command.request(**values)
    except InputError as error:
        return str(error)


def test_each_option_alone_is_the_same_in_the_shell_and_in_python(name, cli, asked):
    command = command_named(name)
    needed = {f.name: value_of(f) for f in command.fields.values() if f.required or f.about.positional}
    for field in command.fields.values():
        values = {**needed, field.name: value_of(field)}
        words = {f: words_of(command.fields[f], v) for f, v in values.items()}
        options = [w for f, ws in words.items() if not command.fields[f].about.positional for w in ws]
        places = [w for f, ws in words.items() if command.fields[f].about.positional for w in ws]
        expected = attempt(command, values)
        aliases = [f"--{field.about.alias.replace('_', '-')}"] * bool(field.about.alias)
        for spelling in (field.shell_name, *aliases):
            asked.clear()
            result = cli(name, *(spelling if w == field.shell_name else w for w in options), "--", *places)
            if isinstance(expected, str):
                assert result.err == f"error: {expected}\n", spelling
            elif asked:
                different = [k for k, v in vars(expected).items() if getattr(asked[0], k) != v and k != "out"]
                assert different == [], spelling
            else:  # refused for the file that it would write
                assert result.status == 2, result.err


FUNCTIONS = {entry.function: command_named(name) for name, entry in entries().items()} | own_functions()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_has_the_options_of_the_shell_with_their_defaults(function):
    signature = inspect.signature(getattr(thesis_cli, function))
    fields = {f.name: f for f in dataclasses.fields(FUNCTIONS[function].request)}
    assert set(signature.parameters) == {*fields, "progress"}
    for key, field in fields.items():
        default = signature.parameters[key].default
        missing = field.default is dataclasses.MISSING
        assert default is inspect.Parameter.empty if missing else default == field.default


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_result_shows_its_summary(function):
    assert FUNCTIONS[function].result.__repr__ is Summary.__repr__, "its dataclass needs repr=False"


def test_signatures_say_what_may_be_passed():
    """`help` shows the types that type checkers read in the stub."""
    parameters = inspect.signature(thesis_cli.estimate_z).parameters
    texts = {name: hint_text(parameter.annotation) for name, parameter in parameters.items()}
    assert texts["model"] == "Any"
    assert texts["evidence"] == "Sequence[str] | str | SupportsItems | None"
    assert texts["uai"] == "str | Path | None"
    assert texts["time_limit"] == "float | None"


def test_a_misspelt_argument_gets_a_suggestion():
    with pytest.raises(
        TypeError, match=r"estimate_z\(\) got an unexpected keyword argument 'sampels'; 'samples' is near"
    ):
        thesis_cli.estimate_z("a.uai", sampels=3)
    with pytest.raises(TypeError, match=r"estimate_z\(\): missing a required argument: 'model'"):
        thesis_cli.estimate_z()


def test_a_mapping_and_a_series_stand_for_names_and_values(asked):
    import pandas as pd

    for evidence in ({"xray": "yes", 3: 0}, pd.Series({"xray": "yes", 3: 0})):
        with pytest.raises(InputError, match="carried out"):
            thesis_cli.map_state("a.bif", evidence=evidence)
        assert asked[-1].evidence == ("xray=yes", "3=0")


def test_errors_are_names_of_the_package():
    assert thesis_cli.InputError is InputError
    assert issubclass(thesis_cli.WorkFailed, RuntimeError)


def test_help_begins_with_the_thing_itself(name):
    for field in command_named(name).fields.values():
        text = field.about.help
        assert re.match(r"[A-Z0-9]", text), text
        assert text.endswith("."), text
        assert not re.match(r"(Of|By|For|In) ", text), text
        assert "wanted" not in text, text


def test_examples_are_of_the_command(name, cli):
    command = command_named(name)
    assert command.examples
    for line in command.examples:
        assert shlex.split(line)[: len(name.split())] == name.split()
    assert "Examples" in cli(name, "--help").out


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="nonsense"):
        thesis_cli.nonsense  # noqa: B018
    assert "map_state" in dir(thesis_cli)
