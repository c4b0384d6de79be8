"""The place that Dynamo is tracing: may an effect there wait for the end of the graph?"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import torch
from torch._guards import TracingContext
from torch.compiler import is_exporting

from ...diagnostics import say_once
from ..attempt.as_written import is_as_written
from ..attempt.restart import redirects
from ..door.functools_caches import is_in_a_cache
from ..door.question import answers_for, in_trace, is_connected, question
from ..door.tracer import Trace, compiling_frame, is_caught
from ..door.trust import Mechanism, works
from ..door.variables import Variable, is_unread
from . import queue

_REGION = "torch.ops.higher_order.invoke_subgraph"  # torch.compiler.nested_compile_region
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_DEFERS = (Mechanism.DELIVERY, Mechanism.ORDER, Mechanism.TEXTS, Mechanism.FAILURE)


def is_exported_here() -> bool:
    """Does this thread trace an export: is there a trace that it belongs to, and a mode that sees its operations?"""
    return TracingContext.try_get() is not None and torch._C._len_torch_dispatch_stack() > 0


def tracing() -> bool:
    """Is Dynamo tracing the caller?  Not for export: an exported program has no epilogue."""
    return in_trace() and is_connected() and not is_exporting()


@answers_for(tracing, otherwise=False)
def _is_tracing(_trace: Trace) -> bool:
    """Asked so, Dynamo still leaves a frame without operations to eager, which it does not after `is_compiling`."""
    return not is_exporting()


class Hindrance(Enum):
    """Why an effect may not wait for the end of the graph."""

    NOT_REACHED = auto()  # by the epilogue
    RAISED = auto()  # a warning, by a filter
    REDIRECTED = auto()
    CONTAINER = auto()  # an argument that is older than the trace
    CAUGHT = auto()
    AS_WRITTEN = auto()  # every statement of the frame
    FORBIDDEN = auto()  # in the body of a higher-order operator
    CACHED = auto()  # the function that has the effect has it once, at its first call


def hindrance(trace: Trace, is_warning: bool, values: Variable, is_silent: bool = False) -> Hindrance | None:
    """What keeps an effect from waiting for the end of the graph, at the place that Dynamo has come to.

    is_warning: the effect is a warning, which a filter may turn into an exception.
    values: the tuple of its arguments.
    is_silent: it is the call of a logger that is off, where at most the text of its arguments fails.
    """
    from .delivery import connect, drain

    connect()
    drain()  # what another way to compile may have left behind; Dynamo must find the list empty
    if not works(*_DEFERS) or not _is_reached_by_epilogue(trace):
        return Hindrance.NOT_REACHED
    if is_warning and any(action == "error" for action, *_ in warnings.filters):
        return Hindrance.RAISED
    if _is_redirected(trace):
        return Hindrance.REDIRECTED
    if _has_outside_container(values):
        return Hindrance.CONTAINER
    if is_caught(trace) and not (is_silent and _are_constants(values)):
        return Hindrance.CAUGHT
    if is_as_written(trace):
        return Hindrance.AS_WRITTEN
    if len(_enclosing_bodies(trace)) > 1 or is_in_another_body(trace):
        return Hindrance.FORBIDDEN
    return Hindrance.CACHED if is_in_a_cache(trace) else None


def is_in_another_body(trace: Trace) -> bool:
    """Is the body of a higher-order operator traced that is no activation checkpoint?"""
    return any(body != _CHECKPOINT for body in _enclosing_bodies(trace))


def is_recomputed(trace: Trace) -> bool:
    """Would eager run the statement at hand once more, in the backward pass of an activation checkpoint?"""
    return _CHECKPOINT in _enclosing_bodies(trace) and torch.is_grad_enabled()


@question(otherwise=None)
def replay_last(trace: Trace) -> None:
    """Let Dynamo replay the list of what is deferred after all other side effects of the trace.

    Handlers then see the state of the program as the function leaves it, nothing that they change is overwritten, and
    an exception of theirs leaves no half of it behind.  Dynamo replays in the reverse order of this dict.
    """
    identity, tracked = id(queue.graphmend_pending), trace.output.side_effects.id_to_variable
    if next(iter(tracked)) != identity:
        others = {key: variable for key, variable in tracked.items() if key != identity}
        first = tracked[identity]
        tracked.clear()
        tracked.update({identity: first, **others})


def is_in_a_mode(trace: Trace) -> bool:
    """Is a TorchFunctionMode on, other than the one that says on which device tensors are made?

    So too where one is on when the frame begins, behind a break in its `with`: it sees what the graph does to its end.
    """
    from torch._dynamo.variables.torch_function import torch_function_mode_stack_state_mgr as at_begin
    from torch.utils._device import DeviceContext

    modes = trace.translator.symbolic_torch_function_state.mode_stack
    kinds = [*(mode.python_type() for mode in modes), *map(type, at_begin.stack)]
    return not all(issubclass(kind, DeviceContext) for kind in kinds)


@question(otherwise=True)
def is_in_a_try(trace: Trace) -> bool:
    """Could a handler in a traced frame catch what is raised here?"""
    return is_caught(trace)


@question(otherwise=True)
def is_in_a_body(trace: Trace) -> bool:
    """Is the body of a higher-order operator traced?  Where an effect may wait, that is an activation checkpoint."""
    return trace.is_in_a_body


@question(otherwise=True)
def is_in_a_context(trace: Trace) -> bool:
    """Is a context manager open in any traced frame?"""
    return trace.is_in_a_context


@question(otherwise=None)
def logger_of(trace: Trace, name: str | None = None) -> Any:
    """The logger of that name; there is one for the life of the process, so it may be looked up ahead of time."""
    return constant_of(trace, logging.getLogger(name), "graphmend_logger")


def constant_of(trace: Trace, found: object, prefix: str) -> Variable:
    """Dynamo's variable for an object that is a constant of the trace, by the name of a global that begins so."""
    from torch._dynamo.source import GlobalSource
    from torch._dynamo.variables.base import VariableTracker

    source = GlobalSource(trace.output.install_global_by_id(prefix, found))
    return VariableTracker.build(trace.translator, found, source)


