"""Runs a frame as it was written, where the graph that was compiled of it failed.

What is deferred, effects and guards, eager has done by the time that an operation after it fails; a compiled graph may
even run that operation first.  And for a size that the data decides, Dynamo asserts what it took for granted, such as
that it is not a 1 that would be broadcast: eager may not fail at all.

What a frame does to the program's objects Dynamo does after the graph.  So if the graph has written to nothing that is
older than it, nothing has happened by then, and the frame can be run once more, in eager, with the random numbers that
it would have drawn.  A graph with such assertions that cannot be run again so is not compiled: it is traced anew, with
its numbers read as they were written.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Collection, Iterable, Iterator
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch._dynamo.decorators import skip
from torch._dynamo.eval_frame import set_eval_frame
from torch._guards import CompileContext

from ..diagnostics import notice
from ..runtime import queue, retrace
from ..runtime.operations import draws, facts_of
from ..runtime.records import forbid_capture
from ..runtime.writes import operations, spares_inputs
from .deliver import deliver_after_failure
from .edit import RANDOM, Rerun

log = logging.getLogger("graphmend_hook")
_NOTE = "graphmend_hook: raised by the function as it was written, after its compiled graph had failed with"


def keep(output: Any) -> None:
    """See to it that the frame is run again if the graph that Dynamo is tracing fails."""
    if not hasattr(output, "graphmend_kept"):
        output.graphmend_kept = True
        output.register_finalizer_fns.append(lambda module: _prepare(output, module))


def prepared(code: CodeType) -> Rerun | None:
    """What runs the frame of `code`, of which code has just been generated, again; None if it may not be."""
    drawn_on = getattr(CompileContext.try_get(), "graphmend_drawn_on", None)
    return None if drawn_on is None else _Frame(code, drawn_on)


def _prepare(output: Any, module: torch.fx.GraphModule) -> None:
    nodes = [node for node in operations(module) if node.op.startswith("call")]
    repeatable = not output.random_calls and _is_repeatable(nodes, module)
    CompileContext.get().graphmend_drawn_on = set(_drawn_on(nodes)) if repeatable else None
    if repeatable:
        return
    if hasattr(output, "graphmend_captured") and _takes_for_granted(output) and not output.root_tx.one_graph:
        retrace.leave_uncaptured("a graph that cannot be run again asserts what it takes for granted")


def _is_repeatable(nodes: Iterable[torch.fx.Node], module: torch.fx.GraphModule) -> bool:
    """Is there no operation of others, and no write to an input?  Fake tensors share storages as the real ones do."""
    if not all(facts_of(node).is_of_torch for node in nodes):
        return False
    try:
        return spares_inputs(module)
    except NotImplementedError:  # a wrapper of a function transform has no memory of its own
        return False


def _drawn_on(nodes: Iterable[torch.fx.Node]) -> Iterator[torch.device]:
    for node in filter(draws, nodes):
        values = [operand.meta.get("example_value") for operand in (node, *node.all_input_nodes)]
        yield from (value.device for value in values if isinstance(value, torch.Tensor))


def _takes_for_granted(output: Any) -> bool:
    """Does the graph assert more of a captured number than bounds, past which eager fails too?"""
    if retrace.are_above_one():
        return True
    asserted = [item.expr for items in output.shape_env.deferred_runtime_asserts.values() for item in items]
    return any(getattr(expression, "rel_op", "") not in ("<", "<=", ">", ">=") for expression in asserted)


def _item(rerun: Rerun, given: tuple[list[queue.Item] | None, tuple[CellType, ...]] | None) -> Any:
    """The state of the generators, or what the frame that this is called from gives when it is run again."""
    prior = set_eval_frame(None)
    try:
        return _random_states(rerun.draws) if given is None else _run(rerun.code, sys._getframe(1), *given)
    finally:
        set_eval_frame(prior)


class _Frame(Rerun):
    """Is asked by code that runs under Dynamo; see `install._slot`."""

    __getitem__ = skip(_item)


def _run(code: CodeType, frame: FrameType, items: list[queue.Item] | None, cells: tuple[CellType, ...]) -> Any:
    failed, values, names = sys.exc_info()[1], frame.f_locals, inspect.getargs(code)
    assert failed is not None
    if not _may_help(failed) or not {*names.args, *filter(None, names[1:])} <= {*values}:
        deliver_after_failure(items)
        raise failed
    function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
    positional = [values[name] for name in names.args[: code.co_argcount]]
    keywords = {name: values[name] for name in names.args[code.co_argcount :]}
    if names.varargs:
        positional += values[names.varargs]
    if names.varkw:
        keywords |= values[names.varkw]
    for device, state in values.get(RANDOM, {}).items():
        _generators(device).set_rng_state(state, *_index(device))
    try:
        value = function(*positional, **keywords)
    except Exception as error:
        _forget(error, failed)
        if sys.version_info >= (3, 11):
            error.add_note(f"{_NOTE} {type(failed).__name__}: {failed}")
        raise
    name = getattr(code, "co_qualname", code.co_name)
    log.warning("%s", notice("GM009", function=name, error=f"{type(failed).__name__}: {failed}"))
    forbid_capture(code)
    return value


def _may_help(failed: BaseException) -> bool:
    """Where there is no memory for the graph there is none for eager, and an interrupt is one."""
    return isinstance(failed, Exception) and not isinstance(failed, torch.cuda.OutOfMemoryError)


def _forget(error: BaseException, failed: BaseException) -> None:
    """Python takes every exception for a consequence of the one that is being handled."""
    while error.__context__ not in (None, failed):
        error = error.__context__
    error.__context__ = None


def _random_states(devices: Collection[torch.device]) -> dict[torch.device, torch.Tensor]:
    return {device: _generators(device).get_rng_state(*_index(device)) for device in devices}


def _generators(device: torch.device) -> Any:
    """The module of torch that has the generators of such devices."""
    return torch if device.type == "cpu" else torch.get_device_module(device)


def _index(device: torch.device) -> tuple[torch.device, ...]:
    return () if device.type == "cpu" else (device,)
