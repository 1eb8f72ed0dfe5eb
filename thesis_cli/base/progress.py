"""The time that work takes: progress bars, stopwatches, and the compilation of kernels, which no time
of work contains.

numba compiles a kernel, or loads it from its cache, at the first call. Both hold numba's lock, and
numba reports when a thread asks for the lock and when it releases it. This module listens from its
import on, without importing numba. It also tells numba which kernels in its cache are out of date.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import logging
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

logger = logging.getLogger("thesis_cli")

PACKAGE = Path(__file__).resolve().parents[1]
IMPORTS = re.compile(rf"^from ({PACKAGE.name}[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
"""Imports of a module from this package, and the names that they import."""

EVENTS = "numba.core.event"
"""The module of numba by which it reports."""

Observer = Callable[[], bool]
"""Called when a compilation begins; returns whether it has informed the user."""


class CompilationLedger:
    """Seconds in which some thread compiles code, loads compiled code or waits for either.

    Attributes
    ----------
    compiled : number of kernels that were compiled, not loaded.
    observers : the last one is called first, and the others only until one returns True.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.compiled = 0
        self.observers: list[Observer] = []
        self._clock, self._guard = clock, threading.Lock()
        self._depths: Counter[int] = Counter()  # of nested locks, by thread
        self._seconds = self._began = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far; several threads at once count once."""
        with self._guard:
            return self._seconds + (self._clock() - self._began if self._depths else 0.0)

    def enter(self) -> None:
        """This thread asks for the lock."""
        with self._guard:
            if not self._depths:
                self._began = self._clock()
            self._depths[threading.get_ident()] += 1

    def leave(self) -> None:
        """This thread has released the lock."""
        thread = threading.get_ident()
        with self._guard:
            if thread not in self._depths:  # it asked before this module listened
                return
            self._depths[thread] -= 1
            if not self._depths[thread]:
                del self._depths[thread]
            if not self._depths:
                self._seconds += self._clock() - self._began

    def compile(self) -> None:
        """A kernel is compiled from here on."""
        self.compiled += 1
        for observer in reversed(self.observers):
            if observer():
                break


LEDGER = CompilationLedger()
"""The ledger of this process."""


class Stopwatch:
    """Measures the seconds of work since it was made; compiling and loading kernels do not count.

    Parameters
    ----------
    ledger : counts the seconds of compilation.
    """

    def __init__(self, ledger: CompilationLedger = LEDGER) -> None:
        self._ledger, self._began = ledger, time.perf_counter()
        self._before, self._compiled = ledger.seconds, ledger.compiled

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        spent = self._ledger.seconds - self._before
        return max(0.0, time.perf_counter() - self._began - spent)

    @property
    def compilation(self) -> float:
        """Seconds of compilation so far; 0 if kernels were only loaded."""
        return self._ledger.seconds - self._before if self._ledger.compiled > self._compiled else 0.0


@contextmanager
def observed(observer: Observer, ledger: CompilationLedger = LEDGER) -> Iterator[None]:
    """Call an observer whenever a compilation begins meanwhile."""
    ledger.observers.append(observer)
    try:
        yield
    finally:
        ledger.observers.remove(observer)


@contextmanager
def announced() -> Iterator[None]:
    """Log once that code is compiled meanwhile, unless a progress bar shows it."""
    logged = False

    def announce() -> bool:
        nonlocal logged
        if not logged:
            logger.info("compiling code for its first use; `thesis-cli compile` does so for all commands at once")
        logged = True
        return True

    with observed(announce):
        yield


Tick = Callable[[int], None]
"""Called with the number of units just done."""

Progress = Callable[[int, str], AbstractContextManager[Tick]]
"""Called with the number of units to do and what one is; opens a progress bar and yields its
`Tick`.
"""

COUNTED = 10**18
"""A bar for more units than this shows no total: they are never counted through."""


def silent(total: int, unit: str) -> AbstractContextManager[Tick]:
    """A `Progress` that shows nothing."""
    return nullcontext(lambda done: None)


@contextmanager
def bars(total: int, unit: str, name: str | None = None) -> Iterator[Tick]:
    """A `Progress` that shows bars on standard error.

    While code is compiled the bar shows `compiling`; rate and time left do not count these seconds.
    """
    from tqdm import tqdm

    shown = total if total < COUNTED else None
    with tqdm(total=shown, desc=name, unit=unit, unit_scale=True, file=sys.stderr, leave=False) as bar:
        begun = LEDGER.seconds
        labelled = False

        def label() -> bool:
            nonlocal labelled
            if not labelled:
                bar.set_postfix_str("compiling")
            labelled = True
            return True

        def tick(done: int) -> None:
            nonlocal begun, labelled
            seconds = LEDGER.seconds
            bar.start_t += seconds - begun
            bar.last_print_t += seconds - begun
            begun = seconds
            if labelled:
                bar.set_postfix_str("", refresh=False)
            labelled = False
            bar.update(done)

        with observed(label):
            yield tick


class _Finder(importlib.abc.MetaPathFinder):
    """Changes modules of numba as soon as they are imported; the import costs a third of a second."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, _CHANGES[fullname])
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module as another loader does, and then changes it."""

    def __init__(self, loader: importlib.abc.Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader, self._change = loader, change

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._change(module)


def _listen(events: ModuleType) -> None:
    """Enter what numba reports into the ledger."""

    class Locking(events.Listener):  # type: ignore[name-defined, misc]
        def on_start(self, event: object) -> None:
            LEDGER.enter()

        def on_end(self, event: object) -> None:
            LEDGER.leave()

    class Compiling(events.Listener):  # type: ignore[name-defined, misc]
        def on_start(self, event: object) -> None:
            LEDGER.compile()

        def on_end(self, event: object) -> None:
            pass

    events.register("numba:compiler_lock", Locking())
    events.register("numba:compile", Compiling())


def _cache_kernels(caching: ModuleType) -> None:
    """Change how numba caches kernels of this package: they are stale if a module changes that theirs
    imports, and are loaded without what only compilation needs.

    A kernel holds the values of the constants and the code of the functions that it uses, and numba
    looks only at the kernel's own file. Before it looks into its cache, it imports all that it can
    compile, SciPy's linear algebra included, which costs more than its own import. What is found in
    the cache runs without.
    """
    found = caching.FunctionCache
    prepare, load_with_all = found.__init__, found.load_overload

    def ours(function: Any) -> bool:
        return bool(function.__module__.partition(".")[0] == PACKAGE.name)

    def __init__(self: Any, py_func: Any) -> None:
        prepare(self, py_func)
        if ours(py_func):
            file = self._cache_file
            file._source_stamp = file._source_stamp, sources_digest(Path(py_func.__code__.co_filename))

    def load_overload(self: Any, sig: Any, target_context: Any) -> Any:
        if not ours(self._py_func):
            return load_with_all(self, sig, target_context)
        _add_symbols()
        try:
            loaded = self._load_overload(sig, target_context)
        except (AttributeError, ImportError):  # the cache names a class that has another name or place by now
            self.flush()
            loaded = None
        return load_with_all(self, sig, target_context) if loaded is None else loaded

    found.__init__ = __init__
    if hasattr(found, "_load_overload"):
        found.load_overload = load_overload


@cache
def sources_digest(file: Path) -> str:
    """Digest of a file and of all modules of this package that it imports, directly or not."""
    digests: dict[Path, str] = {}
    files = [file]
    while files:
        path = files.pop()
        if path not in digests:
            digests[path], imported = _source(path)
            files += imported
    return hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()


@cache
def _source(path: Path) -> tuple[str, list[Path]]:
    """Digest of a file, and the files of this package that it imports from."""
    content = path.read_bytes()
    found = []
    for module, names in IMPORTS.findall(content.decode()):
        folder = PACKAGE.joinpath(*module.split(".")[1:])
        places = [folder.with_suffix(".py"), folder / "__init__.py"]
        found += places + [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
    return hashlib.sha256(content).hexdigest(), [place for place in found if place.is_file()]


@cache
def _add_symbols() -> None:
    """Give LLVM what numba gives it before it compiles: the functions of its runtime, which make
    arrays, and those of the C library that Python uses.
    """
    binding = importlib.import_module("llvmlite.binding")
    functions = importlib.import_module("numba._helperlib").c_helpers
    for name in importlib.import_module("numba.core.intrinsics").INTR_MATH:
        binding.add_symbol(name, functions[name])
    for name, address in importlib.import_module("numba.core.runtime._nrt_python").c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


_CHANGES = {EVENTS: _listen, "numba.core.caching": _cache_kernels}

for _name, _change in _CHANGES.items():
    if _name in sys.modules:
        _change(sys.modules[_name])
sys.meta_path.insert(0, _Finder())
