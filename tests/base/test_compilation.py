"""Seconds of compilation: what counts, once, and who is informed."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from thesis_cli.base import progress
from thesis_cli.base.columns import Columns
from thesis_cli.base.progress import LEDGER, CompilationLedger, Stopwatch, announced, bars, observed
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import Request
from thesis_cli.commands.core.result import Result


class Time:
    """A clock that stands still unless it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(progress.time, "perf_counter", found)
    return found


@pytest.fixture
def ledger(time):
    return CompilationLedger(time)


def in_a_thread(*calls):
    thread = threading.Thread(target=lambda: [call() for call in calls])
    thread.start()
    thread.join()


def test_nested_locks_count_once(ledger, time):
    ledger.enter()
    time.sleep(1)
    ledger.enter()
    time.sleep(2)
    assert ledger.seconds == 3
    ledger.leave()
    time.sleep(4)
    ledger.leave()
    time.sleep(8)
    assert ledger.seconds == 7


def test_threads_that_wait_for_each_other_count_once(ledger, time):
    ledger.enter()
    time.sleep(1)
    in_a_thread(ledger.enter, lambda: time.sleep(2), ledger.leave)
    time.sleep(4)
    ledger.leave()
    time.sleep(8)
    in_a_thread(ledger.enter, lambda: time.sleep(16), ledger.leave)
    assert ledger.seconds == 1 + 2 + 4 + 16


def test_a_lock_that_is_older_than_the_ledger_does_not_count(ledger, time):
    ledger.leave()
    ledger.enter()
    time.sleep(1)
    ledger.leave()
    assert ledger.seconds == 1


def test_a_stopwatch_stands_still_during_compilation(ledger, time):
    ledger.enter()
    ledger.compile()
    time.sleep(1)
    ledger.leave()
    watch = Stopwatch(ledger)
    time.sleep(2)
    ledger.enter()  # to load a kernel
    time.sleep(4)
    ledger.leave()
    assert (watch.seconds, watch.compilation) == (2, 0)
    ledger.enter()
    ledger.compile()
    time.sleep(8)
    assert (watch.seconds, watch.compilation) == (2, 12)
    ledger.leave()
    time.sleep(16)
    assert (watch.seconds, watch.compilation) == (18, 12)


def test_the_innermost_observer_decides(ledger):
    seen = []

    def observer(name, informed):
        return lambda: seen.append(name) or informed

    with observed(observer("a", True), ledger):
        with observed(observer("b", True), ledger), observed(observer("c", False), ledger):
            ledger.compile()
        ledger.compile()
    ledger.compile()
    assert seen == ["c", "b", "a"]


def test_compilation_is_logged_once(caplog):
    caplog.set_level(logging.INFO, logger="thesis_cli")
    with announced():
        LEDGER.compile()
        LEDGER.compile()
    assert [record.message.split()[0] for record in caplog.records] == ["compiling"]


def test_a_bar_shows_compilation_and_does_not_count_its_seconds(monkeypatch, capsys, caplog, time):
    import tqdm.std

    monkeypatch.setattr(tqdm.std, "time", time)
    ledger = CompilationLedger(time)
    monkeypatch.setattr("thesis_cli.base.progress.LEDGER", ledger)
    monkeypatch.setattr("thesis_cli.base.progress.observed", lambda observer: observed(observer, ledger))
    with announced(), bars(100, "sample") as tick:
        time.sleep(1)
        ledger.enter()
        ledger.compile()
        assert "compiling" in capsys.readouterr().err
        time.sleep(50)
        ledger.leave()
        time.sleep(1)
        tick(10)
    shown = capsys.readouterr().err
    assert "/100 [00:02<00:18" in shown
    assert "compiling" not in shown
    assert not caplog.records


def test_the_cost_of_a_command_does_not_contain_compilation(time):
    def run(request: Request, progress) -> Result:
        time.sleep(1)
        LEDGER.enter()
        LEDGER.compile()
        time.sleep(20)
        LEDGER.leave()
        return Result(columns=Columns({}), request=request, settings={})

    before = LEDGER._clock
    LEDGER._clock = time
    try:
        result = Command(Request, run).execute(Request())
    finally:
        LEDGER._clock = before
    assert (result.seconds, result.compilation) == (1, 20)
    assert result.to_dict() == {"seconds": 1, "compilation_seconds": 20}
    assert result.sidecar()["seconds"] == 1


