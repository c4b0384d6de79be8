"""What is supposed of a number that the data decides, where a decision asks for it: ``if boxes.numel() > 4000:``.

PyTorch decides such a test by an example of the number, if there is one (`propagate_real_tensors`), and asserts in the
graph what it then took for granted.  Here the example is a usual number; or, where that is not true of the call for
which the frame is compiled, what the number is in that call (`first_call`).  What is asserted of it is asserted of data
(`runtime_asserts`), and where that fails, the frame runs as it was written (`rerun`) and is compiled once more, by
another example; after a second failure its numbers are read as they were written.

The backend gets no examples: nobody would see to what it took for granted.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..attempt.attempt import Bet, Feature
from ..attempt.compilation import Compilation
from ..attempt.skipped_frames import is_in_open_loop
from ..door.tracer import Trace
from ..epilogue.rerun import RerunMemory
from ..facts.writes import fakes_of
from . import first_call, not_captured, runtime_asserts

UNDECIDED = re.compile(r"data-dependent expression (.+?) \(unhinted")  # how PyTorch says that no number is known
_USUAL = 7  # neither empty, nor one, nor many, nor a number of corners or colours
_FEW = 1
_MOST_PASSES = 32  # of a loop without an iterator


@dataclass
class Suppositions:
    """What a frame remembers.  made: one of its graphs rests on what was supposed."""

    made: bool = False


@dataclass
class _Passes:
    """How often an attempt has come to an instruction that captures numbers in a loop without an iterator, by frame."""

    begun: Counter[tuple[Any, int]] = field(default_factory=Counter)


OPEN = Feature("what a captured number decides is open")  # else an example decides
USUAL = Feature("the example is a usual number")  # else it is what each is in the call for which the frame is compiled
EXAMPLES = Feature("an example may decide")
HOLDS = Feature("the graph does not fail in the call for which it is compiled")


# With the numbers of the call the program fails while it is traced, and so it does in eager: it is traced as at first,
# its graph fails, and the frame, run again, fails as in eager.
LETTING_FAIL = (EXAMPLES.at(), HOLDS.at())


def example_of(compilation: Compilation) -> int | None:
    """The number by which the attempt decides, if by any."""
    if not compilation.allows(EXAMPLES):
        return None
    if not compilation.allows(USUAL):
        return _USUAL
    return None if compilation.allows(OPEN) else _example(compilation)


def supposes(compilation: Compilation) -> bool:
    """Does the attempt decide by an example?"""
    return example_of(compilation) is not None


def decides_by_call(compilation: Compilation) -> bool:
    """Does it decide by what each number is in the call for which the frame is compiled, where that is known?"""
    return not compilation.allows(USUAL) and compilation.allows(EXAMPLES)


def deciding(compilation: Compilation) -> list[Bet]:
    """What to drop for an example to decide; [] if one does, or none may."""
    may_begin = compilation.allows(EXAMPLES) and not supposes(compilation)
    return [OPEN.at()] if may_begin and _example(compilation) is not None else []


def judge_branch(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    """Trace the frame anew where a branch ends the graph that an example of a captured number decides."""
    is_undecided = UNDECIDED.search(compilation.output.compile_subgraph_reason.reason)
    if is_undecided and (bets := deciding(compilation)):
        compilation.without(*bets, reason="a branch depends on a number that was captured")


def judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Trace the frame anew where an example led into an exception, such as that of a list which is too short."""
    from torch._dynamo.exc import SkipFrame, Unsupported

    if isinstance(error, (SkipFrame, Unsupported)) and supposes(compilation):  # others are judged as failures
        compilation.without(EXAMPLES.at(), reason=f"{type(error).__name__} after a decision by an example")


def _example(compilation: Compilation) -> int | None:
    """What to suppose of each number that is captured in an attempt; None where nothing is left that may hold.

    Where a graph has failed, that is a number of which what it took for granted is not true.
    """
    memory = compilation.memory.of(RerunMemory)
    if not memory.failures:
        return _USUAL
    if memory.failures > 1 or not compilation.memory.of(Suppositions).made:
        return None
    failed = runtime_asserts.fact_in(memory.said)
    others = [example for example in (_USUAL, _FEW) if failed and not_captured.holds(failed, example) is False]
    return next(iter(others), None)


def is_to_be_read(compilation: Compilation) -> bool:
    """Has a graph failed, and is there nothing left to be supposed of the frame's numbers?"""
    return compilation.memory.of(RerunMemory).failures > 0 and _example(compilation) is None


