"""Objects of a user as targets, and the lines of their errors."""

import re
import sys
import zlib

import numpy as np
import pytest

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.models.target_objects import load_object, own_code

MODULE = """
import numpy as np
from thesis_cli.models.proposals import Normal
class Flat:
    proposal = Normal(np.zeros(1), np.ones(1))
    def log_ratio(self, x): return 0.0
    def bound(self, low, high): return 0.0
class Bad(Flat):
    def log_ratio(self, x): return float("nan")
class Wide(Flat):
    def log_ratio(self, x): return np.zeros(2)
class Raises(Flat):
    def bound(self, low, high):
        return pick({})
class Stops(Flat):
    def log_ratio(self, x): raise KeyboardInterrupt
def pick(sides):
    return sides["side"]
class Shapeless(Flat):
    class proposal(Normal):
        low = high = np.zeros(5)
class Loose(Flat):
    class proposal(Normal):
        def log_density(self, x): return -np.inf
    proposal = proposal(np.zeros(1), np.ones(1))
flat, bad, wide, raises, number, shapeless, loose = Flat(), Bad(), Wide(), Raises(), 3, Shapeless(), Loose()
stops = Stops()
class Box: inner = flat
def made(proposal=flat.proposal, ratio=lambda x: 0.0, bound=lambda low, high: 0.0):
    found = Flat()
    found.proposal, found.log_ratio, found.bound = proposal, ratio, bound
    return found
def halve(x): x *= 0.5
def widen(low, high):
    low -= 1
headless, boundless = made(None), made(bound=lambda low, high: np.inf)
far_up, far_down = made(ratio=lambda x: 1e300), made(ratio=lambda x: -1e300)
halves, widens = made(ratio=halve), made(bound=widen)
"""

NAMED = [
    ("users_target:none", "users_target:none: there is no 'none'; give an object"),
    ("users_target:number", "users_target:number: it has no proposal"),
    ("users_target:Flat", "users_target:Flat: it is a class"),
    ("users_target:bad", "users_target:bad: in the middle its log_ratio is nan"),
    (
        "users_target:wide",
        r"users_target:wide: log_ratio returned an array of shape \(2,\)",
    ),
    ("users_target:headless", "users_target:headless: its proposal is None"),
    (
        "users_target:boundless",
        r"users_target:boundless: the bound of the box from \[-37.5\] to \[37.5\] is inf",
    ),
    ("users_target:far_up", r"users_target:far_up: log_ratio is 1e\+300 at \[0.0\], where adding 1 changes nothing"),
    (
        "users_target:far_down",
        r"users_target:far_down: log_ratio is -1e\+300 at \[0.0\], where adding 1 changes nothin",
    ),
    ("users_target:halves", "users_target.py:33: ValueError: .*read-only"),
    ("users_target:widens", "users_target.py:35: ValueError: .*read-only"),
    ("users_target:shapeless", r"users_target:shapeless: its proposal has corners of shapes \(5,\) and \(5,\)"),
    ("users_target:loose", "users_target:loose: in the middle the log_density of its proposal is -inf"),
    ("users_target:raises", "users_target.py:18: KeyError: 'side'"),
    ("users_target.py:raises", "users_target.py:18: KeyError: 'side'"),
    ("users_target:", "--target: users_target: names no object; it must be module:object"),
    (":flat", "--target: :flat names no object; it must be module:object"),
    ("z", "--target: z names no object; it must be module:object"),
    ("nowhere_at_all:x", "nowhere_at_all:x: there is no module nowhere_at_all, neither here nor installed"),
    ("users_target.x:y", "users_target.x:y: there is no module users_target.x, neither here nor installed"),
    ("nowhere.py:x", "nowhere.py: there is no such file; give module:object"),
    (".relative:x", ".relative:x: cannot be imported"),
]


def test_objects_of_a_user_are_imported_and_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "users_target", raising=False)
    (tmp_path / "users_target.py").write_text(MODULE)
    path = list(sys.path)
    for name in (
        "users_target:flat",
        "users_target.py:flat",
        f"{tmp_path}/users_target.py:flat",
        "users_target:Box.inner",
    ):
        assert load_object(name).bound(np.zeros(1), np.ones(1)) == 0
    for name, complaint in NAMED:
        with pytest.raises(InputError) as caught:
            load_object(name)
        assert re.match(complaint, str(caught.value)), str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(KeyboardInterrupt):
        load_object("users_target:stops")
    assert sys.path == path


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ("import sys; sys.exit(3)", "ends the program (SystemExit: 3)"),
        ("import not_there", "cannot be imported (ModuleNotFoundError: No module named 'not_there'); install that"),
        ("def f(:", "cannot be imported (SyntaxError: invalid syntax)"),
        ("raise ValueError('mine\\nand more')", "cannot be imported (ValueError: mine)"),
        ("raise RuntimeError", "cannot be imported (RuntimeError)"),
        ("Normal(0., 2.)", "a proposal has shapes () and (); give two vectors, even"),
        ("proposal = Normal(np.zeros(5), np.ones(5))", "a proposal has shapes (5,) and (5,)"),
    ],
)
@pytest.mark.parametrize(
    ("file", "name"), [("m{}.py", "m{}:flat"), ("m{}.py", "m{}.py:flat"), ("p{}/__init__.py", "p{}.inner:flat")]
)
def test_a_failed_import_is_an_error_with_its_line(tmp_path, monkeypatch, file, name, last, complaint):
    monkeypatch.chdir(tmp_path)
    own = f"{zlib.crc32(last.encode())}"  # a module is imported once
    file, name = file.format(own), name.format(own)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(MODULE + last + "\n")
    with pytest.raises(InputError) as caught:
        load_object(name)
    assert str(caught.value).startswith(f"{file}:{MODULE.count(chr(10)) + 1}: {complaint}")
    assert "\n" not in str(caught.value)


def test_a_syntax_error_in_another_module_has_its_own_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imports_broken.py").write_text("import broken_beside\n")
    (tmp_path / "broken_beside.py").write_text("\nx = (\n")
    with pytest.raises(InputError, match=r"^broken_beside.py:2: cannot be imported \(SyntaxError: "):
        load_object("imports_broken.py:x")


def test_modules_beside_a_file_can_be_imported_until_it_is_called(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/beside_it.py").write_text("level = 0.25\n")
    late = MODULE.replace("return 0.0", "from beside_it import level; return level", 1)
    (tmp_path / "folder/late.py").write_text(late)
    monkeypatch.chdir(tmp_path)
    assert load_object("folder/late.py:flat").log_ratio(np.zeros(1)) == 0.25


def test_own_code_passes_on_exceptions_that_are_not_the_users(tmp_path, monkeypatch):
    """Errors of this package, interruptions and errors that name a file keep their tracebacks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text(MODULE)
    load_object("good.py:flat")
    for error in (ZeroDivisionError("ours"), KeyboardInterrupt(), WorkFailed("no"), InputError("no", source="there")):
        with pytest.raises(type(error)) as caught, own_code("good.py:flat"):
            raise error
        assert caught.value is error
