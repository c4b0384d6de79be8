"""Questions about the sides of a branch: what may be done in them, and what they have done once they are traced."""

from __future__ import annotations

import builtins
import enum
import operator
from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.as_written import is_as_written
from ...engine.attempt.attempt import INLINED, STATEMENT, STEP
from ...engine.attempt.compilation import Compilation, is_order
from ...engine.attempt.refusals import record as record_here
from ...engine.door.question import question
from ...engine.door.trace_state import State
from ...engine.door.tracer import SourceLine, Trace, is_caught
from ...engine.door.variables import LITTLE, Variable, bytes_of, is_plain_tensor, is_unread, python_of
from ...engine.facts.operations import divides_whole_numbers, is_plain
from ...engine.facts.writes import fakes_of
from ...engine.graph_end.order import Verdict
from ...engine.region import Codes, Regions, close_region, conditions, drop_region, open_region
from ...engine.stores import Slot, Stores
from ..defer.codes import NEEDS_ITS_BREAKS
from ..where.codes import ENDS_GRAPH, HARMFUL, SIZE_FIXED

# Where a module keeps what it registers; and the modules of types whose methods are nobody's own.
REGISTRIES = ("_parameters", "_buffers", "_modules")
# What Python ends a loop or a generator by, and what `getattr` and `hasattr` make of an attribute that is not there.
_CAUGHT_BY_PYTHON = (AttributeError, StopIteration, StopAsyncIteration, GeneratorExit)
_HOMES_OF_VALUES = frozenset({"builtins", "collections", "numpy", "torch", "types"})

_CODES = Codes(ENDS_GRAPH, SIZE_FIXED, HARMFUL)


@dataclass
class Created:
    """The attributes that sides create, by the variable of their owner; line: of the one that is being made."""

    attributes: set[tuple[int, str]] = field(default_factory=set)
    line: SourceLine | None = None


class Unspeculable(Exception):  # noqa: N818  control flow, not an error
    """A side cannot be evaluated ahead of the decision; the arguments: the code of the refusal, and the operation."""


@question(otherwise=0)
def count_stored(trace: Trace) -> int:
    """How many slots of older objects have the sides stored to that were ended last?"""
    return len(_stores(trace).slots)


@question(otherwise=False)
def has_stored(trace: Trace, place: int, is_then: bool) -> bool:
    """Has that side stored to the slot at that place?"""
    return _slot(trace, place) in _side(trace, is_then)


@question(otherwise=None)
def stored(trace: Trace, place: int, is_then: bool) -> Any:
    """What that side has stored in the slot."""
    return _side(trace, is_then)[_slot(trace, place)]


@question(otherwise="")
def attribute_of(trace: Trace, place: int) -> str:
    """The name of the attribute that the slot is; "" if it is an item."""
    slot = _slot(trace, place)
    return slot.key if slot.is_attribute else ""


@question(otherwise=False)
def had_attribute(trace: Trace, place: int) -> bool:
    """Did its owner have the attribute before, and would give it to whoever asks?"""
    slot = _slot(trace, place)
    described = getattr(slot.owner.python_type(), slot.key, None)
    return not hasattr(described, "__get__") and _has_itself(trace, slot.owner, slot.key)


@question(otherwise=None)
def owner_of(trace: Trace, place: int) -> Any:
    """The object whose attribute the slot is."""
    return _slot(trace, place).owner


@question(otherwise=None)
def item_before(trace: Trace, place: int) -> Any:
    """The item that the slot was before."""
    return _slot(trace, place).before


@question(otherwise=None)
def store(trace: Trace, place: int, value: Variable) -> None:
    """Store that in the slot."""
    _stores(trace).store(_slot(trace, place), value)


def _slot(trace: Trace, place: int) -> Slot:
    return _stores(trace).slots[place]


def _side(trace: Trace, is_then: bool) -> dict[Slot, Variable]:
    return _stores(trace).sides[0 if is_then else 1]


def _stores(trace: Trace) -> Stores:
    region = trace.compilation.of(Regions).last
    assert region is not None
    assert region.stores is not None
    return region.stores


def _has_itself(trace: Trace, owner: Variable, attribute: str) -> bool:
    """Does the object have the attribute, and not only its class, or its `__getattr__`?  Else storing makes it."""
    stored = trace.output.side_effects.store_attr_mutations.get(owner.realize(), {})
    if attribute in stored:
        return type(stored[attribute]).__name__ != "DeletedVariable"
    value = getattr(owner.realize(), "value", None)
    own = getattr(value, "__dict__", {})
    registered = [own.get(name, {}) for name in REGISTRIES] if isinstance(value, torch.nn.Module) else []
    return any(attribute in names for names in (own, *registered))


