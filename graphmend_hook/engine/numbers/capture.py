"""Symbols for numbers and sizes that the data decides: PyTorch's own capture, switched on for one operation at a time.

A frame that cannot be compiled with them (a branch on one, an operation that a backend cannot lower) is traced anew
with fewer, then without (`restart`): the read breaks the graph, as it did.  An operation on sizes that do not fit fails
with its own exception, as in eager: the frame is run again (`rerun`).
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import math
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import CodeType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..attempt import restart
from ..attempt.as_written import is_as_written
from ..attempt.attempt import MENDING, trace_anew
from ..attempt.compilation import Compilation
from ..attempt.refusals import Place, record
from ..attempt.restart import Failure
from ..door import frame_guards
from ..door.question import question
from ..door.tracer import SourceLine, Trace, log, place_of, traced_code
from ..door.trust import Mechanism, works
from ..door.variables import (
    Variable,
    fake_of,
    is_contiguous,
    is_unbacked,
    is_wrapper,
    python_of,
    tensor_node,
    without_hooks,
)
from ..epilogue import queue, rerun
from ..facts import ranges
from ..facts.schemas import only_gives, overloads_of
from ..facts.writes import fakes_of, memory_of, operations, written_by
from ..graph_end import cuda_graphs
from . import assumptions, not_captured, runtime_asserts
from .arithmetic import before_arithmetic

_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)
_EVERY = range(sys.maxsize)  # capture
_LARGE = 500  # operations of a graph that takes seconds to trace; once one has failed, it is not tried in other ways
_SQUEEZING = re.compile("(?<!un)squeeze")
_PERHAPS_COPYING = frozenset({"contiguous", "reshape", "reshape_as", "flatten", "ravel"})
# Their kernels refuse sizes of 0, and what AOTAutograd makes of them does not.
_RESIZING = re.compile("interpolate|upsample")
_UNBACKED = re.compile(r"\bu\d+\b")  # how PyTorch spells a number that the data decides


class Denied(Enum):
    """Why nothing may be captured in a frame, whatever the number is."""

    BY_TORCH = auto()  # what this torch, or this way to compile, generates cannot be relied on
    BY_FAILURE = auto()  # a graph took something for granted that did not hold in another call
    BY_WORTH = auto()  # what such a number decides could not be traced before, or is not likely to be


@dataclass
class Captured:
    """What an attempt has captured.

    symbols: each with the number of the capture that it came with; before: those there were before the last began;
    switched: Dynamo's settings that are on only for the one that goes on.
    denied: why the last capture was not allowed, where captures are not; places: of the captures, in order;
    given: settings of the attempt's symbols that allow them; bounds: of symbols, as they were made.
    drawn: the range of the numbers that are captured, where they are drawn at random.
    needed: what else has to hold of them, or eager fails, as expressions of sympy.
    """

    symbols: dict[str, int] = field(default_factory=dict)
    before: set[Any] = field(default_factory=set)
    switched: set[str] = field(default_factory=set)
    denied: Denied | None = None
    places: list[Place] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    drawn: ranges.Range | None = None
    needed: list[Any] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many operations have captured something so far?"""
        return len({*self.symbols.values()})


@dataclass
class CaptureOrders:
    """What further attempts may capture.

    most: how many operations may; the next breaks the graph.
    not_negative: it is taken for granted that no number is below 0.
    above_one: of these captures it is taken for granted that their numbers are neither 0 nor 1.
    """

    most: float = math.inf
    not_negative: bool = False
    above_one: Sequence[int] = ()


@question(otherwise=False)
def begin(trace: Trace, tensor: Variable) -> bool:
    """Switch capture on for the read of the tensor, if it holds whole numbers and nothing speaks against it."""
    node = tensor_node(tensor)
    if node.meta["example_value"].dtype not in _WHOLE or not _switch_on(trace, "scalar_outputs"):
        return False
    trace.compilation.of(Captured).drawn = ranges.range_of(trace, node)
    return True


