"""Figure D.3: how many tasks each search has solved, by the time spent on a task.

The searches are those of `fig-5-3a`, run once for both. Triangles are the published numbers.
"""

from thesis_cli.reproduction.experiment import NOT_REPEATABLE, Experiment
from thesis_cli.studies.synthesis.guided_searches import plan, run
from thesis_cli.studies.synthesis.published_speedups import FIGURE_5_3A, LENGTH_5
from thesis_cli.studies.synthesis.speedup_figures import draw_curves

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
    caption="Number of 100 held-out tasks of T = 5 that each search has solved, by the seconds spent on each task, "
    "with the prior (dashed) and with a network trained on T = 4 (solid). DFS and Sort and add are the source's, at "
    "its 3 million programs a second, and stopped after 3e8 programs, which is 100 s; other seconds are processor "
    "time here, with the call of the network. Triangles are the published numbers of Figure 5.3a, those that "
    "point right lower bounds. The thesis's figure has DFS, Sort and add and lambda^2 up to 10,000 s.",
    shares="fig-5-3a",
)