@question(otherwise=True)
def has_methods_of_the_program(_trace: Trace, value: Variable) -> bool:
    """May Python call a method that the program has written, where it compares the value, counts it, or calculates?"""
    try:
        kind = value.python_type()
    except NotImplementedError:  # Dynamo cannot tell
        return True
    return kind.__module__.partition(".")[0] not in _HOMES_OF_VALUES and not issubclass(kind, enum.Enum)


@question(otherwise=False)
def reads_plainly(_trace: Trace, owner: Variable, attribute: str) -> bool:
    """Does reading that attribute of the object give what is stored, without running code of its class?"""
    if is_plain_tensor(owner):
        return True
    kind = owner.python_type()
    looked_up = getattr(kind, "__getattr__", torch.nn.Module.__getattr__)
    usual = kind.__getattribute__ is object.__getattribute__ and looked_up is torch.nn.Module.__getattr__
    return usual and not hasattr(getattr(kind, attribute, None), "__get__")


@question(otherwise=False)
def is_spelled_out(_trace: Trace, text: Variable) -> bool:
    """Does the trace know the text?  It does not know one that a tensor is a part of."""
    return is_unread(text) or bool(text.realize().is_python_constant())


@question(otherwise=True)
def may_be_caught(trace: Trace, raised: Variable) -> bool:
    """May Python itself catch the exception where it is raised, as `getattr` and loops do?"""
    kind = _class_of(raised)
    names = {code.co_name for code in map(operator.attrgetter("f_code"), trace.frames_outside())}
    return issubclass(kind, _CAUGHT_BY_PYTHON) or (issubclass(kind, IndexError) and "__getitem__" in names)


def _class_of(raised: Variable) -> type:
    """The class of exceptions that the variable is, or is an instance of, or the name of, if it is a builtin."""
    try:
        value = python_of(raised)
    except NotImplementedError:
        return raised.python_type()  # type: ignore[no-any-return]
    named = getattr(builtins, value) if isinstance(value, str) else value
    return named if isinstance(named, type) else type(named)


@question(otherwise=False)
def is_defined_in(_trace: Trace, function: Variable, modules: tuple[str, ...]) -> bool:
    """Is the function defined in one of those modules?"""
    return getattr(python_of(function), "__module__", "") in modules


@question(otherwise=False)
def is_of_module(trace: Trace, owner: Variable, method: str) -> bool:
    """Is it `torch.nn.Module`'s method of that name?  One of the program's could look at the line that calls it."""
    kind, own = owner.python_type(), getattr(owner.realize(), "value", None)
    is_own = method in getattr(own, "__dict__", {})
    if is_own or getattr(kind, method, None) is not getattr(torch.nn.Module, method):
        record_here(HARMFUL)
        return False
    return True


_HARMFUL: tuple[str, ...] = (HARMFUL,)


@question(otherwise=_HARMFUL)
def why_not_begun(trace: Trace) -> tuple[str, ...]:
    """Remember what the trace has done so far, for `end_sides`; or why the place may not be a branch."""
    return _why_not_begun(trace)


def _why_not_begun(trace: Trace, predicate: Variable = None) -> tuple[str, ...]:
    if is_harmful(trace):
        return _HARMFUL
    lost = open_region(trace, _CODES, predicate)
    if lost is None:
        return ()
    return (lost.code, lost.about) if lost.about else (lost.code,)


@question(otherwise=None)
def end_sides(trace: Trace) -> None:
    """Since `why_not_begun`, did the trace only compute?  If not, trace anew, without.

    So too where the sides turned out unspeculable: what their first statements did is done.
    """
    close_region(trace)


@question(otherwise=None)
def give_up_sides(trace: Trace, why: tuple[str, ...]) -> None:
    """The sides that were traced last are not merged: trace anew, without, if guards are left of them."""
    drop_region(trace, why)


@question(otherwise=_HARMFUL)
def why_not_entered(trace: Trace, predicate: Variable) -> tuple[str, ...]:
    """As `why_not_begun`, and from here on the side is traced that is taken where the predicate is true."""
    return (NEEDS_ITS_BREAKS,) if is_as_written(trace) else _why_not_begun(trace, predicate)


