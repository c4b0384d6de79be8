"""Questions to Dynamo about the place that it is tracing: all that this package knows of Dynamo's tracer.

The functions marked constant run for real while Dynamo traces their caller; their result is a constant of the graph.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

log = logging.getLogger("graphmend_hook.trace")
F = TypeVar("F", bound=Callable[..., Any])

_CHECKPOINT = "torch.utils.checkpoint.checkpoint"

# (code, file, line, function) of every effect that was left where it stands, once each, in the order of tracing.
refusals: list[tuple[str, str, int, str]] = []


def at_trace_time(function: F) -> F:
    """What `torch.compiler.assume_constant_result` does, without the import of Dynamo that it takes.

    Dynamo stores the result as a global of the traced module under the name of the function's code, so the name is
    one that no module has.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    function.__code__ = function.__code__.replace(co_name=f"_@graphmend_{function.__name__}")
    return function


@at_trace_time
def standing(is_warning: bool, repeats: bool) -> str:
    """ "" where an effect may wait for the end of the graph, else the code of the refusal.

    is_warning: the effect is a warning, which a filter may turn into an exception.
    repeats: a second call with the same arguments has the effect again.
    """
    from ..epilogue.install import connect

    connect()
    if is_warning and any(action == "error" for action, *_ in warnings.filters):
        return "GM101-T07"
    translator = _translator()
    if _redirected(translator):
        return "GM101-T05"
    bodies = _enclosing_bodies(translator)
    if any(body != _CHECKPOINT for body in bodies):
        return "GM101-T06"
    if bodies and repeats and torch.is_grad_enabled() and not translator.one_graph:
        return "GM101-T08"
    return ""


@at_trace_time
def in_a_body() -> bool:
    """Is the body of a higher-order operator being traced?  After `standing`, that is an activation checkpoint."""
    return bool(_enclosing_bodies(_translator()))


@at_trace_time
def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of that name; there is one for the life of the process, so it may be looked up ahead of time."""
    return logging.getLogger(name)


@at_trace_time
def tensor_standing() -> str:
    """ "" where a tensor may be kept for the epilogue; under a function transform it is a wrapper that cannot be."""
    return "GM101-T03" if torch._C._functorch.peek_interpreter_stack() is not None else ""


@at_trace_time
def record(code: str) -> None:
    """Remember that the effect being traced stays where it is."""
    from torch._guards import TracingContext

    frames = [frame for frame in TracingContext.extract_stack() if frame.filename not in _OWN_FILES]
    frame = frames[-1] if frames else None
    place = (frame.filename, frame.lineno or 0, frame.name) if frame else ("?", 0, "?")
    if (code, *place) not in refusals:
        refusals.append((code, *place))
        log.debug("%s: left in place at %s:%s in %s", code, *place)


def in_any_body(function: Callable[..., Any], *args: Any) -> None:
    """Call `function` with Dynamo's check for side effects of higher-order bodies off, for this call only."""
    from torch._dynamo.utils import _disable_side_effect_safety_checks_for_current_subtracer as unchecked

    unchecked(function, *args)


def _translator() -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx()


def _redirected(translator: Any) -> bool:
    """Is a context manager of the user's active in any traced frame: redirect_stdout, catch_warnings, a log capture?"""
    from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable, GenericContextWrappingVariable

    redirecting = (CatchWarningsCtxManagerVariable, GenericContextWrappingVariable)
    while translator is not None:
        if any(isinstance(block.with_context, redirecting) for block in translator.block_stack):
            return True
        translator = translator.parent
    return False


def _enclosing_bodies(translator: Any) -> list[str]:
    """The higher-order operators whose bodies are being traced, innermost first."""
    bodies, tracer = [], translator.output.current_tracer
    while tracer.parent is not None:
        bodies.append(str(getattr(tracer, "description", None) or tracer.source_target))
        tracer = tracer.parent
    return bodies


_OWN_FILES = {__file__, __file__.replace("dynamo.py", "effects.py")}
