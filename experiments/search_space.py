"""The space of programs: its size, the speed of enumeration, and the time that searches take to
solve random tasks.

All searches use only the prior, how often each function occurs in a corpus. Times are processor
seconds of the machine named in the record; another machine gives other times. The thesis has its
times for T = 3 alone (Table 5.1), of other tasks on another machine.
"""

from functools import cache

import numpy as np
import pandas as pd

from thesis_cli.base.figures import COLOURS
from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Claim, Experiment, Measurement, Reading
from thesis_cli.reproduction.measuring import measure, select
from thesis_cli.studies.synthesis.published_speedups import GOALS, TOWARD_GOALS
from thesis_cli.studies.synthesis.search_space_figures import draw
from thesis_cli.studies.synthesis.speedups import share_of
from thesis_cli.studies.synthesis.timing import RATES, examine, timed, unsolvable, until_found, within
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.corpus.corpus_maker import random_tasks
from thesis_cli.synthesis.language.dsl import LIST
from thesis_cli.synthesis.language.program import search_space
from thesis_cli.synthesis.language.program_codes import SIGNATURES
from thesis_cli.synthesis.solvers import SOLVERS, UNGUIDED

LENGTHS = (1, 2, 3, 4, 5)
GONE_THROUGH = 3
"""Largest length T at which every program is examined."""
BATCH = 20
"""Number of random tasks in one task of the experiment."""
ENOUGH = 10
"""Least number of random tasks for a comparison of two solvers."""
RESAMPLES = 1000
COMPILED = [name for name in UNGUIDED if SOLVERS[name].compiled]

PROJECT = "this project"
BEYOND = "5.5.1, programs of 5 lines and more"
"""Heading of docs/errata.md on the goals."""
ON_THE_ORDER = Reading("on the order of: within a factor of the square root of 10", 0.5)
FULL, LAZY = "examined in full", "examined lazily"
UNPRUNED = ("dfs, unpruned", "sort-and-add, unpruned")
STYLES = {name: (colour, "-") for name, colour in zip(UNGUIDED, COLOURS, strict=False)}
STYLES |= {name: (STYLES[name.removesuffix(", unpruned")][0], ":") for name in UNPRUNED}

ENOUGH_FOR_GOALS = 50
"""Least number of random tasks that decides on a goal."""


CAPTION = (
    "Top left: number of well-typed programs of each length, by types of inputs; crosses are the two sizes that the "
    "thesis prints, which belong to two lists and to one. Top right: median processor seconds to a program of random "
    "tasks; a hollow mark at the longest time spent is a solver that solved less than half of them. Other panels: "
    "share of the random tasks that each solver has solved, by the time spent on each, with the names of solvers that "
    "solved none. Triangles are the times of Table 5.1, hollow with the prior and filled with the network. All "
    "searches here use the prior alone; the deductive search and SMT stand in for lambda^2 and Sketch. The thesis "
    "prints times for T = 3 alone, of other tasks on another machine. Plus signs are goals of this project."
)


def tasks(settings):
    sizes = [{"part": "size", "signature": place, "repeats": settings["repeats"]} for place in range(len(SIGNATURES))]
    searches = [
        {
            "part": "solve",
            "length": length,
            "solvers": names,
            "tasks": settings["tasks"][str(length)],
            "first": first,
            "last": min(first + BATCH, count) - 1,
            "timeout": timeout,
        }
        for names, length, count, timeout in settings["solve"]
        for first in range(0, count, BATCH)
    ]
    return sizes + searches


def run(seed, part, **parameters):
    """A row for each size that was counted (`counted`) or enumerated, or for each random task.

    `programs` is the number of programs counted or examined, `seconds` the time of the whole
    search, `found` the part of it before the program was found, `answer` the length of that
    program, both empty if there is none, and `proven` whether no shorter one fits. Random tasks do
    not depend on `seed`: all solvers get the same.
    """
    columns = ["part", "inputs", "length", "method", "task", "programs", "seconds", "found", "answer", "proven"]
    found = _sizes(**parameters) if part == "size" else _solved(**parameters)
    return pd.DataFrame(found, columns=columns).astype({"programs": "int64"})


