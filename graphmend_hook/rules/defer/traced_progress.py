"""Progress bars around what is traced: ``for layer in tqdm(self.layers)``, ``with tqdm(total=3) as bar``.

The loop goes over what the bar was given; the bar is made and moved behind the graph, step by step, in the order of the
other effects.  So it shows every step, and the time of none: a graph has no moments inside of it.

Dynamo inlines the functions that are given a list `shown`.  It holds what makes the bar, and from the delivery on the
bar, what that goes over, and its iterator; it is None where the bar shows nothing.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ...engine.attempt.attempt import Feature, Lifetime
from ...engine.attempt.compilation import Compilation
from ...engine.door.question import at_connection, is_answered, question
from ...engine.door.stand_ins import Call, Called, answer_calls, kept_inside
from ...engine.door.tracer import UNOBSERVED_CONTEXTS, Trace
from ...engine.door.variables import Variable, tuple_of, type_of
from ...engine.epilogue import deferral
from ...source import covered
from ...source.progress_bars import OF_RANGE, SHOWING, TQDM, TRACK
from ...source.templates import DONE, ITEM_AT_HAND
from .codes import NEEDS_ITS_BREAKS, UNKNOWN_CALL
from .traced import leave, record, refusal_here

_BARS = Feature("progress bars are shown behind the graph", Lifetime.CODE)


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo calls a class, or a function, of the program, from now on."""
    answer_calls(Called.CLASS, _is_bar, _bar)
    answer_calls(Called.FUNCTION, lambda function: function is _loaded(*TRACK), _steps_of)
    answer_calls(Called.SKIPPED, _is_of_range, _bar_of_range)


def _loaded(module: str, name: str) -> Any:
    """What the module has by that name, if it has been imported; else an object that nobody else has."""
    return getattr(sys.modules.get(module), name, _BARS)


def _is_bar(kind: Any) -> bool:
    """Is it a class of tqdm's own?  One that a program derives from it may do anything."""
    base = _loaded(*TQDM)
    return base is not _BARS and issubclass(kind, base) and _is_of_tqdm(kind)


def _is_of_range(function: Any) -> bool:
    """Is it one of tqdm's that make a bar for a range?"""
    return getattr(function, "__name__", "") in OF_RANGE and _is_of_tqdm(function)


def _is_of_tqdm(called: Any) -> bool:
    return isinstance(called.__module__, str) and called.__module__.partition(".")[0] == TQDM[0].partition(".")[0]


@dataclass
class _Bars:
    """The lists of those that an attempt moves only as long as data has not ended their loops."""

    followed: list[Variable] = field(default_factory=list)


def _may_wait(trace: Trace) -> bool:
    is_on = any(covered.is_under("defer", frame.f_code, frame.f_globals) for frame in trace.frames())
    return is_on and is_answered(trace) and trace.compilation.allows(_BARS)


def _begun_by(call: Call) -> tuple[Variable, Variable] | None:
    """The list of a bar that is made behind the graph, and its items; None where it is to be made as it was written."""
    first, *others = _parameters(call.called)
    if len(call.args) > 1 + len(others) or not {first, *others} >= call.options.keys() or not _may_wait(call.trace):
        return None
    given = {**dict(zip((first, *others), call.args, strict=False)), **call.options}
    items = given.pop(first, None) or call.variable(None)
    shown = call.inlined(_begin, call.called, items, (*given,), tuple_of([*given.values()]))
    is_refused = shown.is_python_constant() and shown.as_python_constant() is False
    return None if is_refused else (shown, items)


def _parameters(called: Any) -> list[str]:
    """The names of what it can be given; tqdm's own classes take what the first of them does."""
    if not isinstance(called, type):
        return [*inspect.signature(called).parameters]
    _self, *names = inspect.signature(_loaded(*TQDM).__init__).parameters
    return [name for name in names if name != "kwargs"]


def _bar(call: Call) -> Variable:
    begun = _begun_by(call)
    return None if begun is None else call.stand_in(_stand_in(call.called), [*begun], _without)


def _steps_of(call: Call) -> Variable:
    begun = _begun_by(call)
    return None if begun is None else call.inlined(_steps, *begun)


def _bar_of_range(call: Call) -> Variable:
    """What such a function makes of its arguments."""
    names = call.called.__code__.co_names
    kind = next(found for found in map(call.called.__globals__.get, names) if isinstance(found, type))
    return _bar(Call(call.trace, kind, [call.inlined(range, *call.args)], call.options))