@question(otherwise=False)
def begin_shape(trace: Trace) -> bool:
    """Switch it on for an operation whose result has a shape that the data decides."""
    return _switch_on(trace, "dynamic_output_shape_ops")


@question(otherwise=False)
def is_shaped_by_data(trace: Trace, operator: Variable, operands: Variable) -> bool:
    """Does the data decide the shape of what the operator of `torch.ops` gives, as its own fake kernel says?"""
    from torch._subclasses.fake_tensor import DynamicOutputShapeException

    function, shapes = python_of(operator), trace.output.shape_env
    if not isinstance(function, torch._ops.OpOverloadPacket) or not all(map(only_gives, overloads_of(function))):
        return False
    settings, given = shapes.settings, fake_of(operands)
    if any(map(is_wrapper, tree_leaves(given))):
        return False
    shapes.settings = dataclasses.replace(settings, allow_dynamic_output_shape_ops=False)
    try:
        with warnings.catch_warnings(), trace.output.fake_mode, without_hooks():
            warnings.simplefilter("ignore")  # it will be called again
            function(*given)
    except DynamicOutputShapeException:
        return True
    except Exception:
        return False  # it fails as it is written, too
    finally:
        shapes.settings = settings
    return False


@question(otherwise=None)
def end(trace: Trace) -> None:
    """Switch it off again, if it was switched on here."""
    from torch._dynamo import config

    captured, shapes = trace.compilation.of(Captured), trace.output.shape_env
    # Two of them, where what was captured raised an exception that the traced code has caught.
    for setting in captured.switched:
        setattr(config, setting, False)
    captured.switched.clear()
    new = [symbol for symbol in shapes.var_to_range if symbol not in captured.before]
    drawn, captured.drawn = captured.drawn, None
    if drawn is not None:
        for symbol in new:
            shapes.constrain_symbol_range(symbol, int(drawn.low), int(drawn.high))
    made = {str(symbol): shapes.var_to_range[symbol] for symbol in new}
    captured.bounds.update({symbol: (range_.lower, range_.upper) for symbol, range_ in made.items()})
    number = captured.count
    captured.symbols.update(dict.fromkeys(map(str, new), number))
    if new:
        captured.places.append(trace.place)
    orders = _orders(trace.compilation)
    if orders.not_negative:
        _assert_above(-1, trace.compilation, new)
    if number in orders.above_one:
        _assert_above(1, trace.compilation, new)
    if drawn is None:  # a decision on a draw goes either way
        assumptions.suppose(trace.compilation, new)


