"""The project's docstrings as Markdown: what each argument means becomes an item of a list."""

from __future__ import annotations

import re
from typing import Any

try:
    from griffe import Extension
except ImportError:  # the tests need none
    Extension = object

# "modules, deny: dotted names", with lines that are indented below it.
ARGUMENT = re.compile(r"^(?P<names>[a-z_]+(?:, [a-z_]+)*): (?P<text>.*)$")


def as_list(text: str) -> str:
    """`text`, in which each line that begins with names and a colon is an item, with a blank line before the first."""
    lines: list[str] = []
    in_list = False
    for line in text.splitlines():
        found = ARGUMENT.match(line)
        if found:
            lines += [] if in_list else [""]
            names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
            lines.append(f"- {names}: {found['text']}")
        else:
            lines.append(line.strip() if in_list and line.startswith(" ") else line)
        in_list = bool(found) or (in_list and line.startswith(" "))
    return "\n".join(lines)


class Arguments(Extension):
    """Asked by griffe for each object that it has read."""

    def on_object(self, *, obj: Any, **_more: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_list(obj.docstring.value)