@question(otherwise=None)
def collect(trace: Trace, effects: Variable) -> None:
    """Let the effects of functions that the side calls go to that list, among those of its own statements."""
    trace.compilation.of(Regions).open[-1].effects = effects


@question(otherwise=None)
def enter_other_side(trace: Trace) -> None:
    """From here on, the side is traced that is taken where the predicate is false."""
    trace.compilation.of(Regions).open[-1].turn(trace)


@dataclass
class Operands:
    """What the trace had come to where the right operands begin that are being evaluated in sides, with its writes."""

    before: list[tuple[State, int]] = field(default_factory=list)


@question(otherwise=None)
def begin_operand(trace: Trace) -> None:
    """Remember what the trace has come to, for `has_operand_changed`."""
    writes = len(trace.compilation.of(Regions).predicated)
    trace.compilation.of(Operands).before.append((State(trace), writes))


@question(otherwise=True)
def has_operand_changed(trace: Trace) -> bool:
    """Has what was traced since changed anything that the program could tell?"""
    state, writes = trace.compilation.of(Operands).before.pop()
    return bool(State(trace).changed_since(state)) or len(trace.compilation.of(Regions).predicated) != writes


@question(otherwise=0)
def open_sides(trace: Trace) -> int:
    """How many sides stand around the place, one in another; 0 where the condition of one is not known."""
    return len(conditions(trace) or ())


@question(otherwise=False)
def is_in_region(trace: Trace) -> bool:
    """Is what Python might not get to being traced?"""
    return bool(trace.compilation.of(Regions).open)


@question(otherwise=None)
def predicate_of(trace: Trace, depth: int) -> Any:
    """The condition of the side that `depth` others stand around, a tensor () of bool."""
    return trace.compilation.of(Regions).open[depth].predicate


@question(otherwise=True)
def is_where_true(trace: Trace, depth: int) -> bool:
    """Is that side taken where its condition is true?"""
    return trace.compilation.of(Regions).open[depth].is_where_true


@question(otherwise=False)
def watch(trace: Trace, owner: Variable, attribute: str) -> bool:
    """As `why_not_begun`; what is traced from here on makes the value of an attribute that a side creates.

    It is traced once in a frame, and nowhere where a handler could catch its exception.  If it ends the graph, or the
    attempt, the frame is traced anew, without.
    """
    key = id(owner.realize()), attribute
    if is_harmful(trace):
        return False
    if is_caught(trace) or key in trace.compilation.of(Created).attributes:
        trace.compilation.without(STATEMENT.at(trace.line), reason="an attribute is created where that cannot wait")
    trace.compilation.of(Created).attributes.add(key)
    trace.compilation.of(Created).line = trace.line
    trace.compilation.judge(Verdict.CREATED, _judge_creation)
    trace.compilation.at_end(_judge_creation)
    return not _why_not_begun(trace)


@question(otherwise=None)
def harmless(trace: Trace) -> None:
    """As `end_sides`; what was traced can also not fail, takes little memory, and is not trained."""
    trace.compilation.of(Created).line = None
    close_region(trace)
    made = trace.compilation.of(Regions).made
    fakes = [fake for node in made for fake in fakes_of(node)]
    is_trained = any(fake.requires_grad or not fake.is_contiguous() for fake in fakes)
    if is_trained or bytes_of(fakes) > LITTLE or not all(map(_cannot_fail, made)):
        trace.compilation.without(STATEMENT.at(trace.line), reason="what a side creates may fail, or is trained")


def _cannot_fail(node: torch.fx.Node) -> bool:
    """Is it plain, or made of numbers, as `torch.arange` is?  An input that is looked at for the first time is both."""
    is_input = node.op in ("placeholder", "get_attr")
    return is_input or ((is_plain(node) or not node.all_input_nodes) and not divides_whole_numbers(node))


def _judge_creation(compilation: Compilation, end: object) -> None:
    """Has the attempt, or a graph of it, ended while the value of an attribute was made?"""
    line = compilation.of(Created).line
    if line is not None and not is_order(end) and not compilation.one_graph:
        compilation.without(STATEMENT.at(line), reason="what a side creates cannot be traced")


def is_harmful(trace: Trace, line: int | None = None) -> bool:
    """Is the statement to be traced as it was written, as was found before, here or in a caller?

    line: or that at another line of the file.
    """
    if is_as_written(trace) or trace.line is None:
        return True
    lines = {trace.line, (trace.line[0], trace.line[1] if line is None else line)}
    return not all(trace.compilation.allows(feature, at) for feature in (STATEMENT, INLINED, STEP) for at in lines)
