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

from . import place, probe_programs, queue, trust
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
    **{"replay_side_effects": True, "side_effect_replay_policy": "info"},
}


def failures() -> set[Mechanism] | None:
    """The mechanisms that do not work; None where that cannot be told, inside an export, a mode or a transform.

    May be asked while Dynamo traces.
    """
    from .epilogue import connect

    if torch.compiler.is_exporting() or _get_current_dispatch_mode() is not None or place.is_transformed():
        return None

    connect()
    failed: set[Mechanism] = set()
    with _alone():
        for mechanisms, probe in _PROBES:
            failed |= _result(mechanisms, probe)
    return failed


def _result(mechanisms: set[Mechanism], probe: Callable[[], set[Mechanism]]) -> set[Mechanism]:
    """Those of the mechanisms that fail: all of them, where the probe does not come to its end."""
    try:
        return probe()
    except Exception as error:
        log.debug("a probe has failed", exc_info=error)
        return mechanisms


def _effects() -> set[Mechanism]:
    compiled, graphs = _compiled(probe_programs.effects)
    failed, first, second = set(), Program(), Program()
    if not torch.equal(compiled(first, "one", _X, _SECOND), _X[1:2] + 1) or len(first.delivered) != 1:
        failed.add(Mechanism.DELIVERY)
    if first.delivered and first.delivered[0] != ("one", True):
        failed.add(Mechanism.ORDER)
    if not first.traced or place.tracing():
        failed.add(Mechanism.TRACING)
    compiled(second, "two", _X, _SECOND)
    if len(graphs) != 1 or [text for text, _ in second.delivered] != ["two"]:
        failed.add(Mechanism.TEXTS)
    third = Program()
    try:
        compiled(third, "three", _X, _BEYOND)
    except IndexError:
        if third.delivered == [("three", False)] and third.is_written:  # as it was written: at once, then it writes
            return failed
    return failed | {Mechanism.FAILURE}


def _guards() -> set[Mechanism]:
    compiled, graphs = _compiled(probe_programs.guarded)
    answers = [compiled(x)[1] for x in (_X, _X + 1, _X)]
    return set() if all(answers) and len(graphs) == 2 else {Mechanism.GUARDS}


def _restart() -> set[Mechanism]:
    compiled, graphs = _compiled(probe_programs.restarted)
    return set() if compiled(_X)[1] and len(graphs) == 1 else {Mechanism.RESTART}


def _capture() -> set[Mechanism]:
    compiled, graphs = _compiled(probe_programs.captured)
    many, one = torch.arange(200.0, device=_CPU), torch.zeros(200, device=_CPU)
    other = torch.ones(199, device=_CPU)
    one[7] = 5.0
    right = torch.equal(compiled(many, other), many[1:] + other) and len(graphs) == 1
    right = right and torch.equal(compiled(one, other), one[7] + other)
    return set() if right else {Mechanism.CAPTURE}


_PROBES: tuple[tuple[set[Mechanism], Callable[[], set[Mechanism]]], ...] = (
    ({Mechanism.TRACING, Mechanism.DELIVERY, Mechanism.ORDER, Mechanism.TEXTS, Mechanism.FAILURE}, _effects),
    ({Mechanism.GUARDS}, _guards),
    ({Mechanism.RESTART}, _restart),
    ({Mechanism.CAPTURE}, _capture),
)


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
    from torch._dynamo import config, utils
    from torch._dynamo.variables.torch_function import torch_function_mode_stack_state_mgr as modes

    events = vars(utils.get_chromium_event_logger().tls)  # torch 2.12 drops what goes on around a compilation
    before = {name: copy.copy(value) for name, value in events.items()}
    understood, level = queue.understood, _said.level  # what is to be said of it says `trust`
    function_modes = modes.stack  # the program's, which a trace puts aside
    counted = {name: dict(counter) for name, counter in utils.counters.items()}
    settings = {name: value for name, value in _SETTINGS.items() if hasattr(config, name)}
    _said.setLevel(logging.CRITICAL)
    try:
        with config.patch(settings):
            yield
    finally:
        modes.stack, queue.understood = function_modes, understood
        _said.setLevel(level)
        events.clear()
        events.update(before)
        utils.counters.clear()
        for name, counter in counted.items():
            utils.counters[name].update(counter)


trust.prove_with(failures)