def _begin(called: Any, items: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Traced: let the bar be made behind the graph, and give the list of it; False where it cannot be."""
    if "disable" in names and values[names.index("disable")] is True:
        return None
    if not deferral.tracing() or _is_refused(names, values):
        return False
    shown = [called]
    leave(_make, shown, (items is not None, len(items) if _has_length(items) else None, names, *values))
    return shown


@question(otherwise=False)
def _has_length(_trace: Trace, items: Variable) -> bool:
    return hasattr(type_of(items), "__len__")


def _is_refused(names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
    """May the bar be another one at the end of the graph?  Where it writes to, it is given as it is.

    names: of the last values.
    """
    first = len(values) - len(names)
    shown = [value for place, value in enumerate(values) if place < first or names[place - first] != "file"]
    why = refusal_here(False, tuple(shown), silent=False, is_shown=True)
    if why:
        record(why)
    return why != ""


def _steps(shown: Any, items: Any) -> Iterator[Any]:
    """Traced: the items, with a step of the bar for each, as long as data has not ended the loop."""
    if shown is not None:
        leave(_go_over, shown, ())
    for item in items:
        if shown is not None:
            _leave_unless(_is_done(shown), _step, shown)
        yield item
    if shown is not None:
        _leave_unless(_is_done(shown), _end, shown)


def _leave_unless(is_done: Any, delivery: Callable[..., None], shown: Any) -> None:
    leave(delivery, shown, (), None if is_done is False else ~is_done)


@question(otherwise=False)
def _is_done(trace: Trace, shown: Variable) -> Any:
    """Has data ended the loop over the steps?  False where it cannot; else a tensor (), or what the trace knows."""
    loop = next(trace.frames_outside())
    names = loop.instructions[loop.instruction_pointer].argval
    found = names[0] if isinstance(names, tuple) else names
    if not isinstance(found, str) or not found.startswith(ITEM_AT_HAND):
        return False
    trace.compilation.of(_Bars).followed.append(shown.realize())
    return loop.symbolic_locals[found.replace(ITEM_AT_HAND, DONE)]


def stepped(trace: Trace, bar: Variable) -> Variable:
    """What the bar goes over that stands there, if it stops where data ends the loop; None of anything else."""
    bar = bar.realize()
    if type_of(bar) not in UNOBSERVED_CONTEXTS:
        return None
    shown, items = (trace.output.side_effects.load_attr(bar, name).realize() for name in ("_shown", "_stepped"))
    is_none = shown.is_python_constant() and shown.as_python_constant() is None
    return items if is_none or any(each is shown for each in trace.compilation.of(_Bars).followed) else None


class _Bar:
    """Traced in the place of a bar of tqdm's, which exists behind the graph; what nothing is known of ends that."""

    def __init__(self, shown: Any, items: Any) -> None:
        object.__setattr__(self, "_shown", shown)
        object.__setattr__(self, "_stepped", items)
        object.__setattr__(self, "_kept_inside", _kept_inside())

    def __iter__(self) -> Iterator[Any]:
        return _steps(self._shown, self._stepped)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._shown is not None:  # a bar that is not closed in the end closes itself
            leave(_call, self._shown, ("close", ()))

    def __getattr__(self, name: str) -> Any:
        _give_up(UNKNOWN_CALL)

    def __setattr__(self, name: str, value: object) -> None:
        _give_up(UNKNOWN_CALL)

    def __bool__(self) -> bool:
        _give_up(UNKNOWN_CALL)
        return True

    def __len__(self) -> int:
        if not _has_length(self._stepped):
            _give_up(UNKNOWN_CALL)
        return len(self._stepped)

    def __del__(self) -> None: ...


def _method(name: str) -> Callable[..., Any]:
    def show(self: _Bar, *args: Any, **options: Any) -> Any:
        _show(self, name, args, options)
        return self._kept_inside  # of a step, say, whether it has been shown

    return show


for _name in SHOWING:
    setattr(_Bar, _name, _method(_name))


@functools.cache
def _stand_in(kind: type) -> type:
    """The class of what stands for such a bar: to Dynamo it is one."""
    made = type(kind.__name__, (_Bar, kind), {"__new__": object.__new__})
    UNOBSERVED_CONTEXTS.add(made)
    return made


def _without(compilation: Compilation, reason: str) -> NoReturn:
    """Trace the frame anew, with bars as they were written."""
    compilation.without(_BARS.at(code=NEEDS_ITS_BREAKS), reason=reason)


def _show(bar: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Traced: let the method be called behind the graph."""
    if bar._shown is None:
        return
    values, names = (*args, *options.values()), (*options,)
    if _is_refused(names, values):
        _give_up(NEEDS_ITS_BREAKS)
    leave(_call, bar._shown, (method, names, *values))


@question(otherwise=None)
def _give_up(trace: Trace, why: str) -> None:
    record(why)
    _without(trace.compilation, "a progress bar is not only shown")


@question(otherwise=None)
def _kept_inside(trace: Trace) -> Any:
    return kept_inside(trace.compilation, _without)


class _Steps:
    """What a bar goes over behind the graph: as many items as the traced loop has taken."""

    is_over = False

    def __iter__(self) -> Iterator[None]:
        while not self.is_over:
            yield None


class _KnownSteps(_Steps):
    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def _make(shown: list[Any], given: tuple[Any, ...]) -> None:
    has_items, length, names, *values = given
    items = _Steps() if length is None else _KnownSteps(length)
    bar = shown[0](items if has_items else None, **dict(zip(names, values, strict=True)))
    shown[:] = [bar, items]


def _go_over(shown: list[Any], _given: object) -> None:
    shown[1].is_over = False
    shown[2:] = [iter(shown[0])]


def _step(shown: list[Any], _given: object) -> None:
    next(shown[2])


def _end(shown: list[Any], _given: object) -> None:
    shown[1].is_over = True
    next(shown[2], None)


def _call(shown: list[Any], given: tuple[Any, ...]) -> None:
    method, names, *values = given
    count = len(values) - len(names)
    getattr(shown[0], method)(*values[:count], **dict(zip(names, values[count:], strict=True)))
