"""Parameters of tasks: where their paths lead, and the command lines they stand for."""

import pytest

from tests.reproduction.toy_command import TOY, toy  # noqa: F401
from thesis_cli.base.errors import InputError
from thesis_cli.cli.build import shell_command
from thesis_cli.commands.core.command import Command, command_named
from thesis_cli.reproduction.command_work import field_named, located_in, request_of, shell_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.uai", "{}/a.uai"),
        ("no.uai", "no.uai"),
        ("here.uai", "{}/here.uai"),
        ("./below/../a.uai", "{}/./below/../a.uai"),
        ("/a.uai", "/a.uai"),
        ("xray=yes", "xray=yes"),
        ("odd=name.evid", "{}/odd=name.evid"),
        ("mine:thing", "{}/mine.py:thing"),
        ("mine.py:thing.part", "{}/mine.py:thing.part"),
        ("below.mine:thing", "{}/below/mine.py:thing"),
        ("numpy.linalg:norm", "numpy.linalg:norm"),
        ("sqlite:///x.db", "sqlite:///{}/x.db"),
        ("sqlite:////x.db", "sqlite:////x.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql://user@host/x", "postgresql://user@host/x"),
    ],
)
def test_relative_paths_start_from_the_folder(tmp_path, monkeypatch, text, found):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "here.uai").touch()  # a task does not read it
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "below").mkdir()
    for name in ("a.uai", "odd=name.evid", "mine.py", "below/mine.py"):
        (tmp_path / name).touch()
    assert located_in(tmp_path, text) == found.format(tmp_path)


def test_a_request_is_made_of_values_seed_and_cores(tmp_path):
    (tmp_path / "m.uai").touch()
    made = request_of(TOY, {"model": "m.uai", "order": [1, "inf"], "any-order": True}, 7, tmp_path, 3)
    assert (made.model, made.order, made.any_order) == (f"{tmp_path}/m.uai", (1.0, float("inf")), True)
    assert (made.seed, made.jobs, made.samples) == (7, 3, 10)


LINES = [
    ({}, None, []),
    ({"order": [0, 0.04]}, 3, ["--order=0", "--order=0.04", "--seed=3"]),
    ({"any_order": True}, None, ["--any-order"]),
    ({"any_order": False, "debias": True}, None, []),
    ({"debias": False, "model": "-m.uai"}, None, ["--no-debias", "--", "-m.uai"]),
    ({"range": [-5, 5], "model": "--out"}, None, ["--range", "-5", "5", "--", "--out"]),
    ({"queries": ["-x", "var(x)"], "model": "m"}, None, ["--", "m", "-x", "var(x)"]),
    ({"coupling": 0.1 + 0.2}, None, ["--coupling=0.30000000000000004"]),
]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("parameters", "seed", "line"), LINES)
def test_command_lines(parameters, seed, line):
    assert shell_words("toy", parameters, seed) == ["toy", *line]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("parameters", "seed", "line"), LINES)
def test_the_shell_takes_a_command_line_for_the_same_request(monkeypatch, tmp_path, parameters, seed, line):
    import typer

    asked = []

    def execute(self, request, progress):
        asked.append(request)
        raise InputError("carried out")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Command, "execute", execute)
    app = typer.Typer()
    app.command("toy")(shell_command("toy", TOY))
    parameters = {"model": "m", **parameters}
    with pytest.raises(InputError, match="carried out"):
        typer.main.get_command(app)(shell_words("toy", parameters, seed)[1:], standalone_mode=False)
    expected = vars(request_of(TOY, parameters, seed, tmp_path)) | {"model": parameters["model"], "jobs": None}
    assert vars(asked[0]) == expected


def test_a_command_line_shows_no_password():
    words = shell_words("dp-test", {"release": "r.csv", "other": "postgresql://me:secret@host/x"}, 1)
    assert words == ["dp-test", "--seed=1", "--", "r.csv", "postgresql://me:***@host/x"]


@pytest.mark.parametrize(
    ("command", "key", "reason"),
    [
        ("dp-release", "init-schema", "no other file"),
        ("dp-release", "ledger", "divide the budget"),
        ("dp-release", "limit", "divide the budget"),
        ("dp-query", "holdout", "no file holds them"),
        ("dp-query", "figure", "nothing else"),
    ],
)
def test_what_no_task_of_a_release_may_set(command, key, reason):
    with pytest.raises(InputError, match=f"{key} is not for tasks; .*{reason}"):
        field_named(command_named(command), key)
