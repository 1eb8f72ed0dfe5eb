"""The programs that the thesis shows, and tasks made from them.

`python -m thesis_cli.studies.synthesis.thesis_programs FOLDER` writes the tasks, which stand in
data/tasks. Appendix D.1 has nine programs and figure 5.1 has one. Each task is the example that the
thesis prints, where it can be read, and inputs drawn from a fixed seed with the outputs of the
(corrected) program.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from thesis_cli.synthesis.language.dsl import Value
from thesis_cli.synthesis.language.program import Program, parse, run
from thesis_cli.synthesis.language.task import Example, Task

EXAMPLES = 5
"""Examples M of a task (section 5.5.1)."""


@dataclass(frozen=True)
class Shown:
    """A program that the thesis shows.

    Attributes
    ----------
    where : its place in the thesis.
    about : description of what it computes.
    printed : its listing there; None where it is lost.
    draw : random inputs of a size that suits the story; some may leave the range.
    example : the example there; None where it is lost.
    corrected : the listing that gives that example, where the printed one does not.
    """

    name: str
    where: str
    about: str
    printed: str | None
    draw: Callable[[Random], tuple[Value, ...]]
    example: Example | None
    corrected: str | None = None

    @property
    def as_printed(self) -> Program | None:
        """The program as the thesis prints it, or None where it is lost."""
        return None if self.printed is None else parse(self.printed, self.where)

    @property
    def program(self) -> Program:
        """The program that does what is said of it."""
        return parse(self.corrected or self.printed or "", self.where)

    def task(self) -> Task:
        """Its task: the printed example and drawn ones, `EXAMPLES` in all, of different inputs.

        The seed is the name, so that no task moves another.
        """
        rng = Random(self.name)
        found = {self.example.inputs: self.example.output} if self.example else {}
        while len(found) < EXAMPLES:
            inputs = self.draw(rng)
            output = run(self.program, inputs)
            if output is not None:
                found[inputs] = output
        return Task(self.name, tuple(Example(*pair) for pair in found.items()))


def _numbers(rng: Random, length: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(rng.randint(low, high) for _ in range(length))


def _lists(count: int, shortest: int, longest: int, low: int, high: int) -> Callable[[Random], tuple[Value, ...]]:
    """Draws `count` lists of one length, which is drawn too."""

    def draw(rng: Random) -> tuple[Value, ...]:
        length = rng.randint(shortest, longest)
        return tuple(_numbers(rng, length, low, high) for _ in range(count))

    return draw


def _friends_and_prices(rng: Random) -> tuple[Value, ...]:
    prices = _numbers(rng, rng.randint(4, 8), 1, 40)
    return rng.randint(2, len(prices) - 1), prices


def _heaps(rng: Random) -> tuple[Value, ...]:
    return (tuple(sorted(rng.sample(range(1, 40), rng.randint(3, 7)))),)


SHOWN = (
    Shown(
        "paintings",
        "Program 1",
        "The least that k paintings, one for each friend, cost together, given the prices of all that are for sale.",
        None,
        _friends_and_prices,
        None,
        "k <- int; b <- [int]; c <- SORT b; d <- TAKE k c; e <- SUM d",
    ),
    Shown(
        "league",
        "Program 2",
        "The points of the winner of a league, three for a match won (w, by team) and one for a tie (t, by team).",
        "w <- [int]; t <- [int]; c <- MAP (*3) w; d <- ZIPWITH (+) c t; e <- MAXIMUM d",
        _lists(2, 3, 8, 0, 12),
        Example(((6, 2, 4, 7, 9), (5, 3, 6, 1, 0)), 27),
    ),
    Shown(
        "exam",
        "Program 3",
        "The number of questions in which the first of two pupils has more points than the second.",
        "a <- [int]; b <- [int]; c <- ZIPWITH (-) b a; d <- COUNT (>0) c",
        _lists(2, 4, 9, 0, 10),
        Example(((6, 2, 4, 7, 9), (5, 3, 2, 1, 0)), 4),
        "a <- [int]; b <- [int]; c <- ZIPWITH (-) a b; d <- COUNT (>0) c",
    ),
    Shown(
        "trees",
        "Program 4",
        "How much is cut off in all from a row of trees, so that none is taller than one before it.",
        "h <- [int]; b <- SCANL1 MIN h; c <- ZIPWITH (-) h b; d <- FILTER (>0) c; e <- SUM d",
        _lists(1, 4, 9, 1, 20),
        Example(((8, 5, 7, 2, 5),), 5),
    ),
    Shown(
        "sticks",
        "Program 5",
        "The least total area of rectangles whose sides are the sticks of x, each with one of y.",
        "x <- [int]; y <- [int]; c <- SORT x; d <- SORT y; e <- REVERSE d; f <- ZIPWITH (*) d e; g <- SUM f",
        _lists(2, 3, 6, 1, 9),
        Example(((7, 3, 8, 2, 5), (2, 8, 9, 1, 3)), 79),
        "x <- [int]; y <- [int]; c <- SORT x; d <- SORT y; e <- REVERSE d; f <- ZIPWITH (*) c e; g <- SUM f",
    ),
    Shown(
        "mirror",
        "Program 6",
        "A list in which every number gives way to the one opposite it, counted from the other end, if that is less.",
        "a <- [int]; b <- REVERSE a; c <- ZIPWITH MIN a b",
        _lists(1, 4, 9, -20, 40),
        Example(((3, 7, 5, 2, 8),), (3, 2, 5, 2, 3)),
    ),
    Shown(
        "ties",
        "Program 7",
        "The worth of the cheapest pair of a tie (t) and its pocket square (p), less 2 that its sale costs.",
        "t <- [int]; p <- [int]; c <- MAP (-1) t; d <- MAP (-1) p; e <- ZIPWITH (+) c d; f <- MINIMUM e",
        _lists(2, 3, 8, 1, 30),
        Example(((4, 8, 11, 2), (2, 3, 4, 1)), 1),
    ),
    Shown(
        "candy",
        "Program 8",
        "Sweets given in all, where friend i gets s[i] a day until the i-th of spells of p[0], p[1], ... days ends.",
        "s <- [int]; p <- [int]; c <- SCANL1 (+) p; d <- ZIPWITH (*) s c; e <- SUM d",
        _lists(2, 2, 5, 0, 7),
        Example(((4, 7, 2, 3), (2, 1, 3, 1)), 62),
    ),
    Shown(
        "heaps",
        "Program 9",
        "The most items that change heaps when a strictly increasing row of heaps is rearranged into another order.",
        "s <- [int]; b <- REVERSE s; c <- ZIPWITH (-) b s; d <- FILTER (>0) c; e <- SUM d",
        _heaps,
        Example(((1, 2, 4, 5, 7),), 9),
    ),
    Shown(
        "negatives",
        "Figure 5.1",
        "The negative numbers of a list, four times as large and in descending order.",
        "a <- [int]; b <- FILTER (<0) a; c <- MAP (*4) b; d <- SORT c; e <- REVERSE d",
        _lists(1, 6, 12, -20, 20),
        Example(((-17, -3, 4, 11, 0, -5, -9, 13, 6, 6, -8, 11),), (-12, -20, -32, -36, -68)),
    ),
)
"""Appendix D.1 in order, then figure 5.1."""


def files() -> dict[str, str]:
    """Name -> content of every file: a task each, and all of them a line each."""
    tasks = [(shown, shown.task()) for shown in SHOWN]
    pages = {f"{task.name}.json": _page(shown, task) for shown, task in tasks}
    return {**pages, "all.jsonl": "".join(f"{task.to_json()}\n" for _, task in tasks)}


def _page(shown: Shown, task: Task) -> str:
    """A task as JSON, an example a line."""
    head = [f'  "{key}": {json.dumps(text)},' for key, text in (("name", shown.name), ("about", shown.about))]
    rows = [json.dumps({"inputs": example.inputs, "output": example.output}) for example in task.examples]
    return "\n".join(["{", *head, '  "examples": [', ",\n".join(f"    {row}" for row in rows), "  ]", "}", ""])


def main(folder: str) -> None:
    """Write the files into a folder."""
    for name, content in files().items():
        Path(folder, name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
