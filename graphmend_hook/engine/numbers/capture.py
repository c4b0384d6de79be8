"""Symbols for numbers and sizes that the data decides: PyTorch's own capture, switched on for one operation at a time.

A frame that cannot be compiled with them (a branch on one, an operation that a backend cannot lower) is traced anew
with fewer, then without (`retreats`): the read breaks the graph, as it did.  An operation on sizes that do not fit
fails with its own exception, as in eager: the frame is run again (`rerun`).
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import operator
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ...source.tensor_ops import SPREADS
from ..attempt import restart
from ..attempt.as_written import is_as_written
from ..attempt.attempt import Bet
from ..attempt.compilation import Compilation
from ..door import frame_guards
from ..door.fake_values import Calculate, around
from ..door.question import is_answered, question
from ..door.tracer import Trace, is_covered, trace_at, traced_code
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
from ..graph_end.order import Change, Compiler, Verdict, Wrapper
from . import assumptions, not_captured, runtime_asserts
from .arithmetic import before_arithmetic
from .captured import (
    CAPTURE,
    NEGATIVE,
    SMALL,
    Captured,
    Denied,
    all_but,
    is_assumed,
    is_uncaptured,
    read_as_written,
    supposes,
)
from .captured_tensors import call

_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)
_SQUEEZING = re.compile("(?<!un)squeeze")
_PERHAPS_COPYING = frozenset({"contiguous", "reshape", "reshape_as", "flatten", "ravel"})
# Their kernels refuse sizes of 0, and what AOTAutograd makes of them does not.
_RESIZING = re.compile("interpolate|upsample")
# What Inductor makes of them looks at no numbers; eager fails where they do not fit.
_UNCHECKED = frozenset({"as_strided", "as_strided_scatter", "diagonal_scatter", "slice_scatter"})


@question(otherwise=False)
def begin(trace: Trace, tensor: Variable) -> bool:
    """Switch capture on for the read of the tensor, if it holds whole numbers and nothing speaks against it."""
    node = tensor_node(tensor)
    if node.meta["example_value"].dtype not in _WHOLE or not _switch_on(trace, "scalar_outputs"):
        return False
    drawn = ranges.range_of(trace, node)
    trace.compilation.of(Captured).drawn = None if drawn is None else (drawn.low, drawn.high)
    return True


@question(otherwise=False)
def is_given_up(trace: Trace, tensor: Variable) -> bool:
    """Does the tensor hold a whole number, which was captured in an attempt that was given up?"""
    is_whole = tensor_node(tensor).meta["example_value"].dtype in _WHOLE
    return is_whole and not trace.compilation.allows(CAPTURE)


def symbol_of_input(trace: Trace, tensor: Variable) -> Variable:
    """A symbol for the float that an input of the graph, a tensor (), is made of; nothing is asserted of it."""
    trace.compilation.of(Captured).given.add("allow_scalar_outputs")
    trace.compilation.wrap_compiler(Wrapper.SYMBOLS, _allow_backend)
    fake_of(tensor).item_memo = trace.output.shape_env.create_unbacked_symfloat()
    return call(trace, torch.Tensor.item, tensor)


@question(otherwise=False)
def begin_shape(trace: Trace) -> bool:
    """Switch it on for an operation whose result has a shape that the data decides."""
    return _switch_on(trace, "dynamic_output_shape_ops")


@around
def _let_data_decide_the_shape(translator: Any, node: torch.fx.Node, calculate: Calculate) -> Any:
    """Capture the shape of what any other operation gives that Dynamo would end the graph for."""
    from torch._dynamo.exc import Unsupported
    from torch._subclasses.fake_tensor import DynamicOutputShapeException

    try:
        return calculate()
    except Unsupported as error:
        is_shaped = isinstance(error.__cause__, DynamicOutputShapeException) and is_covered(translator)
        trace = trace_at(translator) if is_shaped else None
        if trace is None or not is_answered(trace) or not _switch_on(trace, "dynamic_output_shape_ops"):
            raise
    value = calculate()
    end_of(trace)
    return value


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
    end_of(trace)


def end_of(trace: Trace) -> None:
    """The same, asked by the engine."""
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
            shapes.constrain_symbol_range(symbol, *map(int, drawn))
    made = {str(symbol): shapes.var_to_range[symbol] for symbol in new}
    captured.bounds.update({symbol: (range_.lower, range_.upper) for symbol, range_ in made.items()})
    number = captured.count
    captured.symbols.update(dict.fromkeys(map(str, new), number))
    if new:
        captured.places.append(trace.place)
    for feature, least in ((NEGATIVE, 0), (SMALL, 2)):
        if is_assumed(trace.compilation, feature, number):
            _assert_above(least - 1, trace.compilation, new)
    if drawn is None:  # a decision on a draw goes either way
        assumptions.suppose(trace.compilation, new)


def _judge_shapes(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Read the numbers as they were written if the graph may take for granted what nothing checks.

    PyTorch takes for granted that a size which is squeezed is not 1, "with no runtime assertions", as it says in its
    log, and gives the program the shape that follows from that.  And it copies what may be contiguous or not, where
    eager may give the same memory: somebody may write to it.  Strides are those of sizes above 1.  And Inductor reads
    beyond a tensor, or writes nothing, where eager says that it has no such item.  And the backward pass of a spread
    divides by how many there are beyond one, a number of Python's there.
    """
    if any(map(_asks_for_strides, traced_code(compilation))):
        read_as_written(compilation, "strides are asked for, and a size that the data decides may be 0 or 1")
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
        if name in SPREADS and given and given[0].requires_grad:
            _need(compilation, [size > 1 for size in given[0].shape if is_unbacked(size)])
        if name in ("select", "getitem") and given:
            _need(compilation, _conditions_of_item(node, given[0]))
        if name in _UNCHECKED and any(is_unbacked(number) for number in _numbers_of(node)):
            read_as_written(compilation, f"nothing checks the numbers of {name}")
        if not any(map(is_unbacked, shapes)):
            continue
        if _SQUEEZING.search(name) and any(
            is_unbacked(shape[dim]) for shape in shapes for dim in _squeezed(node, shape)
        ):
            read_as_written(compilation, "a size that the data decides is squeezed")
        if name in _PERHAPS_COPYING and not all(map(is_contiguous, given)) and _is_shared(node, nodes):
            read_as_written(compilation, "what is copied or not, as a size has it, is written to")


