"""Reading text files word by word, with the line at hand when something is wrong."""

from __future__ import annotations

import itertools
import math
import re

from thesis_cli.errors import InputError


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class Words:
    """The words of a text in turn; `#` starts a comment.

    The text is split as far as it is asked for, so what a file holds beyond its promises costs nothing, and
    the line of a word is worked out only when an error wants it.
    """

    def __init__(self, text: str, source: str) -> None:
        self._text = re.sub(r"#[^\n]*", "", text) if "#" in text else text
        self._rest, self._source = self._text, source
        self._words: list[str] = []
        self._at = 0

    def error(self, problem: str, remedy: str, back: int = 1) -> InputError:
        """A complaint about the word taken `back` words ago (0: the next one)."""
        words = re.finditer(r"\S+", self._text)
        word = next(itertools.islice(words, max(0, self._at - back), None), None)
        end = len(self._text.rstrip()) if word is None else word.start()
        line = self._text.count("\n", 0, end) + 1
        return InputError(problem, remedy, source=self._source, line=line)

    def take(self, what: str) -> str:
        """The next word."""
        if not self._split(1):
            raise self.error(f"the file ends where {what} is wanted", "the rest is missing")
        self._at += 1
        return self._words[self._at - 1]

    def whole(self, what: str, least: int, most: float = math.inf) -> int:
        """The next word as a whole number from `least` to `most`."""
        word = self.take(what)
        try:
            value = int(word)
        except ValueError:
            raise self.error(f"{what} is '{word[:40]}'", "a whole number is wanted") from None
        if not least <= value <= most:
            span = f"from {least} to {most:.0f}" if most < math.inf else f"of at least {least}"
            raise self.error(f"{what} is {value}", f"a number {span} is wanted")
        return value

    def promise(self, count: int, what: str) -> None:
        """Refuse a count that the rest of the file cannot hold, before anything is allocated for it."""
        if not self._split(count):
            raise self.error(what, "but the file ends before that; is it cut short?")

    def many(self, count: int) -> list[str]:
        """The next `count` words, which were promised."""
        self._at += count
        return self._words[self._at - count : self._at]

    def finish(self, what: str) -> None:
        """Refuse anything more."""
        if self._split(1):
            raise self.error(f"{what} is complete, but '{self._words[self._at][:40]}' follows", "nothing more", 0)

    def count(self, most: int) -> int:
        """Number of words left, counted up to `most`."""
        self._split(min(most, len(self._words) - self._at + (len(self._rest) + 1) // 2))
        return min(most, len(self._words) - self._at)

    def _split(self, count: int) -> bool:
        """Split off `count` words from here on; False if the text has fewer."""
        missing = self._at + count - len(self._words)
        if missing > 0 and 2 * missing - 1 <= len(self._rest):
            step = min(max(missing, len(self._words), 1024), len(self._rest))
            parts = self._rest.split(None, step)
            self._rest = parts.pop() if len(parts) > step else ""
            self._words += parts
        return len(self._words) - self._at >= count