def has_interpreter() -> bool:
    """Is a function transform at work?"""
    return torch._C._functorch.peek_interpreter_stack() is not None


@question(otherwise=True, elsewhere=has_interpreter)
def is_transformed(_trace: Trace) -> bool:
    """Is the caller inside vmap, grad or another function transform, which has ways of its own with tensors?"""
    return has_interpreter()


@question(otherwise=False)
def is_drawn(_trace: Trace, value: Variable) -> bool:
    """Is it a number that Python's `random` draws?  To Dynamo it is a tensor, and its type cannot be asked for."""
    from torch._dynamo.source import RandomValueSource

    return not is_unread(value) and isinstance(value.realize().source, RandomValueSource)


def without_gradient(tensor: Any) -> Any:
    """``tensor.detach()``, where gradients are recorded: in inference mode AOTAutograd fails on it."""
    return tensor.detach() if torch.is_grad_enabled() else tensor


def is_autocast() -> bool:
    """Is autocast on for any kind of device?"""
    return bool(torch._C._is_any_autocast_enabled())


@question(otherwise=False)
def _is_the_only_program(trace: Trace) -> bool:
    is_saved = trace.compilation.is_saved or compiling_frame() is None
    return _REGION in _enclosing_bodies(trace) or (is_saved and trace.compilation.one_graph)


def guards_are_assertions() -> bool:
    """Must what guards there be a part of the graph, since no epilogue runs behind it?

    So it is for what is exported, and where the alternative is no program: under `aot_compile`, and in a
    region that is compiled once (`torch.compiler.nested_compile_region`).
    """
    return not tracing() or _is_the_only_program()


@question(otherwise=None)
def _tell_of_assertions(_trace: Trace) -> None:
    say_once("GM017")


def tell_of_assertions() -> None:
    """Say once, in a process, what the guards of a program are that runs without this package."""
    if in_trace():
        _tell_of_assertions()
    else:
        say_once("GM017")


def break_here() -> None:
    """Let the call that the trace has come to be made for real."""
    torch._dynamo.graph_break()


# ``assert_in_graph(test, text)`` is an operation of the graph that fails where the tensor is false.
assert_in_graph = torch._assert_async


def in_any_body(function: Callable[..., Any], *args: Any) -> None:
    """Call `function` with Dynamo's check for side effects of higher-order bodies off, for this call only."""
    from torch._dynamo.utils import _disable_side_effect_safety_checks_for_current_subtracer as unchecked

    unchecked(function, *args)


def _is_reached_by_epilogue(trace: Trace) -> bool:
    """Will the code generated from this trace go through the bytecode hooks, run here, and replay side effects?

    `aot_compile` and export capture without the hooks, and precompiled code runs in other processes.
    """
    from torch._dynamo import config

    if trace.compilation.is_saved or not getattr(config, "replay_side_effects", True):
        return False
    if getattr(config, "side_effect_replay_policy", "") in ("warn", "error"):
        return False
    return compiling_frame() is not None


def _is_redirected(trace: Trace) -> bool:
    """May the effect go elsewhere, here, than at the end of the graph?

    So it may in a context manager of the program's (redirect_stdout, catch_warnings, a log capture) in any traced
    frame, and where traced code has assigned to `sys` (a stream), `warnings`, or something of `logging`.
    """
    from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable

    if any(map(redirects, trace.output.side_effects.store_attr_mutations)) or trace.is_in_an_unknown_context:
        return True
    return any(isinstance(context, CatchWarningsCtxManagerVariable) for context in trace.contexts())


def _has_outside_container(values: Variable) -> bool:
    """Is a value a list or dict that is older than the trace?  Copying it would guard on all that is in it."""
    items = getattr(values.realize(), "items", None)
    for value in items if isinstance(items, list) else ():
        if is_unread(value):
            if value.peek_type() in (list, dict):
                return True
        elif value.source is not None and type(value).__name__ in ("ListVariable", "ConstDictVariable"):
            return True
    return False


def _are_constants(values: Variable) -> bool:
    """Can the text of all values be made while tracing?"""
    return all(value.is_python_constant() for value in values.realize().items)


def _enclosing_bodies(trace: Trace) -> list[str]:
    """The higher-order operators whose bodies are being traced, innermost first."""
    bodies, tracer = [], trace.output.current_tracer
    while tracer.parent is not None:
        bodies.append(str(getattr(tracer, "description", None) or tracer.source_target))
        tracer = tracer.parent
    return bodies
