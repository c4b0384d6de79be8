"""Lists of the state to which a frame appends, and that the trace does not look at: what is made of them is late.

The append waits for the end of the graph (``self.history.append(loss.item())``), and so does what is made of the list:
``np.mean(self.history)``, ``len(self.history)``, ``self.history[-10:]``.  It is made of a copy that has the numbers
which the frame has appended by then.  So nothing guards the length, but for a test that asks for it.
"""

from __future__ import annotations

import dis
import functools
import itertools
import operator
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ..attempt.compilation import Compilation
from ..attempt.skipped_frames import is_outside
from ..door import formatted_symbols, full_deques  # noqa: F401  a copy of a deque is as long as that
from ..door.frame_guards import inputs_at, install, may_be_relied_on
from ..door.question import at_connection, question
from ..door.tracer import Trace, is_caught, is_covered, trace_at
from ..door.truths_asked import answer_truths
from ..door.unguarded import can_be_loaded, guard_exact_type
from ..door.variables import Variable, answer_before, is_unread, tuple_of, unread_kinds
from ..region import Regions
from . import late_numbers
from .late_numbers import Real, is_late, kind_of

_KINDS = (list, deque)
_APPEND, _REMOVE = "append", "remove"
_LOOKED_AT = ("ListVariable", "DequeVariable")  # as Dynamo names them


@dataclass
class _Appended:
    """What an attempt appends to a list behind the graph: how often it may, and what it does for certain.

    changes: what it does for certain, in order: an append, or the first item is taken away.
    """

    target: Variable
    times: int = 0
    values: list[Variable] = field(default_factory=list)
    changes: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        return self.times == len(self.values)


@dataclass
class AppendsThatWait:
    """The lists that an attempt appends to behind the graph, by `id`."""

    found: dict[int, _Appended] = field(default_factory=dict)


def note_append(trace: Trace, target: Variable) -> None:
    """Something may be appended to the list, which the trace has not looked at."""
    found = trace.compilation.of(AppendsThatWait).found
    found.setdefault(id(target.peek_value()), _Appended(target)).times += 1


@question(otherwise=None)
def note_value(trace: Trace, target: Variable, value: Variable) -> None:
    """That is the value, and it is appended for certain."""
    if not trace.compilation.of(Regions).open:
        appended = trace.compilation.of(AppendsThatWait).found[id(target.peek_value())]
        appended.values.append(value)
        appended.changes += (_APPEND,)


def note_removal(trace: Trace, target: Variable) -> bool:
    """The first item is taken away; False where there may be none.  That there is one may be guarded."""
    found = trace.compilation.of(AppendsThatWait).found
    appended = found.setdefault(id(target.peek_value()), _Appended(target))
    if trace.compilation.of(Regions).open or not appended.is_known:
        return False
    if not _expect_item(trace, target, appended.changes):
        return False
    appended.changes += (_REMOVE,)
    return True


def expect_others(compilation: Compilation) -> None:
    """Let the code run only where the lists that it appends to are none of those that the trace has looked at."""
    known = compilation.output.side_effects.id_to_variable.values()
    looked_at = [each.source for each in known if type(each).__name__ in _LOOKED_AT and is_outside(each.source)]
    for appended in compilation.of(AppendsThatWait).found.values() if looked_at and may_be_relied_on() else ():
        _expect_none_of(compilation, appended.target.source, looked_at)


def _expect_none_of(compilation: Compilation, source: Any, others: list[Any]) -> None:
    sources = [source, *dict.fromkeys(others)]
    install(compilation, ("others", *sources), sources, _is_none_of, "a list is none of the others")


def _is_none_of(found: Any, *others: Any) -> bool:
    return all(found is not each for each in others)


class _Changed:
    """The list as the frame changes it."""

    def __init__(self, changes: tuple[str, ...]) -> None:
        self.changes = changes

    def __call__(self, found: Any, *appended: float) -> Any:
        copy, values = found.copy(), iter(appended)
        for change in self.changes:
            if change == _APPEND:
                copy.append(next(values))
            else:
                del copy[0]
        return copy


class _Length:
    """How long it is then."""

    def __init__(self, changes: tuple[str, ...]) -> None:
        self._changes = changes

    def __call__(self, found: Any) -> int:
        return _lengths(found, self._changes)[-1]


class _Holds:
    """Is there an item in it where one is taken away?"""

    def __init__(self, changes: tuple[str, ...]) -> None:
        self._changes = changes

    def __call__(self, found: Any) -> bool:
        return min(_lengths(found, self._changes)) >= 0


def _lengths(found: Any, changes: tuple[str, ...]) -> list[int]:
    """How long the list is, and behind each change; below 0 where an item is taken away from nothing."""
    lengths, most = [len(found)], getattr(found, "maxlen", None)
    for change in changes:
        length = lengths[-1] + (1 if change == _APPEND else -1)
        lengths.append(length if most is None else min(length, most))
    return lengths


class _Sliced:
    """A slice of it."""

    def __init__(self, part: slice) -> None:
        self.part = part

    def __call__(self, found: list[float]) -> list[float]:
        return found[self.part]