def _sizes(signature, repeats):
    inputs = SIGNATURES[signature]
    task = unsolvable(inputs, np.random.default_rng(signature))
    rows = [("size", _text(inputs), length, "counted", "", search_space(inputs, length)) for length in LENGTHS]
    for length in range(1, GONE_THROUGH + 1):
        for method in (FULL, LAZY):
            found = [examine(task, length, method is LAZY) for _ in range(repeats)]
            seconds = min(seconds for _, seconds in found)
            rows.append(("size", _text(inputs), length, method, "", found[0][0], _rounded(seconds)))
    return [(*row, *[""] * (10 - len(row))) for row in rows]


def _solved(length, solvers, tasks, first, last, timeout):
    order, rows = prior.load(), []
    for name in solvers:
        limits = within(name, length, timeout)
        for number, task in enumerate(_drawn(length, tasks)[first : last + 1], first):
            solution, seconds = timed(name, task, order, limits)
            answer = len(solution.program) if solution.program else ""
            what = ("solve", _text(task.inputs), length, name, number)
            found = _rounded(until_found(solution, seconds)) if solution.program else ""
            rows.append((*what, solution.nodes, _rounded(seconds), found, answer, int(solution.proven)))
    return rows


@cache
def _drawn(length, count):
    return [labelled.task for labelled in random_tasks(length, count, np.random.default_rng(length))]


def _text(inputs):
    return ", ".join(inputs)


def _rounded(seconds):
    return float(f"{seconds:.3g}")


def plot(frame):
    return draw(frame, STYLES)


def _log_programs(found):
    return np.log10(found.programs)


def _counts(inputs, *lengths):
    """Number of programs of some lengths."""
    found = select(inputs=_text(inputs), length=list(lengths), method="counted")
    return found.then(lambda f: f.groupby("inputs", as_index=False).programs.sum())


def _least_growth(frame):
    """Least log10 of the ratio of the sizes at T = 5 and T = 3, over types of inputs."""
    sizes = frame[frame.method == "counted"].pivot(index="inputs", columns="length", values="programs")
    return Measurement(np.log10(sizes[5] / sizes[3]).min())


def _examined(method):
    """Programs examined by search without pruning, over the number that exist."""
    return (
        select(method=method).number("programs").over(select(method="counted").number("programs"), "inputs", "length")
    )


def _slower(slow, fast):
    """Mean over tasks of length 3 of the log10 of the ratio of the times of two solvers.

    An unsolved task counts with the time spent on it.
    """
    found = select(part="solve", length=3)
    pairs = found.where(method=slow).number("seconds").over(found.where(method=fast).number("seconds"), "task")
    return pairs.number(lambda f: np.log10(f.value)).mean(ENOUGH)


def _decisive(frame, length):
    """Rows of a length by the solver that decides; None if they are too few."""
    found = select(part="solve", length=length, method=TOWARD_GOALS[0])(frame)
    return found if len(found) >= ENOUGH_FOR_GOALS else None


@measure
def _median(frame, length):
    """log10 of the median of the seconds to a program, its standard error by the bootstrap over
    tasks. An unsolved task counts with the time spent on it."""
    found = _decisive(frame, length)
    if found is None:
        return None
    logs = np.log10(found.found.fillna(found.seconds).to_numpy())
    drawn = np.random.default_rng(0).integers(len(logs), size=(RESAMPLES, len(logs)))
    return np.median(logs), np.median(logs[drawn], axis=1).std()


@measure
def _solved_share(frame, length):
    found = _decisive(frame, length)
    return None if found is None else share_of(int(found.answer.notna().sum()), len(found))


WHICH = "The thesis does not say which inputs it counts, and sizes differ by a factor of ten between one list and two."
PEERS = "It is about lambda^2 and Sketch, which cannot be installed here: a deductive search and z3 stand in for them."

