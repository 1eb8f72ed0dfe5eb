"""What counts as other code, and what does not."""

from pathlib import Path

import pytest

from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.reproduction import fingerprint as module
from thesis_cli.reproduction.fingerprint import files, fingerprint
from thesis_cli.synthesis.solvers import SOLVERS

BASE = '''
"""Docstring."""
import numpy as np
from thesis_cli.perturbation.tricks import tricks

SIZE = 3
COLOUR = "red"

def helper(x):
    """Helps."""
    return x + SIZE

def run(seed, target):
    return helper(tricks.gumbel())

def plot(frame):
    return COLOUR

EXPERIMENT = dict(claims=[target for target in (1, 2)])
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""Docstring."""', '"""Other."""', True),
        ('    """Helps."""\n', "    # a comment\n", True),
        ("return COLOUR", "return 'blue'", True),
        ("(1, 2)", "(1, 2, 3)", True),
        ("SIZE = 3", "SIZE = 4", False),
        ("x + SIZE", "x - SIZE", False),
        ("tricks.gumbel()", "tricks.pareto()", False),
    ],
)
def test_what_counts(tmp_path, old, new, same):
    path = tmp_path / "e.py"
    path.write_text(BASE)
    before = fingerprint(path)
    assert old in BASE
    path.write_text(BASE.replace(old, new))
    assert (fingerprint(path) == before) is same


COMMAND = '''
"""`thesis-cli toy`: nothing."""
from thesis_cli.base.errors import counted
from thesis_cli.commands.core.fields import option
from thesis_cli.shared import level_option
from thesis_cli.toy_figure import draw

SHOWN = 64

class ToyRequest(Request):
    """Help of the command."""

    size: int = option(3, "Size of it.", least=1, metavar="N", default_text="three")
    level: float = level_option()

class ToyResult(Result):
    """A result."""

    @property
    def total(self):
        return sum(self.table) + _shift()

    @presentation
    def lines(self):
        return [("size", counted(SHOWN, "thing"))]

    @presentation
    def figure(self):
        return draw(_title())

def _shift():
    return 0

def _title():
    return "Toy"

def run(request: ToyRequest, progress) -> ToyResult:
    return ToyResult(table=[request.size])

