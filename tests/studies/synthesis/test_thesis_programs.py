"""What the thesis shows: its programs against its examples, and the files that ship."""

import pytest

from tests.conftest import ROOT
from thesis_cli.studies.synthesis.thesis_programs import SHOWN, main
from thesis_cli.synthesis.language.program import run
from thesis_cli.synthesis.language.task import check, load_tasks

TASKS = ROOT / "data" / "tasks"
NAMES = [shown.name for shown in SHOWN]
MISPRINTED = {"exam": 1, "sticks": 59}
"""Output of the printed listing on the printed inputs."""


def test_all_programs_are_there_in_order():
    assert [shown.where for shown in SHOWN] == [*(f"Program {i}" for i in range(1, 10)), "Figure 5.1"]
    assert [len(shown.program) for shown in SHOWN] == [3, 3, 2, 4, 5, 2, 4, 3, 4, 4]
    assert [shown.name for shown in SHOWN if shown.printed is None or shown.example is None] == ["paintings"]


@pytest.mark.parametrize("shown", SHOWN, ids=NAMES)
def test_a_program_gives_its_printed_example_and_fits_its_task(shown):
    task = shown.task()
    assert len(task.examples) == len({example.inputs for example in task.examples}) == 5
    assert check(shown.program, task)
    assert not shown.program.unused
    if shown.example:
        assert task.examples[0] == shown.example


@pytest.mark.parametrize("shown", SHOWN, ids=NAMES)
def test_printed_listings_give_the_printed_output_but_for_the_misprinted(shown):
    if shown.as_printed is None:
        return
    found = run(shown.as_printed, shown.example.inputs)
    assert found == MISPRINTED.get(shown.name, shown.example.output)
    assert check(shown.as_printed, shown.task()) == (shown.name not in MISPRINTED)
    assert (shown.corrected is None) == (shown.name not in MISPRINTED)


ANSWERS = {
    "paintings": lambda k, prices: sum(sorted(prices)[:k]),
    "league": lambda w, t: max(3 * x + y for x, y in zip(w, t, strict=True)),
    "exam": lambda a, b: sum(x > y for x, y in zip(a, b, strict=True)),
    "trees": lambda h: sum(x - min(h[: i + 1]) for i, x in enumerate(h)),
    "sticks": lambda x, y: sum(i * j for i, j in zip(sorted(x), sorted(y, reverse=True), strict=True)),
    "mirror": lambda b: tuple(min(x, b[-i - 1]) for i, x in enumerate(b)),
    "ties": lambda t, p: min(x + y for x, y in zip(t, p, strict=True)) - 2,
    "candy": lambda s, p: sum(days * sum(s[i:]) for i, days in enumerate(p)),
    "heaps": lambda s: sum(max(0, x - y) for x, y in zip(reversed(s), s, strict=True)),
    "negatives": lambda a: tuple(sorted((4 * x for x in a if x < 0), reverse=True)),
}
"""The stories of the thesis, without the language."""


@pytest.mark.parametrize("name", NAMES)
def test_tasks_tell_their_stories(name):
    (task,) = load_tasks(TASKS / f"{name}.json")
    for example in task.examples:
        assert example.output == ANSWERS[name](*example.inputs)


def test_files_are_what_the_command_writes(tmp_path):
    main(str(tmp_path))
    others = {"README.md", "daily.jsonl", "jump.json", "twice.json"}  # which the thesis does not have
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in TASKS.iterdir()} - others
    for path in tmp_path.iterdir():
        assert path.read_text() == (TASKS / path.name).read_text(), path.name


def test_files_hold_the_tasks():
    tasks = [shown.task() for shown in SHOWN]
    assert load_tasks(TASKS / "all.jsonl") == tasks
    assert [load_tasks(TASKS / f"{name}.json") for name in NAMES] == [[task] for task in tasks]


def test_the_table_of_the_folder():
    rows = (TASKS / "README.md").read_text().splitlines()
    for shown in SHOWN:
        (row,) = [row for row in rows if row.startswith(f"| `{shown.name}.json` | {shown.where}")]
        assert row.endswith(f"| `{shown.corrected or shown.printed}` | {len(shown.program)} |")
