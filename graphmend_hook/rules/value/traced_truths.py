"""The truth of a tensor that traced code asks for at a test of which its text says nothing: ``if step % 2:``.

A flag or a number that comes in as a tensor decides as where a rule has seen the test: by a guard, for each answer.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any

import torch

from ...engine.attempt import refusals
from ...engine.door.question import at_connection, is_answered
from ...engine.door.tracer import is_covered, trace_at
from ...engine.door.truths_asked import answer_truths
from ...engine.door.variables import Variable, fake_of, has_fixed_sizes, is_plain_tensor, is_unread, tensor_node
from ...engine.epilogue import queue
from ...engine.graph_end import dead_code
from ...engine.numbers.captured_tensors import call
from ...engine.region import Regions
from .traced_contents import Asked, elements_of

_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo asks for a truth, from now on."""
    answer_truths(_truth)


@functools.cache
def _lines_of_while(code: CodeType) -> frozenset[int]:
    """The lines of what each `while` of the function repeats, its test among them."""
    found = {each.offset: each for each in dis.get_instructions(code)}
    jumps = [each for each in found.values() if each.opcode in _JUMPS and each.argval <= each.offset]
    steps = [range(each.argval, each.offset + 1) for each in jumps if found[each.argval].opname != "FOR_ITER"]
    starts, line, lines = dict(dis.findlinestarts(code)), code.co_firstlineno, set[int]()
    for offset in found:
        line = starts.get(offset, line)
        if line is not None and any(offset in each for each in steps):  # since Python 3.13 some have none
            lines.add(line)
    return frozenset(lines)


def _no_input(_leaf: torch.fx.Node) -> bool:
    """May the truth be known from this input?  From none: only what is made of constants is the same in each call."""
    return False


def _truth(translator: Any, test: Variable) -> bool | None:
    """Whether it is true, as the inputs of the frame say; None where they do not, or where a rule has asked them."""
    if is_unread(test) and not issubclass(test.peek_type(), torch.Tensor):
        return None
    if not (queue.specialise and is_covered(translator) and is_plain_tensor(test)):
        return None
    trace, fake = trace_at(translator), fake_of(test)
    if trace is None or trace.is_in_a_body:
        return None
    if not (has_fixed_sizes(fake) and fake.numel() == 1) or fake.is_complex() or fake.device.type == "meta":
        return None
    compilation = trace.compilation
    if not is_answered(trace) or compilation.of(Regions).open or compilation.of(Asked).root is tensor_node(test):
        return None
    # In a `while` there may be any number of steps; or a rule has left the test as it is written.
    is_left = translator.lineno in _lines_of_while(translator.f_code) or refusals.is_left(trace.place)
    if is_left:
        known = elements_of(trace, test, _no_input)
    else:  # a guard on a number would hold it to that, where each other that is not 0 decides alike
        known = elements_of(trace, test if fake.dtype is torch.bool else call(trace, torch.ne, test, 0))
    if known is None:
        compilation.of(Asked).root = tensor_node(test)
        return None
    dead_code.remember(compilation, test)
    refusals.decided.add(trace.place[:2])
    return bool(known[0])
