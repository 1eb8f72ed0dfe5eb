"""The picture of the join in docs/synthesize.md: values forward, goals backward, and where they meet.

`python -m thesis_cli.studies.synthesis.join_picture docs/join.png` draws it. All values are those of
the program, which `--solver join` finds from five examples (`task`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from thesis_cli.base.figures import COLOURS, panels, render
from thesis_cli.synthesis.language.dsl import BY_NAME, DEFAULT, OPERATIONS, Value
from thesis_cli.synthesis.language.program import parse, run
from thesis_cli.synthesis.language.task import Example, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROGRAM = parse(
    "a <- [int]; b <- [int]; c <- MAP (*3) a; d <- SORT b; e <- ZIPWITH (-) c d; f <- SCANL1 (+) e; g <- REVERSE f"
)
INPUTS = ((3, 8, 1, 6), (9, 2, 5, 4, 7, 3))
"""The example that is drawn."""

FORWARD, BACKWARD, OTHER = COLOURS[0], COLOURS[1], "0.6"


def task() -> Task:
    """The example that is drawn, and four that are longer."""
    rng = Random(0)
    rows: list[tuple[Value, ...]] = [INPUTS]
    for _ in range(4):
        rows.append(tuple(tuple(rng.randint(-9, 9) for _ in range(rng.randint(5, 9))) for _ in range(2)))
    examples = []
    for row in rows:
        output = run(PROGRAM, row)
        assert output is not None
        examples.append(Example(row, output))
    return Task("join", tuple(examples))


def values() -> dict[str, Value]:
    """Values of all variables, by name, on the example that is drawn."""
    found: list[Any] = list(INPUTS)
    for line in PROGRAM.lines:
        found.append(DEFAULT.apply(OPERATIONS[line.operation], *(found[i] for i in line.arguments)))
    return dict(zip("abcdefg", found, strict=True))


def draw() -> Figure:
    """The picture."""
    figure, ax = panels(1, 1, height=3.0)
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    at = values()
    goal, first, second = (at[name] for name in "ecd")
    assert isinstance(goal, tuple)
    assert isinstance(first, tuple)
    partner = tuple(x - y for x, y in zip(first, goal, strict=True))
    assert isinstance(second, tuple)
    assert partner == second[: len(goal)]

    ax.text(0.2, 0.97, "forward: a bank of values by size", ha="center", color=FORWARD, fontsize=8)
    ax.text(0.82, 0.97, "backward: goals by inverse operations", ha="center", color=BACKWARD, fontsize=8)
    _box(ax, 0.08, 0.66, "a", at["a"], FORWARD)
    _box(ax, 0.08, 0.26, "b", at["b"], FORWARD)
    for y, name, of in ((0.84, "REVERSE", "a"), (0.46, "SCANL1 MIN", "b"), (0.08, "MAP (+1)", "b")):
        _box(ax, 0.32, y, f"{name} {of}", DEFAULT.apply(BY_NAME[name], at[of]), OTHER)
    _box(ax, 0.32, 0.66, "c = MAP (*3) a", first, FORWARD)
    _box(ax, 0.32, 0.26, "d = SORT b", second, FORWARD)
    _arrow(ax, (0.135, 0.66), (0.25, 0.66), FORWARD)
    _arrow(ax, (0.155, 0.26), (0.25, 0.26), FORWARD)

    _box(ax, 0.82, 0.84, "g, the output", at["g"], BACKWARD)
    _box(ax, 0.82, 0.55, "goal f", at["f"], BACKWARD)
    _box(ax, 0.82, 0.26, "goal e", goal, BACKWARD)
    for y, undone in ((0.695, "undo REVERSE"), (0.405, "undo SCANL1 (+)")):
        _arrow(ax, (0.82, y + 0.06), (0.82, y - 0.06), BACKWARD)
        ax.text(0.835, y, undone, va="center", fontsize=6)

    _box(ax, 0.575, 0.46, "join: e = ZIPWITH (-) x y\nfor each x of the bank,\nlook up y = x - e", partner, "black")
    _arrow(ax, (0.385, 0.66), (0.485, 0.57), FORWARD)
    _arrow(ax, (0.75, 0.28), (0.67, 0.36), BACKWARD)
    _arrow(ax, (0.53, 0.35), (0.39, 0.27), "black")
    ax.text(0.48, 0.25, f"by a hash of the\nfirst {len(goal)} numbers", ha="left", va="center", fontsize=6)
    return figure


def _box(ax: Axes, x: float, y: float, title: str, value: Value | None, colour: str) -> None:
    text = f"{title}\n{list(value) if isinstance(value, tuple) else value}"
    frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour}
    ax.text(x, y, text, ha="center", va="center", fontsize=6.5, color=colour, bbox=frame)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    ax.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})


def main(path: str) -> None:
    """Write the picture, PNG."""
    Path(path).write_bytes(render(draw, ["png"])["png"])


if __name__ == "__main__":
    main(sys.argv[1])