def _numbers_of(node: torch.fx.Node) -> list[Any]:
    """The symbols that the operation is given."""
    values = [operand.meta.get("example_value") for operand in node.all_input_nodes]
    return [value for value in values if isinstance(value, torch.SymInt)]


def _conditions_of_item(node: torch.fx.Node, tensor: torch.Tensor) -> list[Any]:
    """What has to hold of a captured number for a tensor to have an item at it: ``tensor.select(dim, number)``."""
    if not any(map(is_unbacked, _numbers_of(node))):
        return []
    names = ("input", "index") if node.target is operator.getitem else ("input", "dim", "index")
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    dim, index = given.get("dim", 0), given["index"]
    if not isinstance(index, torch.fx.Node) or not isinstance(dim, int):
        return []
    number, size = index.meta["example_value"], tensor.shape[dim]
    return [number >= -size, number < size]


def _need(compilation: Compilation, conditions: list[Any] | None) -> None:
    """Assert what has to hold of captured numbers for an operation not to fail; read them if that is not known."""
    facts = [truth.node.expr if isinstance(truth, torch.SymBool) else truth for truth in conditions or ()]
    if conditions is None or False in facts:
        read_as_written(compilation, "an operation on captured numbers may fail")
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


def _assert_above(number: int, compilation: Compilation, symbols: Iterable[Any]) -> None:
    shapes = compilation.output.shape_env
    for symbol in symbols:
        bounds = shapes.var_to_range[symbol]
        if bounds.upper <= number:
            if not compilation.one_graph:
                read_as_written(compilation, f"a captured number is at most {number}")
        elif bounds.lower <= number:
            torch._check(shapes.create_symintnode(symbol, hint=None) > number)