_changed, _length, _holds = functools.cache(_Changed), functools.cache(_Length), functools.cache(_Holds)
_COPIES = (list, sorted)
_ENDS = (0, -1)
_NEEDS_NONE = (len, sum, *_COPIES)


@at_connection
def watch() -> None:
    """Let Dynamo's builtins take such a list, before they look at it, from now on."""
    from torch._dynamo.variables import builtin
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lists import SliceVariable

    for unread in unread_kinds():
        for function in (len, max, min, *_COPIES):
            answer_before(function, unread, None, _asked)
        for place in (ConstantVariable, SliceVariable):
            answer_before(operator.getitem, unread, place, _item)
        answer_before(operator.not_, unread, None, _negated)
    kind = getattr(builtin, "ListBuiltinVariable", None)  # of `list`, in some versions
    if kind is not None and not hasattr(kind.call_function, "__wrapped__"):
        kind.call_function = _of_copies(kind.call_function)
    answer_truths(_truth)


def _of_copies(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Any, kwargs: Any) -> Any:
        made = made_of(list, args[0]) if len(args) == 1 and not kwargs else None
        return otherwise(function, translator, args, kwargs) if made is None else made

    return call_function


def _asked(function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any) -> Any:
    found = None if kwargs else made_of(function, args[0])
    return otherwise()(translator, args, kwargs) if found is None else found


def _truth(_translator: Any, given: Variable) -> bool | None:
    """Whether there is anything in the list, which is guarded; None of another one."""
    if is_late(given) and given.realize().kind is list:
        return late_numbers.tensors.supposed(late_numbers.trace_now(), given.realize())
    length = _length_of(given) if is_unread(given) else None
    return None if length is None else late_numbers.known.truth(late_numbers.trace_now(), length)


def _negated(_function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any) -> Any:
    from torch._dynamo.variables.constant import ConstantVariable

    found = None if kwargs else _truth(translator, args[0])
    return otherwise()(translator, args, kwargs) if found is None else ConstantVariable.create(not found)


def _item(_function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any) -> Any:
    found = item_of(*args)
    return otherwise()(translator, args, kwargs) if found is None else found


def is_changed(compilation: Compilation, source: Any) -> bool:
    """Has the frame changed the list there?  That it is none of the others that are changed is a guard from now on."""
    from torch._dynamo.variables.lists import BaseListVariable

    effects = compilation.output.side_effects
    known = [each for each in effects.id_to_variable.values() if isinstance(each, BaseListVariable) and each.source]
    changed = [each.source for each in known if effects.is_modified(each)]
    changed += [appended.target.source for appended in compilation.of(AppendsThatWait).found.values()]
    if not changed:
        return False
    found = inputs_at([source, *changed], compilation)
    if found is None or not _is_none_of(*found):
        return True
    _expect_none_of(compilation, source, changed)
    return False


def item_of(given: Variable, place: Variable) -> Variable:
    """``found[-1]``, ``found[-10:]``; None of another list, and where there may be no such item."""
    numbers = numbers_of(given)
    if numbers is None or not place.is_python_constant():
        return None
    at = place.as_python_constant()
    if type(at) is slice and numbers.kind is list and _may_slice(at):
        return _made(_Sliced(at), numbers, list)
    is_end = type(at) is int and at in _ENDS
    return _made(operator.itemgetter(at), numbers, float) if is_end and has_one(numbers) else None


def _may_slice(part: slice) -> bool:
    """Does no list fail on it?"""
    return all(type(each) in (int, type(None)) for each in (part.start, part.stop, part.step)) and part.step != 0


def made_of(function: Callable[..., Any], given: Variable) -> Variable:
    """What the function makes of the list, a number or another such list; None where it is none, or may fail."""
    if function is len and is_unread(given):
        return _length_of(given)
    numbers = numbers_of(given)
    if numbers is None or not (function in _NEEDS_NONE or has_one(numbers)):
        return None
    if function in _COPIES:
        return _made(function, numbers, list)
    if function is len:
        return _made(len, numbers, int)
    kind = type(function([1.0]))
    return _made(function, numbers, Real if function is sum and not has_one(numbers) else kind)


_NONE: Any = ()


@question(otherwise=False)
def is_copy(_trace: Trace, number: Variable) -> bool:
    """Is it the copy of such a list?"""
    return number.realize().function is _copied


@question(otherwise=_NONE)
def operands_at_delivery(_trace: Trace, number: Variable) -> Any:
    """What a late number is made of at a delivery, as a tuple: of a list the copy that is made before any of them."""
    operands = number.realize().operands
    return tuple_of([_copy_of(each) if is_unread(each) and each.peek_type() in _KINDS else each for each in operands])


def is_length(number: Variable) -> bool:
    """Is it how long such a list is?"""
    return isinstance(number.function, _Length) or number.function is len


def _copied(found: Any) -> Any:
    return found.copy()


