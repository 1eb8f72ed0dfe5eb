"""Figure D.2: how many tasks each search has solved, by the time spent on a task.

The searches are those of `table-5-1`, run once for both. Triangles are the published numbers.
"""

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Experiment
from thesis_cli.studies.synthesis.guided_searches import plan, run
from thesis_cli.studies.synthesis.published_speedups import LENGTH_3, TABLE_5_1
from thesis_cli.studies.synthesis.speedup_figures import draw_curves

TITLE = "Tasks of $T = 3$ solved, with the prior and with the network"


def plot(frame):
    return draw_curves(frame, TABLE_5_1, TITLE)


EXPERIMENT = Experiment(
    id="fig-d-2",
    title="Tasks of T = 3 solved by the time spent on each",
    source="Thesis D.2, Figure D.2",
    version=2,
    presets=LENGTH_3,
    tasks=plan,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "call": NOT_REPEATABLE},
    # What z3 proposes depends on what its process solved before; it alone has a timeout.
    rows=lambda row: NOT_REPEATABLE if row["search"] == "smt" else None,
    caption="Number of the held-out tasks of T = 3 that each search has solved, by the seconds spent on each task, "
    "with the prior (dashed) and with the network (solid). DFS and Sort and add are the source's, at its 3 million "
    "programs a second; other seconds are processor time here, with the call of the network, so that today's dfs "
    "is slower with it. Triangles are the numbers of Table 5.1, those that point right lower bounds; lambda^2 and "
    "Sketch are other programs than the searches in whose panels they stand. The thesis's figure has curves of "
    "the same five searches over wall-clock time up to 1,000 s. Searches were stopped after as many programs as take "
    "some 10 s (deductive) and 5 s (Beam); SMT had 20 s of wall-clock time.",
    shares="table-5-1",
)
