"""Symbols for numbers and sizes that the data decides: PyTorch's own capture, switched on for one operation at a time.

A frame that cannot be compiled with them (a branch on one, an operation that a backend cannot lower) is traced anew
with fewer, then without (`retrace`): the read breaks the graph, as it did.  An operation on sizes that do not fit fails
with its own exception, as in eager: the frame is run again (`epilogue.rerun`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch

from . import code_guards, queue, retrace
from .endings import at_end
from .records import record_of
from .tracer import at_trace_time, held, node_of, translator
from .writes import tensor_inputs

# By Dynamo's setting: that of the symbols' own environment.
_ALLOWED = {
    "capture_scalar_outputs": "allow_scalar_outputs",
    "capture_dynamic_output_shape_ops": "allow_dynamic_output_shape_ops",
}
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)


@at_trace_time(otherwise=False)
def begin() -> bool:
    """Switch capture on for the read of the tensor at hand, if it holds whole numbers and nothing speaks against it."""
    whole = node_of(held("graphmend_tensor")).meta["example_value"].dtype in _WHOLE
    return whole and _switch_on("capture_scalar_outputs")


@at_trace_time(otherwise=False)
def begin_shape() -> bool:
    """Likewise for an operation whose result has a shape that the data decides."""
    return _switch_on("capture_dynamic_output_shape_ops")


@at_trace_time(otherwise=None)
def end() -> None:
    """Switch it off again, if it was switched on here."""
    output = translator().output
    _switch_off(output)
    new = [symbol for symbol in output.shape_env.var_to_range if symbol not in output.graphmend_symbols]
    output.graphmend_captured.update(dict.fromkeys(map(str, new), _count(output)))
    if retrace.are_above_one():
        _assert_above_one(output, new)


def _assert_above_one(output: Any, symbols: Iterable[Any]) -> None:
    shapes = output.shape_env
    for symbol in symbols:
        if shapes.var_to_range[symbol].upper > 1:
            torch._check(shapes.create_symintnode(symbol, hint=None) > 1)
        elif not output.root_tx.one_graph:
            retrace.leave_uncaptured("a captured number is at most one")


def _count(output: Any) -> int:
    """How many operations have captured something so far?"""
    return len({*output.graphmend_captured.values()})


def _switch_on(setting: str) -> bool:
    from torch._dynamo import config

    from ..epilogue import install, rerun

    output = translator().output
    if output.export or retrace.is_uncaptured() or output.current_tracer.parent is not None:
        return False
    if not _is_allowed(output) or _count(output) >= retrace.most_captured():
        return False
    retrace.expect_success()
    at_end(output, _switch_off)
    install.connect()
    rerun.keep(output)
    shapes = output.shape_env  # of this compilation alone; the backend's too
    output.graphmend_symbols = set(shapes.var_to_range)
    shapes.settings = dataclasses.replace(shapes.settings, **{_ALLOWED[setting]: True})
    if not getattr(config, setting):
        setattr(config, setting, True)
        vars(output).setdefault("graphmend_switched", set()).add(setting)
    return True


def _is_allowed(output: Any) -> bool:
    """Is there a guard on the frame, so that it is compiled anew once it has been forbidden?"""
    known = record_of(output)
    if not queue.understood:
        output.graphmend_unknown = "GM101-T09"
        return False
    if known.capture_failed and not output.root_tx.one_graph:
        output.graphmend_unknown = "GM104-T06"
        return False
    if not hasattr(output, "graphmend_captured"):
        sources = [node.meta["grapharg"].source for node in tensor_inputs(output)][:1]
        if not sources or code_guards.inputs_at(sources, output.root_tx) is None:
            return False
        code_guards.install(sources, lambda _: queue.understood, "generated code is understood")
        if not output.root_tx.one_graph:
            code_guards.install(sources, lambda _: not known.capture_failed, "no captured size has failed")
        output.graphmend_captured = {}  # the symbols, and which capture they came with
    return True


def _switch_off(output: Any, _error: BaseException | None = None) -> None:
    from torch._dynamo import config

    # Two of them, where what was captured raised an exception that the traced code has caught.
    for setting in vars(output).pop("graphmend_switched", ()):
        setattr(config, setting, False)
