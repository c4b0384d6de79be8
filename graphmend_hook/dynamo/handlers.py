"""The exception handlers around the instruction that Dynamo is tracing, in any of its frames."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

from .trace import Trace


def is_caught(trace: Trace) -> bool:
    """Is there an ``except`` around the statement in any traced frame?  It could not catch what a delivery raises."""
    return any(map(_in_try, trace.frames_outside()))


def is_in_finally(trace: Trace) -> bool:
    """Is the statement, or a traced call that it stands in, part of a ``finally`` that runs without an exception?"""
    return any(map(_in_finally, trace.frames_outside()))


def _in_try(frame: Any) -> bool:
    if sys.version_info < (3, 11):
        return any(block.with_context is None for block in frame.block_stack)
    entry, seen = frame.current_instruction.exn_tab_entry, set()
    while entry is not None and id(entry.target) not in seen:
        seen.add(id(entry.target))
        if _catches(frame.instructions[frame.indexof[entry.target] :]):
            return True
        entry = entry.target.exn_tab_entry  # the handler of a `with` or a `finally` stands in the block around it
    return False


def _catches(handler: Sequence[Any]) -> bool:
    """May an exception end in the handler?  It goes on from a ``finally``, unless a ``return`` is in there."""
    names = list(itertools.takewhile(lambda name: name != "RERAISE", (item.opname for item in handler)))
    if names[:1] != ["PUSH_EXC_INFO"] or "WITH_EXCEPT_START" in names:
        return False
    bare = names[1:2] == ["POP_TOP"]
    return bare or not {"CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"}.isdisjoint(names)


def _in_finally(frame: Any) -> bool:
    # Python compiles a `finally` twice, from the same place: in order, and as a handler.
    at = frame.current_instruction.positions
    if at is None:
        return False
    entries = [item.exn_tab_entry for item in frame.instructions if item.exn_tab_entry is not None]
    for target in {id(entry.target): entry.target for entry in entries}.values():
        handler = frame.instructions[frame.indexof[target] :]
        names = [instruction.opname for instruction in handler]
        last = names.index("POP_EXCEPT") if "POP_EXCEPT" in names else len(names)
        if names[0] == "PUSH_EXC_INFO" and any(instruction.positions == at for instruction in handler[:last]):
            return frame.current_instruction not in handler[:last]
    return False
