"""Registers the bytecode hook and the delivery, once in a process and only when something is first deferred."""

from __future__ import annotations

import atexit
import functools
import logging
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
from .bytecode import announced, redirect_replay
from .delivery import deliver, deliver_after_failure, drain
from .rerun_frame import has_graph, prepared

log = logging.getLogger("graphmend_hook")


@functools.cache
def connect() -> None:
    """Register with Dynamo; runs while the first deferred effect is being traced, before its code is generated.

    Dynamo lets one thread trace at a time.
    """
    queue.graphmend_sink = _slot(deliver)
    queue.graphmend_failed = _slot(deliver_after_failure)
    queue.graphmend_distrust = _slot(_distrust)
    register_bytecode_hook(on_generated_code)
    atexit.register(drain)


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
    """Dynamo's bytecode hook: the code to run instead of `generated`, None to run that.

    Generated code that is not understood is not run at all: it may deliver nothing, or nothing where its graph fails.
    The code as it was written does all that at once.
    """
    try:
        return redirect_replay(generated, prepared(original), has_graph())
    except Exception as error:
        log.debug("generated code of %s not understood: %s", generated.co_name, error)
    try:
        return announced(original, queue.graphmend_distrust)
    except Exception as error:  # a Python that the `bytecode` library does not know
        log.debug("nor is that of the function itself: %s", error)
        _distrust(None)
        return original.replace()  # not the original, which Dynamo would take for generated code from now on


def _distrust(_nothing: None) -> None:
    """From now on no trace relies on generated code, and what did is traced anew at its next call.

    That is said by the code that runs instead: Dynamo, which guards `understood`, takes its value after the hooks.
    """
    if queue.understood:
        queue.understood = False
        log.warning("%s", notice("GM005", torch=torch.__version__, version=__version__))
