"""Questions about the place that Dynamo is tracing: may an effect there wait for the end of the graph?

The functions marked constant run for real while Dynamo traces their caller; their result is a constant of the graph.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from . import queue
from .handlers import is_caught
from .retrace import is_abandoned
from .tracer import at_trace_time, frames, translator

VALUES = "gm\u01c3values"  # the local name under which rewritten code holds the arguments of an effect
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"


@at_trace_time(otherwise="GM101-T09")
def standing(is_warning: bool, repeats: bool) -> str:
    """ "" where an effect may wait for the end of the graph, else the code of the refusal.

    is_warning: the effect is a warning, which a filter may turn into an exception.
    repeats: a second call with the same arguments has the effect again.
    """
    from ..epilogue.deliver import drain
    from ..epilogue.install import connect

    connect()
    drain()  # what another way to compile may have left behind; Dynamo must find the list empty
    tracer = translator()
    if not _is_reached_by_epilogue(tracer):
        return "GM101-T09"
    if is_warning and any(action == "error" for action, *_ in warnings.filters):
        return "GM101-T07"
    if _is_redirected(tracer):
        return "GM101-T05"
    if _has_outside_container(tracer):
        return "GM101-T04"
    if is_caught(tracer):
        return "GM101-T10"
    if is_abandoned():
        return "GM101-T11"
    bodies = _enclosing_bodies(tracer)
    if len(bodies) > 1 or any(body != _CHECKPOINT for body in bodies):
        return "GM101-T06"
    if bodies and repeats and torch.is_grad_enabled() and not tracer.one_graph:
        return "GM101-T08"
    return ""


@at_trace_time(otherwise=None)
def replay_last() -> None:
    """Let Dynamo replay the list of what is deferred after all other side effects of the trace.

    Handlers then see the state of the program as the function leaves it, nothing that they change is overwritten, and
    an exception of theirs leaves no half of it behind.  Dynamo replays in the reverse order of this dict.
    """
    identity, tracked = id(queue.graphmend_pending), translator().output.side_effects.id_to_variable
    if next(iter(tracked)) != identity:
        others = {key: variable for key, variable in tracked.items() if key != identity}
        first = tracked[identity]
        tracked.clear()
        tracked.update({identity: first, **others})


@at_trace_time(otherwise=True)
def in_a_body() -> bool:
    """Is the body of a higher-order operator being traced?  After `standing`, that is an activation checkpoint."""
    return bool(_enclosing_bodies(translator()))


@at_trace_time(otherwise=logging.getLogger())
def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of that name; there is one for the life of the process, so it may be looked up ahead of time."""
    return logging.getLogger(name)


@at_trace_time(otherwise=True)
def transformed() -> bool:
    """Is the caller inside vmap, grad or another function transform, which has ways of its own with tensors?"""
    return torch._C._functorch.peek_interpreter_stack() is not None


def in_any_body(function: Callable[..., Any], *args: Any) -> None:
    """Call `function` with Dynamo's check for side effects of higher-order bodies off, for this call only."""
    from torch._dynamo.utils import _disable_side_effect_safety_checks_for_current_subtracer as unchecked

    unchecked(function, *args)


def _is_reached_by_epilogue(translator: Any) -> bool:
    """Will the code generated from this trace go through the bytecode hooks, run here, and replay side effects?

    `aot_compile` and export capture without the hooks, and precompiled code runs in other processes.
    """
    from torch._dynamo import config

    if getattr(translator.output, "package", None) is not None or not getattr(config, "replay_side_effects", True):
        return False
    if getattr(config, "side_effect_replay_policy", "") in ("warn", "error"):
        return False
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_compile_inner":  # the one that calls the hooks
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def _is_redirected(translator: Any) -> bool:
    """May the effect go elsewhere, here, than at the end of the graph?

    So it may in a context manager of the program's (redirect_stdout, catch_warnings, a log capture) in any traced
    frame, and where traced code has assigned to `sys` (a stream), `warnings` or `logging`.
    """
    from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable, GenericContextWrappingVariable

    for changed in translator.output.side_effects.store_attr_mutations:
        if getattr(changed, "value", None) in (sys, warnings, logging):
            return True
    redirecting = (CatchWarningsCtxManagerVariable, GenericContextWrappingVariable)
    return any(isinstance(context, redirecting) for frame in frames(translator) for context in _contexts(frame))


def _contexts(frame: Any) -> list[Any]:
    """The context managers that the frame is in: on its stack are their exits, those of inlined frames too."""
    exits = [item.ctx for item in frame.stack if type(item).__name__ == "WithExitFunctionVariable"]
    return exits + [block.with_context for block in getattr(frame, "block_stack", ())]


def _has_outside_container(translator: Any) -> bool:
    """Is a value a list or dict that is older than the trace?  Copying it would guard on all that is in it."""
    frame = next((frame for frame in frames(translator) if VALUES in getattr(frame, "symbolic_locals", ())), None)
    values = getattr(frame and frame.symbolic_locals[VALUES], "items", None)
    for value in values if isinstance(values, list) else ():
        if hasattr(value, "is_realized") and not value.is_realized():
            if value.peek_type() in (list, dict):
                return True
        elif value.source is not None and type(value).__name__ in ("ListVariable", "ConstDictVariable"):
            return True
    return False


def _enclosing_bodies(translator: Any) -> list[str]:
    """The higher-order operators whose bodies are being traced, innermost first."""
    bodies, tracer = [], translator.output.current_tracer
    while tracer.parent is not None:
        bodies.append(str(getattr(tracer, "description", None) or tracer.source_target))
        tracer = tracer.parent
    return bodies
