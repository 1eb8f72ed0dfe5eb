"""Words that commands take for learning structured predictors; nothing here imports NumPy."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["multilabel", "ranking", "hierarchy"]
FeatureName = Literal["linear", "pairs", "plackett-luce", "mallows", "ranks", "positions", "orders", "nodes"]
Interactions = Literal["none", "trees"]
Unranked = Literal["anywhere", "last"]
Decision = Literal["map", "marginal"]
Gradient = Literal["exact", "sampled"]
SamplerName = Literal["draw", "meta"]
