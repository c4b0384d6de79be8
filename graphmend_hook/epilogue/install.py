"""Registers the bytecode hook and the delivery, once in a process and only when something is first deferred."""

from __future__ import annotations

import logging
import threading
from types import CodeType

import torch
from torch._dynamo.convert_frame import register_bytecode_hook

from ..runtime import queue
from .edit import NotUnderstood, redirect_replay

log = logging.getLogger("graphmend_hook")
_lock = threading.Lock()
_connected = False


def connect() -> None:
    """Register with Dynamo; runs while the first deferred effect is being traced, before its code is generated."""
    global _connected
    with _lock:
        if not _connected:
            queue.graphmend_sink.deliver = torch.compiler.disable(_deliver)
            register_bytecode_hook(_on_generated_code)
            _connected = True


def _on_generated_code(original: CodeType, generated: CodeType) -> CodeType | None:
    return redirect_replay(generated)


def _deliver(items: list[queue.Item]) -> None:
    """Make the deferred calls, in the order in which eager would have made them.

    What a call raises (a handler of the user's, say) leaves the compiled function, and ends the delivery as it would
    have ended the function.
    """
    for delivery, target, values in items:
        delivery(target, values)