COMMAND = Command(ToyRequest, run, examples=("toy",), notes=("A note.",))
'''
SHARED = """
def level_option():
    return fields.option(0.5, "Level.", above=0)
@core.presentation
def shown(x):
    return f"{x}"
"""


@pytest.fixture
def empty(tmp_path, monkeypatch):
    made = tmp_path / "thesis_cli"
    made.mkdir()
    monkeypatch.setattr(module, "PACKAGE", made)
    return made


@pytest.fixture
def package(empty):
    """A package with one command, a module that it shares and one that draws."""
    (empty / "base").mkdir()
    for name, text in {
        "__init__": "",
        "toy": COMMAND,
        "shared": SHARED,
        "toy_figure": "def draw(title):\n    return title\n",
        "base/__init__": "",
        "base/wording": "def counted(n, what):\n    return f'{n} {what}'\n",
    }.items():
        (empty / f"{name}.py").write_text(text)
    return empty


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("toy", "Size of it.", "How large it is.", True),
        ("toy", 'metavar="N"', 'metavar="SIZE"', True),
        ("toy", 'default_text="three"', 'default_text="3"', True),
        ("toy", "Help of the command.", "Other help.", True),
        ("toy", "SHOWN = 64", "SHOWN = 8", True),
        ("toy", '"size", counted', '"SIZE", counted', True),
        ("toy", 'return "Toy"', 'return "A toy"', True),
        ("toy", "A note.", "Another note.", True),
        ("shared", "Level.", "Another level.", True),
        ("shared", 'f"{x}"', 'f"{x} of it"', True),
        ("toy_figure", "return title", "return 2 * title", True),
        ("base/wording", "{n} {what}", "{what}: {n}", True),
        ("toy", "option(3,", "option(4,", False),
        ("toy", "least=1", "least=0", False),
        ("toy", "sum(self.table)", "max(self.table)", False),
        ("toy", "return 0", "return 1", False),
        ("toy", "table=[request.size]", "table=[request.size + 1]", False),
        ("shared", "0.5", "0.6", False),
        ("shared", "above=0", "above=0.1", False),
    ],
)
def test_what_counts_of_a_command(package, file, old, new, same):
    """Help, printing and drawing do not; defaults, `run` and all that it computes do."""
    path = package / f"{file}.py"
    before = fingerprint(package / "toy.py")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert (fingerprint(package / "toy.py") == before) is same


def test_a_changed_helper_at_any_depth_counts(empty, tmp_path):
    """estimators.py is imported by nothing in the file itself, but by what it imports."""
    (empty / "deep").mkdir()
    (empty / "__init__.py").write_text("")
    (empty / "deep" / "__init__.py").write_text("")
    (empty / "one.py").write_text("def f():\n    from thesis_cli.deep import two\n    return two.g()\n")
    (empty / "deep" / "two.py").write_text("def g():\n    return 1\n")
    path = tmp_path / "e.py"
    path.write_text("from thesis_cli.one import f\ndef run(seed):\n    return f()\n")
    before = fingerprint(path)
    (empty / "deep" / "two.py").write_text("def g():\n    return 2\n")
    assert fingerprint(path) != before


QUICK = ("estimate-z", "renyi", "spin-glass", "dp-release", "synthesize")
"""The commands that are tried in `make test`."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n not in QUICK)) for n in entries()])
def test_results_of_a_command_depend_on_its_file_and_on_no_front_end(name):
    file = command_named(name).file
    found = {str(path.relative_to(module.PACKAGE)) for path in files(file)}
    assert f"commands/{file.name}" in found
    assert not [f for f in found if f.startswith(("cli/", "reproduction/")) or "figure" in f or "documents" in f]
    assert "commands/core/command.py" not in found


def test_results_of_searches_depend_on_every_solver():
    found = {file.name for file in files(Path("experiments/search_space.py"))}
    assert found >= {f"{entry.module}.py" for entry in SOLVERS.values()}


def test_a_name_in_a_text_counts(empty, tmp_path):
    """Rows of a registry name their code so; other texts are texts."""
    path = tmp_path / "e.py"
    path.write_text("ROW, NOTE = 'thesis_cli.one:f', 'thesis_cli.two'\ndef run(seed):\n    return ROW, NOTE\n")
    one, two = "def f():\n    return 1\ndef g():\n    return 2\n", "def h():\n    return 3\n"
    (empty / "one.py").write_text(one)
    (empty / "two.py").write_text(two)
    before = fingerprint(path)
    (empty / "two.py").write_text(two.replace("3", "4"))
    (empty / "one.py").write_text(one.replace("2", "3"))
    assert fingerprint(path) == before
    (empty / "one.py").write_text(one.replace("1", "2"))
    assert fingerprint(path) != before


def test_a_release_depends_on_the_code_of_its_method():
    found = {file.name for file in files(command_named("dp-release").file)}
    assert found >= {f"{method}.py" for method in METHODS}


def test_code_may_move(empty, tmp_path):
    """To another module, into a larger one, and from a function's import to the head of the file."""
    path = tmp_path / "e.py"
    path.write_text("from thesis_cli.one import f as g\ndef run(seed):\n    return g()\n")
    (empty / "one.py").write_text("from thesis_cli import two\nK = 'thesis_cli.two'\ndef f():\n    return two.h(K)\n")
    (empty / "two.py").write_text("import numpy as np\nSIZE = 1\nnp.seterr(all='raise')\ndef h(x):\n    return SIZE\n")
    before = fingerprint(path)
    assert {file.name for file in files(path)} == {"e.py", "one.py", "two.py"}

    (empty / "deep").mkdir()
    (empty / "deep" / "two.py").write_text((empty / "two.py").read_text() + "def other():\n    return 3\n")
    (empty / "two.py").unlink()
    (empty / "one.py").unlink()
    (empty / "large.py").write_text(
        "def unused():\n    return 2\nK = 'thesis_cli.deep.two'\n"
        "def f():\n    from thesis_cli.deep import two\n    return two.h(K)\n"
    )
    path.write_text("from thesis_cli.large import f as g\ndef run(seed):\n    return g()\n")
    assert fingerprint(path) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from thesis_cli.one import f, g", "from thesis_cli.one import f as g, g as f"),
        ("f() - g()", "g() - f()"),
        ("f() - g()", "getattr(one, 'h')()"),
    ],
)
def test_names_that_are_exchanged_count(empty, tmp_path, old, new):
    (empty / "one.py").write_text("def f():\n    return 1\ndef g():\n    return 2\ndef h():\n    return 3\n")
    path = tmp_path / "e.py"
    text = "from thesis_cli import one\nfrom thesis_cli.one import f, g\ndef run(seed):\n    return f() - g()\n"
    path.write_text(text)
    before = fingerprint(path)
    path.write_text(text.replace(old, new))
    assert fingerprint(path) != before


def test_a_module_that_is_passed_on_counts_whole(empty, tmp_path):
    path, other = tmp_path / "e.py", empty / "one.py"
    path.write_text("from thesis_cli import one\ndef run(seed):\n    return getattr(one, 'f')()\n")
    other.write_text("def f():\n    return 1\n")
    before = fingerprint(path)
    other.write_text("def f():\n    return 2\n")
    assert fingerprint(path) != before


@pytest.mark.parametrize("kept", [None, "[]", '{"package": "other", "known": {}}', "cut off"])
def test_digests_are_kept_until_the_code_changes(package, monkeypatch, kept):
    """By other processes too: what is parsed is forgotten here."""
    path = package / "toy.py"
    before = fingerprint(path)
    (file,) = package.rglob("fingerprints.json")
    if kept is not None:
        file.write_text(kept)
        assert fingerprint(path) == before
    with monkeypatch.context() as patch:
        patch.setattr(module, "_reached", None)
        assert fingerprint(path) == before
    (package / "shared.py").write_text(SHARED.replace("0.5", "0.6"))
    assert fingerprint(path) != before