def _switch_on(trace: Trace, kind: str) -> bool:
    from torch._dynamo import config

    compilation, output = trace.compilation, trace.output
    captured = compilation.of(Captured)
    if output.export or is_uncaptured(compilation) or is_as_written(trace) or trace.is_in_a_body:
        return False
    if not _is_allowed(compilation, captured) or not compilation.allows(CAPTURE, captured.count):
        return False
    if not compilation.one_graph and (not_captured.is_known(trace) or not_captured.is_of_many_pieces(trace)):
        captured.denied = Denied.BY_WORTH
        _allow(compilation, False)  # the operation as it is written would find it allowed since the first
        compilation.wrap_compiler(Wrapper.SYMBOLS, _allow_backend)
        return False
    restart.expect_success_of(compilation)
    before_arithmetic(compilation, _need)
    compilation.at_end(assumptions.judge_end)
    plan = rerun.keep(compilation)
    plan.rests.add(_asserts)
    plan.otherwise.add(_expect_no_assertions)
    shapes = output.shape_env  # of this compilation alone; the backend's too
    captured.before = set(shapes.var_to_range)
    compilation.judge(Verdict.BRANCH, assumptions.judge_branch)
    compilation.judge(Verdict.SHAPES, _judge_shapes)
    compilation.judge(Verdict.EXAMPLES, _judge_examples)
    compilation.change(Change.ASSERTED, _assert)
    compilation.wrap_compiler(Wrapper.CUDA_GRAPHS, cuda_graphs.keep_out)
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


def _allow_backend(compilation: Compilation, _module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    _allow(compilation, True)
    return compiler


def _judge_examples(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    if supposes(compilation):
        assumptions.remember(compilation)
    assumptions.conclude(compilation, module)


def _assert(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Read the numbers as they were written if what the graph asserts of them cannot be asserted of data."""
    by_example = assumptions.supposes(compilation)
    facts = [
        fact for fact in runtime_asserts.facts(compilation.output) if by_example or runtime_asserts.is_left_out(fact)
    ]
    facts += compilation.of(Captured).needed
    if not runtime_asserts.assert_of_data(module, compilation.of(Captured).bounds, facts):
        read_as_written(compilation, "what is taken for granted of a captured number cannot be asserted of data")
    if runtime_asserts.is_false_in_this_call(module):
        reason = "what is taken for granted of a captured number does not hold in this call"
        if bets := _by_call(compilation, reason):
            compilation.without(*bets, reason=reason)


def _by_call(compilation: Compilation, reason: str) -> list[Bet]:
    """What to drop for the numbers that this call gives to be the examples, or for nothing to be captured.

    [] where they are: what is false of these examples, too, an operation asserts that fails in eager as well.
    """
    if assumptions.decides_by_call(compilation) or not compilation.allows(assumptions.HOLDS):
        return []
    if compilation.allows(assumptions.EXAMPLES) and compilation.allows(assumptions.USUAL):
        return [assumptions.USUAL.at()]
    return [] if compilation.one_graph else all_but(0, compilation, reason)


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


def _asserts(compilation: Compilation) -> bool:
    """Does the graph assert more than bounds of captured numbers, or rest on what was supposed of them?

    Past a bound eager fails too, with the same exception.  That of arithmetic which fails is Python's.
    """
    facts = runtime_asserts.facts(compilation.output)
    beyond = any(getattr(fact, "rel_op", "") not in ("<", "<=", ">", ">=") for fact in facts)
    return beyond or bool(compilation.of(Captured).needed) or supposes(compilation)


def _expect_no_assertions(compilation: Compilation) -> None:
    """The frame may not be run again: capture less, if its graph asserts what it takes for granted."""
    if _asserts(compilation) and not compilation.one_graph:
        read_as_written(compilation, "a graph that cannot be run again asserts what it takes for granted")
