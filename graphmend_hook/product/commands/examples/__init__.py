"""For the code of a refusal: a program that is declined with it, and what becomes of it where the remedy is followed.

Each is a file that is named after its code, and shown as it stands: a comment at the margin is what is said of the
program behind it, with the options under which that is so, as they are written in a command.  `f` is what is compiled.
tests/commands/test_remedies.py follows each example.
"""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass

_WORDS = re.compile(r"^# (.*)\n", re.MULTILINE)
_FLAGS = re.compile(r"\b[Ww]ith `(.+)`")


@dataclass(frozen=True)
class Example:
    """A program that is declined with a code, and one that gives the same and is mended.

    parts: what to show: each program, with the words in front of it; no program again that stays as it is.
    """

    parts: tuple[tuple[str, str], ...]

    @property
    def before(self) -> str:
        return self.parts[0][1]

    @property
    def after(self) -> str:
        return self.parts[-1][1] or self.before

    @property
    def flags_before(self) -> str:
        """The options under which the first is declined."""
        return self._flags(0)

    @property
    def flags_after(self) -> str:
        return self._flags(-1)

    def _flags(self, part: int) -> str:
        found = _FLAGS.search(self.parts[part][0])
        return found[1] if found else ""


def example_of(code: str) -> Example | None:
    """The example of the refusal `code`; None where it has none."""
    try:
        data = pkgutil.get_data(__name__, f"{code}.py")
    except OSError:
        return None
    first, *others = _WORDS.split((data or b"").decode())
    texts = [*(["", first] if first else []), *others]
    programs = (f"{text.strip()}\n" if text.strip() else "" for text in texts[1::2])
    return Example(tuple(zip(texts[::2], programs, strict=True)))
