"""Figure D.3: how many tasks each search has solved, by the time spent on a task.

The searches are those of `fig-5-3a`, run once for both. Triangles are the published numbers.
"""

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Experiment
from thesis_cli.studies.synthesis.guided_searches import plan, run
from thesis_cli.studies.synthesis.published_speedups import FIGURE_5_3A
from thesis_cli.studies.synthesis.speedup_figures import draw_curves
from thesis_cli.studies.synthesis.speedup_sizes import LENGTH_5

TITLE = "Tasks of $T = 5$ solved, with the prior and with the network"


def plot(frame):
    return draw_curves(frame, FIGURE_5_3A, TITLE)


EXPERIMENT = Experiment(
    id="fig-d-3",
    title="Tasks of T = 5 solved by the time spent on each",
    source="Thesis D.2, Figure D.3",
    version=1,
    presets=LENGTH_5,
    tasks=plan,
    run=run,
    plot=plot,
    tolerances={"seconds": NOT_REPEATABLE, "call": NOT_REPEATABLE},
    shares="fig-5-3a",
)
