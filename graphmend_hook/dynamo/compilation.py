"""What is remembered of a frame from one compilation to the next, as long as Dynamo has code for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from torch._guards import CompileContext


@dataclass
class FrameRecord:
    """What a frame was compiled for.

    answers: by what was asked of its inputs, where nobody named one; combinations: of all guarded values.
    capture_failed: what was taken for granted of a captured size did not hold.
    """

    answers: dict[str, set[str]] = field(default_factory=dict)
    combinations: set[frozenset[tuple[str, str]]] = field(default_factory=set)
    capture_failed: bool = False


_records: WeakKeyDictionary[CodeType, FrameRecord] = WeakKeyDictionary()


def record_of(output: Any) -> FrameRecord:
    """That of the frame that is being traced."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    code = output.root_tx.f_code
    if not _debug_get_cache_entry_list(code):  # the first time, or after `torch._dynamo.reset`
        context = CompileContext.try_get()
        if getattr(context, "graphmend_frame", None) is not code:  # not merely traced anew
            context.graphmend_frame = code
            _records.pop(code, None)
    return _records.setdefault(code, FrameRecord())


def forbid_capture(code: CodeType) -> None:
    """The graph of the frame has failed where eager does not."""
    _records.setdefault(code, FrameRecord()).capture_failed = True
