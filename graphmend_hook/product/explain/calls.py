"""The calls of a region as a tree, with the operations that each graph has of each call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..report.sources import statement_at
from .join import Explanation, Json, Region, by_region

ARMS = ("before", "after")


@dataclass
class Call:
    """A function called from a line of another, and the operations of it and below it, by graph and arm."""

    function: str
    file: str
    line: int
    operations: dict[str, Counter[int]] = field(default_factory=lambda: {arm: Counter() for arm in ARMS})
    calls: dict[tuple[str, str, int], Call] = field(default_factory=dict)

    def add(self, arm: str, graph: int, stack: Iterable[tuple[str, int, str]], count: int) -> None:
        """Count the operations of a graph whose traceback is `stack`, outermost first."""
        self.operations[arm][graph] += count
        call, line = self, 0
        for file, at, _ in stack:
            key = (statement_at(file, at).function, file, line)
            call = call.calls.setdefault(key, Call(*key))
            call.operations[arm][graph] += count
            line = at

    def everything(self) -> Iterable[Call]:
        """It, and each call below it."""
        waiting = [self]
        while waiting:
            call = waiting.pop()
            waiting += call.calls.values()
            yield call

    def as_json(self, number_of: Callable[[str], int]) -> Json:
        """number_of: gives the number that stands for a file."""
        return {
            "function": self.function,
            "file": number_of(self.file),
            "line": self.line,
            "operations": [sorted(self.operations[arm].items()) for arm in ARMS],
            "calls": [call.as_json(number_of) for call in self.calls.values()],
        }


def tree_of(found: Explanation, region: Region) -> Call:
    """The calls of the first time that the region was called, without the hook and with it."""
    root = Call(region.name, region.file, region.line)
    for arm, observed in zip(ARMS, (found.before, found.after), strict=True):
        first, *_later = by_region(observed).get((region.name, region.file, region.line), [[]])
        for index, graph in enumerate(first):
            for call in graph:
                root.add(arm, index, call["stack"], call["operations"])
    return root
