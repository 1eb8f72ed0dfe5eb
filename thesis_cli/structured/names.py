"""Words that commands on structures take; nothing here imports NumPy. Tests hold that features and noise are
those of the catalogue."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["multilabel", "ranking", "hierarchy"]
FeatureName = Literal["linear", "pairs", "plackett-luce", "mallows", "ranks", "positions", "orders", "nodes"]
NoiseName = Literal["bits", "positions", "orders", "edges", "nodes", "blocks", "pairs"]
Interactions = Literal["none", "trees"]
Unranked = Literal["anywhere", "last"]
Decision = Literal["map", "marginal"]
Gradient = Literal["exact", "sampled"]
SamplerName = Literal["draw", "meta"]
