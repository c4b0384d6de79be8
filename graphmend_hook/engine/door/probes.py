"""Proves each mechanism that rests on torch's internals, end to end: see `trust`, which is told what fails."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from ..epilogue import deferral, queue
from . import probe_programs, trust
from .probe_programs import Program
from .trust import Mechanism

log = logging.getLogger("graphmend_hook.trace")
_said = logging.getLogger("graphmend_hook")
_CPU = torch.device("cpu")  # whatever the program's default is
_X = torch.tensor([1.0, 2.0, 3.0], device=_CPU)
_SECOND, _BEYOND = torch.tensor([1], device=_CPU), torch.tensor([9], device=_CPU)
# Dynamo's settings that decide what the programs show, as torch has them.
_SETTINGS = {
    **{"error_on_recompile": False, "suppress_errors": False, "fail_on_recompile_limit_hit": False},
    **{"recompile_limit": 8, "accumulated_recompile_limit": 256, "optimize_ddp": False},
    **{"replay_side_effects": True, "side_effect_replay_policy": "silent"},
    **{"run_gc_after_compile": False},
}


def failures() -> set[Mechanism] | None:
    """The mechanisms that do not work; None where that cannot be told, inside an export, a mode or a transform.

    May be asked while Dynamo traces.
    """
    from ..epilogue.delivery import connect

    if torch.compiler.is_exporting() or _get_current_dispatch_mode() is not None or deferral.is_transformed():
        return None

    connect()
    with _alone():
        return set(Mechanism).difference(*map(_proved, _PROBES))


def _proved(probe: Callable[[], Iterator[Mechanism]]) -> Iterator[Mechanism]:
    """What the probe proves, until it fails."""
    try:
        yield from probe()
    except Exception as error:
        log.debug("a probe has failed", exc_info=error)


def _effects() -> Iterator[Mechanism]:
    compiled, graphs = _compiled(probe_programs.effects)
    first, second, third = Program(), Program(), Program()
    given = compiled(first, "one", _X, _SECOND)
    if first.is_traced and not deferral.tracing():
        yield Mechanism.TRACING
    if first.is_traced_anew:
        yield Mechanism.RESTART
    if torch.equal(given, _X[1:2] + 1) and len(first.delivered) == 1:
        yield Mechanism.DELIVERY
    if first.delivered == [("one", True)]:
        yield Mechanism.ORDER
    compiled(second, "two", _X, _SECOND)
    if len(graphs) == 1 and [text for text, _ in second.delivered] == ["two"]:
        yield Mechanism.TEXTS
    try:
        compiled(third, "three", _X, _BEYOND)
    except IndexError:
        if third.delivered == [("three", False)] and third.is_written:  # as it was written: at once, then it writes
            yield Mechanism.FAILURE


def _guards() -> Iterator[Mechanism]:
    compiled, graphs = _compiled(probe_programs.guarded)
    if all(compiled(x)[1] for x in (_X, _X + 1, _X)) and len(graphs) == 2:
        yield Mechanism.GUARDS


def _capture() -> Iterator[Mechanism]:
    compiled, graphs = _compiled(probe_programs.captured)
    other, one = torch.ones(3, 1, dtype=torch.int64, device=_CPU), torch.tensor([0.0, 0.0, 5.0], device=_CPU)
    right = torch.equal(compiled(_X, other), _X.nonzero() + other) and len(graphs) == 1
    if right and torch.equal(compiled(one, other), one.nonzero() + other):
        yield Mechanism.CAPTURE


_PROBES: tuple[Callable[[], Iterator[Mechanism]], ...] = (_effects, _guards, _capture)


def _compiled(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[torch.fx.GraphModule]]:
    """A copy of the function, of which Dynamo knows nothing yet, under a backend that lists its graphs."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph.forward  # what calls the module itself writes of failures to stderr

    anew = FunctionType(function.__code__.replace(), function.__globals__)
    return torch.compile(anew, backend=backend, dynamic=False), graphs


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Nothing of what happens in the block is seen by the program, and no setting of the program's is seen in it."""
    from unittest.mock import patch  # Dynamo has imported it

    from torch._dynamo import config, guards, utils
    from torch._dynamo.variables.torch_function import torch_function_mode_stack_state_mgr as modes

    events = vars(utils.get_chromium_event_logger().tls)  # torch 2.12 drops what goes on around a compilation
    kept = [(each, {name: copy.copy(value) for name, value in each.items()}) for each in (events, utils.counters)]
    understood, level = queue.understood, _said.level  # what is to be said of it says `trust`
    function_modes = modes.stack  # the program's, which a trace puts aside
    settings = {name: value for name, value in _SETTINGS.items() if hasattr(config, name)}
    _said.setLevel(logging.CRITICAL)
    try:
        # That takes 20 ms of each compilation, for a number in Dynamo's records.
        with config.patch(settings), patch.object(guards, "profile_guard_manager", lambda *_: 0.0, create=True):
            yield
    finally:
        modes.stack, queue.understood = function_modes, understood
        _said.setLevel(level)
        for each, before in kept:
            each.clear()
            each.update(before)


trust.prover = failures