def test_what_numba_reports_is_counted(time, monkeypatch):
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.event import trigger_event

    monkeypatch.setattr(LEDGER, "_clock", time)
    watch = Stopwatch()
    time.sleep(1)
    with global_compiler_lock:
        time.sleep(2)
        with trigger_event("numba:compile"):
            time.sleep(4)
    time.sleep(8)
    assert (watch.seconds, watch.compilation) == (pytest.approx(9), pytest.approx(6))
    assert not LEDGER._depths


FAKE = """
class Listener:
    pass
registered = {}
register = registered.__setitem__
"""


def test_it_listens_as_soon_as_numba_is_imported(tmp_path, monkeypatch):
    (tmp_path / "fake_events.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(progress._CHANGES, "fake_events", progress._listen)
    import fake_events

    assert fake_events.registered.keys() == {"numba:compiler_lock", "numba:compile"}
    assert fake_events.__spec__.loader is fake_events.__loader__
    assert not isinstance(fake_events.__loader__, progress._Loader)


@pytest.mark.parametrize(
    ("module", "cached", "calls"),
    [
        ("thesis_cli.inference.grid.kernels", "code", ["alone"]),
        ("thesis_cli.inference.grid.kernels", None, ["alone", "with all"]),
        ("thesis_cli.inference.grid.kernels", AttributeError("no class Room"), ["alone", "emptied", "with all"]),
        ("thesis_client", "code", ["with all"]),
    ],
)
def test_kernels_of_this_package_are_loaded_alone(module, cached, calls):
    made = []

    class FunctionCache:
        _py_func = SimpleNamespace(__module__=module)

        def _load_overload(self, sig, target_context):
            made.append("alone")
            if isinstance(cached, Exception):  # of a cache written before a class was renamed
                raise cached
            return cached

        def flush(self):
            made.append("emptied")

        def load_overload(self, sig, target_context):
            made.append("with all")
            return "code"

    fresh = FunctionCache()
    progress._cache_kernels(SimpleNamespace(FunctionCache=FunctionCache))
    assert fresh.load_overload("sig", None) == "code"
    assert made == calls


def test_a_kernel_is_stale_once_a_module_changes_that_its_own_imports(tmp_path, monkeypatch):
    from thesis_cli.base.compiled import kernel

    monkeypatch.setattr(progress, "PACKAGE", tmp_path / "thesis_cli")
    places = {name: tmp_path / "thesis_cli" / f"{name}.py" for name in ("kernels", "table", "rules", "other")}
    places["rules"].parent.mkdir()
    places["kernels"].write_text("from thesis_cli.table import (\n    LEVEL,\n)\ndef level(): return LEVEL\n")
    places["table"].write_text("from thesis_cli import rules\nLEVEL = rules.LEVEL\n")

    def run(level, unrelated=0):
        """Whether the kernel is compiled, by a process that has read these files."""
        places["rules"].write_text(f"LEVEL = {level}\n")
        places["other"].write_text(f"LEVEL = {unrelated}\n")
        for found in (progress.sources_digest, progress._source):
            found.cache_clear()
        names = {"__name__": "thesis_cli.kernels", "LEVEL": level}
        exec(compile(places["kernels"].read_text().partition(")\n")[2], str(places["kernels"]), "exec"), names)
        compiled = kernel()(names["level"])
        assert compiled() == level
        return bool(compiled.stats.cache_misses)  # of this kernel alone: another thread may compile others

    assert run(3)
    assert not run(3)
    assert run(4)
    assert not run(4, unrelated=1)


def test_what_kernels_hold_counts_for_the_kernels_in_the_cache():
    from thesis_cli.synthesis.language import operation_kernels

    digests = {progress.PACKAGE / "synthesis" / "language" / f"{name}.py" for name in ("dsl", "lanes", "packing")}
    assert digests < set(progress._source(Path(operation_kernels.__file__))[1])