def _copy_of(unread: Variable) -> Variable:
    return late_numbers.kind_of_variable()(_copied, [unread], unread.peek_type(), frozenset())


def reads_list(number: Variable) -> bool:
    """Is it made of such a list?"""
    number = number.realize()
    return isinstance(number.function, _Changed) or any(is_late(each) and reads_list(each) for each in number.operands)


def _made(function: Callable[..., Any], given: Variable, kind: type) -> Variable:
    return late_numbers.kind_of_variable()(function, [given], kind, given.lines)


def has_one(given: Variable) -> bool:
    """Is there a number in the list?  Where the frame has appended none before, that is guarded."""
    if isinstance(given.function, _Sliced):
        part = given.function.part
        is_end = part.step is None and part.stop is None and part.start is not None and part.start < 0
        return is_end and has_one(given.operands[0])
    if not isinstance(given.function, _Changed):
        return has_one(given.operands[0])
    unread, changes = given.operands[0], given.function.changes
    if changes.count(_APPEND) > changes.count(_REMOVE):
        return True
    return _expect_item(late_numbers.trace_now(), unread, changes)


def _expect_item(trace: Trace, unread: Variable, changes: tuple[str, ...]) -> bool:
    """Let the code run only where an item is in the list behind the changes; False where none is now."""
    held, holds = inputs_at([unread.source], trace.compilation), _holds((*changes, _REMOVE))
    if held is None or not holds(*held):
        return False
    install(trace.compilation, (holds, unread.source), [unread.source], holds, "there is an item in the list")
    return True


def _length_of(given: Variable) -> Variable:
    trace = _trace_of(given)
    appended = None if trace is None else _appended(trace, given)
    if trace is None or appended is None:
        return None
    return late_numbers.kind_of_variable()(_length(appended.changes), [given], int, frozenset({trace.line}))


def numbers_of(given: Variable) -> Variable:
    """The late list of floats that it is; None of anything else."""
    if not is_unread(given):
        given = given.realize()
        return given if is_late(given) and given.kind in _KINDS and reads_list(given) else None
    trace = _trace_of(given)
    appended = None if trace is None else _appended(trace, given)
    if trace is None or appended is None or not all(kind_of(each) is float for each in appended.values):
        return None
    found = inputs_at([given.source], trace.compilation)
    if found is None or not are_floats(found[0]):
        return None
    install(trace.compilation, ("floats", given.source), [given.source], are_floats, "there are floats in the list")
    lines = frozenset({trace.line}).union(*(each.lines for each in appended.values if is_late(each)))
    changed, operands = _changed(appended.changes), [given, *appended.values]
    return late_numbers.kind_of_variable()(changed, operands, given.peek_type(), lines)


def _appended(trace: Trace, given: Variable) -> _Appended | None:
    """What the frame has appended to the list by now; None where that is not known.

    Let the code run only where it is this one of the lists that the frame appends to.
    """
    appended: _Appended | None = _Appended(given)
    guard_exact_type(given)
    late_numbers.expect_end(trace)
    for known in trace.compilation.of(AppendsThatWait).found.values():
        is_this = known.target.peek_value() is given.peek_value()
        if is_this:
            appended = known if known.is_known else None
        sources = [given.source, known.target.source]
        compare = operator.is_ if is_this else operator.is_not
        install(trace.compilation, ("which list", *sources), sources, compare, f"{compare.__name__} of two lists")
    return appended


def are_floats(found: Any) -> bool:
    """Does a list hold nothing but floats, and may it hold some?"""
    return getattr(found, "maxlen", None) != 0 and {float}.issuperset(map(type, found))


def _trace_of(given: Variable) -> Trace | None:
    """The trace, where what is made of that list may wait: the frame appends to it, and has not looked at it."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    if not is_unread(given) or given.peek_type() not in _KINDS or not can_be_loaded(given.source):
        return None
    translator = InstructionTranslator.current_tx().output.current_tx
    trace = trace_at(translator)
    if trace is None or not _is_appended_to(trace, given) or not late_numbers.may_wait_here(trace) or is_caught(trace):
        return None
    is_known = id(given.peek_value()) in trace.output.side_effects.id_to_variable
    return None if is_known or trace.compilation.of(Regions).open else trace


def _is_appended_to(trace: Trace, given: Variable) -> bool:
    """Has the frame appended to it, or do the functions at hand to what has its name?"""
    if id(given.peek_value()) in trace.compilation.of(AppendsThatWait).found:
        return True
    name, frame = getattr(given.source, "member", None), trace.translator
    while frame is not None and name is not None:
        if is_covered(frame) and name in _appended_to(frame.f_code):
            return True
        frame = frame.parent
    return False


@functools.cache
def _appended_to(code: CodeType) -> frozenset[str]:
    """The attributes that the code appends to: ``self.history.append(...)``."""
    found = [*dis.get_instructions(code)]
    return frozenset(
        one.argval
        for one, then in itertools.pairwise(found)
        if one.opname == "LOAD_ATTR" and then.argval == "append" and then.opname in ("LOAD_ATTR", "LOAD_METHOD")
    )
