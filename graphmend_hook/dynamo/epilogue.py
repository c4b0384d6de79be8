"""Registers the bytecode hook and the delivery, once in a process and only when something is first deferred."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch._dynamo.convert_frame import register_bytecode_hook
from torch._dynamo.decorators import skip
from torch._dynamo.eval_frame import set_eval_frame

from ..diagnostics import notice
from ..version import __version__
from . import queue
from .bytecode import drain_on_return, redirect_replay
from .delivery import deliver, deliver_after_failure, drain
from .rerun_frame import prepared

log = logging.getLogger("graphmend_hook")
_lock = threading.Lock()
_connected = False


def connect() -> None:
    """Register with Dynamo; runs while the first deferred effect is being traced, before its code is generated."""
    global _connected
    with _lock:
        if not _connected:
            queue.graphmend_sink = _slot(deliver)
            queue.graphmend_failed = _slot(deliver_after_failure)
            queue.graphmend_drain = _slot(drain)
            register_bytecode_hook(on_generated_code)
            atexit.register(drain)
            _connected = True


def _slot(receive: Callable[[Any], None]) -> Any:
    """An object whose item assignment calls `receive`.

    It is called from code that runs under Dynamo, which would compile the very first Python function it meets there;
    so that one is skipped, and nothing below it is looked at.  (`torch.compiler.disable` takes three times as long.)
    """

    def assign(_slot: object, _key: object, value: Any) -> None:
        prior = set_eval_frame(None)
        try:
            receive(value)
        finally:
            set_eval_frame(prior)

    return type("Slot", (), {"__setitem__": skip(assign)})()


def on_generated_code(original: CodeType, generated: CodeType) -> CodeType | None:
    """Dynamo's bytecode hook: the code to run instead of `generated`, None to run that."""
    try:
        return redirect_replay(generated, prepared(original))
    except Exception as error:
        # What was traced under `understood` is traced anew at its next call, and then declines to defer.
        log.debug("generated code of %s not understood: %s", generated.co_name, error)
        if queue.understood:
            queue.understood = False
            log.warning("%s", notice("GM005", torch=torch.__version__, version=__version__))
        return drain_on_return(generated)
