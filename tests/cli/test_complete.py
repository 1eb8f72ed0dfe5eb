"""Words that the Tab key offers."""

import shutil
import subprocess

import pytest

from tests.conftest import MODELS, ROOT
from thesis_cli.cli.complete import join_words

ASIA = f"{MODELS}/asia.bif"
NAMES = [f"{name}=" for name in ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")]


def offered(cli, monkeypatch, *words):
    """What is offered for the last of the words, in the way in which bash asks."""
    monkeypatch.setenv("_THESIS_CLI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(("thesis-cli", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    return cli().out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["reproduce", "fig-3"], ["fig-3-1"]),
        (["marginals", ASIA, "--variables", "sm"], ["smoke"]),
        (["map", ASIA, "--over", "smoke,tub,l"], ["smoke,tub,lung"]),
        (["marginals", ASIA, "--evidence", "b"], ["bronc=yes", "bronc=no"]),
        (
            ["marginals", ASIA, "--evidence", ""],
            NAMES,
        ),
        (["marginals", ASIA, "--evidence", "smoke", "="], ["yes", "no"]),
        (["marginals", ASIA, "--evidence", "smoke", "=", "yes,xray", "=", "n"], ["no"]),
        (["marginals", "no-such-file", "--evidence", "x"], []),
        (["dp-query", str(ROOT / "data/releases/people.csv"), "mean(a"], ["mean(age"]),
        (["plot", str(ROOT / "data/releases/people.csv"), "--x", "in"], ["income"]),
        (["dp-measure", "none.csv", "--schema", str(ROOT / "data/tables/people.toml"), "mean(inc"], ["mean(income"]),
        (["estimate-z", "--method", "=", "a"], ["auto", "ais"]),
        (["estimate-z", "--method", "ais", "--s"], ["--seed"]),
        (["estimate-z", "--s"], ["--samples", "--seed", "--steps", "--sweeps"]),
    ],
)
def test_words_that_are_offered(cli, monkeypatch, words, expected):
    assert sorted(offered(cli, monkeypatch, *words)) == sorted(expected)


def test_an_open_quotation_stays_as_it_is():
    line = {"COMP_WORDS": "thesis-cli\ndp-query\npeople.csv\n'mean(a = ", "COMP_CWORD": "3"}
    before = dict(line)
    join_words(line)
    assert line == before


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_reads_the_script(cli, monkeypatch):
    monkeypatch.setenv("_THESIS_CLI_COMPLETE", "source_bash")
    script = cli().out
    assert "COMP_WORDS" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_help_all_of_one_method_leaves_the_others_out(cli):
    for arguments in (["--method", "ais"], ["--method=ais"]):
        shown = cli("estimate-z", *arguments, "--help-all").out
        assert "--reverse" in shown
        assert "--copies INTEGER" not in shown
    assert "--copies INTEGER" in cli("estimate-z", "--method", "none", "--help-all").out