def suppose(compilation: Compilation, symbols: Iterable[Any]) -> None:
    """Let PyTorch decide on the symbols by the example, or by the nearest number that they can stand for."""
    example = example_of(compilation)
    if example is None:
        return
    symbols = list(symbols)
    numbers = _in_this_call(compilation, symbols) if decides_by_call(compilation) else None
    if numbers is None and _never_ends(compilation):
        compilation.without(EXAMPLES.at(), reason="a loop goes on for as long as its numbers are supposed")
    shapes = compilation.output.shape_env
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    logger.addFilter(_is_not_about_examples)
    compilation.undo.callback(logger.removeFilter, _is_not_about_examples)
    for symbol, number in zip(symbols, numbers or [example] * len(symbols), strict=True):
        bounds = shapes.var_to_range[symbol]
        if bounds.is_int:
            shapes.set_real_tensor_prop_unbacked_vals(symbol, int(min(max(number, bounds.lower), bounds.upper)))


def _never_ends(compilation: Compilation) -> bool:
    """Has a loop without an iterator (``while order.numel() > 0:``) captured numbers in pass after pass?

    Each pass has new ones, of which the same is supposed, and that may be for ever what has the loop go on.
    """
    passes = compilation.of(_Passes).begun
    for frame in Trace(compilation.output.current_tx).frames_outside():
        if is_in_open_loop(frame):
            key = frame, frame.current_instruction.offset
            passes[key] += 1
            if passes[key] > _MOST_PASSES:
                return True
    return False


def _in_this_call(compilation: Compilation, symbols: Sequence[Any]) -> list[int] | None:
    """What the data makes of the symbols of the last operation of the graph; None if that is not known."""
    nodes = list(reversed(compilation.output.graph.nodes))
    makers = [next((node for node in nodes if symbol in _sizes(node)), None) for symbol in symbols]
    values = first_call.values_of([node for node in makers if node is not None])
    if values is None or None in makers:
        return None
    places = [_sizes(node).index(symbol) for node, symbol in zip(makers, symbols, strict=True) if node is not None]
    return [_numbers(value)[place] for value, place in zip(values, places, strict=True)]


def _sizes(node: torch.fx.Node) -> list[Any]:
    """The numbers that a node stands for, as expressions of sympy: of a tensor its sizes."""
    return [
        number.node.expr if isinstance(number, torch.SymInt) else number
        for number in _numbers(node.meta.get("example_value"))
    ]


def _numbers(value: Any) -> list[Any]:
    found = [part.shape if isinstance(part, torch.Tensor) else part for part in tree_leaves(value)]
    return [number for part in found for number in (part if isinstance(part, torch.Size) else (part,))]


def _is_not_about_examples(record: logging.LogRecord) -> bool:
    """PyTorch warns of each decision that it makes by an example, as if nothing made sure of it."""
    return not str(record.msg).startswith("propagate_real_tensors")


def conclude(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """If an example has decided, forget it, now that the graph is made; trace anew where nothing may rest on it."""
    if not supposes(compilation):
        return
    is_for_one_number, is_false = _is_for_one_number(compilation), _is_false_of_examples(compilation)
    compilation.output.shape_env.real_tensor_prop_unbacked_vals.clear()
    if is_false and decides_by_call(compilation):
        compilation.without(*LETTING_FAIL, reason="an operation fails with the numbers of this call")
    if is_for_one_number:
        compilation.without(EXAMPLES.at(), reason="a decision depends on the very value of a captured number")
    if _is_trained(module):
        compilation.without(EXAMPLES.at(), reason="the backward pass is compiled too late to give a decision up")


def remember(compilation: Compilation) -> None:
    """Remember that the graph rests on what was supposed of a number."""
    compilation.memory.of(Suppositions).made = True


def _is_for_one_number(compilation: Compilation) -> bool:
    """Does the graph hold for a single number, the example, or for two that are equal?

    That is what a loop over ``range(n)`` asks for, or a list that is indexed: nothing speaks for just this number, and
    a backend that knows how many rows there are does not count them, so that no assertion of data can fail.  Where two
    numbers are equal it counts one of them.
    """
    shapes = compilation.output.shape_env
    known = {symbol for symbol in shapes.real_tensor_prop_unbacked_vals if shapes.var_to_range[symbol].is_singleton()}
    return bool(known) or any(getattr(fact, "rel_op", "") == "==" for fact in runtime_asserts.facts(compilation.output))


def _is_false_of_examples(compilation: Compilation) -> bool:
    """Is anything asserted that the examples contradict?  Of a 1, which eager may broadcast, too much is asserted."""
    examples = compilation.output.shape_env.real_tensor_prop_unbacked_vals
    return any(
        fact.xreplace(examples) == False  # noqa: E712  of sympy
        and 1 not in [examples.get(symbol) for symbol in fact.free_symbols]
        for fact in runtime_asserts.facts(compilation.output)
    )


def _is_trained(module: torch.fx.GraphModule) -> bool:
    """Does the graph give what requires a gradient?  Inductor compiles the backward pass only when that is run."""
    return any(fake.requires_grad for node in module.graph.output_node().all_input_nodes for fake in fakes_of(node))
