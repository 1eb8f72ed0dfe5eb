"""Words that commands take for learning structured predictors; nothing here imports NumPy."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["multilabel", "ranking", "hierarchy"]
FeatureName = Literal["linear", "pairs", "positions", "ranks", "orders", "nodes"]
Decision = Literal["map", "marginal"]
Gradient = Literal["exact", "sampled"]
SamplerName = Literal["draw", "meta"]
