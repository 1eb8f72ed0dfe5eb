"""A mark for code that only prints or draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def presentation(method: Method) -> Method:
    """Mark a function or method that only prints or draws: stored results do not depend on it."""
    return method
