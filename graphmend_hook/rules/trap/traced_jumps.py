"""Tests of data behind which the program always raises, wherever they stand: ``if sigma <= 0: raise``, an ``assert``.

[Trap] rewrites those whose text may be about a tensor.  Of every other one the trace tells at the jump: the
instructions of one way end with an exception, with no way around it.  That way is not traced; that it is not taken is a
guard of the graph, behind which the function is run again as it was written if it is.
"""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass
from typing import Any

import torch

from ...engine.door.question import at_connection, is_answered
from ...engine.door.tracer import Trace, covered_trace_at, is_under
from ...engine.door.truths_asked import answer_truths
from ...engine.door.variables import Variable, fake_of, has_fixed_sizes, is_plain_tensor, is_unread
from ...engine.numbers import late_numbers, number_tensors
from ...engine.numbers.captured_tensors import call
from ...engine.region import Regions
from ..value import traced_truths

_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
_ALWAYS = ("JUMP_ABSOLUTE", "JUMP_FORWARD")
_LEAVING = ("RETURN_", "YIELD_")
_MOST = 256  # instructions that make an exception


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo asks for a truth that no input decides, from now on."""
    traced_truths.watch()
    answer_truths(_spared)


def _spared(translator: Any, test: Variable) -> bool | None:
    """The truth with which the program does not raise, which is guarded; None where it cannot be."""
    if is_unread(test) or not (late_numbers.is_late(test) or is_plain_tensor(test)):
        return None
    way = _way_that_raises(translator)
    if way is None or (way.is_assertion and not late_numbers.is_late(test)):  # of a tensor Dynamo asserts it
        return None
    trace, raises = covered_trace_at(translator), way.truth
    if trace is None or not (is_under(trace, "trap") and is_answered(trace)) or trace.is_in_a_body:
        return None
    if trace.compilation.of(Regions).open:
        return None
    predicate = _predicate(trace, test.realize(), raises)
    is_guarded = predicate is not None and number_tensors.may_expect_false(trace, predicate)
    return not raises if is_guarded else None


def _predicate(trace: Trace, test: Variable, raises: bool) -> Variable:
    """A tensor () that is true where the program raises; None where there is none that is equal to the bit."""
    if late_numbers.is_late(test):
        if number_tensors.is_decided(test):
            return None
        test = number_tensors.tensor_of(trace, test)
    if test is None:
        return None
    fake = fake_of(test)
    if not has_fixed_sizes(fake) or fake.numel() != 1 or fake.is_complex() or fake.device.type == "meta":
        return None
    truth = call(trace, torch.reshape, call(trace, torch.ne, test, 0), ())
    return truth if raises else call(trace, torch.logical_not, truth)


@dataclass(frozen=True)
class _Way:
    """That of the two of a jump which ends with an exception: the truth with which it is taken."""

    truth: bool
    is_assertion: bool


def _way_that_raises(translator: Any) -> _Way | None:
    """That of the jump at hand; None where both ways may go on, or neither."""
    jump = translator.current_instruction
    place = translator.indexof[jump]
    if jump.opname == "TO_BOOL":  # since Python 3.13 in front of the jump
        place += 1
        jump = translator.instructions[place]
    if not jump.opname.startswith("POP_JUMP") or not jump.opname.endswith(("IF_TRUE", "IF_FALSE")):
        return None
    is_taken = jump.opname.endswith("IF_TRUE")
    starts = {is_taken: translator.indexof[jump.target], not is_taken: place + 1}
    ways = {truth: _until_raised(translator, start) for truth, start in starts.items()}
    raising = [_Way(truth, "LOAD_ASSERTION_ERROR" in names) for truth, names in ways.items() if names is not None]
    return raising[0] if len(raising) == 1 else None


def _until_raised(translator: Any, place: int) -> list[str] | None:
    """The operations from there on to an exception; None where there is a way around it."""
    names: list[str] = []
    while len(names) < _MOST and place < len(translator.instructions):
        instruction = translator.instructions[place]
        name = instruction.opname
        if name == "RAISE_VARARGS":
            return names
        if name in _ALWAYS:
            place = translator.indexof[instruction.target]
        elif instruction.opcode in _JUMPS or name.startswith(_LEAVING):
            return None
        else:
            place += 1
        names.append(name)
    return None
