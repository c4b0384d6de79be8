"""A branch whose sides have been tried in vain: what they have read is not guarded, since nothing came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...dynamo.compilation import trace_anew
from ...dynamo.own import is_of_package
from ...dynamo.question import question
from ...dynamo.trace import SourceLine, Trace

# The guards on what a value is, and not on its type: another value is another compilation.
_ON_VALUES = frozenset({"CONSTANT_MATCH", "EQUALS_MATCH", "SEQUENCE_LENGTH", "TUPLE_ITERATOR_LEN", "DICT_KEYS_MATCH"})
_Place = tuple[SourceLine | None, int]  # a statement, and how often the attempt has come to it


@dataclass
class Entered:
    """How often an attempt has come to each branch; guards: those that there were before the last."""

    times: Counter[SourceLine | None] = field(default_factory=Counter)
    guards: dict[SourceLine | None, set[int]] = field(default_factory=dict)


@dataclass
class InVain:
    """What the attempts of one compilation hand on: the branches that were tried in vain, with the codes of why."""

    codes: dict[_Place, str] = field(default_factory=dict)


@question(otherwise="")
def why_in_vain(trace: Trace) -> str:
    """The code of why the branch at hand cannot be mended, if an attempt has tried it; from here on it is tried."""
    entered = trace.compilation.of(Entered)
    entered.times[trace.line] += 1
    entered.guards[trace.line] = {id(guard) for guard, _ in _guards_on_values(trace)}
    return trace.compilation.attempts.of(InVain).codes.get((trace.line, entered.times[trace.line]), "")


@question(otherwise=None)
def forget_guards(trace: Trace, code: str) -> None:
    """Trace the frame anew, without a try of the branch at hand, if that has guarded what the program may change."""
    entered = trace.compilation.of(Entered)
    before = entered.guards.pop(trace.line, None)
    if before is None or all(id(guard) in before or is_of_package(name) for guard, name in _guards_on_values(trace)):
        return
    trace.compilation.attempts.of(InVain).codes[trace.line, entered.times[trace.line]] = code
    trace_anew("a branch has been tried in vain, and its sides have read what may change")


def _guards_on_values(trace: Trace) -> Iterator[tuple[Any, str]]:
    """The guards, with their names, that another value fails."""
    for guard in trace.output.guards:
        if guard.create_fn_name() in _ON_VALUES:
            yield guard, guard.name