# fmt: off
CLAIMS = [
    *(
        claim
        for length, (seconds, solved) in GOALS.items()
        for claim in (
            Claim(f"median, T = {length}", PROJECT, "comparison", "<", np.log10(seconds), _median(length),
                f"the search `{TOWARD_GOALS[0]}` finds a program for half of the random tasks of T = {length} in "
                f"{seconds:g} s, a goal of this project (log10 of the median of the seconds)", finding=BEYOND),
            Claim(f"solved, T = {length}", PROJECT, "comparison", ">", solved, _solved_share(length),
                f"the search `{TOWARD_GOALS[0]}` solves {solved:.0%} of the random tasks of T = {length} in 10 s, a "
                f"goal of this project (share within {10 * RATES[TOWARD_GOALS[0]] / 1e6:g} million programs, some "
                "10 s)", finding=BEYOND),
        )
    ),
    Claim("size, T = 3", "Thesis 5.5.1: 'program search space size'", "published", "=", 2e6,
        lambda frame: Measurement(_counts((LIST, LIST), 3)(frame).programs.iloc[0]),
        "there are some 2e6 programs of length 3 (number for two lists as inputs; with an integer beside them "
        "there are 2.16e6, for one list 2.8e5)", rounding=5e5, scale=1.7e6, printed="~2e6", not_comparable=WHICH),
    Claim("size, T = 5", "Thesis 5.5.1: 'search space size on the order of'",
        "published", "=", 10, _counts((LIST,), 5).number(_log_programs).read(),
        "there are on the order of 1e10 programs of length 5 (log10 of the number for one list as input)", scale=1,
        reading=ON_THE_ORDER, printed="10^10", not_comparable=WHICH),
    Claim("size, T <= 2", "Thesis 5.5.3: 'where the search space size is very small'", "published", "=", 3,
        _counts((LIST,), 1, 2).number(_log_programs).read(),
        "there are on the order of 1e3 programs of length up to 2 (log10 of the number for one list as input)",
        scale=1, reading=ON_THE_ORDER, printed="10^3", not_comparable=WHICH),
    Claim("size, T = 5 over T = 3", f"{PROJECT} (Thesis 5.5.1)", "comparison", ">", np.log10(1e10 / 2e6),
        _least_growth,
        "from T = 3 to 5 the space grows by more than from 2e6 to 1e10, whatever the types of the inputs (log10 of "
        "the ratio, the least over the types of inputs)"),
    Claim("programs examined", f"{PROJECT} (Thesis D.4)", "identity", "=", 1,
        _examined([FULL, LAZY]).most_off(1.0),
        "depth-first search examines every program, once (number of programs examined over the exact number, up to "
        "T = 3)", scale=1e-7),
    Claim("programs a second", "Thesis D.4: 'explore the search space at roughly'", "published", "=", 3e6,
        select(method=FULL, length=GONE_THROUGH).number("programs").per("seconds").least(),
        "depth-first search explores roughly 3e6 programs a second (programs a second here, each run on all 5 "
        "examples; T = 3, the least over the types of inputs)", printed="~3 x 10^6",
        not_comparable="It is the speed of the thesis's C++ code on a machine that it does not name."),
    *(
        Claim(f"{slow} and {fast}", "Thesis 5.5.1, Table 5.1, row Baseline", "comparison", ">", 0.0,
            _slower(slow, fast),
            f"with the prior alone, {names} (T = 3; mean over tasks of the log10 of the ratio of processor seconds "
            "here)", not_comparable=PEERS)
        for slow, fast, names in (
            ("deductive", "dfs, unpruned", "the deductive search takes longer than DFS, as lambda^2 does"),
            ("smt", "deductive", "SMT takes longer than the deductive search, as Sketch does than lambda^2"),
        )
    ),
]
# fmt: on

EXPERIMENT = Experiment(
    id="search-space",
    title="Size of the space of programs, programs a second, time to solve random tasks without a network",
    source="Thesis 5.5.1, Table 5.1 (baseline), D.4",
    version=3,
    presets={
        "quick": {
            "repeats": 1,
            "tasks": {"3": 12, "5": 6},
            "solve": [[[*COMPILED, *UNPRUNED], 3, 12, 1], [[TOWARD_GOALS[0]], 5, 6, 1]],
        },
        "paper": {
            "repeats": 3,
            "tasks": {"3": 300, "4": 60, "5": 100, "6": 60, "7": 50, "8": 10},
            "solve": [
                *([[name], *given] for name in COMPILED for given in ((3, 300, 10), (4, 60, 10))),
                *([[name], 5, 10, 10] for name in COMPILED if name not in TOWARD_GOALS),
                *([["auto"], *given, 10] for given in ((5, 100), (6, 60), (7, 50), (8, 10))),
                *([["join"], *given, 10] for given in ((5, 20), (6, 20), (7, 10), (8, 5))),
                *([["deductive"], *given] for given in ((3, 40, 10), (4, 5, 5))),
                *([["smt"], *given] for given in ((3, 12, 20), (4, 3, 5))),
                *([[name], 3, 300, 10] for name in UNPRUNED),
            ],
        },
    },
    tasks=tasks,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "found": NOT_REPEATABLE},
    # What z3 proposes depends on what its process solved before; it alone has a timeout.
    rows=lambda row: NOT_REPEATABLE if row["method"] == "smt" else None,
    claims=CLAIMS,
    caption=CAPTION,
)
