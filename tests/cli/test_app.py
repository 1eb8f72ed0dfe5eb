"""The program as a whole: start-up, help, usage errors, how it ends."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import MODELS, ROOT
from thesis_cli.cli import app
from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.reproduction.commands import OWN

HEAVY = ("numba", "pgmpy", "matplotlib", "scipy", "pandas", "numpy", "joblib", "tqdm", "opendp", "pydantic")
COMMANDS = (*entries(), *OWN)
HELPS = ("--help", "--help-all")


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["map", "--help"], ["synthesize", "--help"], ["reproduce", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    code = f"import sys; from thesis_cli.cli.app import main; main({arguments})"
    code += f"; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


NEEDLESS = ("pandas", "scipy.stats", "scipy.optimize", "pgmpy", "matplotlib", "joblib", "tqdm", "pydantic")
PLAIN = [["run-program", "a <- [int]; b <- SORT a", "[[3, 1]]"]]
COMPILED = [
    ["map", f"{MODELS}/ising-4x4.uai"],
    ["estimate-z", f"{MODELS}/ising-4x4.uai", "--samples", "9"],
    ["marginals", f"{MODELS}/asia.uai"],
    ["sample", f"{MODELS}/asia.uai", "--count", "5"],
]


def test_commands_import_no_more_than_they_need(tmp_path):
    code = f"""import sys; from thesis_cli.cli.app import main
for line in {PLAIN}:
    assert main(line) == 0
print([m for m in {("numba", *NEEDLESS)} if m in sys.modules])
for line in {COMPILED}:
    assert main(line) == 0
print([m for m in {NEEDLESS} if m in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == ["[]", "[]"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_heeds_debug(cli, command):
    assert cli(command, "--nonsense", "--debug").err.startswith("Traceback")
    assert cli(command, "--nonsense").err.startswith("error: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(cli, command):
    whole, short = cli(command, "--help-all"), cli(command, "--help")  # the first must not change the second
    assert short.status == whole.status == 0
    for option in ("--quiet", "--verbose", "--debug"):
        assert re.search(rf"^  (-\w, )?{option}\b", whole.out, re.M)
        assert not re.search(rf"^  (-\w, )?{option}\b", short.out, re.M)
    for result in (short, whole):
        assert "Examples" in result.out
    assert short.out.count("\n    thesis-cli ") <= 3


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OWN])
def test_help_shows_the_usual_options_and_help_all_every_one(cli, command):
    found = command_named(command)
    assert set(found.request.usual) <= set(found.fields)
    options = {name: set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", cli(command, name).out, re.M)) for name in HELPS}
    fields = [field for field in found.fields.values() if not field.about.positional]
    assert {field.shell_name for field in fields} <= options["--help-all"]
    assert {field.shell_name for field in fields if field.usual} <= options["--help"]
    assert not options["--help"] & {field.shell_name for field in fields if not field.usual}
    assert len(options["--help"] - {"--out", "--figure", "--json", *HELPS}) <= 12


def test_help_all_lists_options_by_the_methods_that_heed_them(cli):
    after = cli("estimate-z", "--help-all").out.partition("Options of --method ais:\n")[2]
    assert re.match(r"  --reverse ", after)
    assert "Options of" not in cli("estimate-z", "--help").out


def test_a_misspelt_command_gets_a_suggestion(cli):
    assert cli("estimatez").err == "error: no command estimatez; 'estimate-z' is nearest\n"
    assert cli("structured", "lnz").err == "error: no command structured lnz; 'ln-z' is nearest\n"


def test_the_help_cuts_no_sentence(cli):
    shown = re.sub(r"\s", "", cli("--help").out)
    for name, entry in {**entries(), **OWN}.items():
        assert entry.help.endswith(".")
        assert re.sub(r"\s", "", name + entry.help) in shown
    assert entries()["renyi"].help.endswith("with errors or bounds.")


def test_a_folder_that_is_made_for_a_result_is_named(cli, tmp_path):
    for out, made in (("a/b/c.csv", True), ("a/b/d.csv", False), (None, False)):
        words = ["--out", out] if out else []
        result = cli("map", MODELS / "asia.bif", *words)
        assert ("making the folder a/b\n" in result.err) == made
        assert result.status == 0
    assert (tmp_path / "a/b/c.csv").is_file()


def test_no_arguments_show_the_help(cli):
    assert cli().out == cli("--help").out
    assert cli().status == 0
    assert "thesis-cli 0." in cli("--version").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["map"],
        ["map", "a", "b"],
        ["map", "a", "--memory", "-1"],
        ["map", "a", "--memory", "much"],
        ["map", "a", "--solver", "hat"],
        ["synthesize", "a", "--jobs", "0"],
        ["reproduce", "--jobs"],
        ["plot", "--all"],
        ["plot", "no-such"],
    ],
)
def test_bad_usage_is_one_line_and_status_2(cli, arguments):
    result = cli(*arguments)
    assert result.status == 2
    assert result.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", result.err)


@pytest.mark.parametrize(
    "arguments", [["map", "no.uai"], ["map", "a", "--memory", "x"], ["map", "--no"], ["plot", "no-such"]]
)
def test_debug_adds_the_traceback(cli, arguments):
    plain, more = cli(*arguments), cli(*arguments, "--debug")
    assert (plain.status, plain.err.count("\n")) == (2, 1)
    assert more.status == 2
    assert more.err.startswith("Traceback")
    assert more.err.endswith(f"\n{plain.err}")


def test_debug_as_an_argument_is_no_option(cli):
    assert cli("map", "--", "--debug").err.count("\n") == 1


@pytest.fixture
def checkout(tmp_path):
    """A copy of what examples use of the checkout; `cli` runs in it."""
    for part in ("data", "experiments", "thesis_cli"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "results").mkdir()
    return tmp_path


def examples(name):
    """Command lines of the help."""
    if name in entries():
        return command_named(name).examples
    return OWN[name].command(name).examples


SMALLER = {
    "spin-glass": {"--samples": 20},
    "dp-query": {"--replicates": 4},
    "dp-audit": {"--runs": 40, "--command-runs": 40, "--stage-runs": 4},
    "dp-release": {"--rows": 100, "--size": 60},
    "make-corpus": {"--length": 2, "--count": 50, "--test": 5},
    "train-guide": {"--length": 3, "--count": 60, "--programs-seen": 512},
    "train-denoiser": {"--iterations": 1},
    "verify": {"--count": 1},
}
"""Options of examples that take seconds or minutes, and smaller values, also where a default is large."""


def smaller(name, line):
    """The words of an example, with smaller values; a release of rows that exist makes none, an audit of one's
    own table has no runs, and the exponential mechanism has no stages."""
    words = shlex.split(line)
    if (name == "dp-release" and "--epsilon" not in words) or (name == "dp-audit" and "--table" in words):
        return words
    for option, number in SMALLER.get(name, {}).items():
        if option == "--stage-runs" and "exponential" in words:
            continue
        if option in words:
            at = words.index(option) + 1
            words[at] = str(min(int(words[at]), number))
        else:
            words += [option, str(number)]
    return words


def data_files():
    """But for the byte code of an example's target."""
    return sorted(path for path in (ROOT / "data").rglob("*") if "__pycache__" not in path.parts)


NEEDS = {"train-guide": pytest.mark.torch}


def test_the_arguments_of_the_examples_of_the_help_are_understood(checkout, understood):
    for name in COMMANDS:
        for line in examples(name):
            understood(*shlex.split(line))


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in COMMANDS if name != "reproduce"]
)
def test_the_examples_of_the_help_run_one_after_another(cli, checkout, name):
    """They leave nothing among the data. A search may find no answer in time, which is status 1."""
    before = data_files()
    results = checkout / "results"
    if name in ("plot", "claims", "list", "verify"):  # of all results: test_figures.py, test_experiments.py
        for table in (ROOT / "results").glob("fig-2-1.*"):
            shutil.copy(table, results)
    if name == "report":
        shutil.copy(ROOT / "results/claims.csv", results)
    if name == "example":  # which writes them
        (checkout / "data").unlink()
    for line in examples(name):
        result = cli(*smaller(name, line))
        assert result.status == 0 or (result.status == 1 and "--timeout" in line), (line, result.err)
    assert data_files() == before


