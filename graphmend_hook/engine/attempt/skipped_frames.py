"""Frames that Dynamo would leave to eager for a break in a loop, a ``try`` or a ``with``, if the break were not freed.

There the program runs as it is.  Where such a frame is compiled, what Dynamo has no guard for is guarded here; what no
guard can tell has the frame traced as it was written.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from ...source.tensor_ops import FAILS_ON_MATRICES
from ..door import frame_guards
from ..door.missing_guards import BREAKS, LEFT, Read, reads_of, sources_of, which_are_the_same
from ..door.tracer import Trace, has_handlers, traced_code
from ..door.trust import Mechanism, works
from ..door.variables import Variable, type_of
from ..facts.operations import name_of
from ..graph_end.order import Verdict
from .as_written import mending
from .compilation import Compilation, memory_of


@dataclass
class _Left:
    """What a frame remembers: the codes that a break in them, which has been freed, would have left to eager."""

    codes: set[CodeType] = field(default_factory=set)


def remember(compilation: Compilation) -> None:
    """A break has been freed at the instruction that the trace has come to."""
    if compilation.one_graph or compilation.output.export:
        return
    is_inner, left = False, compilation.memory.of(_Left)
    for frame in Trace(compilation.output.current_tx).frames_outside():
        is_left = getattr(frame, BREAKS, False) or _would_be_left(frame, is_inner)
        setattr(frame, BREAKS, is_left)
        is_inner = True
        if is_left:
            left.codes.add(frame.f_code)
            compilation.memory.beginnings.add(_begin)
            compilation.judge(Verdict.SKIPPED, _judge)


def is_resumed(trace: Trace) -> bool:
    """Does Dynamo go on behind a break at the instruction that the trace has come to, in the frame that it traces?"""
    frames = [*trace.frames_outside()]
    is_left = any(_would_be_left(frame, number > 0) for number, frame in enumerate(frames))
    return not is_left and bool(trace.output.root_tx.should_compile_partial_graph())


def was_left(code: CodeType) -> bool:
    """Has a break been freed in a frame of that code, compiled by itself, that would have left it to eager?"""
    return code in memory_of(code).of(_Left).codes


def _begin(compilation: Compilation) -> None:
    """Dynamo would have left the frame to eager for ever, whichever way the program takes now."""
    if not compilation.one_graph:
        codes = compilation.memory.of(_Left).codes
        vars(compilation.output)[LEFT] = codes
        setattr(compilation.output.root_tx, BREAKS, compilation.code in codes)
        compilation.judge(Verdict.SKIPPED, _judge)


def _would_be_left(frame: Any, is_inner: bool) -> bool:
    """Can Dynamo not go on behind the instruction?  That is what it asks itself at a break.

    is_inner: does the instruction call what breaks?  A property is called by a read, an iterator by a loop.
    """
    entry = getattr(frame.current_instruction, "exn_tab_entry", None)
    blocks = frame.block_stack
    if entry is not None and (not blocks or entry.target is not blocks[-1].target):
        return True
    if not all(block.can_restore() for block in blocks) or getattr(frame, "active_generic_context_managers", None):
        return True
    if is_inner and not frame.current_instruction.opname.startswith("CALL"):
        return True
    return _is_in_a_loop(frame)


def _is_in_a_loop(frame: Any) -> bool:
    return any(True for _ in _jumps_back(frame))


def is_in_open_loop(frame: Any) -> bool:
    """Is the instruction in a loop that no iterator ends, the innermost one or one around it?"""
    return any(each.target.opname not in ("FOR_ITER", "SEND") for each in _jumps_back(frame))


def _jumps_back(frame: Any) -> Iterator[Any]:
    """The jumps behind the instruction to what stands before it."""
    from torch._dynamo.bytecode_analysis import JUMP_OPNAMES

    at = frame.current_instruction.offset
    behind = frame.instructions[frame.instruction_pointer :]
    return (each for each in behind if each.opname in JUMP_OPNAMES and each.argval < at)


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    output = compilation.output
    reads = reads_of(output)
    if getattr(output.root_tx, BREAKS, False):
        reads |= reads_of(output.root_tx)
    unknown = [read.what for read in reads if read.fact is None]
    if any(type(each).__name__ == "RandomVariable" for each in _outside(compilation)):
        unknown.append("a generator of random numbers")
    if any(map(_may_fail, module.graph.nodes)) and any(map(has_handlers, traced_code(compilation))):
        unknown.append("an exception that a graph raises, which comes to no handler")
    reason = unknown[0] if unknown else "" if _guard(compilation, [*reads]) else "what is read cannot be guarded"
    if not reason:
        return
    reason = f"{reason}, in a frame that is left to eager"
    if bet := mending(compilation):
        compilation.without(bet, reason=reason)
    if compilation.code in compilation.memory.of(_Left).codes:
        compilation.leave_to_eager(reason)


def _may_fail(node: torch.fx.Node) -> bool:
    """Does the operation fail on some matrices?"""
    return node.op.startswith("call") and name_of(node) in FAILS_ON_MATRICES


def _guard(compilation: Compilation, reads: list[Read]) -> bool:
    """Let the code run only where the reads would give the same; False where that cannot be told."""
    reads = [read for read in reads if all(map(is_outside, read.sources))]
    facts = [(read.fact, read.given, read.sources) for read in reads if read.fact is not which_are_the_same]
    compared = [source for read in reads if read.fact is which_are_the_same for source in read.sources]
    compared += _changed(compilation)
    objects = dict.fromkeys(each for source in compared for each in sources_of(compilation.output, source))
    if len(objects) > 1:
        facts.append((which_are_the_same, (), (*objects,)))
    if not frame_guards.may_be_relied_on():  # a program that filters guards has been told what it does
        return works(Mechanism.GUARDS)
    sources = [source for _, _, given in facts for source in given]
    found = frame_guards.inputs_at(sources, compilation)
    if found is None:
        return False
    read = functools.partial(_read, [(fact, given, len(of)) for fact, given, of in facts])
    holds = functools.partial(_holds, read, read(found))
    frame_guards.install(compilation, _judge, sources, holds, "what is read is the same")
    return True


def _read(facts: list[Any], objects: Sequence[Any]) -> list[Any]:
    rest = iter(objects)
    return [fact(*given, *itertools.islice(rest, count)) for fact, given, count in facts]


def _holds(read: Callable[[Sequence[Any]], list[Any]], was: list[Any], *objects: Any) -> bool:
    return read(objects) == was


def _outside(compilation: Compilation) -> list[Variable]:
    """The objects that the trace has found, and not made."""
    known = compilation.output.side_effects.id_to_variable.values()
    found = [variable for variable in known if variable.source is not None and variable.mutation_type is not None]
    return [variable for variable in found if is_outside(variable.source)]


def is_outside(source: Any) -> bool:
    """Does it lead to an object by names of the frame?  What the trace has made may have a source, and no name."""
    try:
        return bool(frame_guards.name_of(source))
    except NotImplementedError:
        return False


def _changed(compilation: Compilation) -> list[Any]:
    """Where there are the objects that the traced code has changed, and others of their types, which may be they."""
    outside = _outside(compilation)
    kinds = {type_of(each) for each in outside if compilation.output.side_effects.is_modified(each)} - {object}
    return [each.source for each in outside if type_of(each) in kinds]