def _judge_shapes(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Read the numbers as they were written if the graph may take for granted what nothing checks.

    PyTorch takes for granted that a size which is squeezed is not 1, "with no runtime assertions", as it says in its
    log, and gives the program the shape that follows from that.  And it copies what may be contiguous or not, where
    eager may give the same memory: somebody may write to it.  Strides are those of sizes above 1.
    """
    if any(map(_asks_for_strides, traced_code(compilation))):
        _capture_first(0, compilation, "strides are asked for, and a size that the data decides may be 0 or 1")
    nodes = list(operations(module))
    for node in nodes:
        if not node.op.startswith("call"):
            continue
        name = str(getattr(node.target, "__name__", node.target)).partition(".")[0].strip("_")
        given = [fake for operand in node.all_input_nodes for fake in fakes_of(operand)]
        shapes = [fake.shape for fake in given]
        if _RESIZING.search(name):
            sizes = [size for fake in (*given, *fakes_of(node)) for size in fake.shape[2:]]
            _need(compilation, [size > 0 for size in sizes if is_unbacked(size)])
        if not any(map(is_unbacked, shapes)):
            continue
        if _SQUEEZING.search(name) and any(
            is_unbacked(shape[dim]) for shape in shapes for dim in _squeezed(node, shape)
        ):
            _capture_first(0, compilation, "a size that the data decides is squeezed")
        if name in _PERHAPS_COPYING and not all(map(is_contiguous, given)) and _is_shared(node, nodes):
            _capture_first(0, compilation, "what is copied or not, as a size has it, is written to")


def _need(compilation: Compilation, conditions: list[Any] | None) -> None:
    """Assert what has to hold of captured numbers for an operation not to fail; read them if that is not known."""
    facts = [truth.node.expr if isinstance(truth, torch.SymBool) else truth for truth in conditions or ()]
    if conditions is None or False in facts:
        _capture_first(0, compilation, "an operation on captured numbers may fail")
    needed = compilation.of(Captured).needed
    needed += [fact for fact in facts if fact not in (True, *needed)]


def _asks_for_strides(code: CodeType) -> bool:
    """Does it call a method `stride`?  The attribute of a convolution is something else."""
    return "stride" in code.co_names and any(
        instruction.argval == "stride"
        and (instruction.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and "self" in instruction.argrepr))
        for instruction in dis.get_instructions(code)
    )


def _squeezed(node: torch.fx.Node, shape: Sequence[Any]) -> Iterable[int]:
    """The dimensions of the shape that the operation squeezes where their size is 1."""
    given = tree_leaves(node.kwargs.get("dim", node.args[1:]))
    known = all(type(dim) is int and -len(shape) <= dim < len(shape) for dim in given)
    return given if given and known else range(len(shape))


def _is_shared(node: torch.fx.Node, nodes: Sequence[torch.fx.Node]) -> bool:
    """May anybody tell whether the operation gives the memory that it is given: by a write, or from outside?"""
    memory = memory_of([node, *node.all_input_nodes])
    last = nodes[-1].graph.output_node()
    outside = [*last.all_input_nodes, *last.graph.find_nodes(op="placeholder")]
    others = [each for each in outside if not memory.isdisjoint(memory_of([each]))]
    return len({*others}) > 1 or any(not memory.isdisjoint(written_by(each)) for each in nodes)


def is_uncaptured(compilation: Compilation) -> bool:
    """Is every number in this compilation to be read as it was written?"""
    return not compilation.allows(MENDING) or _orders(compilation).most == 0


def _capture_first(
    count: int,
    compilation: Compilation,
    reason: str,
    place: Place | None = None,
    lines: Iterable[SourceLine] = (),
) -> None:
    """Trace the frame anew, with all reads of numbers but the first as they were written; unless all are already.

    place: where the program was, if that is known; else the first capture is told.
    lines: those of captures that no frame which is traced here need try again.
    """
    log.debug("numbers are read as they were written, but for the first %d: %s", count, reason)
    if not is_uncaptured(compilation):
        given_up = not_captured.remember(compilation, lines)
        place = place or next(iter(compilation.of(Captured).places), None)
        record("GM104-T09", f"{reason}; attempts given up: {given_up}", place)
        orders = _orders(compilation)
        orders.most, orders.not_negative, orders.above_one = count, False, ()
        assumptions.forbid(compilation)
        trace_anew(reason)


def _orders(compilation: Compilation) -> CaptureOrders:
    return compilation.attempts.of(CaptureOrders)


def _supposes(compilation: Compilation) -> bool:
    """Does the attempt rest on what nobody knows of a number?"""
    orders = _orders(compilation)
    return orders.not_negative or bool(orders.above_one) or assumptions.supposes(compilation)


def _assert_above(number: int, compilation: Compilation, symbols: Iterable[Any]) -> None:
    shapes = compilation.output.shape_env
    for symbol in symbols:
        bounds = shapes.var_to_range[symbol]
        if bounds.upper <= number:
            if not compilation.one_graph:
                _capture_first(0, compilation, f"a captured number is at most {number}")
        elif bounds.lower <= number:
            torch._check(shapes.create_symintnode(symbol, hint=None) > number)


def _switch_on(trace: Trace, kind: str) -> bool:
    from torch._dynamo import config

    compilation, output = trace.compilation, trace.output
    captured = compilation.of(Captured)
    if output.export or is_uncaptured(compilation) or is_as_written(trace) or trace.is_in_a_body:
        return False
    if not _is_allowed(compilation, captured) or captured.count >= _orders(compilation).most:
        return False
    if not compilation.one_graph and (not_captured.is_known(trace) or not_captured.is_of_many_pieces(trace)):
        captured.denied = Denied.BY_WORTH
        _allow(compilation, False)  # the operation as it is written would find it allowed since the first
        compilation.judge(_allow_backend)
        return False
    restart.expect_success_of(compilation, _capture_less)
    before_arithmetic(compilation, _need)
    compilation.at_end(assumptions.judge_end)
    rerun.keep(compilation).otherwise.add(_expect_no_assertions)
    shapes = output.shape_env  # of this compilation alone; the backend's too
    captured.before = set(shapes.var_to_range)
    compilation.judge(assumptions.judge_branch)
    compilation.judge(_judge_shapes)
    compilation.judge(_judge_assertions)
    compilation.judge(cuda_graphs.keep_out)
    captured.given.add(f"allow_{kind}")
    _allow(compilation, True)
    if not compilation.one_graph:
        _expect_backward_pass(compilation)
    setting = f"capture_{kind}"
    if not getattr(config, setting):
        setattr(config, setting, True)
        captured.switched.add(setting)
        compilation.undo.callback(setattr, config, setting, False)
    return True


def _expect_backward_pass(compilation: Compilation) -> None:
    """Let a backend that cannot lower the backward pass fail now, where less can be captured, and not when that runs.

    AOTAutograd lowers it at once where numbers are saved for it, but keeps a failure to itself.
    """
    from torch._functorch import config

    name = "force_non_lazy_backward_lowering"
    compilation.undo.callback(setattr, config, name, getattr(config, name))
    setattr(config, name, True)


def _allow(compilation: Compilation, allowed: bool) -> None:
    """Let torch make symbols for numbers and sizes that the data decides, or not, where it has been let before."""
    shapes, given = compilation.output.shape_env, compilation.of(Captured).given
    shapes.settings = dataclasses.replace(shapes.settings, **dict.fromkeys(given, allowed))


def _allow_backend(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    _allow(compilation, True)


def _judge_assertions(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Read the numbers as they were written if what the graph asserts of them cannot be asserted of data."""
    if _supposes(compilation):
        assumptions.remember(compilation)
    by_example = assumptions.conclude(compilation, module)
    facts = [
        fact for fact in runtime_asserts.facts(compilation.output) if by_example or runtime_asserts.is_left_out(fact)
    ]
    facts += compilation.of(Captured).needed
    if not runtime_asserts.assert_of_data(module, compilation.of(Captured).bounds, facts):
        _capture_first(0, compilation, "what is taken for granted of a captured number cannot be asserted of data")
    if runtime_asserts.is_false_in_this_call(module):
        _capture_by_call(compilation, "what is taken for granted of a captured number does not hold in this call")


def _capture_by_call(compilation: Compilation, reason: str) -> None:
    """Trace the frame anew with the numbers that this call gives for examples, or without captures if it has been.

    What is false of these examples, too, an operation asserts that fails in eager as well.
    """
    if assumptions.decides_by_call(compilation) or assumptions.is_to_fail(compilation):
        return
    orders = _orders(compilation)
    orders.not_negative, orders.above_one = False, ()
    assumptions.decide_by_call(compilation, reason)
    if not compilation.one_graph:
        _capture_first(0, compilation, reason)


def _is_allowed(compilation: Compilation, captured: Captured) -> bool:
    """May anything be captured here?  Then guards see to it that the frame is compiled anew once that is forbidden."""
    memory = compilation.memory.of(rerun.RerunMemory)
    can_be = queue.understood and works(Mechanism.CAPTURE, Mechanism.FAILURE)
    if not (can_be and frame_guards.may_be_relied_on()):
        captured.denied = Denied.BY_TORCH
        return False
    if assumptions.is_to_be_read(compilation) and not compilation.one_graph:
        captured.denied = Denied.BY_FAILURE
        return False
    install = functools.partial(frame_guards.install, compilation)
    install("understood", (), lambda: queue.understood, "generated code is understood")
    if not compilation.one_graph:
        failures = memory.failures
        install(rerun.RerunMemory, (), lambda: memory.failures == failures, "no captured size has failed since")
    return True


def _expect_no_assertions(compilation: Compilation) -> None:
    """The frame may not be run again: capture less, if its graph asserts what it takes for granted.

    Bounds of a captured number are not taken for granted: past them eager fails too, with the same exception.  That of
    arithmetic which fails is Python's.
    """
    facts = runtime_asserts.facts(compilation.output)
    beyond = any(getattr(fact, "rel_op", "") not in ("<", "<=", ">", ">=") for fact in facts)
    needs = beyond or compilation.of(Captured).needed or _supposes(compilation)
    if needs and not compilation.one_graph:
        _capture_first(0, compilation, "a graph that cannot be run again asserts what it takes for granted")


def _capture_less(compilation: Compilation, failure: Failure) -> None:
    """Trace the frame anew: first, take for granted that no captured number is negative, if that is what is asked for.

    Then, that they are neither 0 nor 1, as Dynamo does of sizes: that is what most backends fail on.  Those that a
    decision is about come first, then all.  Then, make the decision by an example.  Then, unless ``fullgraph=True``
    forbids it, read the last number that the error names as it was written, so that the graph ends there, and then all
    of them.  Where a backend has failed, and does not speak of numbers, or on a large graph not of a decision, no other
    way is tried.
    """
    from torch._dynamo.exc import BackendCompilerFailed

    if failure.restarts and not assumptions.UNDECIDED.search(failure.text):
        return
    orders, expression = _orders(compilation), assumptions.UNDECIDED.search(failure.text)
    helps = not_captured.is_decided_from(2, expression[1]) is not False if expression else not failure.gives_up
    captured = compilation.of(Captured)
    named = _named(expression, captured.symbols)
    if (
        assumptions.decides_by_call(compilation)
        and not expression
        and not isinstance(failure.error, BackendCompilerFailed)
    ):
        assumptions.let_fail(compilation, failure.reason)
    has_failed = compilation.memory.of(rerun.RerunMemory).failures > 0
    is_large = len(compilation.output.graph.nodes) > _LARGE and not compilation.one_graph
    if has_failed and is_large:
        _capture_first(0, compilation, f"{failure.reason}, and a graph has failed", place_of(failure.error))
    is_of_backend = isinstance(failure.error, BackendCompilerFailed)
    everywhere = [place[:2] for place in captured.places]
    is_about_numbers = expression or _UNBACKED.search(failure.text)
    if is_of_backend and not compilation.one_graph and (not is_about_numbers or (is_large and not expression)):
        _capture_first(0, compilation, failure.reason, place_of(failure.error), everywhere)
    is_first = orders.most == math.inf and not (has_failed or assumptions.decides_by_call(compilation))
    if is_first and not orders.not_negative and expression and not_captured.is_decided_from(0, expression[1]):
        log.debug("captured numbers are taken not to be negative: %s", failure.reason)
        orders.not_negative = True
        trace_anew(failure.reason)
    is_open = orders.above_one != _EVERY and not (named and set(named) <= set(orders.above_one))
    if is_open and is_first and helps:
        log.debug("captured numbers are taken to be above one: %s", failure.reason)
        orders.above_one = _EVERY if orders.above_one or not named else named
        trace_anew(failure.reason)
    if expression and not is_of_backend:  # which is given no examples
        assumptions.decide(compilation, failure.reason)
    assumptions.decide_nothing(compilation, failure.reason)
    if compilation.one_graph:
        return
    last = max(named, default=0)
    undecidable = everywhere[last : last + 1] if expression else everywhere if is_of_backend else ()
    count = last if orders.most == math.inf else 0
    _capture_first(count, compilation, failure.reason, place_of(failure.error), undecidable)


def _named(expression: re.Match[str] | None, captured: dict[str, int]) -> Sequence[int]:
    """Which captures the numbers of an undecided expression come from; none where there is no such expression."""
    symbols = _UNBACKED.findall(expression[1]) if expression else ()
    return [captured[symbol] for symbol in symbols if symbol in captured]