@pytest.mark.parametrize("command", [pytest.param("list", marks=pytest.mark.long), "--help"])
def test_a_closed_pipe_is_silent_and_no_claim_that_fails(command):
    line = f"{shlex.quote(sys.executable)} -m thesis_cli {command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


@pytest.mark.parametrize(
    ("redirection", "message"), [("- <&-", "error: standard input: is closed"), ("nowhere >&-", "error: nowhere")]
)
def test_closed_descriptors(tmp_path, redirection, message):
    line = f"{shlex.quote(sys.executable)} -m thesis_cli map {redirection}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def _catches(pid, signal_):
    """Whether a process has a handler of its own for a signal, as far as the system tells."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"SigCgt:\s*(\w+)", status.read_text()) if status.exists() else None
    return found is None or bool(int(found[1], 16) >> (signal_ - 1) & 1)


@pytest.mark.parametrize(
    ("signal_", "moment"),
    [
        (signal.SIGINT, 0.5),
        (signal.SIGTERM, 1.2),
        pytest.param(signal.SIGINT, 1.2, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, 0.5, marks=pytest.mark.long),
    ],
)
def test_ctrl_c_ends_with_130_and_leaves_nothing(tmp_path, signal_, moment):
    command = [sys.executable, "-m", "thesis_cli", "estimate-z", str(MODELS / "ising-4x4.uai"), "--samples", "500000"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while process.poll() is None and not _catches(process.pid, signal.SIGTERM):
        time.sleep(0.01)
    time.sleep(moment)
    process.send_signal(signal_)
    out, err = process.communicate(timeout=60)
    # CPython ends by the signal itself (130 to a shell) if it comes in an exec() of an import.
    assert process.returncode in (130, -signal.SIGINT)
    assert err.strip() == "error: interrupted"
    assert out == ""
    assert os.listdir(tmp_path) == []


def test_an_interruption_that_a_callback_of_compiled_code_swallows_comes_again():
    code = """
import ctypes, signal, time
from thesis_cli.__main__ import catch_signals
catch_signals()
swallow = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))
try:
    swallow()
    time.sleep(30)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_commands_of_two_words_form_a_group(cli, monkeypatch):
    race = entries()["race"]
    both = {f"runs {word}": race._replace(shell=f"runs {word}", help=f"Help of {word}.") for word in ("one", "two")}
    monkeypatch.setattr(app, "entries", lambda: {**entries(), **both})
    monkeypatch.setattr(app, "command_named", lambda name: command_named("race"))
    assert re.search(r"one +Help of one\.\n +two +Help of two\.\n", cli("runs", "--help").out)
    assert cli("runs").out == cli("runs", "--help").out
    assert "Usage: thesis-cli runs two" in cli("runs", "two", "--help").out
    assert cli("runs", "two").err == "error: FACTORS is missing; see --help\n"
    assert cli("runs", "three").err == "error: no command runs three; the commands are 'one', 'two'\n"
