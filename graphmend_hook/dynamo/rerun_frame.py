"""What generated code calls to run its frame again, with its arguments, cells and random numbers.  Imports Dynamo."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Collection
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch._dynamo.decorators import skip
from torch._dynamo.eval_frame import set_eval_frame

from ..diagnostics import notice
from . import queue
from .bytecode import RANDOM, Rerun
from .compilation import attempts_now, memory_of
from .delivery import deliver_after_failure
from .rerun import Plan, RerunMemory

log = logging.getLogger("graphmend_hook")
_NOTE = "graphmend_hook: raised by the function as it was written, after its compiled graph had failed with"


def prepared(code: CodeType) -> Rerun | None:
    """What runs the frame of `code`, of which code has just been generated, again; None if it may not be."""
    made = attempts_now().made
    draws = made.of(Plan).draws if made is not None else None
    return None if draws is None else _Frame(code, draws)


def has_graph() -> bool:
    """Has the compilation at hand a graph, of a frame that is to be run again if it fails?"""
    made = attempts_now().made
    return made is not None and made.of(Plan).has_graph


def _item(rerun: Rerun, given: tuple[list[queue.Item], tuple[CellType, ...]] | None) -> Any:
    """The state of the generators, or what the frame that this is called from gives when it is run again."""
    prior = set_eval_frame(None)
    try:
        return _random_states(rerun.draws) if given is None else _run(rerun.code, sys._getframe(1), *given)
    finally:
        set_eval_frame(prior)


class _Frame(Rerun):
    """Is asked by code that runs under Dynamo; see `epilogue._slot`."""

    __getitem__ = skip(_item)


def _run(code: CodeType, frame: FrameType, items: list[queue.Item], cells: tuple[CellType, ...]) -> Any:
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
    memory_of(code).of(RerunMemory).failed = True
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
